#pragma once

/// @file
/// `step_limits`: how much more than a mean step any step may hold, over all lanes.

#include <cstdint>
#include <string>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Limits on what a step holds over all lanes.
struct step_limits {
  /// Largest expected tokens and largest expected cost of a step over the run's mean, in parts per
  /// million, above 1'000'000; 0: no limit.
  std::uint32_t max_tokens_ppm = 0;
  std::uint32_t max_cost_ppm = 0;

  /// Whether there is a limit at all.
  [[nodiscard]] bool any() const noexcept { return max_tokens_ppm != 0 || max_cost_ppm != 0; }
};

/// What a token of the dearest 1 % of records has to weigh over the mean token where a limit on a
/// step's tokens is given and each step's loss is divided by its tokens, in parts per million.
inline constexpr std::uint32_t least_token_weight_ppm = 905'000;

/// Checks the limits.
/// @throws invalid_option if a limit is above 0 and not above 1'000'000.
inline void validate(const step_limits& limits) {
  for (const auto& [name, found] : {std::pair("max_step_tokens_ppm", limits.max_tokens_ppm),
                                    std::pair("max_step_cost_ppm", limits.max_cost_ppm)}) {
    if (found != 0 && found <= 1'000'000) {
      detail::throw_invalid_option(name, std::to_string(found),
                                   "more than 1000000, which is the mean, or 0 for no limit");
    }
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
