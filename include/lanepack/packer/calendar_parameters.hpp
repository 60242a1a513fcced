#pragma once

/// @file
/// `calendar_tuning`: the numbers that shape a calendar.

#include <cstdint>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The numbers that shape a calendar and how a lane fills it; all fractions in parts per million.
///
/// `tune_calendar` finds them. They are plain integers, so that they can be stored with a run.
struct calendar_tuning {
  /// Spare capacity d: the mean cap is (1 + d) x the mean pack cost.
  std::uint32_t spare_ppm = 5'000;
  /// The records beside a heavy one are taken to be this cheapest part of the distribution.
  std::uint32_t light_ppm = 750'000;
  /// Width of the band over which the caps of ordinary slots are spread around their mean.
  std::uint32_t dither_ppm = 100'000;
  /// Work that a lane may be short of before it emits less than its share, over the mean pack.
  std::uint32_t reserve_ppm = 5'000'000;
  /// Steps within which a heavy record shall find a slot.
  std::uint32_t slot_delay_steps = 256;
  /// Age from which a record goes before others that would use its slot better.
  std::uint32_t overdue_steps = 256;
  /// Mean cost and mean tokens of a step that slots are laid out for, over the mean step; heavier
  /// slots are then more than needed, so that few ranks use one at the same time. 0: no limit.
  std::uint32_t step_cost_ppm = 0;
  std::uint32_t step_tokens_ppm = 0;

  friend bool operator==(const calendar_tuning&, const calendar_tuning&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
