#pragma once

/// @file
/// The rows that lanepack-sim prints, as JSON and as a table.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/sim.hpp>

#include "support/output.hpp"
#include "support/table.hpp"
#include "support/terminal.hpp"

namespace lanepack_programs {

/// What all rows have in common.
struct run_facts {
  std::uint32_t ranks = 0;
  std::uint32_t lanes = 0;
  std::uint32_t records_per_rank = 0;
  std::uint32_t lookahead = 0;
  std::string sync;
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
  /// Of a baseline.
  std::optional<std::uint64_t> tuned_capacity_tokens;
  bool coordinated = false;
  /// Step time over that of the fastest coordinated baseline, where there is one, for the same
  /// work: a policy that holds heavy records back has lighter steps, and is no faster for it.
  std::optional<double> relative_step_time;

  /// In cost units.
  [[nodiscard]] double mean_step_time() const {
    return result.steps == 0 ? 0 : result.total_time / static_cast<double>(result.steps);
  }
  /// Time of the steps over the cost of their records.
  [[nodiscard]] double time_of_work() const {
    return result.total_cost > 0 ? result.total_time / result.total_cost : 0;
  }
};

template <class Number>
nlohmann::ordered_json number_or_null(const std::optional<Number>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// Compares the rows of one corpus with the fastest coordinated baseline among them.
inline void compare_step_times(std::span<row> rows) {
  std::optional<double> best;
  for (const row& entry : rows) {
    if (!entry.coordinated || entry.result.steps == 0) continue;
    best = std::min(best.value_or(entry.time_of_work()), entry.time_of_work());
  }
  if (!best || *best <= 0) return;
  for (row& entry : rows) entry.relative_step_time = entry.time_of_work() / *best;
}

/// Share by which a value is below its reference.
inline double reduction(double value, double reference) {
  return reference > 0 ? 1 - value / reference : 0;
}

/// One row with every figure.
inline nlohmann::ordered_json to_json(const row& line, const run_facts& facts) {
  const lanepack::simulation_result& result = line.result;
  nlohmann::ordered_json out;
  out["corpus"] = line.corpus;
  out["policy"] = line.policy;
  out["ranks"] = facts.ranks;
  out["lanes"] = facts.lanes;
  out["records_per_rank"] = facts.records_per_rank;
  out["lookahead"] = facts.lookahead;
  out["steps"] = result.steps;
  out["rank_cost_cv"] = result.rank_cost_cv;
  out["cv_reduction"] = line.cv_reduction;
  out["within_step_cv"] = result.within_step_cv;
  out["within_step_cv_reduction"] = line.within_step_cv_reduction;
  out["step_efficiency"] = result.step_efficiency;
  out["time_efficiency"] = result.time_efficiency;
  out["relative_step_time"] = number_or_null(line.relative_step_time);
  out["mean_step_time"] = line.mean_step_time();
  out["sync"] = facts.sync;
  out["tuned_capacity_tokens"] = number_or_null(line.tuned_capacity_tokens);
  out["micro_batches_per_step"] = result.micro_batches_per_step;
  out["step_bound"] = result.step_bound;
  out["window_bound"] = result.window_bound;
  out["lane_total_bound"] = number_or_null(result.lane_total_bound);
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

/// What the table cannot show in a cell: capacities of baselines, corpora that no balance can help.
inline void print_notes(const std::vector<row>& rows, const run_facts& facts) {
  for (std::size_t i = 0; i < rows.size();) {
    const std::string& corpus = rows[i].corpus;
    std::string tuned;
    double reachable = 0;
    for (; i < rows.size() && rows[i].corpus == corpus; ++i) {
      if (rows[i].tuned_capacity_tokens) {
        tuned += (tuned.empty() ? "" : ", ") + rows[i].policy + " " +
                 std::to_string(*rows[i].tuned_capacity_tokens);
      }
      reachable = std::max(reachable, rows[i].result.window_bound);
    }
    std::string text;
    if (!tuned.empty()) {
      text += corpus +
              ": each baseline at the capacity, up to the one given, at which it was "
              "fastest on the first steps: " +
              tuned + "\n";
    }
    if (reachable < 0.99) {
      text +=
          corpus + ": so heavy are single records that no assignment of " +
          std::to_string(facts.lookahead) + " steps passes " + fixed(reachable, 3) +
          "; a longer lookahead, more records\n  a rank or another policy for outliers (a lower "
          "capacity) would help\n";
    }
    print(text);
  }
}

/// All rows, and what their columns mean.
inline void print_table(const std::vector<row>& rows, const run_facts& facts) {
  text_table table({"corpus", "policy", "efficiency", "step b.", "window b.", "lane b.",
                    "time eff.", "rel. time", "rank cv", "cv less", "in-step cv", "less", "fill",
                    "displaced", "buffered", "too long", "heavy"});
  table.set_align(1, text_table::align::left);
  for (const row& line : rows) {
    const lanepack::simulation_result& r = line.result;
    table.add_row(
        {line.corpus, line.policy, fixed(r.step_efficiency, 4), fixed(r.step_bound, 4),
         fixed(r.window_bound, 4), r.lane_total_bound ? fixed(*r.lane_total_bound, 4) : "-",
         fixed(r.time_efficiency, 4),
         line.relative_step_time ? fixed(*line.relative_step_time, 4) : "-",
         fixed(r.rank_cost_cv, 4), fixed(100 * line.cv_reduction, 1) + "%",
         fixed(r.within_step_cv, 4), fixed(100 * line.within_step_cv_reduction, 1) + "%",
         fixed(r.bin_fill, 3), std::to_string(r.max_displacement_steps),
         std::to_string(r.peak_buffered_records_per_rank), std::to_string(line.infeasible_records),
         std::to_string(line.unbalanceable_records)});
  }
  print(table.text(style_of(STDOUT_FILENO)));
  print(
      "efficiency: mean over ranks / slowest rank, of cost, over all steps; time eff.: with "
      "micro-batches\nand their overhead. step b., window b., lane b.: the most that efficiency "
      "can "
      "be, whatever the\nassignment, with the same records in every step, in every " +
      std::to_string(facts.lookahead) +
      " steps, in every lane. Where step b. is\nbelow 1, single records outweigh a rank's share, "
      "and only moving records between steps helps; where\nwindow b. is too, only a longer "
      "lookahead or another policy for outliers. rel. time: step time for the\nsame work over "
      "that "
      "of the fastest coordinated baseline here. rank cv: variability of a rank's cost a\nstep, "
      "'less' against sequential; in-step: only within a step, the part that costs time. "
      "displaced:\nmost steps that a record was held back. too long: records above the capacity. "
      "heavy: records that\ncost more than a mean rank's step.\n");
  if (facts.sync == "microbatch") {
    print(
        "Ranks run equally many micro-batches: as many as the rank that needs most. Where every "
        "rank "
        "plans\nall packs it knows that number; a policy that knows its own lanes only has to be "
        "given "
        "one\n(--micro-batches), or agree on one integer a step.\n");
  }
  print_notes(rows, facts);
}

}  // namespace lanepack_programs
