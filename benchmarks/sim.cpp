// lanepack-sim: simulates a cluster on real record lengths and compares policies.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>
#include <lanepack/sim.hpp>

#include "support/plan_arguments.hpp"
#include "support/policy_arguments.hpp"
#include "support/program.hpp"
#include "support/progress.hpp"
#include "support/table.hpp"

namespace {

using lanepack_programs::command_line;
using lanepack_programs::exit_code;

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
  std::string sync = "step";
  std::string micro_batching = "best_fit_decreasing";
  lanepack_programs::policy_arguments policy;
  bool json = false;
};

/// One line of the output.
struct row {
  std::string corpus;
  std::string policy;
  lanepack::simulation_result result;
  double cv_reduction = 0;
  double within_step_cv_reduction = 0;
  std::uint64_t infeasible_records = 0;
  std::uint64_t unbalanceable_records = 0;
};

double reduction(double value, double reference) {
  return reference > 0 ? 1 - value / reference : 0;
}

std::string corpus_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
}

nlohmann::ordered_json to_json(const row& line, const arguments& args, std::uint32_t lanes) {
  const lanepack::simulation_result& result = line.result;
  nlohmann::ordered_json out;
  out["corpus"] = line.corpus;
  out["policy"] = line.policy;
  out["ranks"] = args.ranks;
  out["lanes"] = lanes;
  out["records_per_rank"] = args.records_per_rank;
  out["lookahead"] = args.lookahead;
  out["steps"] = result.steps;
  out["rank_cost_cv"] = result.rank_cost_cv;
  out["cv_reduction"] = line.cv_reduction;
  out["within_step_cv"] = result.within_step_cv;
  out["within_step_cv_reduction"] = line.within_step_cv_reduction;
  out["step_efficiency"] = result.step_efficiency;
  out["time_efficiency"] = result.time_efficiency;
  out["relative_step_time"] = nullptr;
  out["bin_fill"] = result.bin_fill;
  out["max_displacement_steps"] = result.max_displacement_steps;
  out["peak_buffered_records_per_rank"] = result.peak_buffered_records_per_rank;
  out["records_emitted"] = result.records_emitted;
  out["infeasible_records"] = line.infeasible_records;
  out["unbalanceable_records"] = line.unbalanceable_records;
  out["emitted_over_admitted_cost"] = result.emitted_over_admitted_cost;
  out["step_tokens_max_ratio"] = result.step_tokens_max_ratio;
  out["token_weight_p99"] = result.token_weight_p99;
  out["lag1_correlation"] = result.lag1_correlation;
  out["packs_above_cap"] = result.packs_above_cap;
  out["due_records"] = result.due_records;
  out["cost_over_expected"] = result.cost_over_expected;
  out["digest"] = result.digest.hex();
  return out;
}

/// What does not depend on the policy.
struct prepared_corpus {
  std::string name;
  std::shared_ptr<const lanepack::candidate_feed> feed;
  std::uint64_t infeasible_records = 0;
  std::uint64_t unbalanceable_records = 0;
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
  return lanepack::simulate(
      corpus.feed, lanepack::make_policy(options, *corpus.feed),
      lanepack::own_lanes_assigner(simulation.micro_batching, options.limits.record_multiple),
      simulation);
}

void print_table(const std::vector<row>& rows) {
  lanepack_programs::text_table table({"corpus", "policy", "efficiency", "time eff.", "rank cv",
                                       "cv less", "in-step cv", "less", "fill", "displaced",
                                       "buffered", "too long", "heavy"});
  table.set_align(1, lanepack_programs::text_table::align::left);
  for (const row& line : rows) {
    const lanepack::simulation_result& r = line.result;
    using lanepack_programs::fixed;
    table.add_row(
        {line.corpus, line.policy, fixed(r.step_efficiency, 4), fixed(r.time_efficiency, 4),
         fixed(r.rank_cost_cv, 4), fixed(100 * line.cv_reduction, 1) + "%",
         fixed(r.within_step_cv, 4), fixed(100 * line.within_step_cv_reduction, 1) + "%",
         fixed(r.bin_fill, 3), std::to_string(r.max_displacement_steps),
         std::to_string(r.peak_buffered_records_per_rank), std::to_string(line.infeasible_records),
         std::to_string(line.unbalanceable_records)});
  }
  std::fputs(table.text(lanepack_programs::style_of(STDOUT_FILENO)).c_str(), stdout);
  std::fputs(
      "efficiency: mean over ranks / slowest rank, of cost, over all steps; time eff.: with "
      "micro-batches\nand their overhead. rank cv: variability of a rank's cost a step, 'less' "
      "against sequential; in-step:\nonly within a step, the part that costs time. displaced: "
      "most steps that a record was held back.\ntoo long: records above the capacity. heavy: "
      "records that cost more than a mean rank's step.\n",
      stdout);
}

exit_code run(command_line& line) {
  line.describe(
      "Simulates data-parallel ranks on real record lengths and prints, per corpus and policy, how "
      "evenly the ranks are loaded. A record of L tokens costs 24576 L + L^2 unless --model says "
      "otherwise. All policies see the same records, in shuffled epochs.",
      "lanepack-sim --lengths lengths.u32 --policy sequential,window --ranks 64");
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
                 "Records above the capacity: fail, skip_and_count or truncate");
  app.add_option("--empty", args.empty, "Records without tokens: fail or skip_and_count");
  app.add_option("--policy", args.policies,
                 "Policies: " + lanepack_programs::plan_arguments::policy_list())
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
  app.add_option("--microbatch-overhead", args.overhead,
                 "Cost units that every micro-batch takes beside its records (default: the cost "
                 "model's, or 0)");
  app.add_option("--sync", args.sync, "Where ranks wait for each other: step or microbatch");
  app.add_option("--micro-batching", args.micro_batching,
                 "best_fit_decreasing, first_fit_decreasing, mffd_johnson_garey or mffd_nemo");
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
  simulation.micro_batch_overhead = args.overhead.value_or(model.per_micro_batch);
  simulation.micro_batching = {.capacity_tokens = args.capacity_tokens,
                               .rule = lanepack::micro_batch_rule_named(args.micro_batching)};
  args.policy.apply_to(options, estimator);
  // A misspelt policy is found before the first corpus is simulated.
  for (const std::string& policy : args.policies) {
    options.policy = policy;
    lanepack::validate(options);
  }
  lanepack_programs::print_advice(options);

  std::vector<row> rows;
  for (const std::string& path : args.lengths) {
    const prepared_corpus corpus = prepare(path, args, options, estimator);
    const lanepack::simulation_result reference =
        simulate(corpus, "sequential", options, simulation);
    for (const std::string& policy : args.policies) {
      row out;
      out.corpus = corpus.name;
      options.policy = policy;
      const lanepack::policy_choice choice = lanepack::choose_policy(options, *corpus.feed);
      lanepack_programs::print_choice(choice);
      out.policy = choice.policy == policy ? policy : policy + " (" + choice.policy + ")";
      out.result =
          policy == "sequential" ? reference : simulate(corpus, policy, options, simulation);
      out.cv_reduction = reduction(out.result.rank_cost_cv, reference.rank_cost_cv);
      out.within_step_cv_reduction = reduction(out.result.within_step_cv, reference.within_step_cv);
      out.infeasible_records = corpus.infeasible_records;
      out.unbalanceable_records = corpus.unbalanceable_records;
      rows.push_back(std::move(out));
    }
  }
  if (args.json) {
    nlohmann::ordered_json all = nlohmann::json::array();
    for (const row& entry : rows) all.push_back(to_json(entry, args, lanes));
    std::fputs((all.dump(2) + "\n").c_str(), stdout);
  } else {
    print_table(rows);
  }
  return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
