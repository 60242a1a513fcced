// lanepack-sim: simulates a cluster on real record lengths and compares policies.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>
#include <lanepack/sim.hpp>

#include "sim/experiment.hpp"
#include "sim/report.hpp"
#include "sim/rows.hpp"
#include "sim/sweep.hpp"
#include "support/memory_bound.hpp"
#include "support/plan_arguments.hpp"
#include "support/policy_arguments.hpp"
#include "support/program.hpp"

namespace {

using lanepack_programs::add_fraction;
using lanepack_programs::add_number;
using lanepack_programs::command_line;
using lanepack_programs::exit_code;
using lanepack_programs::json_text;
using lanepack_programs::print;
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
  bool sweep = false;
  lanepack_programs::sweep_options sweeping;
  lanepack_programs::report_options report;
  bool wide = false;
  bool json = false;
};

std::string corpus_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
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
  return model.estimator.cost(
      {.tokens = *args.overhead_tokens, .loss_tokens = *args.overhead_tokens});
}

lanepack_programs::run_facts facts_of(const arguments& args,
                                      const lanepack_programs::experiment& what) {
  return {.ranks = args.ranks,
          .lanes = what.plan.lanes,
          .records_per_rank = args.records_per_rank,
          .lookahead = args.lookahead,
          .sync = args.sync};
}

/// Compares the rows of one corpus with `sequential` and with the fastest baseline.
void compare(std::span<row> rows, const lanepack_programs::prepared_corpus& corpus,
             const lanepack_programs::experiment& what) {
  std::optional<lanepack::simulation_result> reference;
  for (const row& entry : rows) {
    if (entry.policy == "sequential") reference = entry.result;
  }
  if (!reference) reference = lanepack_programs::run_policy(corpus, "sequential", what).result;
  for (row& entry : rows) {
    entry.cv_reduction =
        lanepack_programs::reduction(entry.result.rank_cost_cv, reference->rank_cost_cv);
    entry.within_step_cv_reduction =
        lanepack_programs::reduction(entry.result.within_step_cv, reference->within_step_cv);
  }
  lanepack_programs::compare_step_times(rows);
}

exit_code sweep_lookaheads(const std::vector<lanepack_programs::loaded_corpus>& corpora,
                           const arguments& args, lanepack_programs::experiment what) {
  const lanepack_programs::sweep_options& sweeping = args.sweeping;
  if (!std::is_sorted(sweeping.lookaheads.begin(), sweeping.lookaheads.end())) {
    lanepack::detail::throw_invalid_option("--sweep-lookahead", "numbers out of order",
                                           "ascending numbers");
  }
  if (!(sweeping.wanted_efficiency > 0 && sweeping.wanted_efficiency <= 1)) {
    lanepack::detail::throw_invalid_option("--wanted-efficiency",
                                           std::to_string(sweeping.wanted_efficiency),
                                           "more than 0 and at most 1");
  }
  what.log = std::make_shared<lanepack_programs::run_log>(
      corpora.size() * sweeping.ranks.size() * sweeping.lookaheads.size() * args.policies.size(),
      true);
  const std::vector<lanepack_programs::sweep_line> lines =
      lanepack_programs::run_sweep(corpora, args.policies, what, sweeping);
  if (args.json) {
    nlohmann::ordered_json all = nlohmann::json::array();
    for (const lanepack_programs::sweep_line& line : lines) {
      all.push_back(lanepack_programs::to_json(line, sweeping));
    }
    print(json_text(all, 2) + "\n");
  } else {
    lanepack_programs::print_sweep(lines, sweeping);
  }
  return exit_code::ok;
}

/// Writes the data of the report and draws it.
std::vector<row> write_report(const std::vector<lanepack_programs::loaded_corpus>& corpora,
                              const arguments& args, lanepack_programs::experiment what) {
  std::vector<std::string> policies = args.policies;
  if (std::find(policies.begin(), policies.end(), "sequential") == policies.end()) {
    policies.insert(policies.begin(), "sequential");
  }
  std::error_code failed;
  std::filesystem::create_directories(args.report.folder, failed);
  if (failed) {
    lanepack::detail::throw_file_error(args.report.folder, "create the folder", failed.value());
  }
  const lanepack_programs::report_drawer drawer =
      lanepack_programs::find_report_drawer(args.report.folder);
  // Simulating takes minutes; whoever has to install something first wants to know it now.
  if (!drawer.problem.empty()) std::fputs(("warning: " + drawer.problem + "\n").c_str(), stderr);
  what.log = std::make_shared<lanepack_programs::run_log>(
      corpora.size() * lanepack_programs::report_simulations(policies, what, args.report), true);
  std::vector<row> rows;
  nlohmann::ordered_json data;
  data["version"] = LANEPACK_VERSION_STRING;
  data["steps"] = args.steps;
  data["warmup"] = args.warmup;
  data["seed"] = args.seed;
  data["sync"] = args.sync;
  data["ranks"] = args.ranks;
  data["records_per_rank"] = args.records_per_rank;
  data["lookahead"] = args.lookahead;
  data["corpora"] = nlohmann::json::array();
  for (const lanepack_programs::loaded_corpus& corpus : corpora) {
    const std::size_t first = rows.size();
    const lanepack_programs::prepared_corpus prepared = lanepack_programs::prepare(corpus, what);
    nlohmann::ordered_json part =
        lanepack_programs::report_corpus(corpus, prepared, policies, what, args.report, rows);
    compare(std::span(rows).subspan(first), prepared, what);
    part["rows"] = nlohmann::json::array();
    for (const row& entry : std::span(rows).subspan(first)) {
      part["rows"].push_back(lanepack_programs::to_json(entry, facts_of(args, what)));
    }
    data["corpora"].push_back(std::move(part));
  }
  lanepack::output_file file(args.report.folder + "/report.json");
  const std::string text = json_text(data) + "\n";
  file.append(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
  lanepack_programs::draw_report(args.report.folder, drawer);
  std::fputs(("report: " + args.report.folder + "/index.html\n").c_str(), stderr);
  return rows;
}

/// Refuses numbers of ranks whose lanes do not fit into memory.
void check_memory_of(const arguments& args, lanepack::plan_options plan) {
  using lanepack_programs::check_memory;
  plan.policy = "sequential";
  for (const std::string& policy : args.policies) {
    const bool holds_step = policy == "sequential" || lanepack::find_baseline(policy) != nullptr;
    if (!holds_step) plan.policy = policy;
  }
  if (!args.sweep) check_memory(args.lanes ? "--lanes" : "--ranks", plan, plan.lanes);
  plan.records_per_pack = args.records_per_rank;
  const auto check_each = [&](const char* option, const std::vector<std::uint32_t>& ranks) {
    for (const std::uint32_t number : ranks) check_memory(option, plan, number);
  };
  if (!args.report.folder.empty()) check_each("--report-ranks", args.report.ranks);
  if (!args.sweep) return;
  for (const std::uint32_t lookahead : args.sweeping.lookaheads) {
    plan.lookahead_steps = std::max(plan.lookahead_steps, lookahead);
  }
  check_each("--sweep-ranks", args.sweeping.ranks);
}

exit_code run(command_line& line) {
  line.describe(
      "Simulates data-parallel ranks on real record lengths and prints, per corpus and policy, how "
      "evenly the ranks are loaded. A record of L tokens costs 24576 L + L^2 unless --model says "
      "otherwise. All policies see the same records, in shuffled epochs.",
      "lanepack-sim --lengths lengths.u32 --policy sequential,window --ranks 64\n"
      "  lanepack-sim --lengths lengths.u32 --policy window,baselines --sync microbatch "
      "--microbatch-overhead-tokens 500\n"
      "  lanepack-sim --lengths lengths.u32 --policy window,auto,pooled_lpt --report report\n"
      "  lanepack-sim --lengths lengths.u32 --policy window,calendar --sweep "
      "--sweep-ranks 64,512");
  arguments args;
  CLI::App& app = line.app();
  app.add_option("--lengths", args.lengths,
                 "Record lengths (.npy or raw little-endian u32), or any corpus; several allowed")
      ->required()
      ->type_name("FILE");
  auto* rank_count = add_number(app, "--ranks", args.ranks, "Data-parallel ranks", {.least = 1});
  add_number(app, "--records-per-rank", args.records_per_rank, "Records of a rank in a step",
             {.least = 1});
  auto* lane_count =
      add_number(app, "--lanes", args.lanes,
                 "Lanes; lanes x b = ranks x records per rank. Default: one a rank", {.least = 1});
  auto* lookahead =
      add_number(app, "--lookahead", args.lookahead, "Steps of records that a lane may buffer");
  add_number(app, "--capacity-tokens", args.capacity_tokens, "Most tokens of a micro-batch");
  app.add_option("--infeasible", args.infeasible,
                 "Records above the capacity: fail, skip_and_count, truncate or chunk");
  app.add_option("--empty", args.empty, "Records without tokens: fail or skip_and_count");
  app.add_option(
         "--policy", args.policies,
         "Policies: " + lanepack_programs::plan_arguments::policy_list() +
             "; baselines that plan a step with all its lengths, each at its best capacity: " +
             baseline_list() + "; 'baselines' for all of these")
      ->delimiter(',')
      ->type_name("NAME");
  args.policy.add_to(app);
  add_number(app, "--steps", args.steps, "Steps measured", {.least = 1});
  add_number(app, "--warmup", args.warmup, "Steps before them that are not measured");
  add_number(app, "--seed", args.seed, "Seed of the shuffle");
  app.add_option("--epoch-end", args.epoch_end, "continue, drop_last, pad or finite");
  app.add_option("--shuffle", args.shuffle, "full, block or none");
  app.add_option("--model", args.model,
                 "Cost model: a Hugging Face config.json or saved coefficients")
      ->type_name("FILE");
  // Sums over the micro-batches of a step have to stay far from 64 bits.
  auto* overhead =
      add_number(app, "--microbatch-overhead", args.overhead,
                 "Cost units that every micro-batch takes beside its records (default: the cost "
                 "model's, or 0)",
                 {.most = std::uint64_t{1} << 50});
  add_number(app, "--microbatch-overhead-tokens", args.overhead_tokens,
             "The same, as the cost of a record of so many tokens")
      ->excludes(overhead);
  app.add_option("--sync", args.sync, "Where ranks wait for each other: step or microbatch");
  app.add_option(
      "--micro-batching", args.micro_batching,
      "best_fit_decreasing, first_fit_decreasing, mffd_johnson_garey, mffd_nemo or level "
      "(default: level with --sync microbatch, else best_fit_decreasing)");
  add_number(app, "--micro-batches", args.micro_batches,
             "Micro-batches that every rank has in every step; baselines are forced to at least "
             "so many (default: as few as fit, with --sync microbatch the same on all ranks)");
  auto* report =
      app.add_option(
             "--report", args.report.folder,
             "Write a page with pictures to this folder: rank costs, step times, efficiency "
             "against ranks, lookahead and displacement, boundaries (needs python3-matplotlib; "
             "takes minutes)")
          ->type_name("DIR");
  add_number(app, "--report-ranks", args.report.ranks, "Numbers of ranks on the page", {.least = 1})
      ->delimiter(',')
      ->needs(report);
  auto* sweep =
      app.add_flag("--sweep", args.sweep,
                   "Run ranks x lookahead x policy and find the smallest lookahead that suffices")
          // A sweep has ranks and lookaheads of its own, makes a lane of every rank and draws
          // nothing.
          ->excludes(report)
          ->excludes(lane_count)
          ->excludes(rank_count)
          ->excludes(lookahead);
  add_number(app, "--sweep-ranks", args.sweeping.ranks, "Numbers of ranks", {.least = 1})
      ->delimiter(',')
      ->needs(sweep);
  add_number(app, "--sweep-lookahead", args.sweeping.lookaheads, "Lookaheads, ascending",
             {.least = 1})
      ->delimiter(',')
      ->needs(sweep);
  add_fraction(app, "--wanted-efficiency", args.sweeping.wanted_efficiency,
               "Step efficiency that suffices")
      ->needs(sweep);
  lanepack_programs::add_corpus_options(app, args.reading);
  app.add_flag("--wide", args.wide, "Print all columns, however narrow the terminal is");
  app.add_flag("--json", args.json, "Print a JSON array instead of a table");
  line.parse();

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
    if (lanepack::find_baseline(policy) != nullptr) {
      if (options.limits.infeasible == lanepack::infeasible_policy::chunk) {
        lanepack::detail::throw_invalid_option(
            "--policy", policy, "no baseline with --infeasible chunk: they cut no records");
      }
      continue;
    }
    const std::span<const lanepack::named_policy> known = lanepack::policies();
    if (policy != lanepack::auto_policy &&
        std::none_of(known.begin(), known.end(),
                     [&](const lanepack::named_policy& each) { return each.name == policy; })) {
      lanepack::detail::throw_invalid_option("--policy", lanepack::detail::quoted(policy),
                                             "one of " +
                                                 lanepack_programs::plan_arguments::policy_list() +
                                                 ", " + baseline_list() + " or baselines");
    }
    options.policy = policy;
    lanepack::validate(options);
  }
  check_memory_of(args, options);
  lanepack_programs::print_advice(options);

  const bool has_reference =
      std::find(args.policies.begin(), args.policies.end(), "sequential") != args.policies.end();
  const lanepack_programs::experiment what{
      .plan = options,
      .simulation = simulation,
      .baseline = baseline_options,
      .estimator = estimator,
      .records_per_rank = args.records_per_rank,
      .log = std::make_shared<lanepack_programs::run_log>(
          args.lengths.size() * (args.policies.size() + (has_reference ? 0 : 1)))};
  std::vector<lanepack_programs::loaded_corpus> corpora;
  for (const std::string& path : args.lengths) {
    corpora.push_back({corpus_name(path), lanepack_programs::read_lengths(path, args.reading)});
  }
  if (args.sweep) return sweep_lookaheads(corpora, args, what);
  std::vector<row> rows;
  if (!args.report.folder.empty()) {
    rows = write_report(corpora, args, what);
  } else {
    for (const lanepack_programs::loaded_corpus& corpus : corpora) {
      const lanepack_programs::prepared_corpus prepared = lanepack_programs::prepare(corpus, what);
      const std::size_t first = rows.size();
      for (const std::string& policy : args.policies) {
        rows.push_back(lanepack_programs::run_policy(prepared, policy, what));
      }
      compare(std::span(rows).subspan(first), prepared, what);
    }
  }
  const lanepack_programs::run_facts facts = facts_of(args, what);
  if (args.json) {
    nlohmann::ordered_json all = nlohmann::json::array();
    for (const row& entry : rows) all.push_back(lanepack_programs::to_json(entry, facts));
    print(json_text(all, 2) + "\n");
  } else {
    lanepack_programs::print_table(rows, facts, args.wide);
  }
  return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
