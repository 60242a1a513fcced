#include <lanepack/sim/pooled_balanced.hpp>

#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

namespace {

using lanepack_test::owned_step;
using lengths = std::vector<std::uint64_t>;
using loads = std::vector<std::vector<std::uint64_t>>;
using groups = std::vector<std::vector<std::uint32_t>>;

groups split(const groups& from, const lengths& costs, std::uint64_t multiple) {
  lanepack::micro_batch_list bins;
  for (const auto& group : from) {
    for (const std::uint32_t record : group) bins.add(record);
    bins.close();
  }
  lanepack::split_costliest_bins(bins, costs, 1, multiple);
  return lanepack_test::groups_of(bins);
}

loads assign(const lengths& tokens, std::uint32_t ranks, std::uint64_t capacity,
             bool squared = false) {
  lanepack::baseline_options options;
  options.capacity_tokens = capacity;
  lanepack::pooled_ffd_balanced_assigner assigner(options);
  lanepack::step_assignment assignment;
  assigner.assign(owned_step(tokens, squared).plan(), ranks, assignment);
  return lanepack_test::tokens_of(assignment);
}

}  // namespace

TEST_CASE("sim: the costliest bins are split to a multiple of the ranks", "[sim]") {
  // 50 and 30 become 30 + 20 and 20 + 10, as in slime.
  const groups bins = split({{0, 1, 2, 3, 4}, {5, 6, 7}}, lengths(8, 10), 4);
  lengths found;
  for (const auto& bin : bins) found.push_back(10 * bin.size());
  REQUIRE(found == lengths{20, 30, 20, 10});
  // A bin of one record is never split, whatever it costs.
  REQUIRE(split({{0}, {1, 2}}, {100, 1, 2}, 3) == groups{{0}, {2}, {1}});
  // Nothing to do.
  REQUIRE(split({{0, 1}, {2}}, {1, 1, 1}, 2) == groups{{0, 1}, {2}});
  REQUIRE_THROWS_AS(split({{0, 1}, {2}}, {1, 1, 1}, 4), lanepack::data_error);
}

TEST_CASE("sim: swaps level groups of equal counts", "[sim]") {
  // 9 8 | 2 1: exchanging 9 and 2 leaves 10 each.
  const lengths costs{9, 8, 2, 1};
  std::vector<std::uint32_t> members{0, 1, 2, 3};
  lanepack::swap_between_groups(costs, members, 2);
  REQUIRE(costs[members[0]] + costs[members[1]] == 10);
  REQUIRE(costs[members[2]] + costs[members[3]] == 10);
  // Nothing can help an outlier; one group is level.
  std::vector<std::uint32_t> outlier{0, 1};
  lanepack::swap_between_groups(lengths{9, 1}, outlier, 1);
  REQUIRE(outlier == std::vector<std::uint32_t>{0, 1});
  lanepack::swap_between_groups(lengths{9, 1}, outlier, 2);
  REQUIRE(outlier == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("sim: bins are balanced over ranks by cost, the same number for each", "[sim]") {
  // Two bins of 50 and 30 are enough for two ranks; four ranks need 30, 20, 20 and 10.
  REQUIRE(assign(lengths(8, 10), 2, 50) == loads{{50}, {30}});
  const loads four = assign(lengths(8, 10), 4, 50);
  REQUIRE(four == loads{{30}, {20}, {20}, {10}});
  // Bins 6, 5 1, 4 2, 3 3 cost 36, 26, 20, 18 squared: 36 + 18 against 26 + 20.
  REQUIRE(assign({6, 5, 4, 3, 3, 2, 1}, 2, 6, true) == loads{{6, 6}, {6, 6}});
  lanepack::baseline_options options;
  options.capacity_tokens = 6;
  lanepack::pooled_ffd_balanced_assigner assigner(options);
  lanepack::step_assignment assignment;
  assigner.assign(owned_step({6, 5, 4, 3, 3, 2, 1}, true).plan(), 2, assignment);
  REQUIRE(lanepack_test::rows_of(assignment, 0) == lanepack_test::rows{{36, 6, 1}, {18, 6, 2}});
  REQUIRE(lanepack_test::rows_of(assignment, 1) == lanepack_test::rows{{26, 6, 2}, {20, 6, 2}});
  // Packed too well for the ranks.
  REQUIRE(assign(lengths(8, 1), 8, 1000) == loads(8, {1}));
  REQUIRE_THROWS_AS(assign({15, 3, 3, 3, 3, 3, 3, 3}, 2, 10), lanepack::data_error);
}
