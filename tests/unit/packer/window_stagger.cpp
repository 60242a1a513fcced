#include <lanepack/packer/window_stagger.hpp>

#include <cstdint>
#include <vector>

#include <lanepack/packer/window.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using lanepack::step_limits;
using lanepack::window_stagger;

namespace {

/// One record in a hundred has a hundred times the tokens of the others.
lanepack::cost_distribution one_in_a_hundred() {
  return lanepack::cost_distribution(
      {{.cost = 100, .tokens = 10, .records = 99}, {.cost = 10'000, .tokens = 1000, .records = 1}});
}

/// Largest mean tokens of a place in the window, over the mean, of 64 lanes with their own records.
double largest_step(const window_stagger& stagger) {
  constexpr std::uint32_t steps = 16;
  constexpr std::uint32_t b = 8;
  lanepack_test::gen gen(99);
  lanepack::window_policy policy({.lookahead_steps = steps, .stagger = stagger});
  std::vector<double> tokens(steps);
  double all = 0;
  std::uint64_t arrival = 0;
  for (int window = 0; window < 60; ++window) {
    for (std::uint32_t lane = 0; lane < 64; ++lane) {
      std::vector<lanepack::candidate> records(steps * b);
      for (lanepack::candidate& record : records) {
        const bool heavy = gen.one_in(100);
        record.cost = heavy ? 10'000 : 100;
        record.tokens = heavy ? 1000 : 10;
        record.arrival = arrival++;
      }
      lanepack::pack_list packs;
      policy.form({.steps = steps, .records_per_pack = b, .lane = lane}, records, packs);
      for (std::uint32_t step = 0; step < steps; ++step) {
        for (const lanepack::candidate& record : packs[step]) {
          tokens[step] += static_cast<double>(record.tokens);
          all += static_cast<double>(record.tokens);
        }
      }
    }
  }
  return *std::max_element(tokens.begin(), tokens.end()) / (all / steps);
}

}  // namespace

TEST_CASE("packer: a stagger turns packs round the window", "[packer]") {
  const window_stagger stagger{.groups = 3, .shift = 2};
  const std::uint32_t expected[] = {0, 2, 4, 0, 2, 4};
  for (std::uint32_t lane = 0; lane < 6; ++lane) REQUIRE(stagger.offset(lane, 8) == expected[lane]);
  REQUIRE(stagger.offset(2, 3) == 1);
  REQUIRE(stagger.offset(2, 1) == 0);
  REQUIRE(window_stagger{}.offset(1000, 16) == 0);
}

TEST_CASE("packer: steps of staggered lanes, worked by hand", "[packer]") {
  const lanepack::detail::window_profile profile{
      .cost = {8, 2, 1, 1}, .tokens = {8, 2, 1, 1}, .long_tokens = {8, 0, 0, 0}};
  // The mean pack has 3 tokens.
  auto steps = lanepack::detail::evaluate(profile, {.groups = 1, .shift = 0}, 4);
  REQUIRE(steps.slowest == 12);
  REQUIRE(steps.tokens_ppm == 2'666'666);
  REQUIRE(steps.cost_ppm == 2'666'666);
  REQUIRE(steps.weight_ppm == 375'000);
  // Steps of (8 1), (2 8), (1 2) and (1 1).
  steps = lanepack::detail::evaluate(profile, {.groups = 2, .shift = 1}, 4);
  REQUIRE(steps.slowest == 19);
  REQUIRE(steps.tokens_ppm == 1'666'666);
  REQUIRE(steps.weight_ppm == 633'333);
  // Steps of (8 1), (2 1), (1 8) and (1 2).
  steps = lanepack::detail::evaluate(profile, {.groups = 2, .shift = 2}, 4);
  REQUIRE(steps.slowest == 20);
  REQUIRE(steps.tokens_ppm == 1'500'000);
  // Two lanes in the first group and one in the second: 8 + 8 + 1 of 9 is the largest step.
  steps = lanepack::detail::evaluate(profile, {.groups = 2, .shift = 2}, 3);
  REQUIRE(steps.tokens_ppm == 1'888'888);
}

TEST_CASE("packer: lanes are staggered only where a limit asks for it", "[packer]") {
  const lanepack::cost_distribution heavy = one_in_a_hundred();
  const lanepack::cost_distribution equal({{.cost = 5, .tokens = 5, .records = 10}});
  const step_limits limits{.max_tokens_ppm = 1'500'000};
  const window_stagger none;
  REQUIRE(lanepack::stagger_window(heavy, 8, 16, 64, {}) == none);
  REQUIRE(lanepack::stagger_window(equal, 8, 16, 64, limits) == none);
  REQUIRE(lanepack::stagger_window(heavy, 8, 1, 64, limits) == none);
  REQUIRE(lanepack::stagger_window(heavy, 8, 16, 1, limits) == none);
  REQUIRE_THROWS_AS(lanepack::stagger_window(heavy, 8, 16, 64, {.max_tokens_ppm = 5}),
                    lanepack::invalid_option);

  const window_stagger found = lanepack::stagger_window(heavy, 8, 16, 64, limits);
  REQUIRE(found.groups > 1);
  REQUIRE(found == lanepack::stagger_window(heavy, 8, 16, 64, limits));
  REQUIRE(largest_step(none) > 3);
  REQUIRE(largest_step(found) < 1.6);
  const window_stagger by_cost =
      lanepack::stagger_window(heavy, 8, 16, 64, {.max_cost_ppm = 3'000'000});
  REQUIRE(by_cost.groups > 1);
  REQUIRE(by_cost.groups <= found.groups);
}

TEST_CASE("packer: long windows are staggered too", "[packer]") {
  const window_stagger found =
      lanepack::stagger_window(one_in_a_hundred(), 2, 5000, 64, {.max_tokens_ppm = 1'500'000});
  REQUIRE(found.groups > 1);
}
