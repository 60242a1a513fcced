#pragma once

/// @file
/// What a step holds over all lanes, and what a mixture's parts have given.

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

/// What came from one part of a mixture.
struct part_share {
  std::uint64_t records = 0;
  /// As they are delivered.
  std::uint64_t tokens = 0;

  friend bool operator==(const part_share&, const part_share&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
