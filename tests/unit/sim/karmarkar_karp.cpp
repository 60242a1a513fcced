#include <lanepack/sim/karmarkar_karp.hpp>

#include <algorithm>
#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

namespace {

using costs_list = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;

groups equal(const costs_list& costs, std::size_t parts) {
  lanepack::karmarkar_karp differencing;
  lanepack::micro_batch_list out;
  differencing.partition_equal(costs, parts, out);
  return lanepack_test::groups_of(out);
}

groups uneven(const costs_list& costs, std::size_t parts) {
  lanepack::karmarkar_karp differencing;
  lanepack::micro_batch_list out;
  differencing.partition(costs, parts, out);
  return lanepack_test::groups_of(out);
}

}  // namespace

// Expected groups come from a separate implementation that keeps the states in a sorted list.

TEST_CASE("sim: Karmarkar-Karp joins the two largest spreads until one is left", "[sim]") {
  // The example of the paper: 8 7 6 5 4 differ by 2 in the end, not by the 0 that is possible.
  REQUIRE(uneven({8, 7, 6, 5, 4}, 2) == groups{{1, 3, 4}, {0, 2}});
  REQUIRE(uneven({90, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 3) ==
          groups{{0}, {1, 2, 5, 6, 8, 11}, {3, 4, 7, 9, 10}});
  REQUIRE(uneven({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 4) ==
          groups{{1, 5, 9}, {4, 6, 7}, {2, 3, 11}, {0, 8, 10}});
  REQUIRE(uneven({2, 3}, 3) == groups{{1}, {0}, {}});
  REQUIRE(uneven({}, 2) == groups{{}, {}});
  REQUIRE(uneven({5, 6, 7}, 1) == groups{{0, 1, 2}});
}

TEST_CASE("sim: Karmarkar-Karp with equal counts", "[sim]") {
  REQUIRE(equal({8, 7, 6, 5, 4, 1}, 2) == groups{{1, 3, 4}, {0, 2, 5}});
  // Four values, four times each: both halves and all quarters come out even.
  const costs_list four{100, 100, 100, 100, 200, 200, 200, 200, 150, 150, 150, 150, 50, 50, 50, 50};
  REQUIRE(equal(four, 2) == groups{{0, 2, 4, 7, 8, 10, 12, 14}, {1, 3, 5, 6, 9, 11, 13, 15}});
  REQUIRE(equal(four, 4) == groups{{0, 7, 8, 12}, {1, 6, 9, 13}, {2, 5, 10, 14}, {3, 4, 11, 15}});
  REQUIRE(equal({5, 5, 5, 5, 5, 5}, 3) == groups{{0, 5}, {1, 4}, {2, 3}});
  REQUIRE(equal({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 4) ==
          groups{{1, 2, 11}, {0, 8, 10}, {4, 6, 7}, {3, 5, 9}});
  // Blind to an outlier: it keeps company that 10 12 13 would have spared it.
  REQUIRE(equal({90, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 3) ==
          groups{{0, 1, 4, 7}, {3, 5, 8, 11}, {2, 6, 9, 10}});
  REQUIRE(equal({}, 3) == groups{{}, {}, {}});
}

TEST_CASE("sim: Karmarkar-Karp takes costs beyond 32 bits", "[sim]") {
  // 24576 L + L^2 of 35655 tokens is above 2^31.
  const std::uint64_t large = 24576ULL * 35655 + 35655ULL * 35655;
  REQUIRE(large == 2147536305);
  REQUIRE(equal({large, 1, 2, large}, 2) == groups{{0, 2}, {1, 3}});
  REQUIRE(uneven({large, large, lanepack::max_record_cost}, 2) == groups{{2}, {0, 1}});
}

TEST_CASE("sim: Karmarkar-Karp refuses what cannot be split", "[sim]") {
  REQUIRE_THROWS_AS(equal({1, 2, 3}, 2), lanepack::state_error);
  REQUIRE_THROWS_AS(equal({1, 2, 3}, 0), lanepack::state_error);
  REQUIRE_THROWS_AS(uneven({1, 2, 3}, 0), lanepack::state_error);
}
