#include <lanepack/json/model_config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <lanepack/core/error.hpp>
#include <lanepack/cost/model_description.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack::count_parameters;
using lanepack::model_description;
using lanepack::parse_model_config;
using lanepack::sliding_window_description;

// Keys and values as in the published configurations; keys without a meaning for sizes are left
// out, a few kept to show that they do no harm.

constexpr std::string_view llama3_8b = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256})";

constexpr std::string_view qwen25_7b = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
  "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 32768,
  "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 28,
  "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
  "sliding_window": 131072, "tie_word_embeddings": false, "use_sliding_window": false,
  "vocab_size": 152064})";

constexpr std::string_view qwen3_30b_a3b = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
  "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
  "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
  "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
  "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false,
  "vocab_size": 151936})";

constexpr std::string_view mixtral = R"({
  "architectures": ["MixtralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "model_type": "mixtral", "num_attention_heads": 32,
  "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_local_experts": 8, "output_router_logits": false, "sliding_window": null,
  "tie_word_embeddings": false, "vocab_size": 32000})";

constexpr std::string_view deepseek_v3 = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "ep_size": 1,
  "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
  "intermediate_size": 18432, "kv_lora_rank": 512, "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "quantization_config": {"quant_method": "fp8"},
  "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_method": "noaux_tc",
  "v_head_dim": 128, "vocab_size": 129280})";

constexpr std::string_view deepseek_v2_lite = R"({
  "attention_bias": false, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
  "intermediate_size": 10944, "kv_lora_rank": 512, "model_type": "deepseek_v2",
  "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64,
  "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "tie_word_embeddings": false,
  "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400})";

constexpr std::string_view gemma2_9b = R"({
  "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "head_dim": 256,
  "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3584, "intermediate_size": 14336,
  "model_type": "gemma2", "num_attention_heads": 16, "num_hidden_layers": 42,
  "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_size": 4096,
  "vocab_size": 256000})";

// The text part holds only what differs from the class's own values.
constexpr std::string_view gemma3_4b = R"({
  "architectures": ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256,
  "model_type": "gemma3",
  "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
    "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024},
  "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
    "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27,
    "patch_size": 14, "vision_use_head": false}})";

constexpr std::string_view gpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})";

constexpr std::string_view phi2 = R"({
  "architectures": ["PhiForCausalLM"], "hidden_act": "gelu_new", "hidden_size": 2560,
  "intermediate_size": 10240, "model_type": "phi", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4,
  "qk_layernorm": false, "tie_word_embeddings": false, "vocab_size": 51200})";

constexpr std::string_view phi3_mini = R"({
  "architectures": ["Phi3ForCausalLM"], "attention_bias": false, "hidden_act": "silu",
  "hidden_size": 3072, "intermediate_size": 8192, "model_type": "phi3",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
  "sliding_window": 2047, "tie_word_embeddings": false, "vocab_size": 32064})";

constexpr std::string_view llama4_maverick = R"({
  "model_type": "llama4",
  "text_config": {"attention_chunk_size": 8192, "head_dim": 128, "hidden_size": 5120,
    "interleave_moe_layer_step": 2, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "model_type": "llama4_text", "num_attention_heads": 40, "num_experts_per_tok": 1,
    "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128,
    "tie_word_embeddings": false, "vocab_size": 202048}})";

void require_within(std::string_view config, double total_billions, double active_billions,
                    double tolerance) {
  const lanepack::parameter_count count = count_parameters(parse_model_config(config));
  CAPTURE(config, count.total, count.active);
  CHECK_THAT(static_cast<double>(count.total) / 1e9,
             Catch::Matchers::WithinRel(total_billions, tolerance));
  CHECK_THAT(static_cast<double>(count.active) / 1e9,
             Catch::Matchers::WithinRel(active_billions, tolerance));
}

void require_error(std::string_view config, const std::string& what) {
  CAPTURE(config);
  CHECK_THROWS_MATCHES(parse_model_config(config, "dir/config.json"), lanepack::data_error,
                       Catch::Matchers::Message("dir/config.json" + what));
}

/// A small dense model with more keys in front of its own.
std::string small(const std::string& keys) {
  return "{" + keys + (keys.empty() ? "" : ", ") +
         R"("hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4,
            "intermediate_size": 128, "vocab_size": 100})";
}

}  // namespace

TEST_CASE("json: parameter counts of published models", "[json]") {
  // Exact where the count of a checkpoint is published, else the figure of the model's report.
  CHECK(count_parameters(parse_model_config(llama3_8b)).total == 8'030'261'248);
  CHECK(count_parameters(parse_model_config(qwen25_7b)).total == 7'615'616'512);
  CHECK(count_parameters(parse_model_config(mixtral)).total == 46'702'792'704);
  CHECK(count_parameters(parse_model_config(gpt2)).total == 124'439'808);
  CHECK(count_parameters(parse_model_config(gemma2_9b)).total == 9'241'705'984);
  CHECK(count_parameters(parse_model_config(phi3_mini)).total == 3'821'079'552);
  require_within(mixtral, 46.7, 12.9, 0.01);
  require_within(qwen3_30b_a3b, 30.5, 3.35, 0.01);
  require_within(deepseek_v3, 671, 37, 0.02);
  require_within(deepseek_v2_lite, 15.7, 2.66, 0.01);
  // 4.3e9 with the vision tower, 3.88e9 without.
  require_within(gemma3_4b, 4.3, 3.88, 0.01);
  require_within(phi2, 2.78, 2.78, 0.001);
  require_within(llama4_maverick, 400.7, 17.2, 0.01);
}

TEST_CASE("json: the sizes of a dense model", "[json]") {
  model_description expected;
  expected.hidden_size = 4096;
  expected.layers = 32;
  expected.attention_heads = 32;
  expected.kv_heads = 8;
  expected.ffn_size = 14336;
  expected.vocabulary = 128256;
  CHECK(parse_model_config(llama3_8b) == expected);
}

TEST_CASE("json: the sizes of a GPT-2", "[json]") {
  model_description expected;
  expected.hidden_size = 768;
  expected.layers = 12;
  expected.attention_heads = 12;
  expected.ffn_size = 3072;
  expected.gated = false;
  expected.vocabulary = 50257;
  expected.tied_head = true;
  expected.qkv_bias = expected.output_bias = expected.ffn_bias = expected.norm_bias = true;
  expected.learned_positions = 1024;
  CHECK(parse_model_config(gpt2) == expected);
}

TEST_CASE("json: mixtures of experts and latent attention", "[json]") {
  const model_description v3 = parse_model_config(deepseek_v3);
  REQUIRE(v3.moe);
  CHECK(v3.moe->experts == 256);
  CHECK(v3.moe->experts_per_token == 8);
  CHECK(v3.moe->ffn_size == 2048);
  CHECK(v3.moe->shared_experts == 1);
  CHECK(v3.moe->dense_layers == 3);
  CHECK(v3.moe->router_bias);
  CHECK(v3.ffn_size == 18432);
  REQUIRE(v3.mla);
  CHECK(v3.mla->q_rank == 1536);
  CHECK(v3.mla->kv_rank == 512);
  CHECK(v3.mla->qk_nope_head_dim == 128);
  CHECK(v3.mla->qk_rope_head_dim == 64);
  CHECK(v3.mla->v_head_dim == 128);
  CHECK_FALSE(parse_model_config(deepseek_v2_lite).mla->q_rank);
  CHECK(parse_model_config(mixtral).moe->ffn_size == 14336);
  CHECK(parse_model_config(llama4_maverick).moe->dense_layers == 24);
  CHECK(parse_model_config(llama4_maverick).ffn_size == 16384);

  const model_description qwen2 = parse_model_config(R"({"model_type": "qwen2_moe",
    "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "num_attention_heads": 16, "num_experts": 60,
    "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16,
    "decoder_sparse_step": 1, "vocab_size": 151936})");
  CHECK(qwen2.moe->shared_experts == 1);
  CHECK(qwen2.moe->shared_ffn_size == 5632);
  CHECK(qwen2.moe->shared_gate);
  CHECK(qwen2.qkv_bias);
  CHECK_FALSE(qwen2.output_bias);
}

TEST_CASE("json: which layers have experts is said in many ways", "[json]") {
  const auto dense_layers = [](const std::string& keys) {
    return parse_model_config(small("\"num_experts\": 4, \"num_experts_per_tok\": 2" + keys))
        .moe->dense_layers;
  };
  // Of 8 layers.
  CHECK(dense_layers("") == 0);
  CHECK(dense_layers(R"(, "first_k_dense_replace": 3)") == 3);
  CHECK(dense_layers(R"(, "first_k_dense_replace": 1, "moe_layer_freq": 2)") == 5);  // 2, 4, 6
  CHECK(dense_layers(R"(, "moe_layer_freq": [0, 1, 1, 1, 1, 1, 1, 0])") == 2);
  CHECK(dense_layers(R"(, "decoder_sparse_step": 2, "mlp_only_layers": [])") == 4);
  CHECK(dense_layers(R"(, "decoder_sparse_step": 2, "mlp_only_layers": [0, 1])") == 5);
  CHECK(dense_layers(R"(, "decoder_sparse_step": 0)") == 8);
  CHECK(dense_layers(R"(, "interleave_moe_layer_step": 3)") == 6);
  CHECK(dense_layers(R"(, "moe_layers": [1, 3, 5])") == 5);
  CHECK(dense_layers(R"(, "moe_layer_start_index": 1, "moe_layer_end_index": 6)") == 2);
  CHECK(dense_layers(
            R"(, "mlp_layer_types": ["dense", "sparse", "sparse", "sparse", "sparse", "sparse",
                                     "sparse", "sparse"])") == 1);
  CHECK_FALSE(parse_model_config(small(R"("num_experts": 0, "num_experts_per_tok": 2)")).moe);
}

TEST_CASE("json: which layers have a sliding window", "[json]") {
  using window = sliding_window_description;
  CHECK(parse_model_config(gemma2_9b).sliding_window == window{4096, 21});
  CHECK(parse_model_config(gemma3_4b).sliding_window == window{1024, 29});  // 5 of 34 are global
  CHECK(parse_model_config(phi3_mini).sliding_window == window{2047, 32});
  CHECK(parse_model_config(llama4_maverick).sliding_window == window{8192, 36});
  CHECK_FALSE(parse_model_config(qwen25_7b).sliding_window);
  CHECK_FALSE(parse_model_config(mixtral).sliding_window);
  CHECK(parse_model_config(small(R"("model_type": "mistral", "sliding_window": 16)"))
            .sliding_window == window{16, 8});
  CHECK(parse_model_config(small(R"("model_type": "qwen2", "sliding_window": 16,
                                    "use_sliding_window": true, "max_window_layers": 3)"))
            .sliding_window == window{16, 5});
  CHECK_FALSE(parse_model_config(small(R"("model_type": "qwen2", "sliding_window": 16,
                                          "use_sliding_window": true, "max_window_layers": 9)"))
                  .sliding_window);
  CHECK(parse_model_config(small(R"("sliding_window": 16, "layer_types": ["full_attention",
            "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
            "full_attention", "full_attention", "full_attention"])"))
            .sliding_window == window{16, 3});
  CHECK(parse_model_config(small(R"("model_type": "gpt_oss", "sliding_window": 16)"))
            .sliding_window == window{16, 4});
}

TEST_CASE("json: a nested configuration takes its class's values", "[json]") {
  const model_description gemma = parse_model_config(gemma3_4b);
  CHECK(gemma.attention_heads == 8);
  CHECK(gemma.kv_heads == 4);
  CHECK(gemma.head_dim == 256);
  CHECK(gemma.vocabulary == 262208);
  CHECK(gemma.tied_head);
  CHECK(gemma.qk_norm);
  CHECK(gemma.norms_per_layer == 4);
  CHECK(gemma.vision_parameters == 27 * (4 * 1152 * 1152 + 2 * 1152 * 4304));

  // LLaVA-1.5 names nothing but the vocabulary of its Vicuna-7B.
  const model_description llava = parse_model_config(
      R"({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}})");
  CHECK(llava.hidden_size == 4096);
  CHECK(llava.ffn_size == 11008);
  require_error(R"({"model_type": "llama", "vocab_size": 32064})",
                ": found no key \"hidden_size\" or \"n_embd\" or \"d_model\", expected an integer "
                "of at least 1");
}

TEST_CASE("json: an unknown architecture is read as Llama's", "[json]") {
  const model_description model = parse_model_config(small(R"("model_type": "brand_new")"));
  CHECK(model.gated);
  CHECK_FALSE(model.tied_head);
  CHECK(model.norms_per_layer == 2);
  CHECK(model == parse_model_config(small("")));
  CHECK_FALSE(parse_model_config(small(R"("activation_function": "gelu")")).gated);
  CHECK(parse_model_config(small(R"("tie_word_embeddings": true)")).tied_head);
  CHECK(parse_model_config(small(R"("attention_bias": true, "mlp_bias": true)")).ffn_bias);
  CHECK(parse_model_config(small(R"("multi_query": true)")).kv_heads == 1U);
}

TEST_CASE("json: what makes no sense is refused by file and key", "[json]") {
  require_error("[1]", ": found [1], expected an object");
  require_error("{\"hidden_size\": \"big\"}",
                ": key \"hidden_size\": found \"big\", expected an integer of at least 1");
  require_error("{\"hidden_size\": 64.5}",
                ": key \"hidden_size\": found 64.5, expected an integer of at least 1");
  require_error("{\"hidden_size\": -64}",
                ": key \"hidden_size\": found -64, expected an integer of at least 1");
  require_error("{\"hidden_size\": 64, \"num_hidden_layers\": 0}",
                ": key \"num_hidden_layers\": found 0, expected an integer of at least 1");
  require_error("{\"hidden_size\": 64, \"num_hidden_layers\": null}",
                ": found no key \"num_hidden_layers\" or \"n_layer\" or \"n_layers\" or "
                "\"num_layers\", expected an integer of at least 1");
  require_error(R"({"text_config": {"model_type": "llama", "hidden_size": []}})",
                ": key \"text_config.hidden_size\": found [], expected an integer of at least 1");
  require_error(R"({"text_config": 3})", ": key \"text_config\": found 3, expected an object");
  require_error(small(R"("num_key_value_heads": 3)"),
                ": the sizes do not fit together: model.kv_heads: found 3, expected a divisor of "
                "attention_heads = 4");
  require_error(small(R"("num_experts_per_tok": 2, "experts": 8)"),
                ": key \"num_experts_per_tok\": found 2, expected the number of experts beside it, "
                "as \"num_experts\"");
  require_error(small(R"("moe_intermediate_size": 64)"),
                ": key \"moe_intermediate_size\": found 64, expected the number of experts beside "
                "it, as \"num_experts\"");
  CHECK_FALSE(lanepack::parse_model_config(small(R"("num_experts_per_tok": 0)")).moe);
  require_error(small(R"("num_experts": 4)"),
                ": found no key \"num_experts_per_tok\" or \"num_experts_per_token\" or "
                "\"experts_per_token\" or \"moe_topk\" or \"moe_top_k\" or \"moe_k\", expected an "
                "integer of at least 1");
  require_error(small(R"("num_experts": 4, "num_experts_per_tok": 5)"),
                ": key \"num_experts\": found 4, expected at least as many as the experts of a "
                "token, 5");
  require_error(small(R"("num_experts": 4, "num_experts_per_tok": 2, "first_k_dense_replace": 9)"),
                ": key \"first_k_dense_replace\": found 9, expected at most the layers, 8");
  require_error(small(R"("num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1,
               "mlp_only_layers": [8])"),
                ": key \"mlp_only_layers\": found [8], expected different layers below 8");
  require_error(small(R"("sliding_window": 16, "layer_types": ["full_attention"])"),
                ": key \"layer_types\": found [\"full_attention\"], expected an element for each "
                "of 8 layers");
  require_error(small(R"("kv_lora_rank": 16)"),
                ": found no key \"qk_nope_head_dim\", expected an integer of at least 0");
  require_error(small(R"("tie_word_embeddings": "yes")"),
                ": key \"tie_word_embeddings\": found \"yes\", expected true or false");
}

TEST_CASE("json: models that are no transformers of the kind are refused", "[json]") {
  require_error(small(R"("is_encoder_decoder": true)"),
                ": key \"is_encoder_decoder\": found true, expected a decoder-only model");
  require_error(small(R"("mamba_d_state": 16)"),
                ": key \"mamba_d_state\": found 16, expected a transformer whose layers all have "
                "softmax attention");
  require_error(small(R"("index_topk": 2048)"),
                ": key \"index_topk\": found 2048, expected nothing: sparse attention has no cost "
                "model");
  require_error(small(R"("layer_types": ["linear_attention", "a", "a", "a",
                         "a", "a", "a", "a"])"),
                ": key \"layer_types\": found [\"linear_attention\",\"a\",\"a\",\"a\",\"a\",\"a\","
                "\"a\",\"a\"], expected full_attention, sliding_attention or chunked_attention");
}

TEST_CASE("json: files that are not JSON are refused with their byte", "[json]") {
  try {
    static_cast<void>(parse_model_config("{\"hidden_size\": 64,}", "c.json"));
    FAIL("accepted");
  } catch (const lanepack::data_error& e) {
    CHECK(e.where().path == "c.json");
    CHECK(e.where().byte_offset == 19);
  }
  CHECK_THROWS_AS(parse_model_config(""), lanepack::data_error);
  CHECK_THROWS_AS(parse_model_config("{\"a\": 1e999}"), lanepack::data_error);

  const lanepack_test::scratch_dir dir;
  CHECK_THROWS_MATCHES(lanepack::read_model_config(dir.path("none")), lanepack::data_error,
                       Catch::Matchers::Message(
                           dir.path("none") + ": cannot open the file: No such file or directory"));
  lanepack_test::write_file(dir.path("config.json"), llama3_8b);
  CHECK(lanepack::read_model_config(dir.path("config.json")) == parse_model_config(llama3_8b));
}
