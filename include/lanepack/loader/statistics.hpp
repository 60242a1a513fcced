#pragma once

/// @file
/// `loader_statistics`: what a loader has done so far.

#include <cstdint>

#include <lanepack/core/config.hpp>
#include <lanepack/device/ring_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a loader has done so far.
struct loader_statistics {
  /// Steps and micro-batches handed to the trainer.
  std::uint64_t steps = 0;
  std::uint64_t micro_batches = 0;
  /// Records that could not be read and were masked.
  std::uint64_t masked_records = 0;
  /// Waiting times and fill of the staging ring.
  ring_statistics staging;
};

}  // namespace lanepack::inline LANEPACK_ABI
