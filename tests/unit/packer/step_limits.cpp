#include <lanepack/packer/step_limits.hpp>

#include "support/catch.hpp"

TEST_CASE("packer: limits on a step are none or above the mean", "[packer]") {
  REQUIRE_FALSE(lanepack::step_limits{}.any());
  REQUIRE(lanepack::step_limits{.max_tokens_ppm = 1'500'000}.any());
  REQUIRE(lanepack::step_limits{.max_cost_ppm = 1'500'000}.any());
  REQUIRE_NOTHROW(lanepack::validate(lanepack::step_limits{}));
  REQUIRE_NOTHROW(lanepack::validate({.max_tokens_ppm = 1'000'001, .max_cost_ppm = 1'000'001}));
  REQUIRE_THROWS_AS(lanepack::validate({.max_tokens_ppm = 1'000'000}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(lanepack::validate({.max_cost_ppm = 1}), lanepack::invalid_option);
}
