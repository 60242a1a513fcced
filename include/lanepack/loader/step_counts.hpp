#pragma once

/// @file
/// What a step holds over all lanes.

#include <cstdint>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a step holds over all lanes, as planned.
struct global_step_counts {
  std::uint64_t records = 0;
  std::uint64_t tokens = 0;
  /// An upper bound where records with a loss mask were truncated.
  std::uint64_t loss_tokens = 0;

  friend bool operator==(const global_step_counts&, const global_step_counts&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
