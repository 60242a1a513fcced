#pragma once

// Calendars that take no time to make.

#include <lanepack/packer/calendar_caps.hpp>

#include <cstdint>

#include "support/gen.hpp"

namespace lanepack_test {

/// Numbers of a calendar in their whole range, good or bad.
inline lanepack::calendar_tuning random_tuning(gen& random) {
  const auto number = [&random](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::uint32_t>(random.between(low, high));
  };
  lanepack::calendar_tuning tuning;
  tuning.spare_ppm = number(0, 100'000);
  tuning.light_ppm = number(1, 1'000'000);
  tuning.dither_ppm = number(0, 400'000);
  tuning.reserve_ppm = number(0, 12'000'000);
  tuning.slot_delay_steps = number(1, 64);
  tuning.overdue_steps = number(1, 64);
  if (random.one_in(2)) tuning.step_tokens_ppm = number(1'000'001, 2'000'000);
  if (random.one_in(4)) tuning.step_cost_ppm = number(1'000'001, 2'000'000);
  return tuning;
}

}  // namespace lanepack_test
