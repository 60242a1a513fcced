#pragma once

/// @file
/// `loader_statistics`: what a loader has done so far, and what comes next.

#include <chrono>
#include <cstdint>
#include <vector>

#include <lanepack/batch/layout_options.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/device/ring_options.hpp>
#include <lanepack/loader/step_counts.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A step that is planned and that the trainer has not asked for.
struct coming_step {
  step_index step = 0;
  /// Estimated cost of this rank's records.
  std::uint64_t cost = 0;
  /// Tokens of this rank's records, before padding.
  std::uint64_t tokens = 0;
};

/// What a loader has done so far, and what comes next.
struct loader_statistics {
  /// Steps and micro-batches handed to the trainer.
  std::uint64_t steps = 0;
  std::uint64_t micro_batches = 0;
  /// Of those steps: records, tokens, padding and predicted tokens as planned, and estimated cost.
  batch_counts planned;
  std::uint64_t cost = 0;
  /// Of those steps, by part of a mixture: the shares that were achieved on this rank. Else empty.
  std::vector<part_share> parts;
  /// Bytes of the micro-batches that were read and laid out.
  std::uint64_t bytes = 0;
  /// Records that could not be read and were masked.
  std::uint64_t masked_records = 0;
  /// Times that the trainer found no step planned, and how long it waited in all; waits for a
  /// micro-batch are those of `staging`'s consumers.
  std::uint64_t step_waits = 0;
  std::chrono::nanoseconds step_wait_time{0};
  /// Steps that are planned ahead, the next first.
  std::vector<coming_step> coming;
  /// Micro-batches that are planned and not read, and those that are read and not taken.
  std::uint64_t micro_batches_to_read = 0;
  std::uint64_t micro_batches_ready = 0;
  /// Waiting times and fill of the staging ring.
  ring_statistics staging;
};

}  // namespace lanepack::inline LANEPACK_ABI
