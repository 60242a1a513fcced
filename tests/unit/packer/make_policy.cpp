#include <lanepack/packer/make_policy.hpp>

#include "support/catch.hpp"

TEST_CASE("packer: every named policy is made under its name", "[packer]") {
  REQUIRE(lanepack::policies().size() >= 2);
  for (const lanepack::named_policy& policy : lanepack::policies()) {
    CAPTURE(policy.name);
    REQUIRE_FALSE(policy.description.empty());
    REQUIRE(lanepack::make_policy(policy.name, {}).name() == policy.name);
  }
  REQUIRE(lanepack::policies()[0].name == "sequential");
  REQUIRE(lanepack::policies()[1].name == "window");
}

TEST_CASE("packer: policy options reach the policy", "[packer]") {
  REQUIRE(lanepack::make_policy("window", {.lookahead_steps = 5}).window_steps() == 5);
  REQUIRE(lanepack::make_policy("sequential", {.lookahead_steps = 5}).window_steps() == 1);
  REQUIRE_THROWS_AS(lanepack::make_policy("window", {.lookahead_steps = 0}),
                    lanepack::invalid_option);
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
