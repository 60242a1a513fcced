#pragma once

/// @file
/// One simulation of lanepack-sim: a corpus, a policy and the cluster that they run on.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/lanepack.hpp>
#include <lanepack/sim.hpp>

#include "sim/baseline_runs.hpp"
#include "sim/rows.hpp"
#include "sim/run_log.hpp"
#include "support/plan_arguments.hpp"
#include "support/progress.hpp"

namespace lanepack_programs {

/// Everything that decides a simulation but the corpus and the policy.
struct experiment {
  /// Its policy is replaced by the one that is simulated.
  lanepack::plan_options plan;
  lanepack::simulation_options simulation;
  lanepack::baseline_options baseline;
  lanepack::any_estimator estimator;
  std::uint32_t records_per_rank = 0;
  std::shared_ptr<run_log> log;

  /// The same with another number of ranks, one lane a rank.
  [[nodiscard]] experiment at_ranks(std::uint32_t ranks) const {
    experiment out = *this;
    out.simulation.ranks = ranks;
    out.plan.lanes = ranks;
    out.plan.records_per_pack = records_per_rank;
    return out;
  }
  /// The same with another lookahead.
  [[nodiscard]] experiment at_lookahead(std::uint32_t steps) const {
    experiment out = *this;
    out.plan.lookahead_steps = steps;
    out.simulation.bound_window_steps = steps;
    return out;
  }
  /// The same with another bound on displacement.
  [[nodiscard]] experiment at_displacement(std::uint64_t steps) const {
    experiment out = *this;
    out.plan.max_displacement_steps = steps;
    return out;
  }
};

/// A corpus that is read once for many simulations.
struct loaded_corpus {
  std::string name;
  any_lengths lengths;
};

/// What does not depend on the policy.
struct prepared_corpus {
  std::string name;
  std::shared_ptr<const lanepack::candidate_feed> feed;
  std::uint64_t infeasible_records = 0;
  std::uint64_t unbalanceable_records = 0;
  /// Cost of a mean pack.
  std::uint64_t target_cost = 0;
  /// Tokens of the longest record that is delivered, after padding.
  std::uint64_t largest_record = 0;
};

inline prepared_corpus prepare(const loaded_corpus& corpus, const experiment& what) {
  prepared_corpus out;
  out.name = corpus.name;
  out.feed = lanepack::make_candidate_feed(corpus.lengths.source, corpus.lengths.summary,
                                           what.estimator, what.plan);
  const lanepack::record_selection& selection = out.feed->selection();
  out.infeasible_records = selection.infeasible_records;
  const std::uint64_t longest =
      selection.limits.chunks()
          ? corpus.lengths.summary.max_tokens
          : std::min(corpus.lengths.summary.max_tokens, selection.limits.largest_record());
  out.largest_record = lanepack::round_up(longest, what.plan.limits.record_multiple);
  const lanepack::cost_profile profile = lanepack::profile_costs(
      corpus.lengths.source, what.estimator, selection.limits, what.records_per_rank);
  out.unbalanceable_records = profile.unbalanceable_records;
  out.target_cost = profile.target_cost(what.records_per_rank);
  return out;
}

/// An experiment and the corpus prepared for it.
struct prepared_experiment {
  experiment what;
  prepared_corpus corpus;
};

/// The corpus prepared once for each value of a parameter, for all policies.
/// @param name    Of the parameter; stands with the value in the name of the corpus.
/// @param change  Gives the experiment with a value.
template <class Values, class Change>
std::vector<prepared_experiment> prepare_each(const loaded_corpus& corpus, const experiment& base,
                                              const Values& values, const std::string& name,
                                              const Change& change) {
  std::vector<prepared_experiment> out;
  for (const auto value : values) {
    experiment what = change(base, value);
    prepared_corpus prepared = prepare(corpus, what);
    prepared.name += " " + name + "=" + std::to_string(value);
    out.push_back({std::move(what), std::move(prepared)});
  }
  return out;
}

/// Simulates one policy or baseline by name.
inline row run_policy(const prepared_corpus& corpus, const std::string& policy, experiment what) {
  const std::string label = what.log->begin(corpus.name + " " + policy);
  row out;
  out.corpus = corpus.name;
  out.policy = policy;
  out.infeasible_records = corpus.infeasible_records;
  out.unbalanceable_records = corpus.unbalanceable_records;
  if (const lanepack::named_baseline* baseline = lanepack::find_baseline(policy)) {
    baseline_run run = simulate_baseline(label, corpus.feed, *baseline, what.baseline,
                                         corpus.largest_record, what.simulation);
    out.result = std::move(run.result);
    out.tuned_capacity_tokens = run.capacity_tokens;
    out.coordinated = baseline->coordinated;
    what.log->end();
    return out;
  }
  what.plan.policy = policy;
  const lanepack::policy_choice choice = lanepack::choose_policy(what.plan, *corpus.feed);
  if (choice.policy != policy) out.policy += " (" + choice.policy + ")";
  what.log->note(corpus.name, choice);
  progress_bar bar(label);
  what.simulation.progress = bar.callback();
  out.result = lanepack::simulate(
      corpus.feed, lanepack::make_policy(what.plan, *corpus.feed),
      lanepack::own_lanes_assigner(what.simulation.micro_batching, what.plan.limits.record_multiple,
                                   lanepack::counts_for(what.simulation.sync),
                                   std::make_shared<lanepack::any_estimator>(what.estimator)),
      what.simulation);
  bar.finish();
  what.log->end();
  return out;
}

}  // namespace lanepack_programs
