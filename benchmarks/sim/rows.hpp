#pragma once

/// @file
/// The rows that lanepack-sim prints, as JSON and as a table.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
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

/// `text` in lines of at most `width` characters, those after the first indented.
inline std::string folded(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (column != 0 && column + 1 + end - at > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column != 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out + "\n";
}

/// What the table cannot show in a cell: capacities of baselines, corpora that no balance can help.
inline void print_notes(const std::vector<row>& rows, const run_facts& facts, std::size_t width) {
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
      text += folded(corpus +
                         ": each baseline at the capacity, up to the one given, at which it was "
                         "fastest on the first steps: " +
                         tuned,
                     width, 2);
    }
    if (reachable < 0.99) {
      text += folded(
          corpus + ": so heavy are single records that no assignment of " +
              std::to_string(facts.lookahead) + " steps passes " + fixed(reachable, 3) +
              "; a longer lookahead, more records a rank or another policy for outliers (a lower "
              "capacity) would help",
          width, 2);
    }
    print(text);
  }
}

/// A column of the table.
struct column {
  const char* heading;
  /// What it means, for the legend.
  std::string meaning;
  std::function<std::string(const row&)> cell;
};

/// The columns beside the policy, the most important first.
/// @param with_time  A coordinated baseline ran, so that step times can be compared.
inline std::vector<column> table_columns(const run_facts& facts, bool with_time) {
  std::vector<column> out;
  out.push_back({"efficiency", "mean over ranks / slowest rank, of cost, over all steps",
                 [](const row& line) { return fixed(line.result.step_efficiency, 4); }});
  out.push_back({"possible",
                 "the most that efficiency can be with the records of every " +
                     std::to_string(facts.lookahead) + " steps together",
                 [](const row& line) { return fixed(line.result.window_bound, 4); }});
  if (with_time) {
    out.push_back({"rel. time",
                   "step time for the same work / that of the fastest coordinated baseline",
                   [](const row& line) {
                     return line.relative_step_time ? fixed(*line.relative_step_time, 4) : "-";
                   }});
  }
  out.push_back({"time eff.", "efficiency of time, with micro-batches and their overhead",
                 [](const row& line) { return fixed(line.result.time_efficiency, 4); }});
  out.push_back({"spread", "deviation of a rank's cost from its step's mean / that mean",
                 [](const row& line) { return fixed(line.result.within_step_cv, 4); }});
  out.push_back({"held back", "steps that a record waited at most", [](const row& line) {
                   return std::to_string(line.result.max_displacement_steps);
                 }});
  out.push_back({"buffered", "records that a rank held at most", [](const row& line) {
                   return std::to_string(line.result.peak_buffered_records_per_rank);
                 }});
  out.push_back(
      {"spread cut", "by how much spread is below that of sequential",
       [](const row& line) { return fixed(100 * line.within_step_cv_reduction, 1) + "%"; }});
  out.push_back({"same step", "the most that efficiency can be with the same records in every step",
                 [](const row& line) { return fixed(line.result.step_bound, 4); }});
  out.push_back(
      {"own lanes", "the most that it can be with the records of every lane", [](const row& line) {
         return line.result.lane_total_bound ? fixed(*line.result.lane_total_bound, 4) : "-";
       }});
  out.push_back({"rank cv", "variability of a rank's cost over all steps and ranks",
                 [](const row& line) { return fixed(line.result.rank_cost_cv, 4); }});
  out.push_back({"rank cv cut", "by how much that is below that of sequential",
                 [](const row& line) { return fixed(100 * line.cv_reduction, 1) + "%"; }});
  out.push_back({"bin fill", "tokens of a micro-batch / capacity",
                 [](const row& line) { return fixed(line.result.bin_fill, 3); }});
  return out;
}

/// The rows, a table for each corpus, in columns that fit; and once what the columns mean.
/// @param wide  Print all columns.
inline void print_table(const std::vector<row>& rows, const run_facts& facts, bool wide) {
  const std::size_t width = line_width(STDOUT_FILENO, 100);
  const auto is_uncoordinated = [](const row& line) {
    return line.tuned_capacity_tokens.has_value() && !line.coordinated;
  };
  const bool with_time = std::any_of(rows.begin(), rows.end(), [](const row& line) {
    return line.relative_step_time.has_value();
  });
  std::vector<column> columns = table_columns(facts, with_time);
  const auto name_of = [&](const row& line) {
    return line.policy + (with_time && is_uncoordinated(line) ? " *" : "");
  };
  // All tables have the same columns: as many as fit in each.
  std::size_t taken = std::string("policy").size();
  for (const row& line : rows) taken = std::max(taken, columns_of(name_of(line)));
  std::size_t shown = 0;
  for (; shown < columns.size(); ++shown) {
    std::size_t cells = columns_of(columns[shown].heading);
    for (const row& line : rows) cells = std::max(cells, columns_of(columns[shown].cell(line)));
    taken += 2 + cells;
    if (!wide && taken > width) break;
  }
  const std::size_t left_out = columns.size() - shown;
  columns.resize(shown);

  std::string text;
  bool any_uncoordinated = false;
  for (std::size_t i = 0; i < rows.size();) {
    const row& first = rows[i];
    std::string title = first.corpus + ": " + std::to_string(facts.ranks) + " ranks x " +
                        std::to_string(facts.records_per_rank) + " records, lookahead " +
                        std::to_string(facts.lookahead) + ", " +
                        std::to_string(first.result.steps) + " steps";
    if (first.infeasible_records != 0) {
      title += ", " + std::to_string(first.infeasible_records) + " records above the capacity";
    }
    if (first.unbalanceable_records != 0) {
      title += ", " + std::to_string(first.unbalanceable_records) +
               " records that cost more than a rank's mean step";
    }
    text += folded(title, width, 2);
    std::vector<std::string> headings = {"policy"};
    for (const column& each : columns) headings.emplace_back(each.heading);
    text_table table(std::move(headings));
    for (; i < rows.size() && rows[i].corpus == first.corpus; ++i) {
      std::vector<std::string> cells = {name_of(rows[i])};
      for (const column& each : columns) cells.push_back(each.cell(rows[i]));
      table.add_row(std::move(cells));
      any_uncoordinated = any_uncoordinated || is_uncoordinated(rows[i]);
    }
    text += table.text(style_of(STDOUT_FILENO)) + "\n";
  }
  for (const column& each : columns) {
    const std::string name = each.heading;
    text +=
        folded(name + std::string(12 - std::min<std::size_t>(name.size(), 11), ' ') + each.meaning,
               width, 12);
  }
  if (with_time && any_uncoordinated) {
    text += folded(
        "* does not count as coordinated: it draws records of like length into a step, which "
        "changes what a step learns from, and knows no lengths of other ranks; so its relative "
        "time may be below 1",
        width, 2);
  }
  if (left_out != 0) {
    text +=
        folded("--wide prints " + std::to_string(left_out) + " more columns, --json all", width, 2);
  }
  if (facts.sync == "microbatch") {
    text += folded(
        "Ranks run equally many micro-batches: as many as the rank that needs most. Where every "
        "rank plans all packs it knows that number; a policy that knows its own lanes only has to "
        "be given one (--micro-batches), or agree on one integer a step.",
        width, 2);
  }
  print(text);
  print_notes(rows, facts, width);
}

}  // namespace lanepack_programs
