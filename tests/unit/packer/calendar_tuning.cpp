#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <lanepack/packer/calendar.hpp>
#include <lanepack/packer/calendar_tuning.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

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

TEST_CASE("packer: tuning ends for any distribution and size", "[packer]") {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  const std::vector<std::vector<lanepack::cost_bucket>> distributions = {
      {{.cost = 0, .tokens = 0, .records = 5}},
      {{.cost = 7, .tokens = 3, .records = 1}},
      {{.cost = 1, .tokens = 1, .records = 1'000'000},
       {.cost = most, .tokens = most, .records = 1}}};
  for (const auto& buckets : distributions) {
    for (const auto& [b, lookahead] : {std::pair(1U, 1U), std::pair(1U, 5U), std::pair(3U, 2U)}) {
      auto options = options_of(buckets);
      options.records_per_pack = b;
      options.lookahead_steps = lookahead;
      options.max_step_tokens_ppm = 1'000'001;
      options.max_step_cost_ppm = 1'500'000;
      REQUIRE_NOTHROW(lanepack::validate(lanepack::tune_calendar(options)));
    }
  }
  // What is too large for a trial of seconds is tuned as if it were smaller.
  auto options = options_of(distributions[1]);
  options.records_per_pack = 1'000'000;
  options.lookahead_steps = 8;
  const calendar_options smaller = lanepack::detail::affordable(options, 64);
  REQUIRE(smaller.records_per_pack == 256);
  REQUIRE(smaller.lookahead_steps == 8);
  REQUIRE(smaller.max_displacement_steps == 64);
}

TEST_CASE("packer: a tuned calendar keeps the limit on the tokens of a step", "[packer]") {
  // One record in fifty has fifty times the tokens of the others.
  const std::vector<lanepack::cost_bucket> buckets = {{.cost = 100, .tokens = 10, .records = 49},
                                                      {.cost = 5000, .tokens = 500, .records = 1}};
  const auto largest_ratio = [&](std::optional<std::uint32_t> limit) {
    calendar_options options = options_of(buckets);
    options.records_per_pack = 8;
    options.lookahead_steps = 8;
    options.max_displacement_steps = 128;
    options.max_ranks = 64;
    options.max_step_tokens_ppm = limit;
    lanepack::calendar_policy prototype(options);
    std::uint64_t largest_cap = 0;
    for (const lanepack::calendar_slot& slot : prototype.caps().slots()) {
      largest_cap = std::max(largest_cap, slot.cap);
    }
    double heavy_tokens = 0;
    double heavy_packs = 0;
    double all = 0;
    for (std::uint32_t lane = 0; lane < 64; ++lane) {
      lanepack_test::gen gen(1000 + lane);
      lanepack::calendar_policy policy = prototype;
      lanepack::pack_list packs;
      std::vector<lanepack::candidate> arrivals;
      std::uint64_t arrived = 0;
      for (std::uint64_t step = 0; step < 768; ++step) {
        arrivals.clear();
        for (; arrived < (step + 8) * 8; ++arrived) {
          const bool heavy = gen.one_in(50);
          lanepack::candidate record;
          record.cost = heavy ? 5000 : 100;
          record.tokens = heavy ? 500 : 10;
          record.arrival = arrived;
          record.admitted = step;
          arrivals.push_back(record);
        }
        packs.clear();
        policy.form({.first_step = step, .steps = 1, .records_per_pack = 8}, arrivals, packs);
        if (step < 256) continue;
        const bool heavy = prototype.caps().at(step).cap >= largest_cap / 10 * 9;
        heavy_packs += heavy ? 1 : 0;
        for (const lanepack::candidate& record : packs[0]) {
          if (heavy) heavy_tokens += static_cast<double>(record.tokens);
          all += static_cast<double>(record.tokens);
        }
      }
    }
    // Mean of a pack under one of the largest caps over the mean of all 64 x 512 packs.
    return (heavy_tokens / heavy_packs) / (all / (64 * 512));
  };
  const double free = largest_ratio(std::nullopt);
  const double limited = largest_ratio(1'500'000);
  CAPTURE(free, limited);
  REQUIRE(free > 2);
  REQUIRE(limited < 1.55);
}
