#include <lanepack/sim/step_assigner.hpp>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

/// Packs that own their records.
struct owned_step {
  explicit owned_step(
      const std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>>& tokens_and_costs) {
    for (const auto& pack : tokens_and_costs) {
      std::vector<lanepack::candidate>& out = records.emplace_back();
      for (const auto& [tokens, cost] : pack) {
        lanepack::candidate record;
        record.tokens = tokens;
        record.cost = cost;
        out.push_back(record);
      }
    }
    for (std::uint32_t lane = 0; lane < records.size(); ++lane) {
      packs.push_back({.lane = lane, .cost = 0, .records = records[lane]});
    }
  }

  [[nodiscard]] lanepack::step_plan plan() const { return {.step = 0, .packs = packs}; }

  std::vector<std::vector<lanepack::candidate>> records;
  std::vector<lanepack::pack_plan> packs;
};

using rows = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

/// (cost, tokens, records) of a rank's micro-batches.
rows rows_of(const lanepack::step_assignment& assignment, std::size_t rank) {
  rows out;
  for (const lanepack::simulated_micro_batch& each : assignment[rank]) {
    out.emplace_back(each.cost, each.tokens, each.records);
  }
  return out;
}

}  // namespace

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
