#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/cost.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using lanepack_test::gen;

namespace {

cost_coefficients random_coefficients(gen& random) {
  cost_coefficients result;
  result.fraction_bits = static_cast<std::uint32_t>(random.between(0, 63));
  result.per_token = random.heavy_tailed(48);
  result.per_pair = random.heavy_tailed(48);
  result.per_patch = random.heavy_tailed(48);
  if (random.one_in(2)) {
    result.window = window_coefficients{std::max<std::uint64_t>(1, random.heavy_tailed(33)),
                                        random.heavy_tailed(48)};
  }
  return result;
}

// Costs never fall along a rising list of lengths, never exceed the limit, and do not depend on how
// records are batched.
template <class Estimator>
void check_contract(const Estimator& estimator, gen& random) {
  std::vector<record_shape> shapes(64);
  for (record_shape& shape : shapes) {
    shape.tokens = random.heavy_tailed(64);
    shape.patches = 7;
  }
  std::sort(shapes.begin(), shapes.end(),
            [](const record_shape& a, const record_shape& b) { return a.tokens < b.tokens; });
  std::vector<std::uint64_t> costs(shapes.size());
  estimator.costs(shapes, costs);
  CHECK(std::is_sorted(costs.begin(), costs.end()));
  CHECK(costs.back() <= max_record_cost);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::array<std::uint64_t, 1> alone{};
    estimator.costs(std::span(shapes).subspan(i, 1), alone);
    CHECK(alone[0] == costs[i]);
    record_shape more = shapes[i];
    more.patches += random.between(0, 1000);
    CHECK(estimator.cost(more) >= costs[i]);
  }
}

}  // namespace

TEST_CASE("cost: estimators rise with tokens and patches and saturate", "[cost]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    check_contract(
        token_cost({.per_token = random.heavy_tailed(64), .per_patch = random.heavy_tailed(64)}),
        random);
    check_contract(quadratic_cost({.linear = random.heavy_tailed(64),
                                   .quadratic = random.heavy_tailed(64),
                                   .per_patch = random.heavy_tailed(64)}),
                   random);
    const cost_coefficients coefficients = random_coefficients(random);
    check_contract(transformer_cost(coefficients), random);
  });
}

TEST_CASE("cost: derived coefficients leave room for 2^24 tokens or keep a unit a token",
          "[cost]") {
  lanepack_test::for_each_seed(500, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    model_description model;
    model.attention_heads = random.between(1, 128);
    model.head_dim = random.between(8, 256);
    model.hidden_size = random.between(16, 16384);
    model.layers = random.between(1, 128);
    model.ffn_size = random.between(0, 65536);
    model.vocabulary = random.between(1, 300000);
    model.gated = random.one_in(2);
    if (random.one_in(3)) {
      model.sliding_window =
          sliding_window_description{random.between(1, 100000), random.between(0, model.layers)};
    }
    const cost_coefficients coefficients = derive_coefficients(model);
    const transformer_cost estimator(coefficients);
    CAPTURE(estimator.describe());
    CHECK(estimator.cost({.tokens = 1}) >= 1);
    if (coefficients.fraction_bits + 1 <
        static_cast<unsigned>(std::bit_width(coefficients.per_token))) {
      cost_coefficients coarser = coefficients;
      ++coarser.fraction_bits;
      CHECK(transformer_cost(coarser).cost({.tokens = std::uint64_t{1} << 24}) <=
            max_record_cost / 2);
    }
    // No finer unit would do.
    if (coefficients.fraction_bits != 0) {
      cost_coefficients finer = coefficients;
      --finer.fraction_bits;
      CHECK(transformer_cost(finer).cost({.tokens = std::uint64_t{1} << 24}) == max_record_cost);
    }
  });
}

TEST_CASE("cost: a record that fits pads to a micro-batch within capacity", "[cost]") {
  lanepack_test::for_each_seed(1000, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const std::uint64_t capacity = random.between(1, 5000);
    const auto record_multiple = static_cast<std::uint32_t>(random.between(1, 40));
    const auto total_multiple = static_cast<std::uint32_t>(random.between(1, 40));
    const std::uint64_t largest =
        largest_feasible_record(capacity, record_multiple, total_multiple);
    const auto padded = [&](std::uint64_t tokens) {
      std::uint64_t row = (tokens + record_multiple - 1) / record_multiple * record_multiple;
      while (row % total_multiple != 0) row += record_multiple;
      return row;
    };
    CHECK((largest == 0 || padded(largest) <= capacity));
    CHECK(padded(largest + 1) > capacity);
  });
}
