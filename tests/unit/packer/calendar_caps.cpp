#include <cstdint>
#include <set>
#include <vector>

#include <lanepack/packer/calendar_caps.hpp>

#include "support/catch.hpp"

using lanepack::calendar_caps;
using lanepack::calendar_tuning;
using lanepack::cost_distribution;

namespace {

/// One record in 1024 costs 64 times the others.
cost_distribution with_outliers() {
  return cost_distribution({{.cost = 1000, .tokens = 10, .records = 1023 * 64},
                            {.cost = 64'000, .tokens = 640, .records = 64}});
}

std::uint64_t mean_cap(const calendar_caps& caps) {
  std::uint64_t sum = 0;
  for (const lanepack::calendar_slot& slot : caps.slots()) sum += slot.cap;
  return sum / calendar_caps::period;
}

}  // namespace

TEST_CASE("packer: caps of equal records are the pack's cost and the spare capacity", "[packer]") {
  const cost_distribution costs({{.cost = 1000, .tokens = 10, .records = 7}});
  calendar_tuning tuning;
  tuning.spare_ppm = 20'000;
  tuning.dither_ppm = 0;
  const calendar_caps caps(costs, 16, tuning);
  REQUIRE(caps.pack_cost() == 16'000);
  for (const lanepack::calendar_slot& slot : caps.slots()) {
    REQUIRE(slot.cap == 16'320);
    REQUIRE(slot.share == 16'000);
    REQUIRE(slot.counted_mean == 1000);
  }
}

TEST_CASE("packer: the mean cap is the mean pack and the spare capacity", "[packer]") {
  for (const std::uint32_t dither : {0U, 40'000U, 300'000U}) {
    calendar_tuning tuning;
    tuning.spare_ppm = 30'000;
    tuning.dither_ppm = dither;
    const calendar_caps caps(with_outliers(), 16, tuning);
    // 16 x (1023 x 1000 + 64000) / 1024 = 16984.
    REQUIRE(caps.pack_cost() == 16'984);
    const std::uint64_t expected = 17'493;  // 16984 x 1.03
    REQUIRE(mean_cap(caps) + 3 >= expected);
    REQUIRE(mean_cap(caps) <= expected + 3);
  }
}

TEST_CASE("packer: heavy slots come at the rate of a queue with a deadline", "[packer]") {
  calendar_tuning tuning;
  tuning.dither_ppm = 0;
  tuning.slot_delay_steps = 256;
  const calendar_caps caps(with_outliers(), 16, tuning);
  // 16 x 256 / 1024 = 4 outliers arrive within the delay; slots j with j^2 / (j + 4) < 4, that is
  // j < 2 + sqrt(20) = 6.47 with j = 0.5, 1.5, ..., hence 6 of 256.
  std::vector<std::uint32_t> heavy;
  for (std::uint32_t t = 0; t < calendar_caps::period; ++t) {
    if (caps.slots()[t].cap == 64'000 + 15 * 1000) heavy.push_back(t);
  }
  REQUIRE(heavy == std::vector<std::uint32_t>{0, 32, 64, 128, 160, 192});
  REQUIRE(caps.at(256 + 32).cap == 79'000);
}

TEST_CASE("packer: a limit makes heavy slots as many as few ranks a slot need", "[packer]") {
  calendar_tuning tuning;
  tuning.dither_ppm = 0;
  tuning.step_tokens_ppm = 1'500'000;
  const calendar_caps caps(with_outliers(), 16, tuning);
  std::size_t heavy = 0;
  for (const lanepack::calendar_slot& slot : caps.slots()) {
    if (slot.cap != 79'000) continue;
    ++heavy;
    // Nobody fills it without an outlier, and no ordinary record counts as one.
    REQUIRE(slot.light_fill == caps.base());
    REQUIRE(slot.least_heavy > 1000);
    REQUIRE(slot.least_heavy <= 64'000);
  }
  // A pack of 790 tokens against 169: a share of 84.5 / 621 of the ranks may use it, so that 4
  // outliers need 29.4 slots: those with j = 0.5, 1.5, ..., 28.5.
  REQUIRE(heavy == 29);
  REQUIRE(caps.base() < 17'500);
  REQUIRE(caps.base() > 16'000);
}

TEST_CASE("packer: dither spreads ordinary caps over its band", "[packer]") {
  const cost_distribution costs({{.cost = 100'000, .tokens = 10, .records = 7}});
  calendar_tuning tuning;
  tuning.spare_ppm = 1'000;
  tuning.dither_ppm = 100'000;
  const calendar_caps caps(costs, 10, tuning);
  std::set<std::uint64_t> values;
  for (const lanepack::calendar_slot& slot : caps.slots()) {
    REQUIRE(slot.cap >= 950'000);
    REQUIRE(slot.cap <= 1'052'000);
    values.insert(slot.cap);
  }
  REQUIRE(values.size() == calendar_caps::period);
}

TEST_CASE("packer: ordinary slots remain where heavy ones exceed the budget", "[packer]") {
  calendar_tuning tuning;
  tuning.dither_ppm = 0;
  tuning.light_ppm = 1'000'000;
  tuning.slot_delay_steps = 1;
  const calendar_caps caps(with_outliers(), 16, tuning);
  REQUIRE(caps.base() >= caps.pack_cost() / 2);
  for (const lanepack::calendar_slot& slot : caps.slots()) REQUIRE(slot.cap >= caps.base());
}
