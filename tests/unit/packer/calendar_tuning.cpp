#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <lanepack/packer/calendar_tuning.hpp>

#include "support/catch.hpp"

using lanepack::calendar_options;
using lanepack::calendar_tuning;

namespace {

calendar_options options_of(std::vector<lanepack::cost_bucket> buckets) {
  calendar_options options;
  options.costs = std::make_shared<const lanepack::cost_distribution>(std::move(buckets));
  options.records_per_pack = 4;
  options.lookahead_steps = 4;
  options.max_displacement_steps = 64;
  options.max_step_tokens_ppm = std::nullopt;
  return options;
}

}  // namespace

TEST_CASE("packer: variation of costs in parts per million", "[packer]") {
  // Costs 1 and 3: mean 2, variance 1.
  const auto options = options_of(
      {{.cost = 1000, .tokens = 1, .records = 5}, {.cost = 3000, .tokens = 3, .records = 5}});
  const std::uint64_t variation = lanepack::detail::cost_variation_ppm(*options.costs);
  REQUIRE(variation >= 249'000);
  REQUIRE(variation <= 251'000);
  const auto equal = options_of({{.cost = 777, .tokens = 1, .records = 5}});
  REQUIRE(lanepack::detail::cost_variation_ppm(*equal.costs) < 1000);
}

TEST_CASE("packer: integer powers and roots of the tuning", "[packer]") {
  constexpr double one = 4294967296.0;
  for (const std::uint64_t hundredths : {0U, 1U, 50U, 100U, 300U, 700U}) {
    const double expected = std::exp(-static_cast<double>(hundredths) / 100);
    const double found = static_cast<double>(lanepack::detail::exp_minus32(hundredths, 100)) / one;
    REQUIRE(std::abs(found - expected) < 0.002);
  }
  REQUIRE(lanepack::detail::exp_minus32(1, 0) == 0);
  REQUIRE(lanepack::detail::integer_root(0) == 0);
  REQUIRE(lanepack::detail::integer_root(99) == 9);
  REQUIRE(lanepack::detail::integer_root(100) == 10);
  REQUIRE(lanepack::detail::integer_root(static_cast<lanepack::uint128>(1) << 126) ==
          std::uint64_t{1} << 63);
}

TEST_CASE("packer: more ranks need more spare capacity", "[packer]") {
  auto options = options_of(
      {{.cost = 1000, .tokens = 1, .records = 50}, {.cost = 3000, .tokens = 3, .records = 50}});
  std::uint64_t last = 0;
  for (const std::uint32_t ranks : {1U, 8U, 64U, 512U, 4096U}) {
    options.max_ranks = ranks;
    const std::uint64_t spare = lanepack::detail::spare_by_theory_ppm(options, 64);
    REQUIRE(spare > last);
    last = spare;
  }
}

TEST_CASE("packer: a tuning found once is found again", "[packer][golden]") {
  std::vector<lanepack::cost_bucket> buckets;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    buckets.push_back({.cost = i * i * 100, .tokens = i, .records = 101 - i});
  }
  const calendar_tuning tuning = lanepack::tune_calendar(options_of(buckets));
  REQUIRE(tuning == lanepack::tune_calendar(options_of(buckets)));
  CAPTURE(tuning.spare_ppm, tuning.light_ppm, tuning.dither_ppm, tuning.reserve_ppm,
          tuning.slot_delay_steps, tuning.overdue_steps);
  calendar_tuning golden;
  golden.spare_ppm = 130'613;
  golden.light_ppm = 500'000;
  golden.dither_ppm = 100'000;
  golden.reserve_ppm = 2'750'000;
  golden.slot_delay_steps = 42;
  golden.overdue_steps = 42;
  REQUIRE(tuning == golden);
}
