#pragma once

/// @file
/// `lanepack-sim --report`: what the pictures show, as JSON, and the script that draws them.

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/lanepack.hpp>

#include "sim/experiment.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace lanepack_programs {

/// What is varied for the curves.
struct report_options {
  std::string folder;
  std::vector<std::uint32_t> ranks = {8, 64, 512, 4096};
  std::vector<std::uint32_t> lookaheads = {2, 4, 8, 16, 32, 64};
  std::vector<std::uint64_t> displacements = {64, 128, 256, 512, 1024};
  /// Steps of the heat map.
  std::size_t shown_steps = 96;
};

/// A policy's row and the steps that its pictures show.
struct pictured_row {
  row result;
  nlohmann::ordered_json pictures;
};

/// As `run_policy`, noting rank costs of the first steps and the time of all.
inline pictured_row run_pictured(const prepared_corpus& corpus, const std::string& policy,
                                 experiment what, std::size_t shown_steps) {
  nlohmann::ordered_json heat = nlohmann::json::array();
  nlohmann::ordered_json times = nlohmann::json::array();
  what.simulation.on_step = [&](std::span<const std::uint64_t> costs,
                                const lanepack::step_time& time) {
    if (heat.size() < shown_steps) heat.push_back(std::vector(costs.begin(), costs.end()));
    times.push_back(time.elapsed);
  };
  pictured_row out;
  out.result = run_policy(corpus, policy, what);
  out.pictures["policy"] = out.result.policy;
  out.pictures["rank_costs"] = std::move(heat);
  out.pictures["step_times"] = std::move(times);
  return out;
}

/// The fewest tokens of a record that costs more than a mean pack; 0 if no record within the
/// capacity does.
inline std::uint64_t unbalanceable_tokens(const lanepack::any_estimator& estimator,
                                          std::uint64_t target_cost, std::uint64_t longest) {
  const auto cost_of = [&](std::uint64_t tokens) {
    return estimator.cost({.tokens = tokens, .loss_tokens = tokens - 1});
  };
  if (longest == 0 || cost_of(longest) <= target_cost) return 0;
  std::uint64_t low = 1;
  std::uint64_t high = longest;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (cost_of(middle) > target_cost) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Step efficiency of every policy over the values of one parameter.
template <class Values, class Change>
nlohmann::ordered_json curve(const loaded_corpus& corpus, const std::vector<std::string>& policies,
                             const experiment& base, const Values& values, const char* name,
                             const Change& change) {
  nlohmann::ordered_json out = nlohmann::json::array();
  if (policies.empty()) return out;
  const std::vector<prepared_experiment> prepared =
      prepare_each(corpus, base, values, name, change);
  for (const std::string& policy : policies) {
    nlohmann::ordered_json line;
    line["policy"] = policy;
    line["x"] = values;
    line["step_efficiency"] = nlohmann::json::array();
    line["time_efficiency"] = nlohmann::json::array();
    for (const prepared_experiment& each : prepared) {
      const row result = run_policy(each.corpus, policy, each.what);
      line["step_efficiency"].push_back(result.result.step_efficiency);
      line["time_efficiency"].push_back(result.result.time_efficiency);
    }
    out.push_back(std::move(line));
  }
  return out;
}

/// All that the report shows of one corpus.
/// @param prepared  The corpus prepared for the experiment.
/// @param rows      Receives the rows of the table.
inline nlohmann::ordered_json report_corpus(const loaded_corpus& corpus,
                                            const prepared_corpus& prepared,
                                            const std::vector<std::string>& policies,
                                            const experiment& what, const report_options& options,
                                            std::vector<row>& rows) {
  nlohmann::ordered_json out;
  out["corpus"] = corpus.name;
  out["records"] = corpus.lengths.summary.records;
  out["tokens"] = corpus.lengths.summary.tokens;
  out["max_tokens"] = corpus.lengths.summary.max_tokens;
  out["capacity_tokens"] = what.simulation.micro_batching.capacity_tokens;
  out["infeasible_records"] = prepared.infeasible_records;
  out["unbalanceable_records"] = prepared.unbalanceable_records;
  out["unbalanceable_tokens"] =
      unbalanceable_tokens(what.estimator, prepared.target_cost, prepared.largest_record);
  out["lengths"] = nlohmann::json::array();
  for (const lanepack::length_bucket& bucket : corpus.lengths.summary.histogram.buckets()) {
    out["lengths"].push_back({bucket.first, bucket.last, bucket.records});
  }
  out["policies"] = nlohmann::json::array();
  for (const std::string& policy : policies) {
    pictured_row pictured = run_pictured(prepared, policy, what, options.shown_steps);
    rows.push_back(std::move(pictured.result));
    out["policies"].push_back(std::move(pictured.pictures));
  }

  std::vector<std::string> own;
  std::vector<std::string> delaying;
  for (const std::string& policy : policies) {
    if (lanepack::find_baseline(policy) != nullptr) continue;
    own.push_back(policy);
    if (policy != "sequential" && policy != "window") delaying.push_back(policy);
  }
  out["over_ranks"] =
      curve(corpus, own, what, options.ranks, "ranks",
            [](const experiment& base, std::uint32_t ranks) { return base.at_ranks(ranks); });
  out["over_lookahead"] = curve(
      corpus, own, what, options.lookaheads, "lookahead",
      [](const experiment& base, std::uint32_t lookahead) { return base.at_lookahead(lookahead); });
  out["over_displacement"] = curve(
      corpus, delaying, what, options.displacements, "displacement",
      [](const experiment& base, std::uint64_t bound) { return base.at_displacement(bound); });
  return out;
}

/// Runs a program that is found in PATH and returns its exit status, 127 if there is none.
inline int run_command(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::pid_t child = 0;
  if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return 127;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Draws what lies in the folder: a page and its pictures.
/// @param script  Path of report.py.
/// @throws lanepack::state_error if no Python with matplotlib is found or the script fails.
inline void draw_report(const std::string& folder, const std::string& script) {
  const std::array<std::string, 2> candidates = {"python3", "/usr/bin/python3"};
  for (const std::string& python : candidates) {
    constexpr const char* probe =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)";
    if (run_command({python, "-c", probe}) != 0) continue;
    const int status = run_command({python, script, folder});
    if (status == 0) return;
    lanepack::detail::throw_state_error("the report's script: found exit status " +
                                        std::to_string(status) + " of " + python + " " + script +
                                        ", expected 0; its data is in " + folder + "/report.json");
  }
  lanepack::detail::throw_state_error(
      "found no python3 with matplotlib, which draws the report (Debian and Ubuntu: "
      "python3-matplotlib); its data is in " +
      folder + "/report.json, and 'python3 " + script + " " + folder + "' draws it");
}

}  // namespace lanepack_programs
