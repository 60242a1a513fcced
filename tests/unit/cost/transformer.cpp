#include <lanepack/cost/transformer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "models.hpp"
#include "support/catch.hpp"

using namespace lanepack;
using namespace lanepack_test;

namespace {

constexpr std::array<std::uint64_t, 14> lengths{
    0,    1,     2,     17,     1000,    4095,     4096,
    4097, 32768, 35655, 131072, 1048576, 16777216, (std::uint64_t{1} << 31) - 1};

std::vector<std::uint64_t> costs_of(const model_description& model) {
  const transformer_cost estimator(model);
  std::vector<record_shape> shapes;
  for (const std::uint64_t length : lengths) shapes.push_back({.tokens = length});
  std::vector<std::uint64_t> costs(shapes.size());
  estimator.costs(shapes, costs);
  return costs;
}

}  // namespace

TEST_CASE("cost: coefficients are whole FLOPs", "[cost]") {
  const cost_coefficients dense = derive_coefficients(llama_3_8b());
  // 6 FLOPs for each of 32 layers of 218 103 808 matrix elements and a head of 525 336 576.
  CHECK(dense.per_token == 6 * (32 * std::uint64_t{218103808} + 525336576));
  // 2 products forward, twice as many backward, 2 FLOPs each, 32 layers of 32 heads of 128.
  CHECK(dense.per_pair == 2 * 3 * 2 * 32 * 32 * 128);
  CHECK_FALSE(dense.window.has_value());
  CHECK(dense.fraction_bits == 28);
  CHECK(dense.per_patch == 0);
  CHECK(dense.per_micro_batch == 0);

  const cost_coefficients mixed = derive_coefficients(gemma_2_9b());
  CHECK(mixed.per_pair == 2 * 3 * 2 * 21 * 16 * 256);
  CHECK(mixed.window == window_coefficients{4096, 2 * 3 * 2 * 21 * 16 * 256});

  const cost_coefficients latent = derive_coefficients(deepseek_v3());
  CHECK(latent.per_pair == 3 * 2 * 61 * 128 * (192 + 128));

  model_description with_vision = llama_3_8b();
  with_vision.vision_parameters = 600000000;
  CHECK(derive_coefficients(with_vision).per_patch == 3600000000);
}

// From arbitrary-precision integers, with the pairs of a window summed one by one where short.
TEST_CASE("cost: transformer costs of published models", "[cost]") {
  using numbers = std::vector<std::uint64_t>;
  CHECK(costs_of(llama_3_8b()) == numbers{0, 167, 335, 2852, 170674, 736044, 736236, 736427,
                                          8642400, 9705402, 72318336, 3397118976, 827448016896,
                                          1099511627776});
  CHECK(costs_of(mistral_7b()) == numbers{0, 40687, 81376, 691891, 41436750, 179189010, 179235840,
                                          179282670, 1521945600, 1657143810, 6125521920,
                                          49092234240, 785664445440, 1099511627776});
  CHECK(costs_of(gemma_2_9b()) == numbers{0, 413, 826, 7025, 420807, 1820675, 1821151, 1821627,
                                          18633357, 20676529, 124272135, 4694004687, 1089791066127,
                                          1099511627776});
  CHECK(costs_of(mixtral_8x7b()) == numbers{0, 284, 569, 4845, 287885, 1216023, 1216332, 1216640,
                                            12483168, 13884558, 87681408, 3520023552, 829414490112,
                                            1099511627776});
  CHECK(costs_of(deepseek_v3()) == numbers{0, 102, 204, 1740, 105821, 477578, 477709, 477840,
                                           7101036, 8085960, 73378225, 3945090444, 984190605504,
                                           1099511627776});
}

TEST_CASE("cost: usual models resolve a token and do not saturate at 2^24 tokens", "[cost]") {
  for (const model_description& model :
       {llama_3_8b(), llama_3_70b(), llama_3_405b(), llama_2_7b(), mistral_7b(), mixtral_8x7b(),
        qwen_2_7b(), gpt_2(), gemma_2_9b(), qwen_3_30b_a3b(), qwen_15_moe_a27b(),
        deepseek_v2_lite(), deepseek_v3()}) {
    const transformer_cost estimator(model);
    CAPTURE(estimator.describe());
    CHECK(estimator.cost({.tokens = 1}) >= 32);
    CHECK(estimator.cost({.tokens = std::uint64_t{1} << 24}) < max_record_cost);
    CHECK(estimator.cost({.tokens = std::uint64_t{1} << 24}) > max_record_cost / 4);
    std::uint64_t before = 0;
    for (std::uint64_t tokens = 1; tokens < 100; ++tokens) {
      const std::uint64_t cost = estimator.cost({.tokens = tokens});
      CHECK(cost > before);
      before = cost;
    }
  }
}

TEST_CASE("cost: a tiny model keeps at least a unit per token", "[cost]") {
  model_description model;
  model.hidden_size = 16;
  model.layers = 2;
  model.attention_heads = 2;
  model.ffn_size = 32;
  model.vocabulary = 10;
  const transformer_cost estimator(model);
  CHECK(estimator.cost({.tokens = 1}) == 1);
  CHECK(estimator.cost({.tokens = std::uint64_t{1} << 24}) == max_record_cost);
}

TEST_CASE("cost: transformer_cost saturates instead of wrapping", "[cost]") {
  cost_coefficients most;
  most.per_token = most.per_pair = most.per_patch = (std::uint64_t{1} << 48) - 1;
  most.window = window_coefficients{(std::uint64_t{1} << 48) - 1, (std::uint64_t{1} << 48) - 1};
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t bits : {0U, 20U, 47U, 63U}) {
    most.fraction_bits = bits;
    const transformer_cost estimator(most);
    for (const std::uint64_t tokens :
         {(std::uint64_t{1} << 31) - 1, std::uint64_t{1} << 32, std::uint64_t{1} << 40, all}) {
      CHECK(estimator.cost({.tokens = tokens, .loss_tokens = 0, .patches = all}) ==
            max_record_cost);
    }
    CHECK(estimator.cost({.tokens = 0}) == 0);
  }
}

TEST_CASE("cost: a window counts the pairs that its mask keeps", "[cost]") {
  for (const std::uint64_t window : {1U, 2U, 3U, 7U, 64U}) {
    cost_coefficients coefficients;
    coefficients.window = window_coefficients{window, 1};
    const transformer_cost estimator(coefficients);
    std::uint64_t pairs = 0;
    for (std::uint64_t tokens = 1; tokens <= 200; ++tokens) {
      pairs += std::min(tokens, window);
      CHECK(estimator.cost({.tokens = tokens}) == pairs);
    }
  }
}

TEST_CASE("cost: coefficients alone decide costs", "[cost]") {
  const transformer_cost derived(gemma_2_9b());
  const transformer_cost again(derived.coefficients());
  CHECK(again.describe() == derived.describe());
  CHECK(again.describe() ==
        "transformer(fraction_bits=27,per_token=55446601728,per_pair=1032192,window_tokens=4096,"
        "per_window_pair=1032192,per_patch=0)");
  for (const std::uint64_t length : lengths) {
    CHECK(again.cost({.tokens = length}) == derived.cost({.tokens = length}));
  }

  cost_coefficients with_overhead = derived.coefficients();
  with_overhead.per_micro_batch = 1000;
  CHECK(transformer_cost(with_overhead).micro_batch_cost() == 1000);
  CHECK(transformer_cost(with_overhead).cost({.tokens = 5}) == derived.cost({.tokens = 5}));
  CHECK_FALSE(with_overhead == derived.coefficients());
}

TEST_CASE("cost: patches cost their coefficient", "[cost]") {
  cost_coefficients coefficients;
  coefficients.fraction_bits = 2;
  coefficients.per_token = 8;
  coefficients.per_patch = 3;
  const transformer_cost estimator(coefficients);
  CHECK(estimator.cost({.tokens = 10}) == 20);
  CHECK(estimator.cost({.tokens = 10, .loss_tokens = 9, .patches = 5}) == 23);
}

TEST_CASE("cost: coefficients out of range name their field", "[cost]") {
  const auto refused = [](const cost_coefficients& coefficients) -> std::string {
    try {
      transformer_cost{coefficients};
    } catch (const invalid_option& fault) {
      return fault.option();
    }
    return "";
  };
  CHECK(refused({}).empty());
  cost_coefficients bad;
  bad.fraction_bits = 64;
  CHECK(refused(bad) == "cost.fraction_bits");
  bad = {};
  bad.per_token = std::uint64_t{1} << 48;
  CHECK(refused(bad) == "cost.per_token");
  bad = {};
  bad.per_pair = std::uint64_t{1} << 48;
  CHECK(refused(bad) == "cost.per_pair");
  bad = {};
  bad.window = window_coefficients{0, 1};
  CHECK(refused(bad) == "cost.window.window_tokens");
  bad = {};
  bad.per_micro_batch = std::uint64_t{1} << 48;
  CHECK(refused(bad) == "cost.per_micro_batch");
}
