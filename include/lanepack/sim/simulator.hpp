#pragma once

/// @file
/// Simulates the step times of a cluster on real record lengths.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/plan_digest.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/sim/bounds.hpp>
#include <lanepack/sim/metrics.hpp>
#include <lanepack/sim/step_assigner.hpp>
#include <lanepack/sim/step_assignment.hpp>
#include <lanepack/sim/step_time.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A simulated cluster.
struct simulation_options {
  /// Data-parallel ranks, a divisor of the feed's lanes.
  std::uint32_t ranks = 64;
  /// Steps that are measured, and steps before them that are not.
  std::uint64_t steps = 640;
  std::uint64_t warmup_steps = 0;
  sync_model sync = sync_model::step;
  /// Cost units that every micro-batch takes beside its records.
  std::uint64_t micro_batch_overhead = 0;
  /// Capacity of the micro-batches, for `bin_fill`.
  micro_batch_options micro_batching = {};
  /// Steps whose records are pooled for `window_bound`, at least 1.
  std::uint32_t bound_window_steps = 16;
  /// Whether the assigner gives every rank the same number of records, for the bounds.
  bool equal_counts = true;
  /// Told the number of steps done.
  progress_callback progress = {};
  /// Told the cost of every rank and the time of each measured step, for pictures.
  std::function<void(std::span<const std::uint64_t> rank_costs, const step_time& time)> on_step =
      {};
};

/// What a simulation measured.
struct simulation_result {
  /// Steps measured; fewer than asked for where the run ends.
  std::uint64_t steps = 0;
  double rank_cost_cv = 0;
  double within_step_cv = 0;
  /// Of cost: sum over steps of the mean over ranks, over the sum of the maximum.
  double step_efficiency = 1;
  /// Of time, with the overhead of micro-batches and where ranks wait.
  double time_efficiency = 1;
  /// Sum over steps of the step time in cost units.
  double total_time = 0;
  /// Cost of the records of these steps.
  double total_cost = 0;
  /// Tokens over the capacity of all micro-batches.
  double bin_fill = 0;
  /// Mean over steps of the most micro-batches of a rank.
  double micro_batches_per_step = 0;
  /// The most that `step_efficiency` can be with the same records in every step, with the same
  /// records in every window of steps, and with the same records in every lane; see
  /// `bound_metrics`. The last is nullopt where the policy plans all lanes.
  double step_bound = 1;
  double window_bound = 1;
  std::optional<double> lane_total_bound;
  std::uint64_t max_displacement_steps = 0;
  std::uint64_t peak_buffered_records_per_rank = 0;
  std::uint64_t records_emitted = 0;
  /// Cost that left in packs over cost that was admitted, in the measured steps.
  double emitted_over_admitted_cost = 1;
  double step_tokens_max_ratio = 1;
  double token_weight_p99 = 1;
  double lag1_correlation = 0;
  /// Packs above the calendar's cap and records that left in them for their age, in the measured
  /// steps, and the cost of all arrivals over what the policy's distribution says: far from 1 where
  /// that does not match the stream. 0, 0 and 1 for policies without one.
  std::uint64_t packs_above_cap = 0;
  std::uint64_t due_records = 0;
  double cost_over_expected = 1;
  /// Over the packs of the measured steps.
  digest128 digest;
};

/// Runs a policy on all lanes and measures the ranks.
/// @throws  invalid_option; data_error where a step does not fit the micro-batches.
/// @complexity  Planning and micro-batching of steps x lanes x b records.
/// @determinism The digest is; figures are sums in floating point.
template <step_assigner Assigner>
[[nodiscard]] simulation_result simulate(const std::shared_ptr<const candidate_feed>& feed,
                                         const any_policy& policy, Assigner&& assigner,
                                         const simulation_options& options) {
  const std::uint32_t lanes = feed->sampler().lanes();
  if (options.ranks == 0 || lanes % options.ranks != 0) {
    detail::throw_invalid_option("ranks", std::to_string(options.ranks),
                                 "a divisor of the " + std::to_string(lanes) + " lanes");
  }
  std::vector<lane_index> all(lanes);
  std::iota(all.begin(), all.end(), lane_index{0});
  planner plan(feed, policy, all);

  simulation_result result;
  step_cost_metrics costs;
  token_weight_metrics weights;
  digest_chain chain;
  step_assignment assignment;
  std::vector<std::uint64_t> rank_costs(options.ranks);
  bound_metrics bounds(options.ranks, options.bound_window_steps, options.equal_counts);
  std::vector<std::uint64_t> record_tokens;
  planner_statistics before;
  double busy = 0;
  double rounds = 0;
  double tokens = 0;
  double bins = 0;
  const std::uint64_t wanted = saturating_add(options.warmup_steps, options.steps);
  for (std::uint64_t done = 0; done < wanted; ++done) {
    if (done == options.warmup_steps) before = plan.statistics();
    const std::optional<step_plan> step = plan.next();
    if (!step) break;
    if (options.progress) options.progress(done + 1, wanted);
    if (done < options.warmup_steps) continue;
    assigner.assign(*step, options.ranks, assignment);
    std::size_t most = 0;
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
      rank_costs[rank] = 0;
      for (const simulated_micro_batch& micro_batch : assignment[rank]) {
        rank_costs[rank] = saturating_add(rank_costs[rank], micro_batch.cost);
        tokens += static_cast<double>(micro_batch.tokens);
      }
      most = std::max(most, assignment[rank].size());
    }
    bins += static_cast<double>(assignment.micro_batches().size());
    rounds += static_cast<double>(most);
    costs.add(rank_costs);
    bounds.add(*step);
    const step_time time = time_of(assignment, options.sync, options.micro_batch_overhead);
    if (options.on_step) options.on_step(rank_costs, time);
    busy += static_cast<double>(time.busy);
    result.total_time += static_cast<double>(time.elapsed);
    record_tokens.clear();
    for (const pack_plan& pack : step->packs) {
      for (const candidate& record : pack.records) record_tokens.push_back(record.tokens);
    }
    weights.add(record_tokens);
    result.records_emitted += record_tokens.size();
    chain.add(*step);
    ++result.steps;
  }
  const planner_statistics& after = plan.statistics();
  result.rank_cost_cv = costs.rank_cost_cv();
  result.within_step_cv = costs.within_step_cv();
  result.step_efficiency = costs.step_efficiency();
  result.total_cost = costs.sum_of_means() * options.ranks;
  if (result.total_time > 0) result.time_efficiency = busy / options.ranks / result.total_time;
  if (result.steps != 0) {
    result.micro_batches_per_step = rounds / static_cast<double>(result.steps);
  }
  result.step_bound = bounds.step_bound();
  result.window_bound = bounds.window_bound();
  if (policy.scope() == policy_scope::lane) result.lane_total_bound = bounds.lane_total_bound();
  if (bins > 0) {
    result.bin_fill = tokens / (bins * static_cast<double>(options.micro_batching.capacity_tokens));
  }
  result.max_displacement_steps = after.max_displacement_steps;
  result.peak_buffered_records_per_rank = after.peak_buffered_records * (lanes / options.ranks);
  const std::uint64_t admitted = after.admitted_cost - before.admitted_cost;
  if (admitted != 0) {
    result.emitted_over_admitted_cost =
        static_cast<double>(after.emitted_cost - before.emitted_cost) /
        static_cast<double>(admitted);
  }
  result.packs_above_cap = after.policy.packs_above_cap - before.policy.packs_above_cap;
  result.due_records = after.policy.due_records - before.policy.due_records;
  if (after.policy.expected_cost != 0) {
    result.cost_over_expected =
        static_cast<double>(after.admitted_cost) / static_cast<double>(after.policy.expected_cost);
  }
  result.step_tokens_max_ratio = weights.step_tokens_max_ratio();
  result.token_weight_p99 = weights.token_weight_p99();
  result.lag1_correlation = costs.lag1_correlation();
  result.digest = chain.value();
  return result;
}

}  // namespace lanepack::inline LANEPACK_ABI
