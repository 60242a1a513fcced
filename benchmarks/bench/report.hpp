#pragma once

/// @file
/// Results as a table for people, and as JSON with the field names of Google Benchmark.

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/version.hpp>

#include "bench/harness.hpp"
#include "support/table.hpp"
#include "support/terminal.hpp"

#if !defined(LANEPACK_BENCH_FLAGS)
#define LANEPACK_BENCH_FLAGS "unknown"
#endif

namespace lanepack_bench {

inline std::string compiler_name() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

inline std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.rfind("model name", 0) != 0) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return "unknown";
}

inline std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%FT%T%z", &local);
  // ISO 8601 wants a colon in the offset, as Google Benchmark writes it.
  std::string date(text.data(), size);
  if (date.size() > 5) date.insert(date.size() - 2, ":");
  return date;
}

inline nlohmann::ordered_json context_json(const std::string& executable, const settings& how) {
  nlohmann::ordered_json context;
  context["date"] = date_now();
  context["executable"] = executable;
  context["num_cpus"] = std::thread::hardware_concurrency();
  context["cpu_model"] = processor_name();
  context["library_build_type"] = is_release_build ? "release" : "debug";
  context["library_version"] = LANEPACK_VERSION_STRING;
  context["compiler"] = compiler_name();
  context["flags"] = LANEPACK_BENCH_FLAGS;
  context["epochs"] = how.epochs;
  context["quick"] = how.quick;
  return context;
}

namespace detail {

inline void add_rates(nlohmann::ordered_json& entry, const comparison& what, double seconds) {
  entry["real_time"] = 1e9 * seconds;
  entry["time_unit"] = "ns";
  entry["items_per_second"] = what.items_per_run / seconds;
  if (what.bytes_per_run > 0) entry["bytes_per_second"] = what.bytes_per_run / seconds;
}

}  // namespace detail

/// One entry a variant and epoch (`run_type` "iteration"), then median and MAD of a variant
/// (`run_type` "aggregate"); the subject's median carries its ratios and its goal.
inline void append_json(nlohmann::ordered_json& out, const outcome& result, clock_kind clock) {
  for (std::size_t i = 0; i < result.measured.size(); ++i) {
    const measurement& of = result.measured[i];
    nlohmann::ordered_json base;
    const std::string run_name = i == 0 ? result.name : result.name + "/bound=" + of.name;
    base["name"] = run_name;
    base["run_name"] = run_name;
    base["run_type"] = "iteration";
    base["repetitions"] = of.wall.size();
    base["threads"] = 1;
    base["iterations"] = of.iterations;
    for (std::size_t epoch = 0; epoch < of.wall.size(); ++epoch) {
      nlohmann::ordered_json entry = base;
      entry["repetition_index"] = epoch;
      detail::add_rates(entry, result.what, of.wall[epoch]);
      entry["cpu_time"] = 1e9 * of.cpu[epoch];
      entry["busiest_thread_time"] = 1e9 * of.busiest_thread[epoch];
      out.push_back(std::move(entry));
    }
    const spread wall = spread_of(of.wall);
    const spread processor = spread_of(of.cpu);
    const spread busiest = spread_of(of.busiest_thread);
    nlohmann::ordered_json median = base;
    median["name"] = run_name + "_median";
    median["run_type"] = "aggregate";
    median["aggregate_name"] = "median";
    detail::add_rates(median, result.what, wall.median);
    median["cpu_time"] = 1e9 * processor.median;
    median["busiest_thread_time"] = 1e9 * busiest.median;
    if (i >= 2) {
      const std::string key = "speed_against_" + result.measured[1].name;
      median[key] = result.speed_against(i, 1, clock_kind::wall).median;
      median[key + "_cpu"] = result.speed_against(i, 1, clock_kind::cpu).median;
      median[key + "_busiest_thread"] =
          result.speed_against(i, 1, clock_kind::busiest_thread).median;
    }
    if (i == 0) {
      for (std::size_t other = 1; other < result.measured.size(); ++other) {
        const std::string key = "speed_against_" + result.measured[other].name;
        median[key] = result.subject_speed_against(other, clock_kind::wall).median;
        median[key + "_cpu"] = result.subject_speed_against(other, clock_kind::cpu).median;
        median[key + "_busiest_thread"] =
            result.subject_speed_against(other, clock_kind::busiest_thread).median;
      }
      if (const std::optional<bool> kept = keeps_goal(result, clock)) {
        median["goal"] = result.what.wanted->value;
        median["goal_kept"] = *kept;
      }
      if (!result.what.note.empty()) median["note"] = result.what.note;
    }
    out.push_back(std::move(median));
    nlohmann::ordered_json mad = base;
    mad["name"] = run_name + "_mad";
    mad["run_type"] = "aggregate";
    mad["aggregate_name"] = "mad";
    mad["real_time"] = 1e9 * wall.mad;
    mad["cpu_time"] = 1e9 * processor.mad;
    mad["busiest_thread_time"] = 1e9 * busiest.mad;
    mad["time_unit"] = "ns";
    out.push_back(std::move(mad));
  }
}

namespace detail {

inline std::string time_text(double seconds) {
  using lanepack_programs::fixed;
  if (seconds < 1e-6) return fixed(1e9 * seconds, 1) + " ns";
  if (seconds < 1e-3) return fixed(1e6 * seconds, 2) + " us";
  if (seconds < 1) return fixed(1e3 * seconds, 2) + " ms";
  return fixed(seconds, 2) + " s";
}

inline std::string goal_text(const goal& wanted) {
  using lanepack_programs::fixed;
  switch (wanted.what) {
    case goal::kind::time_ratio_at_most:
      return "time <= " + fixed(wanted.value, 2) + " x";
    case goal::kind::speed_ratio_at_least:
      return "speed >= " + fixed(wanted.value, 2) + " x";
    case goal::kind::items_per_second_at_least:
      return ">= " + lanepack_programs::short_count(wanted.value) + "/s";
    case goal::kind::seconds_at_most:
      break;
  }
  return "<= " + time_text(wanted.value);
}

}  // namespace detail

inline lanepack_programs::text_table result_table() {
  lanepack_programs::text_table table(
      {"benchmark", "time", "spread", "rate", "bytes", "speed", "goal", ""});
  table.set_align(6, lanepack_programs::text_table::align::left);
  table.set_align(7, lanepack_programs::text_table::align::left);
  return table;
}

/// Adds the subject and, below it, each of its bounds with the subject's speed against it.
inline void append_rows(lanepack_programs::text_table& table, const outcome& result,
                        clock_kind clock) {
  using lanepack_programs::fixed;
  for (std::size_t i = 0; i < result.measured.size(); ++i) {
    const measurement& of = result.measured[i];
    const spread time = spread_of(of.seconds(clock));
    std::vector<std::string> cells;
    cells.push_back(i == 0 ? result.name : "  against " + of.name);
    cells.push_back(detail::time_text(time.median));
    cells.push_back(fixed(time.median > 0 ? 100 * time.mad / time.median : 0, 1) + "%");
    cells.push_back(lanepack_programs::short_count(result.what.items_per_run / time.median) + " " +
                    result.what.item + "/s");
    cells.push_back(result.what.bytes_per_run > 0
                        ? lanepack_programs::short_bytes(result.what.bytes_per_run / time.median) +
                              "/s"
                        : "");
    if (i == 0) {
      cells.emplace_back();
      const std::optional<bool> kept = keeps_goal(result, clock);
      cells.push_back(kept ? detail::goal_text(*result.what.wanted) : "");
      cells.push_back((kept ? std::string(*kept ? "kept" : "MISSED") : std::string()) +
                      (result.what.note.empty() ? "" : " (" + result.what.note + ")"));
    } else {
      cells.push_back(fixed(result.subject_speed_against(i, clock).median, 3) + " x");
      if (i >= 2) {
        cells.push_back("itself " + fixed(result.speed_against(i, 1, clock).median, 3) + " x");
        cells.push_back("of " + result.measured[1].name);
      }
    }
    table.add_row(std::move(cells));
  }
}

}  // namespace lanepack_bench
