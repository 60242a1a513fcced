#include <lanepack/packer/make_policy.hpp>

#include <lanepack/packer/cost_distribution.hpp>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace {

/// One record in ten is heavy.
std::shared_ptr<const lanepack::cost_distribution> two_costs() {
  return std::make_shared<const lanepack::cost_distribution>(std::vector<lanepack::cost_bucket>{
      {.cost = 100, .tokens = 10, .records = 9}, {.cost = 9100, .tokens = 910, .records = 1}});
}

}  // namespace

TEST_CASE("packer: every named policy is made under its name", "[packer]") {
  REQUIRE(lanepack::policies().size() >= 2);
  for (const lanepack::named_policy& policy : lanepack::policies()) {
    CAPTURE(policy.name);
    REQUIRE_FALSE(policy.description.empty());
    lanepack::policy_options options;
    options.costs = two_costs();
    options.tuning = lanepack::calendar_tuning{};
    REQUIRE(lanepack::make_policy(policy.name, options).name() == policy.name);
    REQUIRE(&lanepack::policy_named(policy.name) == &policy);
  }
  REQUIRE(lanepack::policies()[0].name == "sequential");
  REQUIRE(lanepack::policies()[1].name == "window");
  REQUIRE(lanepack::policies()[2].name == "calendar");
}

TEST_CASE("packer: policy options reach the policy", "[packer]") {
  REQUIRE(lanepack::make_policy("window", {.lookahead_steps = 5}).window_steps() == 5);
  REQUIRE(lanepack::make_policy("sequential", {.lookahead_steps = 5}).window_steps() == 1);
  REQUIRE_THROWS_AS(lanepack::make_policy("window", {.lookahead_steps = 0}),
                    lanepack::invalid_option);
}

TEST_CASE("packer: calendar says what it needs to be made", "[packer]") {
  try {
    (void)lanepack::make_policy("calendar");
    FAIL("no exception");
  } catch (const lanepack::invalid_option& error) {
    REQUIRE(error.option() == "costs");
    REQUIRE_THAT(error.expected(), Catch::Matchers::ContainsSubstring("index of lengths"));
    REQUIRE_THAT(error.expected(), Catch::Matchers::ContainsSubstring("histogram"));
    REQUIRE_THAT(error.expected(), Catch::Matchers::ContainsSubstring("prefix"));
  }
}

TEST_CASE("packer: limits and the displacement bound reach the policies", "[packer]") {
  lanepack::policy_options options;
  options.costs = two_costs();
  options.tuning = lanepack::calendar_tuning{};
  for (const char* name : {"window", "calendar"}) {
    CAPTURE(name);
    lanepack::policy_options bad = options;
    bad.limits.max_tokens_ppm = 1'000'000;
    REQUIRE_THROWS_AS(lanepack::make_policy(name, bad), lanepack::invalid_option);
    bad = options;
    bad.limits.max_cost_ppm = 1;
    REQUIRE_THROWS_AS(lanepack::make_policy(name, bad), lanepack::invalid_option);
    bad = options;
    bad.max_displacement_steps = 3;
    REQUIRE_THROWS_AS(lanepack::make_policy(name, bad), lanepack::invalid_option);
  }
  options.max_records_per_pack = 15;
  REQUIRE_THROWS_AS(lanepack::make_policy("calendar", options), lanepack::invalid_option);
}

TEST_CASE("packer: an unknown policy is refused with the names that exist", "[packer]") {
  try {
    (void)lanepack::make_policy("windw");
    FAIL("no exception");
  } catch (const lanepack::invalid_option& error) {
    REQUIRE(error.option() == "policy");
    REQUIRE(error.found() == "'windw'");
    REQUIRE_THAT(error.expected(), Catch::Matchers::StartsWith("one of sequential, window"));
  }
}
