#pragma once

/// @file
/// What decides the packs of a run, and what decides how they reach the trainer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/batch/layout_options.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/cost/feasibility.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/packer/calendar_parameters.hpp>
#include <lanepack/packer/micro_batch_rule.hpp>
#include <lanepack/sampler/mixture_options.hpp>
#include <lanepack/sampler/schedule_options.hpp>
#include <lanepack/sampler/shuffle_options.hpp>
#include <lanepack/topology/lane_ownership.hpp>

namespace lanepack::inline LANEPACK_ABI {

class cost_distribution;

/// Everything that decides which records a pack holds. Two runs with the same corpus, estimator and
/// plan options have the same packs, whatever the number of ranks and threads.
struct plan_options {
  /// Keys every random decision.
  std::uint64_t seed = 0;
  /// L, the number of lanes, fixed for the life of a run; a step has `lanes x records_per_pack`
  /// records. No default: choose a number that every world size of the run will divide.
  std::uint32_t lanes = 0;
  /// b, the records of a pack, 1 to 2^23. No default.
  std::uint32_t records_per_pack = 0;
  /// Steps at which b changes, ascending.
  std::vector<pack_size_change> pack_size_changes = {};
  /// What happens where the records of an epoch do not fill whole steps.
  epoch_end rule = epoch_end::drop_last;
  /// Passes over the corpus; see `schedule_options::epochs` for the default of each rule.
  std::optional<std::uint64_t> epochs = std::nullopt;
  /// Steps after which the run ends; the plan of the steps before does not depend on it.
  std::optional<std::uint64_t> steps = std::nullopt;
  /// Ranges of steps that are planned and not delivered.
  std::vector<step_range> skip_steps = {};
  /// Order of the records in an epoch.
  shuffle_options shuffle = {};
  /// How the parts of a `concatenated_source` are mixed, under the rule `continue_epochs` and
  /// without `epochs`; every part has epochs of its own. nullopt: all records of an epoch are
  /// shuffled together. Policies plan by what the first phase's records cost, also after weights
  /// change, so that a change moves nothing that came before it.
  std::optional<mixture_options> mixture = std::nullopt;
  /// Name of the lookahead policy, one of `policies()`, or `auto`: see `choose_policy`.
  std::string policy = "window";
  /// Steps of records that a lane may buffer, at least 1.
  std::uint32_t lookahead_steps = 16;
  /// Hard bound on the steps between a record's admission and its pack's step; 0: 32 x
  /// `lookahead_steps`.
  std::uint64_t max_displacement_steps = 0;
  /// Largest expected tokens of a step over the mean step, in parts per million, above 1'000'000
  /// (max_step_tokens_ratio = 1.5); 0: no limit. Where a loss is divided by the tokens of its step,
  /// a token in a step with many weighs less; the limit also keeps the mean weight of the tokens in
  /// the dearest 1 % of records above 0.9 of the mean.
  std::uint32_t max_step_tokens_ppm = 1'500'000;
  /// The same for the cost of a step (max_step_cost_ratio).
  std::uint32_t max_step_cost_ppm = 0;
  /// What the stream's records cost, where that was declared or is not to be taken from the corpus:
  /// see `stream_costs.hpp`. It must be the same on every rank.
  std::shared_ptr<const cost_distribution> costs = nullptr;
  /// The numbers of a calendar that were found before, as `calendar_policy::tuning_of` a saved
  /// state or of an earlier run; nullopt: found before the first step, which takes seconds.
  std::optional<calendar_tuning> tuning = std::nullopt;
  /// Capacity of a micro-batch, padding of a record in it, and what happens to records that do not
  /// fit or are empty. Part of the plan, because it decides which records there are.
  feasibility_options limits{.capacity_tokens = 32768};
};

namespace detail {

/// The fewest and the most records that a pack of the run has.
struct pack_size_range {
  std::uint32_t smallest = 0;
  std::uint32_t largest = 0;
};

[[nodiscard]] inline pack_size_range pack_sizes(const plan_options& options) {
  pack_size_range sizes{options.records_per_pack, options.records_per_pack};
  for (const pack_size_change& change : options.pack_size_changes) {
    sizes.smallest = std::min(sizes.smallest, change.records_per_pack);
    sizes.largest = std::max(sizes.largest, change.records_per_pack);
  }
  return sizes;
}

}  // namespace detail

/// What happens to a record that turns out to be bad when it is read.
enum class bad_record_policy : std::uint8_t {
  /// The run ends with the reader's error.
  fail,
  /// The record keeps its place, filled with the pad token and loss mask 0, and is counted. A file
  /// that was cut short, changed or removed is not a bad record: that ends the run.
  mask,
};

/// How packs become micro-batches in memory.
struct loader_options {
  /// What decides the packs.
  plan_options plan = {};
  /// How the records of a step are cut into micro-batches.
  micro_batch_rule micro_batching = micro_batch_rule::best_fit_decreasing;
  /// A fixed number of micro-batches per step and rank. Lane-local policies accept it only where
  /// the worst case from the length histogram fits.
  std::optional<std::uint32_t> micro_batches = std::nullopt;
  /// Otherwise the number of micro-batches of a step is rounded up to a multiple of this.
  std::uint32_t micro_batch_multiple = 1;
  /// Fields of a micro-batch; its multiples come from the plan's limits.
  layout_options fields = {};
  /// Bytes of all staging buffers together; what the loader reads ahead is bounded by it.
  std::size_t staging_bytes = std::size_t{64} << 20;
  /// Most micro-batches that are read ahead, at least 1, within `staging_bytes`.
  std::uint32_t prefetch_micro_batches = 8;
  /// The first step to deliver. Where no state says what the policy holds then, `calendar` plans
  /// the steps before, some microseconds each for a lane.
  step_index start_step = 0;
  /// Where an earlier run stood, to go on from there instead of from `start_step`: `step.state()`,
  /// merged over ranks where the policy has memory. It must be of the same corpus and plan options;
  /// the number of ranks may be another.
  std::optional<run_state> resume_from = std::nullopt;
  bad_record_policy bad_records = bad_record_policy::fail;
  /// Most payload bytes of a micro-batch, where records carry payloads; a record may have no more.
  /// nullopt: what the records of a step have at most, but no more than leaves room for four
  /// micro-batches in `staging_bytes`, and no less than the largest record has.
  std::optional<std::uint64_t> payload_bytes = std::nullopt;
  /// Called once, on a background thread, with an error that ends the run, before any call of the
  /// trainer reports it: a place to abort a communicator, so that other ranks do not wait.
  std::function<void(std::exception_ptr)> on_failure = {};
  /// Compute the digest of every pack over its token bytes and, where records carry payloads, over
  /// those.
  bool digests = false;
  /// Whether ranks may own numbers of lanes that differ by one.
  uneven_lanes uneven = uneven_lanes::refuse;
};

}  // namespace lanepack::inline LANEPACK_ABI
