#include <lanepack/sim/baselines.hpp>

#include <set>
#include <string_view>
#include <vector>

#include <lanepack/cost/quadratic.hpp>

#include "fixture.hpp"
#include "support/catch.hpp"

TEST_CASE("sim: baselines are found by name", "[sim]") {
  std::set<std::string_view> names;
  for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
    REQUIRE(names.insert(baseline.name).second);
    REQUIRE(lanepack::find_baseline(baseline.name) == &baseline);
    REQUIRE_FALSE(baseline.description.empty());
  }
  REQUIRE(names == std::set<std::string_view>{"pooled_mffd", "pooled_mffd_padded", "pooled_ffd",
                                              "pooled_ffd_balanced", "pooled_lpt", "pooled_kk",
                                              "dp_balanced", "length_grouped"});
  REQUIRE(lanepack::find_baseline("window") == nullptr);
}

TEST_CASE("sim: every baseline keeps its promises on a step", "[sim]") {
  const lanepack_test::owned_step step({{{60, 3}, {10, 1}, {5, 2}}, {{30, 9}, {40, 8}, {55, 7}}});
  for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
    for (const lanepack::sync_model sync :
         {lanepack::sync_model::step, lanepack::sync_model::micro_batch}) {
      CAPTURE(baseline.name, lanepack::to_string(sync));
      lanepack::baseline_options options;
      options.capacity_tokens = 70;
      options.sync = sync;
      lanepack::any_step_assigner assigner = baseline.make_assigner(options);
      lanepack::step_assignment assignment;
      assigner.assign(step.plan(), 2, assignment);
      REQUIRE(assignment.ranks() == 2);
      std::uint64_t cost = 0;
      std::uint64_t tokens = 0;
      std::uint64_t records = 0;
      for (const lanepack::simulated_micro_batch& each : assignment.micro_batches()) {
        REQUIRE(each.tokens <= 70);
        REQUIRE(each.records > 0);
        cost += each.cost;
        tokens += each.tokens;
        records += each.records;
      }
      REQUIRE(cost == 30);
      REQUIRE(tokens == 200);
      REQUIRE(records == 6);
      if (baseline.equal_counts) {
        std::uint64_t own = 0;
        for (const lanepack::simulated_micro_batch& each : assignment[0]) own += each.records;
        REQUIRE(own == 3);
      }
      if (sync == lanepack::sync_model::micro_batch) {
        REQUIRE(assignment[0].size() == assignment[1].size());
      }
      options.capacity_tokens = 0;
      REQUIRE_THROWS_AS(baseline.make_assigner(options), lanepack::invalid_option);
    }
  }
}

TEST_CASE("sim: baselines order records one step at a time, or mega-batches that fit", "[sim]") {
  for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
    const bool grouped = baseline.name == "length_grouped";
    REQUIRE(baseline.make_policy(1024).window_steps() == (grouped ? 50 : 1));
    REQUIRE(baseline.coordinated != grouped);
  }
  const auto* grouped = lanepack::find_baseline("length_grouped");
  REQUIRE(grouped->make_policy(std::uint64_t{1} << 20).window_steps() == 8);
  REQUIRE(grouped->make_policy(std::uint64_t{1} << 24).window_steps() == 1);
}

TEST_CASE("sim: padding costs the linear term", "[sim]") {
  REQUIRE(lanepack::padding_cost_of(lanepack::quadratic_cost()) == 24576 * 1024);
  REQUIRE(lanepack::padding_cost_of(lanepack::quadratic_cost({.linear = 0, .quadratic = 3})) == 0);
}
