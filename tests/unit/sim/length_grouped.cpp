#include <lanepack/sim/length_grouped.hpp>

#include <vector>

#include "support/catch.hpp"

TEST_CASE("sim: length-grouped batches are neighbours of a sorted mega-batch", "[sim]") {
  lanepack::length_grouped_policy policy({.steps = 2});
  REQUIRE(policy.name() == "length_grouped");
  REQUIRE(policy.window_steps() == 2);
  REQUIRE(policy.buffered_steps() == 0);
  REQUIRE(policy.scope() == lanepack::policy_scope::all_lanes);
  REQUIRE(lanepack::length_grouped_policy().window_steps() == 50);

  std::vector<lanepack::candidate> arrivals(8);
  const std::vector<std::uint64_t> tokens{5, 9, 1, 7, 5, 2, 8, 3};
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].tokens = tokens[i];
    arrivals[i].arrival = i;
  }
  lanepack::pack_list packs;
  lanepack::step_window window;
  window.steps = 2;
  window.records_per_pack = 2;
  window.packs_per_step = 2;
  policy.form(window, arrivals, packs);
  // 9 8 7 5 | 5 3 2 1, dealt in turn; the equal ones by arrival.
  std::vector<std::vector<std::uint64_t>> found;
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    found.emplace_back();
    for (const lanepack::candidate& record : packs[pack]) found.back().push_back(record.arrival);
  }
  REQUIRE(found == std::vector<std::vector<std::uint64_t>>{{1, 3}, {6, 0}, {4, 5}, {7, 2}});

  REQUIRE_THROWS_AS(lanepack::length_grouped_policy({.steps = 0}), lanepack::invalid_option);
  arrivals.pop_back();
  REQUIRE_THROWS_AS(policy.form(window, arrivals, packs), lanepack::state_error);
}
