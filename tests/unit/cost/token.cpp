#include <lanepack/cost/token.hpp>

#include <array>
#include <cstdint>
#include <limits>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("cost: token_cost counts tokens and, if asked, patches", "[cost]") {
  const token_cost plain;
  CHECK(plain.cost({.tokens = 0}) == 0);
  CHECK(plain.cost({.tokens = 7, .loss_tokens = 3, .patches = 100}) == 7);

  const token_cost weighted({.per_token = 3, .per_patch = 5});
  CHECK(weighted.cost({.tokens = 7, .loss_tokens = 6, .patches = 2}) == 31);

  const std::array<record_shape, 2> shapes{{{.tokens = 1}, {.tokens = 2, .patches = 1}}};
  std::array<std::uint64_t, 2> costs{};
  weighted.costs(shapes, costs);
  CHECK(costs == std::array<std::uint64_t, 2>{3, 11});
}

TEST_CASE("cost: token_cost saturates instead of wrapping", "[cost]") {
  const token_cost plain;
  CHECK(plain.cost({.tokens = max_record_cost}) == max_record_cost);
  CHECK(plain.cost({.tokens = max_record_cost + 1}) == max_record_cost);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const token_cost huge({.per_token = most, .per_patch = most});
  CHECK(huge.cost({.tokens = most, .patches = most}) == max_record_cost);
  CHECK(huge.cost({}) == 0);
}

TEST_CASE("cost: token_cost describes its coefficients", "[cost]") {
  CHECK(token_cost().describe() == "token(per_token=1,per_patch=0)");
}
