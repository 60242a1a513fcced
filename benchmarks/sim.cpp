// lanepack-sim: simulates a cluster on real record lengths and compares policies.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>
#include <lanepack/sim.hpp>

#include "sim/baseline_runs.hpp"
#include "sim/rows.hpp"
#include "support/plan_arguments.hpp"
#include "support/policy_arguments.hpp"
#include "support/program.hpp"
#include "support/progress.hpp"

namespace {

using lanepack_programs::command_line;
using lanepack_programs::exit_code;
using lanepack_programs::row;

struct arguments {
  lanepack::any_corpus_options reading;
  std::vector<std::string> lengths;
  std::uint32_t ranks = 64;
  std::uint32_t records_per_rank = 16;
  std::optional<std::uint32_t> lanes;
  std::uint32_t lookahead = 16;
  std::uint64_t capacity_tokens = 32768;
  std::string infeasible = "truncate";
  std::string empty = "skip_and_count";
  std::vector<std::string> policies = {"sequential", "window"};
  std::uint64_t steps = 640;
  std::uint64_t warmup = 0;
  std::uint64_t seed = 1;
  std::string epoch_end = "continue";
  std::string shuffle = "full";
  std::string model;
  std::optional<std::uint64_t> overhead;
  std::optional<std::uint64_t> overhead_tokens;
  std::string sync = "step";
  std::string micro_batching;
  std::optional<std::uint32_t> micro_batches;
  lanepack_programs::policy_arguments policy;
  bool json = false;
};

std::string corpus_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
}

/// What does not depend on the policy.
struct prepared_corpus {
  std::string name;
  std::shared_ptr<const lanepack::candidate_feed> feed;
  std::uint64_t infeasible_records = 0;
  std::uint64_t unbalanceable_records = 0;
  /// Tokens of the longest record that is delivered, after padding.
  std::uint64_t largest_record = 0;
};

prepared_corpus prepare(const std::string& path, const arguments& args,
                        const lanepack::plan_options& options,
                        const lanepack::any_estimator& estimator) {
  const lanepack_programs::any_lengths lengths =
      lanepack_programs::read_lengths(path, args.reading);
  prepared_corpus out;
  out.name = corpus_name(path);
  out.feed = lanepack::make_candidate_feed(lengths.source, lengths.summary, estimator, options);
  const lanepack::record_selection& selection = out.feed->selection();
  out.infeasible_records = selection.infeasible_records;
  out.largest_record =
      lanepack::round_up(std::min(lengths.summary.max_tokens, selection.limits.largest_record()),
                         options.limits.record_multiple);
  out.unbalanceable_records =
      lanepack::profile_costs(lengths.source, estimator, selection.limits, args.records_per_rank)
          .unbalanceable_records;
  return out;
}

lanepack::simulation_result simulate(const prepared_corpus& corpus, const std::string& policy,
                                     lanepack::plan_options options,
                                     const lanepack::simulation_options& base) {
  options.policy = policy;
  lanepack_programs::progress_bar bar(corpus.name + " " + policy);
  lanepack::simulation_options simulation = base;
  simulation.progress = bar.callback();
  const lanepack::micro_batch_counts counts = simulation.sync == lanepack::sync_model::micro_batch
                                                  ? lanepack::micro_batch_counts::common
                                                  : lanepack::micro_batch_counts::own;
  return lanepack::simulate(corpus.feed, lanepack::make_policy(options, *corpus.feed),
                            lanepack::own_lanes_assigner(simulation.micro_batching,
                                                         options.limits.record_multiple, counts),
                            simulation);
}

/// Names with `baselines` replaced by all of theirs.
std::vector<std::string> expanded(const std::vector<std::string>& policies) {
  std::vector<std::string> out;
  for (const std::string& policy : policies) {
    if (policy != "baselines") {
      out.push_back(policy);
      continue;
    }
    for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
      out.emplace_back(baseline.name);
    }
  }
  return out;
}

std::string baseline_list() {
  std::string names;
  for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
    names += (names.empty() ? "" : ", ") + std::string(baseline.name);
  }
  return names;
}

/// What every micro-batch costs beside its records.
std::uint64_t overhead_of(const arguments& args, const lanepack::cost_model& model) {
  if (!args.overhead_tokens) return args.overhead.value_or(model.per_micro_batch);
  const lanepack::record_shape shape{.tokens = *args.overhead_tokens,
                                     .loss_tokens = *args.overhead_tokens};
  std::uint64_t cost = 0;
  model.estimator.costs({&shape, 1}, {&cost, 1});
  return cost;
}

exit_code run(command_line& line) {
  line.describe(
      "Simulates data-parallel ranks on real record lengths and prints, per corpus and policy, how "
      "evenly the ranks are loaded. A record of L tokens costs 24576 L + L^2 unless --model says "
      "otherwise. All policies see the same records, in shuffled epochs.",
      "lanepack-sim --lengths lengths.u32 --policy sequential,window --ranks 64\n"
      "  lanepack-sim --lengths lengths.u32 --policy window,baselines --sync microbatch "
      "--microbatch-overhead-tokens 500");
  arguments args;
  CLI::App& app = line.app();
  app.add_option("--lengths", args.lengths,
                 "Record lengths (.npy or raw little-endian u32), or any corpus; several allowed")
      ->required()
      ->type_name("FILE...");
  app.add_option("--ranks", args.ranks, "Data-parallel ranks");
  app.add_option("--records-per-rank", args.records_per_rank, "Records of a rank in a step");
  app.add_option("--lanes", args.lanes,
                 "Lanes; lanes x b = ranks x records per rank. Default: one a rank");
  app.add_option("--lookahead", args.lookahead, "Steps of records that a lane may buffer");
  app.add_option("--capacity-tokens", args.capacity_tokens, "Most tokens of a micro-batch");
  app.add_option("--infeasible", args.infeasible,
                 "Records above the capacity: fail, skip_and_count, truncate or chunk");
  app.add_option("--empty", args.empty, "Records without tokens: fail or skip_and_count");
  app.add_option(
         "--policy", args.policies,
         "Policies: " + lanepack_programs::plan_arguments::policy_list() +
             "; baselines that plan a step with all its lengths, each at its best capacity: " +
             baseline_list() + "; 'baselines' for all of these")
      ->delimiter(',')
      ->type_name("NAME,...");
  args.policy.add_to(app);
  app.add_option("--steps", args.steps, "Steps measured");
  app.add_option("--warmup", args.warmup, "Steps before them that are not measured");
  app.add_option("--seed", args.seed, "Seed of the shuffle");
  app.add_option("--epoch-end", args.epoch_end, "continue, drop_last, pad or finite");
  app.add_option("--shuffle", args.shuffle, "full, block or none");
  app.add_option("--model", args.model,
                 "Cost model: a Hugging Face config.json or saved coefficients")
      ->type_name("FILE");
  auto* overhead = app.add_option(
      "--microbatch-overhead", args.overhead,
      "Cost units that every micro-batch takes beside its records (default: the cost "
      "model's, or 0)");
  app.add_option("--microbatch-overhead-tokens", args.overhead_tokens,
                 "The same, as the cost of a record of so many tokens")
      ->excludes(overhead);
  app.add_option("--sync", args.sync, "Where ranks wait for each other: step or microbatch");
  app.add_option(
      "--micro-batching", args.micro_batching,
      "best_fit_decreasing, first_fit_decreasing, mffd_johnson_garey, mffd_nemo or level "
      "(default: level with --sync microbatch, else best_fit_decreasing)");
  app.add_option(
      "--micro-batches", args.micro_batches,
      "Micro-batches that every rank has in every step; baselines are forced to at least "
      "so many (default: as few as fit, with --sync microbatch the same on all ranks)");
  lanepack_programs::add_corpus_options(app, args.reading);
  app.add_flag("--json", args.json, "Print a JSON array instead of a table");
  line.parse();

  if (args.ranks == 0) lanepack::detail::throw_invalid_option("--ranks", "0", "at least 1");
  if (args.steps == 0) lanepack::detail::throw_invalid_option("--steps", "0", "at least 1");
  const std::uint32_t lanes = args.lanes.value_or(args.ranks);
  const std::uint64_t records = static_cast<std::uint64_t>(args.ranks) * args.records_per_rank;
  if (lanes == 0 || lanes % args.ranks != 0 || records % lanes != 0) {
    lanepack::detail::throw_invalid_option("--lanes", std::to_string(lanes),
                                           "a multiple of the " + std::to_string(args.ranks) +
                                               " ranks that divides the " +
                                               std::to_string(records) + " records of a step");
  }
  lanepack::plan_options options;
  options.seed = args.seed;
  options.lanes = lanes;
  options.records_per_pack = static_cast<std::uint32_t>(records / lanes);
  options.rule = lanepack::parse_epoch_end(args.epoch_end);
  options.steps = lanepack::saturating_add(args.steps, args.warmup);
  options.shuffle.kind = lanepack::parse_shuffle_kind(args.shuffle);
  options.lookahead_steps = args.lookahead;
  options.limits.capacity_tokens = args.capacity_tokens;
  options.limits.infeasible = lanepack::parse_infeasible_policy(args.infeasible, "--infeasible");
  options.limits.empty = lanepack::parse_empty_policy(args.empty, "--empty");
  const lanepack::cost_model model = lanepack_programs::cost_model_of(args.model);
  const lanepack::any_estimator& estimator = model.estimator;
  lanepack::simulation_options simulation;
  simulation.ranks = args.ranks;
  simulation.steps = args.steps;
  simulation.warmup_steps = args.warmup;
  simulation.sync = lanepack::parse_sync_model(args.sync);
  simulation.micro_batch_overhead = overhead_of(args, model);
  const bool meet_often = simulation.sync == lanepack::sync_model::micro_batch;
  simulation.micro_batching = {
      .capacity_tokens = args.capacity_tokens,
      .rule = !args.micro_batching.empty() ? lanepack::micro_batch_rule_named(args.micro_batching)
              : meet_often                 ? lanepack::micro_batch_rule::level
                                           : lanepack::micro_batch_rule::best_fit_decreasing,
      .micro_batches = args.micro_batches};
  simulation.bound_window_steps = args.lookahead;
  lanepack::baseline_options baseline_options;
  baseline_options.capacity_tokens = args.capacity_tokens;
  baseline_options.record_multiple = options.limits.record_multiple;
  baseline_options.sync = simulation.sync;
  baseline_options.micro_batches = args.micro_batches.value_or(1);
  baseline_options.padding_cost_per_1024 = lanepack::padding_cost_of(estimator);
  args.policies = expanded(args.policies);
  options.policy = "sequential";
  args.policy.apply_to(options, estimator);
  // A misspelt policy is found before the first corpus is simulated.
  for (const std::string& policy : args.policies) {
    if (lanepack::find_baseline(policy) != nullptr) continue;
    options.policy = policy;
    lanepack::validate(options);
  }
  lanepack_programs::print_advice(options);

  std::vector<row> rows;
  for (const std::string& path : args.lengths) {
    const prepared_corpus corpus = prepare(path, args, options, estimator);
    const lanepack::simulation_result reference =
        simulate(corpus, "sequential", options, simulation);
    const std::size_t first = rows.size();
    for (const std::string& policy : args.policies) {
      row out;
      out.corpus = corpus.name;
      out.policy = policy;
      if (const lanepack::named_baseline* baseline = lanepack::find_baseline(policy)) {
        lanepack_programs::baseline_run run = lanepack_programs::simulate_baseline(
            corpus.name, corpus.feed, *baseline, baseline_options, corpus.largest_record,
            simulation);
        out.result = std::move(run.result);
        out.tuned_capacity_tokens = run.capacity_tokens;
        out.coordinated = baseline->coordinated;
      } else {
        out.result =
            policy == "sequential" ? reference : simulate(corpus, policy, options, simulation);
      }
      out.cv_reduction =
          lanepack_programs::reduction(out.result.rank_cost_cv, reference.rank_cost_cv);
      out.within_step_cv_reduction =
          lanepack_programs::reduction(out.result.within_step_cv, reference.within_step_cv);
      out.infeasible_records = corpus.infeasible_records;
      out.unbalanceable_records = corpus.unbalanceable_records;
      rows.push_back(std::move(out));
    }
    lanepack_programs::compare_step_times(std::span(rows).subspan(first));
  }
  const lanepack_programs::run_facts facts{.ranks = args.ranks,
                                           .lanes = lanes,
                                           .records_per_rank = args.records_per_rank,
                                           .lookahead = args.lookahead,
                                           .sync = args.sync};
  if (args.json) {
    nlohmann::ordered_json all = nlohmann::json::array();
    for (const row& entry : rows) all.push_back(lanepack_programs::to_json(entry, facts));
    std::fputs((all.dump(2) + "\n").c_str(), stdout);
  } else {
    lanepack_programs::print_table(rows, facts);
  }
  return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
