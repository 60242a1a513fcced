#include <lanepack/packer/partitioner.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using costs_list = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;

groups partition(const costs_list& costs, std::uint32_t b,
                 const lanepack::partition_options& options = {}) {
  lanepack::balanced_partitioner model(options);
  const lanepack::partition_view view = model.partition(costs, b);
  groups found;
  for (std::size_t pack = 0; pack < view.size(); ++pack) {
    found.emplace_back(view[pack].begin(), view[pack].end());
  }
  return found;
}

}  // namespace

TEST_CASE("packer: longest first, each into the lightest pack that is not full", "[packer]") {
  // 9 | 8 | 7, then 6 to 7, 5 to 8, 4 to 9: all 13.
  REQUIRE(partition({4, 9, 6, 8, 5, 7}, 2) == groups{{0, 1}, {2, 5}, {3, 4}});
  // 20 keeps the emptiest places for last: 9 + 8 + 7 is full, so 20 takes the two smallest.
  REQUIRE(partition({1, 2, 7, 20, 8, 9}, 3) == groups{{2, 4, 5}, {0, 1, 3}});
}

TEST_CASE("packer: a swap evens out what longest first leaves", "[packer]") {
  const costs_list costs{11, 7, 9, 9, 5, 1};
  // 11 | 9, then 9, 7, 5 and 1 to the second, first, first (a tie) and second: 23 and 19.
  REQUIRE(partition(costs, 3, {.swap_rounds = 0}) == groups{{0, 1, 4}, {2, 3, 5}});
  // 11 for a 9, the first of the two, makes them equal: the pack with index 0 leads.
  REQUIRE(partition(costs, 3) == groups{{0, 3, 5}, {1, 2, 4}});
  // A tolerance of the mean, 21, leaves packs that differ by 4 alone.
  REQUIRE(partition(costs, 3, {.tolerance_shift = 0}) == groups{{0, 1, 4}, {2, 3, 5}});
  // 21 / 4 = 5 still does, 21 / 8 = 2 does not.
  REQUIRE(partition(costs, 3, {.tolerance_shift = 2}) == groups{{0, 1, 4}, {2, 3, 5}});
  REQUIRE(partition(costs, 3, {.tolerance_shift = 3}) == groups{{0, 3, 5}, {1, 2, 4}});
}

TEST_CASE("packer: a pack that no swap improves gives way to the next heavy one", "[packer]") {
  // 100 has the smallest two; the other packs are those of the case above.
  REQUIRE(partition({100, 1, 1, 11, 7, 9, 9, 5, 1}, 3, {.swap_rounds = 0}) ==
          groups{{0, 2, 8}, {3, 4, 7}, {1, 5, 6}});
  REQUIRE(partition({100, 1, 1, 11, 7, 9, 9, 5, 1}, 3) == groups{{0, 2, 8}, {1, 3, 6}, {4, 5, 7}});
}

TEST_CASE("packer: equal packs stand in the order of their lowest index", "[packer]") {
  REQUIRE(partition({5, 5, 5, 5, 5, 5}, 2) == groups{{0, 3}, {1, 4}, {2, 5}});
  REQUIRE(partition({0, 0, 0, 0}, 2) == groups{{0, 2}, {1, 3}});
  REQUIRE(partition({1, 2, 3, 3}, 1) == groups{{2}, {3}, {1}, {0}});
}

TEST_CASE("packer: the edges of a partition", "[packer]") {
  REQUIRE(partition({}, 4).empty());
  REQUIRE(partition({7}, 1) == groups{{0}});
  REQUIRE(partition({3, 9, 1}, 3) == groups{{0, 1, 2}});

  // Sums of saturated costs are exact.
  const costs_list saturated(1 << 12, lanepack::max_record_cost);
  lanepack::balanced_partitioner model;
  const lanepack::partition_view view = model.partition(saturated, 1 << 11);
  REQUIRE(view.costs[0] == lanepack::max_record_cost << 11);
  REQUIRE(view.costs[1] == view.costs[0]);
}

TEST_CASE("packer: a partition of a wrong size is refused", "[packer]") {
  lanepack::balanced_partitioner model;
  const costs_list costs(10, 1);
  REQUIRE_THROWS_AS(model.partition(costs, 3), lanepack::state_error);
  REQUIRE_THROWS_AS(model.partition(costs, 0), lanepack::state_error);
  REQUIRE_THROWS_MATCHES(
      model.partition(costs, 4), lanepack::state_error,
      Catch::Matchers::Message("partition: found 10 records, expected a multiple of 4 and at most "
                               "8388608"));
  REQUIRE_THROWS_AS(lanepack::balanced_partitioner({.tolerance_shift = 64}),
                    lanepack::invalid_option);
}

TEST_CASE("packer: the lower bound of the largest pack", "[packer]") {
  REQUIRE(lanepack::largest_pack_lower_bound({}, 4) == 0);
  // Mean 21 / 3; an outlier of 6 with the smallest, 1, is no more.
  REQUIRE(lanepack::largest_pack_lower_bound(costs_list{1, 2, 3, 4, 5, 6}, 2) == 7);
  // Mean 20; but 50 cannot be with less than 1 + 2.
  REQUIRE(lanepack::largest_pack_lower_bound(costs_list{50, 3, 2, 1, 2, 2}, 3) == 53);
  // A mean that is not whole is rounded up.
  REQUIRE(lanepack::largest_pack_lower_bound(costs_list{1, 1, 1, 2}, 2) == 3);
  REQUIRE(lanepack::largest_pack_lower_bound(costs_list{9, 4}, 2) == 13);
  REQUIRE(lanepack::largest_pack_lower_bound(costs_list{9, 4}, 1) == 9);
}

TEST_CASE("packer: windows of real proportions come close to the lower bound", "[packer]") {
  // 24576 L + L^2 for heavy-tailed lengths below a pack's share: within 1 % of the bound on
  // average.
  lanepack_test::gen gen(1);
  lanepack::balanced_partitioner model;
  std::uint64_t found = 0;
  std::uint64_t bound = 0;
  for (int window = 0; window < 50; ++window) {
    costs_list costs(256);
    for (std::uint64_t& cost : costs) {
      const std::uint64_t length = 50 + gen.between(0, 400) + gen.heavy_tailed(10);
      cost = 24576 * length + length * length;
    }
    found += model.partition(costs, 16).costs[0];
    bound += lanepack::largest_pack_lower_bound(costs, 16);
  }
  REQUIRE(found >= bound);
  REQUIRE(found <= bound + bound / 100);
}
