#pragma once

/// @file
/// `read_model_config`: the sizes of a model from a Hugging Face `config.json`.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/cost/model_description.hpp>
#include <lanepack/json/object.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Which matrices of a layer have biases.
enum class bias_rule : std::uint8_t {
  /// Attention where `attention_bias` says so, the feed-forward part where `mlp_bias` does.
  as_configured,
  /// Queries, keys and values where `attention_bias` says so.
  qkv_as_configured,
  /// Queries, keys and values.
  qkv,
  /// All where `use_bias` says so, which it does unless it is false.
  use_bias,
  all,
};

/// Which layers use `sliding_window` where no `layer_types` says it.
enum class window_rule : std::uint8_t {
  all_layers,
  /// Layers from `max_window_layers` on, and only if `use_sliding_window` is true.
  qwen,
  /// Every second layer, the first among them.
  alternating,
  /// All but every `sliding_window_pattern`-th layer.
  pattern,
};

/// What the name of a model's architecture says and its configuration does not.
struct model_family {
  std::string_view type;
  bool gated = true;
  bool tied_head = false;
  bias_rule bias = bias_rule::as_configured;
  std::uint64_t norms_per_layer = 2;
  bool norm_bias = false;
  bool qk_norm = false;
  window_rule window = window_rule::all_layers;
};

/// Architectures that differ from Llama's.
[[nodiscard]] inline const model_family& family_of(const std::string& type) {
  using bias = bias_rule;
  using window = window_rule;
  static constexpr std::array families = {
      model_family{
          .type = "gpt2", .gated = false, .tied_head = true, .bias = bias::all, .norm_bias = true},
      model_family{.type = "gpt_bigcode",
                   .gated = false,
                   .tied_head = true,
                   .bias = bias::all,
                   .norm_bias = true},
      model_family{.type = "gpt_neox", .gated = false, .bias = bias::all, .norm_bias = true},
      model_family{.type = "gptj", .gated = false, .norms_per_layer = 1, .norm_bias = true},
      model_family{
          .type = "opt", .gated = false, .tied_head = true, .bias = bias::all, .norm_bias = true},
      model_family{
          .type = "bloom", .gated = false, .tied_head = true, .bias = bias::all, .norm_bias = true},
      model_family{.type = "phi",
                   .gated = false,
                   .bias = bias::all,
                   .norms_per_layer = 1,
                   .norm_bias = true},
      model_family{.type = "starcoder2",
                   .gated = false,
                   .tied_head = true,
                   .bias = bias::use_bias,
                   .norm_bias = true},
      model_family{.type = "nemotron", .gated = false, .norm_bias = true},
      model_family{.type = "phimoe", .norm_bias = true},
      model_family{.type = "stablelm", .norm_bias = true},
      model_family{.type = "qwen2", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen2_moe", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen2_vl", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen2_vl_text", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen2_5_vl", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen2_5_vl_text", .bias = bias::qkv, .window = window::qwen},
      model_family{.type = "qwen3", .qk_norm = true, .window = window::qwen},
      model_family{.type = "qwen3_moe", .qk_norm = true, .window = window::qwen},
      model_family{.type = "qwen3_vl_text", .qk_norm = true, .window = window::qwen},
      model_family{.type = "qwen3_vl_moe_text", .qk_norm = true, .window = window::qwen},
      model_family{.type = "glm4_moe", .bias = bias::qkv_as_configured},
      model_family{.type = "gpt_oss", .window = window::alternating},
      model_family{.type = "cohere", .tied_head = true, .norms_per_layer = 1},
      model_family{
          .type = "cohere2", .tied_head = true, .norms_per_layer = 1, .window = window::pattern},
      model_family{.type = "gemma", .tied_head = true},
      model_family{
          .type = "gemma2", .tied_head = true, .norms_per_layer = 4, .window = window::alternating},
      model_family{.type = "gemma3_text",
                   .tied_head = true,
                   .norms_per_layer = 4,
                   .qk_norm = true,
                   .window = window::pattern},
  };
  static constexpr model_family llama{.type = "llama"};
  for (const model_family& family : families) {
    if (family.type == type) return family;
  }
  return llama;
}

/// Values that a configuration nested in another leaves out, as it holds only what differs from its
/// class. 0 where the class has no value of its own.
struct nested_defaults {
  std::string_view type;
  std::uint64_t hidden_size = 0;
  std::uint64_t ffn_size = 0;
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t window = 0;
};

[[nodiscard]] inline const nested_defaults& nested_defaults_of(const std::string& type) {
  static constexpr std::array known = {
      nested_defaults{"llama", 4096, 11008, 32, 32, 0, 0, 32000, 0},
      nested_defaults{"mistral", 4096, 14336, 32, 32, 8, 0, 32000, 4096},
      nested_defaults{"qwen2", 4096, 22016, 32, 32, 32, 0, 151936, 4096},
      nested_defaults{"gemma", 3072, 24576, 28, 16, 16, 256, 256000, 0},
      nested_defaults{"gemma2", 2304, 9216, 26, 8, 4, 256, 256000, 4096},
      nested_defaults{"gemma3_text", 2304, 9216, 26, 8, 4, 256, 262208, 4096},
  };
  static constexpr nested_defaults none{};
  for (const nested_defaults& defaults : known) {
    if (defaults.type == type) return defaults;
  }
  return none;
}

/// Turns one configuration into a description.
class model_config_reader {
 public:
  /// @param top   The whole document.
  /// @param text  The part that describes the language model; `top` itself where it has no parts.
  model_config_reader(const json_object& top, const json_object& text, bool nested)
      : top_(top),
        text_(text),
        type_(type_of(top, text)),
        family_(family_of(type_)),
        defaults_(nested_defaults_of(nested ? type_ : std::string())) {}

  [[nodiscard]] model_description read() {
    refuse_other_architectures();
    model_.hidden_size = sized({"hidden_size", "n_embd", "d_model"}, defaults_.hidden_size);
    model_.layers =
        sized({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, defaults_.layers);
    model_.attention_heads =
        sized({"num_attention_heads", "n_head", "n_heads", "num_heads"}, defaults_.heads);
    model_.vocabulary = sized({"vocab_size", "padded_vocab_size"}, defaults_.vocabulary);
    model_.gated = is_gated();
    read_attention();
    read_moe();
    read_ffn_size();
    read_window();
    read_biases();
    model_.norms_per_layer = family_.norms_per_layer;
    model_.norm_bias = family_.norm_bias;
    model_.tied_head = text_.flag("tie_word_embeddings")
                           .value_or(top_.flag("tie_word_embeddings").value_or(family_.tied_head));
    read_positions();
    read_vision();
    check();
    return model_;
  }

 private:
  using keys = std::initializer_list<const char*>;

  [[nodiscard]] static std::string type_of(const json_object& top, const json_object& text) {
    std::string type = text.text("model_type").value_or(top.text("model_type").value_or(""));
    return type == "gemma3" ? "gemma3_text" : type;
  }

  /// A size that must be there, unless the configuration may leave out `fallback`.
  [[nodiscard]] std::uint64_t sized(keys names, std::uint64_t fallback) const {
    if (fallback == 0) return text_.required(names, 1);
    return text_.number(names, 1).value_or(fallback);
  }

  void refuse_other_architectures() const {
    if (top_.flag("is_encoder_decoder").value_or(false)) {
      top_.fail("is_encoder_decoder", "a decoder-only model");
    }
    for (const char* key :
         {"ssm_cfg", "state_size", "ssm_state_size", "mamba_d_state", "mamba_num_heads",
          "linear_num_key_heads", "linear_attn_config", "hybrid_override_pattern",
          "layers_block_type", "block_types", "attn_type_list", "conv_L_cache"}) {
      if (text_.has(key)) text_.fail(key, "a transformer whose layers all have softmax attention");
    }
    if (text_.has("index_topk")) {
      text_.fail("index_topk", "nothing: sparse attention has no cost model");
    }
  }

  [[nodiscard]] bool is_gated() const {
    if (family_.type != "llama") return family_.gated;
    // GPT-2's name for the activation goes with its two matrices.
    return !text_.has("activation_function") || text_.has("hidden_act");
  }

  void read_attention() {
    if (text_.has("kv_lora_rank")) {
      mla_description mla;
      mla.q_rank = text_.number("q_lora_rank", 1);
      mla.kv_rank = text_.required({"kv_lora_rank"}, 1);
      mla.qk_nope_head_dim = text_.required({"qk_nope_head_dim"});
      mla.qk_rope_head_dim = text_.required({"qk_rope_head_dim"});
      mla.v_head_dim = text_.required({"v_head_dim"}, 1);
      model_.mla = mla;
      return;
    }
    model_.kv_heads = text_.number({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, 1);
    if (text_.flag("multi_query").value_or(false)) model_.kv_heads = 1;
    if (!model_.kv_heads && defaults_.kv_heads != 0) model_.kv_heads = defaults_.kv_heads;
    model_.head_dim = text_.number({"head_dim", "kv_channels", "attention_head_dim"}, 1);
    if (!model_.head_dim && defaults_.head_dim != 0) model_.head_dim = defaults_.head_dim;
    if (!model_.head_dim && is_gemma()) model_.head_dim = 256;
    model_.qk_norm = text_.flag("use_qk_norm").value_or(family_.qk_norm);
  }

  [[nodiscard]] bool is_gemma() const { return type_.starts_with("gemma"); }

  void read_moe() {
    const char* key =
        text_.first_of({"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"});
    if (key == nullptr) refuse_experts_without_number();
    if (key == nullptr || text_.number(key) == std::uint64_t{0}) return;
    moe_description moe;
    moe.experts = *text_.number(key);
    moe.experts_per_token = text_.required({"num_experts_per_tok", "num_experts_per_token",
                                            "experts_per_token", "moe_topk", "moe_top_k", "moe_k"},
                                           1);
    if (moe.experts_per_token > moe.experts) {
      text_.fail(key, "at least as many as the experts of a token, " +
                          std::to_string(moe.experts_per_token));
    }
    moe.ffn_size =
        text_.required({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"}, 1);
    read_shared_experts(moe);
    moe.dense_layers = dense_layers();
    moe.router_bias =
        text_.text("topk_method") == "noaux_tc" || type_ == "glm4_moe" || type_ == "gpt_oss";
    model_.moe = moe;
  }

  /// Without the number of experts under a known name the model would pass for a dense one.
  void refuse_experts_without_number() const {
    for (const char* key : {"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                            "moe_topk", "moe_top_k", "moe_intermediate_size"}) {
      const nlohmann::json* const found = text_.find(key);
      if (found == nullptr || *found == 0) continue;
      text_.fail(key, "the number of experts beside it, as \"num_experts\"");
    }
  }

  void read_shared_experts(moe_description& moe) const {
    if (const auto count =
            text_.number({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"})) {
      moe.shared_experts = *count;
    } else if (const auto width =
                   text_.number({"shared_expert_intermediate_size", "shared_intermediate_size"})) {
      moe.shared_experts = *width == 0 ? 0 : 1;
      if (*width != 0) moe.shared_ffn_size = *width;
      moe.shared_gate = *width != 0 && text_.has("shared_expert_intermediate_size");
    } else if (is_llama4()) {
      moe.shared_experts = 1;
    }
  }

  [[nodiscard]] bool is_llama4() const { return type_.starts_with("llama4"); }

  /// Layers without experts, by whichever of the ways to say it the configuration uses.
  [[nodiscard]] std::uint64_t dense_layers() const {
    const std::uint64_t layers = model_.layers;
    if (const auto types = text_.texts("mlp_layer_types")) {
      require_per_layer("mlp_layer_types", types->size());
      return static_cast<std::uint64_t>(std::count(types->begin(), types->end(), "dense"));
    }
    if (const auto with_experts = text_.numbers("moe_layers")) {
      require_layers("moe_layers", *with_experts);
      return layers - with_experts->size();
    }
    if (const auto step = text_.number("interleave_moe_layer_step", 1)) {
      return layers - layers / *step;
    }
    if (const auto step = text_.number("decoder_sparse_step")) {
      const auto dense = text_.numbers("mlp_only_layers").value_or(std::vector<std::uint64_t>());
      require_layers("mlp_only_layers", dense);
      if (*step == 0) return layers;
      return count_where([&](std::uint64_t layer) {
        return (layer + 1) % *step != 0 ||
               std::find(dense.begin(), dense.end(), layer) != dense.end();
      });
    }
    if (text_.has("moe_layer_start_index")) {
      const std::uint64_t first = *text_.number("moe_layer_start_index");
      const std::uint64_t last = text_.number("moe_layer_end_index").value_or(layers - 1);
      const std::uint64_t step = text_.number("moe_layer_interval", 1).value_or(1);
      return count_where([&](std::uint64_t layer) {
        return layer < first || layer > last || (layer + 1) % step != 0;
      });
    }
    const std::uint64_t first = text_.number("first_k_dense_replace").value_or(0);
    if (first > layers) {
      text_.fail("first_k_dense_replace", "at most the layers, " + std::to_string(layers));
    }
    const nlohmann::json* frequency = text_.find("moe_layer_freq");
    if (frequency != nullptr && frequency->is_array()) {
      const auto flags = *text_.numbers("moe_layer_freq");
      require_per_layer("moe_layer_freq", flags.size());
      return count_where([&](std::uint64_t layer) { return flags[layer] == 0; });
    }
    const std::uint64_t step = text_.number("moe_layer_freq", 1).value_or(1);
    return count_where([&](std::uint64_t layer) { return layer < first || layer % step != 0; });
  }

  template <class Predicate>
  [[nodiscard]] std::uint64_t count_where(Predicate&& predicate) const {
    std::uint64_t count = 0;
    for (std::uint64_t layer = 0; layer < std::min(model_.layers, most_layers); ++layer) {
      count += predicate(layer) ? 1 : 0;
    }
    return count;
  }

  void require_layers(const char* key, std::vector<std::uint64_t> layers) const {
    std::sort(layers.begin(), layers.end());
    if (std::adjacent_find(layers.begin(), layers.end()) != layers.end() ||
        (!layers.empty() && layers.back() >= model_.layers)) {
      text_.fail(key, "different layers below " + std::to_string(model_.layers));
    }
  }

  void require_per_layer(const char* key, std::uint64_t size) const {
    if (size < model_.layers) {
      text_.fail(key, "an element for each of " + std::to_string(model_.layers) + " layers");
    }
  }

  void read_ffn_size() {
    // Where experts have the plain name, the dense layers have one of their own.
    std::optional<std::uint64_t> size;
    if (is_llama4()) size = text_.number("intermediate_size_mlp", 1);
    if (!size) {
      size =
          text_.number({"intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "d_ff"}, 1);
    }
    if (size) {
      model_.ffn_size = *size;
    } else if (defaults_.ffn_size != 0) {
      model_.ffn_size = defaults_.ffn_size;
    } else if (type_ == "gpt2" || type_ == "gpt_bigcode" || type_ == "gptj" || type_ == "bloom") {
      model_.ffn_size = 4 * model_.hidden_size;
    } else if (!model_.moe || model_.moe->dense_layers != 0) {
      static_cast<void>(text_.required({"intermediate_size", "n_inner", "ffn_dim"}, 1));
    }
  }

  void read_window() {
    std::uint64_t layers = 0;
    if (const auto types = text_.texts("layer_types")) {
      require_per_layer("layer_types", types->size());
      for (std::uint64_t i = 0; i < model_.layers; ++i) {
        const std::string& type = (*types)[static_cast<std::size_t>(i)];
        if (type != "full_attention" && type != "sliding_attention" &&
            type != "chunked_attention") {
          text_.fail("layer_types", "full_attention, sliding_attention or chunked_attention");
        }
        layers += type == "full_attention" ? 0 : 1;
      }
    } else if (is_llama4()) {
      layers = model_.layers - model_.layers / 4;
    } else {
      layers = window_layers();
    }
    std::optional<std::uint64_t> window = text_.number({"sliding_window", "attention_chunk_size"});
    if (!window && !text_.value().contains("sliding_window") && defaults_.window != 0) {
      window = defaults_.window;
    }
    if (window && *window != 0 && layers != 0) {
      model_.sliding_window =
          sliding_window_description{.window_tokens = *window, .layers = layers};
    }
  }

  [[nodiscard]] std::uint64_t window_layers() const {
    const std::uint64_t layers = model_.layers;
    switch (family_.window) {
      case window_rule::all_layers:
        return layers;
      case window_rule::alternating:
        return layers - layers / 2;
      case window_rule::pattern: {
        const std::uint64_t usual = type_ == "cohere2" ? 4 : 6;
        return layers - layers / text_.number("sliding_window_pattern", 1).value_or(usual);
      }
      case window_rule::qwen:
        break;
    }
    if (!text_.flag("use_sliding_window").value_or(false)) return 0;
    return layers - std::min(layers, text_.number("max_window_layers").value_or(28));
  }

  void read_biases() {
    const bool attention =
        text_.flag("attention_bias")
            .value_or(type_ == "gpt_neox" || type_ == "gpt_oss" || type_ == "glm4_moe");
    switch (family_.bias) {
      case bias_rule::as_configured:
        model_.qkv_bias = attention || text_.flag("use_qkv_bias").value_or(false);
        model_.output_bias = attention;
        model_.ffn_bias = text_.flag("mlp_bias").value_or(type_ == "gptj");
        break;
      case bias_rule::qkv_as_configured:
        model_.qkv_bias = attention;
        break;
      case bias_rule::qkv:
        model_.qkv_bias = true;
        break;
      case bias_rule::use_bias:
      case bias_rule::all: {
        const bool use = family_.bias == bias_rule::all || text_.flag("use_bias").value_or(true);
        model_.qkv_bias = model_.output_bias = model_.ffn_bias = use;
        if (type_ == "gpt_neox") model_.qkv_bias = model_.output_bias = attention;
        break;
      }
    }
  }

  void read_positions() {
    if (type_ == "gpt2" || type_ == "gpt_bigcode") {
      model_.learned_positions = text_.required({"n_positions", "max_position_embeddings"}, 1);
    } else if (type_ == "opt") {
      // Two rows in front are for padding.
      model_.learned_positions = text_.required({"max_position_embeddings"}, 1) + 2;
    }
  }

  /// The vision tower's matrices, as far as its configuration gives their sizes.
  void read_vision() {
    const auto vision = top_.object("vision_config");
    if (!vision) return;
    const auto width = vision->number({"embed_dim", "hidden_size"}, 1);
    const auto layers = vision->number({"depth", "num_hidden_layers"}, 1);
    auto inner = vision->number("intermediate_size", 1);
    if (const auto ratio = vision->number("mlp_ratio", 1); !inner && ratio && width) {
      inner = saturating_mul(*ratio, *width);
    }
    if (!width || !layers || !inner) return;
    const std::string type = vision->text("model_type").value_or(type_);
    const std::uint64_t matrices = type.starts_with("qwen2_5_vl") || type == "pixtral" ? 3 : 2;
    const std::uint64_t attention = saturating_mul(4, saturating_mul(*width, *width));
    const std::uint64_t ffn = saturating_mul(matrices, saturating_mul(*width, *inner));
    model_.vision_parameters = saturating_mul(*layers, saturating_add(attention, ffn));
  }

  /// Says in the words of the file what the description's own check would say in its words.
  void check() const {
    try {
      static_cast<void>(count_parameters(model_));
    } catch (const invalid_option& e) {
      throw_json_error(text_.path(), std::string("the sizes do not fit together: ") + e.what());
    }
  }

  static constexpr std::uint64_t most_layers = std::uint64_t{1} << 16;

  const json_object& top_;
  const json_object& text_;
  std::string type_;
  const model_family& family_;
  const nested_defaults& defaults_;
  model_description model_;
};

[[nodiscard]] inline model_description describe_model(const nlohmann::json& document,
                                                      const std::string& path) {
  const json_object top(document, path);
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (const auto text = top.object(key)) return model_config_reader(top, *text, true).read();
  }
  return model_config_reader(top, top, false).read();
}

}  // namespace detail

/// Reads the sizes of a model from the text of a Hugging Face `config.json`.
///
/// Known by their own rules are Llama, Mistral, Mixtral, Qwen2, Qwen3, DeepSeek-V2/V3, Gemma 1 to
/// 3, GPT-2, GPT-NeoX, Phi, gpt-oss, Llama 4 and their like; any other `model_type` is read as
/// Llama's with the keys it has. Of a multimodal configuration the language model (`text_config`)
/// is described, and the vision tower as far as its sizes are given. Attention in chunks is taken
/// as a window of a chunk.
/// @param path  Named in errors.
/// @throws data_error  It is not JSON, a key is missing or has a value that makes no sense, or the
///         model is not a decoder-only transformer with softmax attention in all layers.
[[nodiscard]] inline model_description parse_model_config(std::string_view text,
                                                          const std::string& path = {}) {
  return detail::describe_model(detail::parse_json(text, path), path);
}

/// Reads the sizes of a model from a Hugging Face `config.json`.
/// @throws data_error  As `parse_model_config`; also where the file cannot be read.
[[nodiscard]] inline model_description read_model_config(const std::string& path) {
  return parse_model_config(detail::read_json_text(path), path);
}

}  // namespace lanepack::inline LANEPACK_ABI
