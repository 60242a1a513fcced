#pragma once

/// @file
/// Runs of the coordinated baselines at the capacity that suits each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/lanepack.hpp>
#include <lanepack/sim.hpp>

#include "support/progress.hpp"

namespace lanepack_programs {

/// A baseline's figures and the capacity that they were reached with.
struct baseline_run {
  lanepack::simulation_result result;
  std::uint64_t capacity_tokens = 0;
};

/// Steps with which a capacity is tuned: about 2^15 records, 4 to 32 steps; a whole window of a
/// baseline that orders more.
inline std::uint64_t tuning_steps(std::uint64_t step_records, std::uint32_t window_steps) {
  constexpr std::uint64_t records = std::uint64_t{1} << 15;
  const std::uint64_t steps =
      std::clamp<std::uint64_t>(records / std::max<std::uint64_t>(step_records, 1), 4, 32);
  return lanepack::round_up(steps, window_steps);
}

/// Tunes the capacity on the first steps of the run, then simulates all of it.
/// @param label           Of the progress bar.
/// @param options         What concerns all baselines, with the user's capacity.
/// @param largest_record  Tokens of the longest record after padding.
/// @param simulation      The cluster; its capacity is replaced by the tuned one.
inline baseline_run simulate_baseline(const std::string& label,
                                      const std::shared_ptr<const lanepack::candidate_feed>& feed,
                                      const lanepack::named_baseline& baseline,
                                      const lanepack::baseline_options& options,
                                      std::uint64_t largest_record,
                                      lanepack::simulation_options simulation) {
  const lanepack::step_schedule& schedule = feed->sampler().schedule();
  const std::uint64_t step_records =
      std::uint64_t{schedule.lanes()} * schedule.run(0).records_per_pack;
  const lanepack::any_policy policy = baseline.make_policy(step_records);
  lanepack::baseline_options tuned = options;
  {
    progress_bar bar(label + " capacity");
    const lanepack::recorded_steps steps(feed, policy,
                                         tuning_steps(step_records, policy.window_steps()));
    tuned.capacity_tokens =
        lanepack::tune_capacity(steps, simulation.ranks, baseline, options, largest_record,
                                simulation.micro_batch_overhead, bar.callback())
            .capacity_tokens;
  }
  progress_bar bar(label);
  simulation.progress = bar.callback();
  simulation.micro_batching.capacity_tokens = tuned.capacity_tokens;
  simulation.equal_counts = baseline.equal_counts;
  baseline_run out{lanepack::simulate(feed, policy, baseline.make_assigner(tuned), simulation),
                   tuned.capacity_tokens};
  // A planner of all ranks moves records between them.
  out.result.lane_total_bound.reset();
  return out;
}

}  // namespace lanepack_programs
