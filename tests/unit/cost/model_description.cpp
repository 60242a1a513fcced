#include <lanepack/cost/model_description.hpp>

#include <cstdint>
#include <string>

#include "models.hpp"
#include "support/catch.hpp"

using namespace lanepack;
using namespace lanepack_test;

namespace {

std::string refused_field(const model_description& model) {
  try {
    validate(model);
  } catch (const invalid_option& fault) {
    return fault.option();
  }
  return "";
}

}  // namespace

// The totals are those that the models' published weight files hold.
TEST_CASE("cost: parameter counts equal the published weights", "[cost]") {
  CHECK(count_parameters(llama_3_8b()).total == 8030261248);
  CHECK(count_parameters(llama_3_70b()).total == 70553706496);
  CHECK(count_parameters(llama_3_405b()).total == 405853388800);
  CHECK(count_parameters(llama_2_7b()).total == 6738415616);
  CHECK(count_parameters(mistral_7b()).total == 7241732096);
  CHECK(count_parameters(mixtral_8x7b()).total == 46702792704);
  CHECK(count_parameters(qwen_2_7b()).total == 7615616512);
  CHECK(count_parameters(gpt_2()).total == 124439808);
  CHECK(count_parameters(gemma_2_9b()).total == 9241705984);
  CHECK(count_parameters(qwen_3_30b_a3b()).total == 30532122624);
  CHECK(count_parameters(qwen_15_moe_a27b()).total == 14315784192);
  CHECK(count_parameters(deepseek_v2_lite()).total == 15706484224);
  CHECK(count_parameters(deepseek_v3()).total == 671026419200);
}

TEST_CASE("cost: active parameters count the experts that a token visits", "[cost]") {
  // Published as 12.9e9, 3.3e9, 2.7e9 and 2.4e9 (without the embedding's 0.2e9).
  CHECK(count_parameters(mixtral_8x7b()).active == 12879925248);
  CHECK(count_parameters(qwen_3_30b_a3b()).active / 100000000 == 33);
  CHECK(count_parameters(qwen_15_moe_a27b()).active / 100000000 == 26);
  CHECK((count_parameters(deepseek_v2_lite()).active - 102400 * 2048) / 100000000 == 24);
  // 36.7e9 with the output head and without the embedding.
  CHECK((count_parameters(deepseek_v3()).active - 129280 * 7168) / 100000000 == 366);
  const parameter_count dense = count_parameters(llama_3_8b());
  CHECK(dense.active == dense.total);
}

TEST_CASE("cost: multiplied parameters leave out what no matrix product uses", "[cost]") {
  const parameter_count untied = count_parameters(llama_3_8b());
  // The embedding, and 65 normalisations.
  CHECK(untied.total - untied.multiplied == 128256 * 4096 + 65 * 4096);
  const parameter_count tied = count_parameters(gemma_2_9b());
  CHECK(tied.total - tied.multiplied == (4 * 42 + 1) * 3584);
}

TEST_CASE("cost: vision parameters are part of the total alone", "[cost]") {
  model_description model = llama_3_8b();
  model.vision_parameters = 1000;
  const parameter_count with = count_parameters(model);
  const parameter_count without = count_parameters(llama_3_8b());
  CHECK(with.total == without.total + 1000);
  CHECK(with.active == without.active);
  CHECK(with.multiplied == without.multiplied);
}

TEST_CASE("cost: a model description that cannot be counted names its field", "[cost]") {
  CHECK(refused_field(llama_3_8b()).empty());
  CHECK(refused_field(deepseek_v3()).empty());
  CHECK(refused_field({}) == "model.hidden_size");

  model_description model = llama_3_8b();
  model.layers = 0;
  CHECK(refused_field(model) == "model.layers");

  model = llama_3_8b();
  model.kv_heads = 33;
  CHECK(refused_field(model) == "model.kv_heads");
  model.kv_heads = 5;
  CHECK(refused_field(model) == "model.kv_heads");

  model = llama_3_8b();
  model.hidden_size = 4097;
  CHECK(refused_field(model) == "model.hidden_size");
  model.head_dim = 128;
  CHECK(refused_field(model).empty());

  model = mixtral_8x7b();
  model.moe->experts_per_token = 9;
  CHECK(refused_field(model) == "model.moe.experts_per_token");
  model = mixtral_8x7b();
  model.moe->dense_layers = 33;
  CHECK(refused_field(model) == "model.moe.dense_layers");

  model = mistral_7b();
  model.sliding_window->layers = 33;
  CHECK(refused_field(model) == "model.sliding_window.layers");
  model.sliding_window = sliding_window_description{0, 1};
  CHECK(refused_field(model) == "model.sliding_window.window_tokens");

  model = deepseek_v3();
  model.mla->kv_rank = 0;
  CHECK(refused_field(model) == "model.mla.kv_rank");

  model = llama_3_8b();
  model.hidden_size = std::uint64_t{1} << 24;
  model.attention_heads = 1 << 16;
  model.kv_heads = 1 << 16;
  model.layers = 1 << 16;
  CHECK_THROWS_AS(count_parameters(model), invalid_option);
}
