#pragma once

/// @file
/// `lanepack-sim --report`: what the pictures show, as JSON, and the script that draws them.

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/lanepack.hpp>

#include "sim/experiment.hpp"
#include "support/script.hpp"

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

/// Steps after which a policy is as it will stay, where it remembers no more than its window.
constexpr std::uint64_t settling_steps = 128;

/// Fewer steps where there are more ranks than in the experiment, so that a simulation does not
/// take longer in proportion: each step then averages over more ranks. What is saved is partly
/// spent on steps that are not measured, so that a cold start does not weigh more.
inline experiment at_ranks_with_fewer_steps(const experiment& base, std::uint32_t ranks) {
  constexpr std::uint64_t fewest_measured = 64;
  experiment out = base.at_ranks(ranks);
  if (ranks <= base.simulation.ranks) return out;
  lanepack::simulation_options& simulation = out.simulation;
  const std::uint64_t steps = base.simulation.steps;
  // Half as many for four times the ranks: figures of heavy tails need more than equal records.
  std::uint64_t fewer = steps;
  for (std::uint32_t times = ranks / base.simulation.ranks; times >= 4; times /= 4) fewer /= 2;
  simulation.steps = std::min(steps, std::max(fewest_measured, fewer));
  simulation.warmup_steps =
      std::max(simulation.warmup_steps, std::min(settling_steps, steps - simulation.steps));
  out.plan.steps = lanepack::saturating_add(simulation.steps, simulation.warmup_steps);
  return out;
}

/// A shorter warm-up for policies that need no longer one, where fewer steps are measured.
inline experiment with_short_warmup(experiment what, const experiment& base,
                                    const std::string& policy) {
  if (what.simulation.steps < base.simulation.steps &&
      (policy == "sequential" || policy == "window" || policy == "replicated")) {
    what.simulation.warmup_steps = std::min(what.simulation.warmup_steps, settling_steps);
  }
  return what;
}

/// Step efficiency of every policy over the values of one parameter.
/// @param known  Rows that were simulated with the experiment as it is.
/// @param here   The value of the parameter in those, or none.
template <class Value, class Change>
nlohmann::ordered_json curve(const loaded_corpus& corpus, const std::vector<std::string>& policies,
                             const experiment& base, const std::vector<Value>& values,
                             const char* name, const std::map<std::string, row>& known,
                             std::optional<Value> here, const Change& change) {
  nlohmann::ordered_json out = nlohmann::json::array();
  if (policies.empty()) return out;
  for (const std::string& policy : policies) {
    nlohmann::ordered_json line;
    line["policy"] = policy;
    line["x"] = values;
    for (const char* key :
         {"step_efficiency", "time_efficiency", "lane_total_bound", "steps", "warmup"}) {
      line[key] = nlohmann::json::array();
    }
    out.push_back(std::move(line));
  }
  // One value at a time: what is prepared for it is large where ranks are many.
  for (const Value value : values) {
    const experiment changed = change(base, value);
    std::optional<prepared_corpus> prepared;
    for (nlohmann::ordered_json& line : out) {
      const std::string policy = line["policy"];
      const experiment what = with_short_warmup(changed, base, policy);
      row result;
      if (here == value) {
        result = known.at(policy);
      } else {
        if (!prepared) {
          prepared = prepare(corpus, changed);
          prepared->name += std::string(" ") + name + "=" + std::to_string(value);
        }
        result = run_policy(*prepared, policy, what);
      }
      line["step_efficiency"].push_back(result.result.step_efficiency);
      line["time_efficiency"].push_back(result.result.time_efficiency);
      line["lane_total_bound"].push_back(number_or_null(result.result.lane_total_bound));
      line["steps"].push_back(what.simulation.steps);
      line["warmup"].push_back(what.simulation.warmup_steps);
    }
  }
  return out;
}

/// The policies of the curves: lanepack's own, and of those the ones that delay records.
struct curve_policies {
  std::vector<std::string> own;
  std::vector<std::string> delaying;

  explicit curve_policies(const std::vector<std::string>& policies) {
    for (const std::string& policy : policies) {
      if (lanepack::find_baseline(policy) != nullptr) continue;
      own.push_back(policy);
      if (policy != "sequential" && policy != "window") delaying.push_back(policy);
    }
  }
};

/// Where the experiment itself lies on the curves; none where it has other lanes than they have.
struct curve_origin {
  std::optional<std::uint32_t> ranks;
  std::optional<std::uint32_t> lookahead;
  std::optional<std::uint64_t> displacement;

  explicit curve_origin(const experiment& what) {
    if (what.plan.lanes == what.simulation.ranks) ranks = what.simulation.ranks;
    lookahead = what.plan.lookahead_steps;
    displacement = what.plan.max_displacement_steps != 0
                       ? what.plan.max_displacement_steps
                       : std::uint64_t{32} * what.plan.lookahead_steps;
  }
};

/// Simulations of one corpus's report.
inline std::uint64_t report_simulations(const std::vector<std::string>& policies,
                                        const experiment& what, const report_options& options) {
  const curve_policies curves(policies);
  const curve_origin origin(what);
  const auto others = [](const auto& values, const auto& here) {
    return static_cast<std::uint64_t>(
        std::count_if(values.begin(), values.end(), [&](auto value) { return here != value; }));
  };
  return policies.size() +
         curves.own.size() *
             (others(options.ranks, origin.ranks) + others(options.lookaheads, origin.lookahead)) +
         curves.delaying.size() * others(options.displacements, origin.displacement);
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
  std::map<std::string, row> known;
  for (const std::string& policy : policies) {
    pictured_row pictured = run_pictured(prepared, policy, what, options.shown_steps);
    known[policy] = pictured.result;
    rows.push_back(std::move(pictured.result));
    out["policies"].push_back(std::move(pictured.pictures));
  }

  const curve_policies curves(policies);
  const curve_origin origin(what);
  out["over_ranks"] = curve(corpus, curves.own, what, options.ranks, "ranks", known, origin.ranks,
                            at_ranks_with_fewer_steps);
  out["over_lookahead"] = curve(
      corpus, curves.own, what, options.lookaheads, "lookahead", known, origin.lookahead,
      [](const experiment& base, std::uint32_t lookahead) { return base.at_lookahead(lookahead); });
  out["over_displacement"] = curve(
      corpus, curves.delaying, what, options.displacements, "displacement", known,
      origin.displacement,
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

/// What draws the report.
struct report_drawer {
  std::string script;
  std::string python;
  /// Why nothing can be drawn here, and what to do; empty where it can.
  std::string problem;
};

/// The script beside the program, in the share folder of its prefix, or in the source tree that it
/// was built from; and a Python with matplotlib.
inline report_drawer find_report_drawer(const std::string& folder) {
  const lanepack_programs::found_script script =
      lanepack_programs::find_script("report.py", LANEPACK_REPORT_SCRIPT);
  report_drawer out;
  out.script = script.path;
  if (out.script.empty()) {
    out.problem = "found no report.py, which draws the report, expected it at " + script.places;
    out.problem += "; once you have it, 'python3 report.py " + folder + "' draws it";
    return out;
  }
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    constexpr const char* probe =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)";
    if (run_command({python, "-c", probe}) == 0) {
      out.python = python;
      return out;
    }
  }
  out.problem =
      "found no python3 with matplotlib, which draws the report; install it (Debian and Ubuntu: "
      "python3-matplotlib), or draw it later or elsewhere: 'python3 " +
      out.script + " " + folder + "'";
  return out;
}

/// Draws what lies in the folder: a page and its pictures.
/// @throws lanepack::state_error if there is nothing to draw with or the script fails.
inline void draw_report(const std::string& folder, const report_drawer& drawer) {
  if (!drawer.problem.empty()) {
    lanepack::detail::throw_state_error("the report is not drawn, its data is in " + folder +
                                        "/report.json: " + drawer.problem);
  }
  const int status = run_command({drawer.python, drawer.script, folder});
  if (status == 0) return;
  lanepack::detail::throw_state_error(
      "the report's script: found exit status " + std::to_string(status) + " of " + drawer.python +
      " " + drawer.script + ", expected 0; its data is in " + folder + "/report.json");
}

}  // namespace lanepack_programs
