#include <lanepack/cost/quadratic.hpp>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("cost: the default cost is 24576 L + L^2", "[cost]") {
  const quadratic_cost estimator = default_cost();
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{
      {0, 0},
      {1, 24577},
      {2, 49156},
      {17, 418081},
      {1000, 25576000},
      {4095, 117407745},
      {4096, 117440512},
      {32768, 1879048192},
      // Just beyond what 32 bits with a sign can hold.
      {35655, 2147536305},
      {131072, 20401094656},
      {1000000, 1024576000000},
  };
  for (const auto& [tokens, cost] : expected) {
    CAPTURE(tokens);
    CHECK(estimator.cost({.tokens = tokens}) == cost);
    CHECK(estimator.cost({.tokens = tokens, .loss_tokens = tokens, .patches = 9}) ==
          estimator.cost({.tokens = tokens}));
  }
}

TEST_CASE("cost: quadratic_cost saturates exactly at its limit", "[cost]") {
  const quadratic_cost estimator;
  const std::uint64_t last = 1036359;
  CHECK(estimator.cost({.tokens = last}) == 24576 * last + last * last);
  CHECK(estimator.cost({.tokens = last}) < max_record_cost);
  CHECK(estimator.cost({.tokens = last + 1}) == max_record_cost);
  CHECK(estimator.cost({.tokens = (std::uint64_t{1} << 31) - 1}) == max_record_cost);
  CHECK(estimator.cost({.tokens = std::uint64_t{1} << 40}) == max_record_cost);
  CHECK(estimator.cost({.tokens = std::numeric_limits<std::uint64_t>::max()}) == max_record_cost);
}

TEST_CASE("cost: quadratic_cost takes other coefficients and patches", "[cost]") {
  const quadratic_cost estimator({.linear = 10, .quadratic = 3, .per_patch = 7});
  CHECK(estimator.cost({.tokens = 5, .patches = 2}) == 50 + 75 + 14);
  CHECK(estimator.describe() == "quadratic(linear=10,quadratic=3,per_patch=7)");
  const quadratic_cost linear({.linear = 1, .quadratic = 0});
  CHECK(linear.cost({.tokens = std::uint64_t{1} << 39}) == std::uint64_t{1} << 39);
}

TEST_CASE("cost: one shape costs what it costs among many", "[cost]") {
  const lanepack::any_estimator estimator = lanepack::quadratic_cost({.linear = 3, .quadratic = 2});
  CHECK(estimator.cost({.tokens = 5, .loss_tokens = 4}) == 3 * 5 + 2 * 25);
  CHECK(estimator.cost({}) == 0);
}
