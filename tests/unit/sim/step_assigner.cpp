#include <lanepack/sim/step_assigner.hpp>

#include <memory>
#include <vector>

#include <lanepack/cost/quadratic.hpp>

#include "fixture.hpp"
#include "support/catch.hpp"

using lanepack_test::owned_step;
using lanepack_test::rows;
using lanepack_test::rows_of;

TEST_CASE("sim: a rank runs the packs of its own lanes, heaviest micro-batch first", "[sim]") {
  // Costs are not proportional to tokens, so that one cannot stand in for the other.
  const owned_step step({{{6, 10}, {1, 2}}, {{3, 50}, {2, 1}}, {{5, 7}, {4, 9}}, {{1, 1}, {1, 1}}});
  lanepack::own_lanes_assigner assigner({.capacity_tokens = 6});
  lanepack::step_assignment assignment;
  assigner.assign(step.plan(), 2, assignment);
  REQUIRE(assignment.ranks() == 2);
  // Best fit of 6 3 2 1 into 6: {6} and {3, 2, 1}. Of 5 4 1 1: {5, 1} and {4, 1}.
  REQUIRE(rows_of(assignment, 0) == rows{{53, 6, 3}, {10, 6, 1}});
  REQUIRE(rows_of(assignment, 1) == rows{{10, 5, 2}, {8, 6, 2}});
  REQUIRE(assignment.micro_batches().size() == 4);

  // The same packs on four ranks, into an assignment that was used before.
  assigner.assign(step.plan(), 4, assignment);
  REQUIRE(assignment.ranks() == 4);
  REQUIRE(rows_of(assignment, 0) == rows{{10, 6, 1}, {2, 1, 1}});
  REQUIRE(rows_of(assignment, 1) == rows{{51, 5, 2}});
  REQUIRE(rows_of(assignment, 2) == rows{{9, 4, 1}, {7, 5, 1}});
  REQUIRE(rows_of(assignment, 3) == rows{{2, 2, 2}});
}

TEST_CASE("sim: padding of records takes room in a micro-batch and is not counted as tokens",
          "[sim]") {
  const owned_step step({{{3, 3}, {1, 1}}});
  lanepack::step_assignment assignment;
  lanepack::own_lanes_assigner exact({.capacity_tokens = 4});
  exact.assign(step.plan(), 1, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{4, 4, 2}});
  // 3 takes 4 and 1 takes 2.
  lanepack::own_lanes_assigner padded({.capacity_tokens = 4}, 2);
  padded.assign(step.plan(), 1, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{3, 3, 1}, {1, 1, 1}});
}

TEST_CASE("sim: a fixed number of micro-batches holds on every rank", "[sim]") {
  const owned_step step({{{1, 1}, {1, 1}, {1, 1}}, {{4, 4}, {3, 3}, {2, 2}}});
  lanepack::own_lanes_assigner assigner({.capacity_tokens = 8, .micro_batches = 3});
  lanepack::step_assignment assignment;
  assigner.assign(step.plan(), 2, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  REQUIRE(rows_of(assignment, 1) == rows{{4, 4, 1}, {3, 3, 1}, {2, 2, 1}});
}

TEST_CASE("sim: ranks that meet in every micro-batch have the same number of them", "[sim]") {
  // Full and light ranks: 5 bins of 95 and one bin of 100.
  const owned_step step({{{95, 95}, {95, 95}, {95, 95}, {95, 95}, {95, 95}},
                         {{20, 20}, {20, 20}, {20, 20}, {20, 20}, {20, 20}}});
  lanepack::step_assignment assignment;
  lanepack::own_lanes_assigner own({.capacity_tokens = 100});
  own.assign(step.plan(), 2, assignment);
  REQUIRE(assignment[0].size() == 5);
  REQUIRE(assignment[1].size() == 1);
  for (const lanepack::micro_batch_rule rule :
       {lanepack::micro_batch_rule::level, lanepack::micro_batch_rule::best_fit_decreasing}) {
    lanepack::own_lanes_assigner common({.capacity_tokens = 100, .rule = rule}, 1,
                                        lanepack::micro_batch_counts::common);
    common.assign(step.plan(), 2, assignment);
    REQUIRE(rows_of(assignment, 0) == rows(5, {95, 95, 1}));
    REQUIRE(rows_of(assignment, 1) == rows(5, {20, 20, 1}));
  }
}

TEST_CASE("sim: records above the capacity are cut into chunks that add up to them", "[sim]") {
  // A cost of L^2: the chunks 4, 3 and 3 of 10 tokens cost 16, 49 - 16 and 100 - 49.
  const auto square = std::make_shared<const lanepack::any_estimator>(
      lanepack::quadratic_cost({.linear = 0, .quadratic = 1}));
  const owned_step step({{{10, 100}, {2, 4}, {1, 1}}, {{3, 9}, {3, 9}, {4, 16}}});
  lanepack::step_assignment assignment;
  lanepack::own_lanes_assigner own({.capacity_tokens = 4}, 1, lanepack::micro_batch_counts::own,
                                   square);
  own.assign(step.plan(), 2, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{16, 4, 1}, {33, 3, 0}, {51, 3, 0}, {5, 3, 2}});
  REQUIRE(rows_of(assignment, 1) == rows{{16, 4, 1}, {9, 3, 1}, {9, 3, 1}});
  // The same number on all ranks: whole records are spread first, then records are cut further.
  const owned_step short_of_one({{{10, 100}, {4, 16}, {4, 16}}, {{10, 100}, {1, 1}, {1, 1}}});
  lanepack::own_lanes_assigner common({.capacity_tokens = 4}, 1,
                                      lanepack::micro_batch_counts::common, square);
  common.assign(short_of_one.plan(), 2, assignment);
  REQUIRE(rows_of(assignment, 0) ==
          rows{{16, 4, 1}, {33, 3, 0}, {51, 3, 0}, {16, 4, 1}, {16, 4, 1}});
  REQUIRE(rows_of(assignment, 1) == rows{{16, 4, 1}, {33, 3, 0}, {51, 3, 0}, {1, 1, 1}, {1, 1, 1}});
  // Without an estimator a chunk costs its share of the tokens.
  lanepack::own_lanes_assigner shares({.capacity_tokens = 4});
  shares.assign(step.plan(), 2, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{40, 4, 1}, {30, 3, 0}, {30, 3, 0}, {5, 3, 2}});
}

TEST_CASE("sim: any assigner can be held by value", "[sim]") {
  const owned_step step({{{3, 3}, {1, 1}}});
  lanepack::any_step_assigner assigner = lanepack::own_lanes_assigner({.capacity_tokens = 3});
  lanepack::step_assignment assignment;
  assigner.assign(step.plan(), 1, assignment);
  REQUIRE(rows_of(assignment, 0) == rows{{3, 3, 1}, {1, 1, 1}});
}
