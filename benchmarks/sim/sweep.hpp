#pragma once

/// @file
/// `lanepack-sim --sweep`: the smallest lookahead that reaches a wanted efficiency.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/experiment.hpp"
#include "support/output.hpp"
#include "support/table.hpp"
#include "support/terminal.hpp"

namespace lanepack_programs {

/// What is swept, and what is looked for.
struct sweep_options {
  std::vector<std::uint32_t> ranks = {8, 64, 512};
  std::vector<std::uint32_t> lookaheads = {1, 2, 4, 8, 16, 32, 64};
  double wanted_efficiency = 0.98;
};

/// One corpus, number of ranks and policy, over all lookaheads.
struct sweep_line {
  std::string corpus;
  std::string policy;
  std::uint32_t ranks = 0;
  /// One for each lookahead.
  std::vector<double> efficiencies;
  std::vector<std::uint64_t> buffered_records_per_rank;
  /// Index of the smallest lookahead that suffices.
  std::optional<std::size_t> smallest;
};

/// The first lookahead from which on every larger one keeps the wanted efficiency too: one that
/// reaches it by luck is not recommended.
inline std::optional<std::size_t> smallest_sufficient(std::span<const double> efficiencies,
                                                      double wanted) {
  std::size_t first = efficiencies.size();
  while (first != 0 && efficiencies[first - 1] >= wanted) --first;
  if (first == efficiencies.size()) return std::nullopt;
  return first;
}

inline std::vector<sweep_line> run_sweep(std::span<const loaded_corpus> corpora,
                                         const std::vector<std::string>& policies,
                                         const experiment& base, const sweep_options& options) {
  std::vector<sweep_line> lines;
  for (const loaded_corpus& corpus : corpora) {
    for (const std::uint32_t ranks : options.ranks) {
      const std::vector<prepared_experiment> prepared = prepare_each(
          corpus, base.at_ranks(ranks), options.lookaheads,
          "ranks=" + std::to_string(ranks) + " lookahead",
          [](const experiment& what, std::uint32_t steps) { return what.at_lookahead(steps); });
      for (const std::string& policy : policies) {
        sweep_line line;
        line.corpus = corpus.name;
        line.policy = policy;
        line.ranks = ranks;
        for (const prepared_experiment& each : prepared) {
          const row result = run_policy(each.corpus, policy, each.what);
          line.efficiencies.push_back(result.result.step_efficiency);
          line.buffered_records_per_rank.push_back(result.result.peak_buffered_records_per_rank);
        }
        line.smallest = smallest_sufficient(line.efficiencies, options.wanted_efficiency);
        lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

inline nlohmann::ordered_json to_json(const sweep_line& line, const sweep_options& options) {
  nlohmann::ordered_json out;
  out["corpus"] = line.corpus;
  out["policy"] = line.policy;
  out["ranks"] = line.ranks;
  out["wanted_efficiency"] = options.wanted_efficiency;
  out["smallest_lookahead"] = nullptr;
  out["buffered_records_per_rank"] = nullptr;
  if (line.smallest) {
    out["smallest_lookahead"] = options.lookaheads[*line.smallest];
    out["buffered_records_per_rank"] = line.buffered_records_per_rank[*line.smallest];
  }
  nlohmann::ordered_json grid = nlohmann::json::array();
  for (std::size_t i = 0; i < options.lookaheads.size(); ++i) {
    grid.push_back({{"lookahead", options.lookaheads[i]},
                    {"step_efficiency", line.efficiencies[i]},
                    {"buffered_records_per_rank", line.buffered_records_per_rank[i]}});
  }
  out["lookaheads"] = std::move(grid);
  return out;
}

inline void print_sweep(const std::vector<sweep_line>& lines, const sweep_options& options) {
  std::vector<std::string> header = {"corpus", "policy", "ranks"};
  for (const std::uint32_t lookahead : options.lookaheads) {
    header.push_back("K=" + std::to_string(lookahead));
  }
  header.insert(header.end(), {"smallest", "buffered"});
  text_table table(header);
  table.set_align(1, text_table::align::left);
  for (const sweep_line& line : lines) {
    std::vector<std::string> cells = {line.corpus, line.policy, std::to_string(line.ranks)};
    for (const double efficiency : line.efficiencies) cells.push_back(fixed(efficiency, 4));
    cells.push_back(line.smallest ? std::to_string(options.lookaheads[*line.smallest]) : "-");
    cells.push_back(line.smallest ? std::to_string(line.buffered_records_per_rank[*line.smallest])
                                  : "-");
    table.add_row(cells);
  }
  print(table.text(style_of(STDOUT_FILENO)));
  print(
      "K: steps of lookahead; the cells are step efficiency. smallest: the fewest steps "
      "that reach " +
      fixed(options.wanted_efficiency, 3) +
      " and keep it\nwith more; buffered: records a rank then holds at most.\n");
}

}  // namespace lanepack_programs
