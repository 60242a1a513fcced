#pragma once

/// @file
/// What the coordinated baselines need to know, beside the lengths of a step.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/sim/step_time.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of all baselines; each reads what concerns it.
struct baseline_options {
  /// Tokens of a micro-batch after padding, a hard limit: 1 to `max_bin_capacity`.
  std::uint64_t capacity_tokens = 32768;
  /// Records are padded to a multiple of this, at least 1.
  std::uint32_t record_multiple = 1;
  /// Where ranks wait for each other; baselines that cut a rank's records cut them for it.
  sync_model sync = sync_model::step;
  /// Micro-batches that every rank is forced to have, at least 1; baselines may make more.
  std::uint32_t micro_batches = 1;
  /// What 1024 tokens of padding cost, for a backend that pads micro-batches to the capacity; see
  /// `padding_cost_of`.
  std::uint64_t padding_cost_per_1024 = 0;
};

namespace detail {

inline void check_baseline_options(const baseline_options& options) {
  if (options.capacity_tokens == 0 || options.capacity_tokens > max_bin_capacity) {
    throw_invalid_option("capacity_tokens", std::to_string(options.capacity_tokens),
                         "1 to " + std::to_string(max_bin_capacity));
  }
  if (options.record_multiple == 0) throw_invalid_option("record_multiple", "0", "at least 1");
  if (options.micro_batches == 0) throw_invalid_option("micro_batches", "0", "at least 1");
}

/// How the records of a rank are cut for the synchronisation model where its records are given.
[[nodiscard]] inline micro_batch_options micro_batching_of(const baseline_options& options) {
  micro_batch_options out;
  out.capacity_tokens = options.capacity_tokens;
  if (options.micro_batches > 1) out.micro_batches = options.micro_batches;
  if (options.sync == sync_model::micro_batch) out.rule = micro_batch_rule::level;
  return out;
}

}  // namespace detail

/// Cost of 1024 tokens of padding: the linear term alone, since attention is paid on real segments.
/// From the costs a n + b n^2 of records of 1024 and 2048 tokens.
[[nodiscard]] inline std::uint64_t padding_cost_of(const any_estimator& estimator) {
  const std::array<record_shape, 2> shapes{record_shape{.tokens = 1024, .loss_tokens = 0},
                                           record_shape{.tokens = 2048, .loss_tokens = 0}};
  std::array<std::uint64_t, 2> costs{};
  estimator.costs(shapes, costs);
  const std::uint64_t twice = 2 * costs[0];
  return twice - std::min(twice, costs[1] / 2);
}

}  // namespace lanepack::inline LANEPACK_ABI
