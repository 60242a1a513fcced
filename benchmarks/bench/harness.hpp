#pragma once

/// @file
/// Measures things side by side: a subject and its bounds take turns, in an order that is drawn
/// anew each time, so that a disturbance of the machine meets all of them.

#include <dirent.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/random.hpp>

namespace lanepack_bench {

/// Whether the compiler was told to leave assertions out, as for a program that is meant to be
/// fast.
#if defined(NDEBUG)
inline constexpr bool is_release_build = true;
#else
inline constexpr bool is_release_build = false;
#endif

/// What is taken for the time of a run.
enum class clock_kind : std::uint8_t {
  /// Time that passes.
  wall,
  /// Processor time of all threads.
  cpu,
  /// Processor time of the thread that works most: what would pass if every thread had a core of
  /// its own. For machines that are shared.
  busiest_thread,
};

/// How long and how often everything is measured.
struct settings {
  /// Times that everything is measured.
  std::size_t epochs = 11;
  /// Seconds that one measurement takes at least.
  double epoch_seconds = 0.05;
  /// Bytes of a corpus that a loader reads.
  std::uint64_t corpus_bytes = std::uint64_t{512} << 20;
  /// Folder for corpora.
  std::string folder;
  /// Only a test of the program: sizes small enough for seconds.
  bool quick = false;
  /// Also what packages of others take for the same work, where Python has them.
  bool references = false;
};

/// Seconds of a run.
struct timing {
  double wall = 0;
  double cpu = 0;
  double busiest_thread = 0;
};

/// Something that is timed.
struct variant {
  std::string name;
  /// Does the work once and returns a checksum of its results, the same every time.
  std::function<std::uint64_t()> run;
  /// Is called before every `run`, not timed; a variant that has it runs once an epoch.
  std::function<void()> prepare = {};
  /// Is called after it, not timed.
  std::function<void()> finish = {};
  /// The time of the last `run` where another process did it and measured it.
  std::function<timing()> own_time = {};
};

/// What a result is held against.
struct goal {
  enum class kind : std::uint8_t {
    /// Time of the subject over time of the first bound, at most.
    time_ratio_at_most,
    /// Throughput of the subject over throughput of the first bound, at least.
    speed_ratio_at_least,
    /// Items a second, at least.
    items_per_second_at_least,
    /// Seconds for one `run`, at most.
    seconds_at_most,
  };
  kind what;
  double value;
};

/// A subject and its bounds, which do the same number of items.
struct comparison {
  /// The subject first.
  std::vector<variant> variants;
  /// What an item is, for people: "records".
  std::string item = "items";
  double items_per_run = 1;
  /// Bytes of payload of a run, or 0.
  double bytes_per_run = 0;
  /// All variants have to return the same checksum.
  bool same_checksum = false;
  std::optional<goal> wanted = std::nullopt;
  /// Said beside the result.
  std::string note = {};
};

/// A comparison that is made when it is measured, because it may need much memory.
struct benchmark {
  /// `folder/what/key=value/...`.
  std::string name;
  std::function<comparison(const settings&)> make;
};

/// Median and median absolute deviation.
struct spread {
  double median = 0;
  double mad = 0;
};

inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

inline spread spread_of(const std::vector<double>& values) {
  spread out;
  out.median = median_of(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::fabs(value - out.median));
  out.mad = median_of(std::move(distances));
  return out;
}

/// What was measured of a variant: seconds a run, one number an epoch.
struct measurement {
  std::string name;
  std::uint64_t iterations = 1;
  std::vector<double> wall;
  std::vector<double> cpu;
  std::vector<double> busiest_thread;

  [[nodiscard]] const std::vector<double>& seconds(clock_kind clock) const {
    return clock == clock_kind::wall ? wall : clock == clock_kind::cpu ? cpu : busiest_thread;
  }
};

/// A benchmark that was measured.
struct outcome {
  std::string name;
  comparison what;
  std::vector<measurement> measured;

  /// Time of variant `index` over time of the subject, epoch by epoch.
  [[nodiscard]] spread subject_speed_against(std::size_t index, clock_kind clock) const {
    return speed_against(0, index, clock);
  }

  /// Time of variant `index` over time of variant `of`, epoch by epoch.
  [[nodiscard]] spread speed_against(std::size_t of, std::size_t index, clock_kind clock) const {
    const std::vector<double>& own = measured[of].seconds(clock);
    const std::vector<double>& other = measured[index].seconds(clock);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < own.size(); ++i) ratios.push_back(other[i] / own[i]);
    return spread_of(ratios);
  }
};

/// Whether a result keeps its goal; nullopt where there is none.
inline std::optional<bool> keeps_goal(const outcome& result, clock_kind clock) {
  if (!result.what.wanted) return std::nullopt;
  const goal& wanted = *result.what.wanted;
  const double seconds = spread_of(result.measured[0].seconds(clock)).median;
  switch (wanted.what) {
    case goal::kind::time_ratio_at_most:
      return 1 / result.subject_speed_against(1, clock).median <= wanted.value;
    case goal::kind::speed_ratio_at_least:
      return result.subject_speed_against(1, clock).median >= wanted.value;
    case goal::kind::items_per_second_at_least:
      return result.what.items_per_run / seconds >= wanted.value;
    case goal::kind::seconds_at_most:
      break;
  }
  return seconds <= wanted.value;
}

namespace detail {

inline double cpu_seconds() {
  ::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Processor time of every thread of the process, by its number; empty where the system does not
/// say.
inline std::map<long, double> thread_seconds() {
  std::map<long, double> out;
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return out;
  while (const ::dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = std::string("/proc/self/task/") + entry->d_name + "/schedstat";
    std::FILE* const file = std::fopen(path.c_str(), "r");
    if (file == nullptr) continue;
    unsigned long long nanoseconds = 0;
    if (std::fscanf(file, "%llu", &nanoseconds) == 1) {
      out[std::strtol(entry->d_name, nullptr, 10)] = 1e-9 * static_cast<double>(nanoseconds);
    }
    std::fclose(file);
  }
  ::closedir(folder);
  return out;
}

/// Checks every checksum against the first.
class checked_variant {
 public:
  checked_variant(std::string benchmark, const variant& what)
      : benchmark_(std::move(benchmark)), what_(&what) {}

  [[nodiscard]] bool runs_once() const { return static_cast<bool>(what_->prepare); }
  [[nodiscard]] const std::optional<std::uint64_t>& checksum() const { return checksum_; }

  timing run(std::uint64_t iterations) {
    if (what_->own_time) return run_elsewhere(iterations);
    if (what_->prepare) what_->prepare();
    const std::map<long, double> threads = thread_seconds();
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < iterations; ++i) check(what_->run());
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    timing spent{wall.count(), cpu_seconds() - cpu, 0};
    for (const auto& [thread, seconds] : thread_seconds()) {
      const auto before = threads.find(thread);
      const double own = seconds - (before == threads.end() ? 0 : before->second);
      spent.busiest_thread = std::max(spent.busiest_thread, own);
    }
    if (spent.busiest_thread == 0) spent.busiest_thread = spent.cpu;
    if (what_->finish) what_->finish();
    return spent;
  }

 private:
  timing run_elsewhere(std::uint64_t iterations) {
    timing sum;
    for (std::uint64_t i = 0; i < iterations; ++i) {
      check(what_->run());
      const timing spent = what_->own_time();
      sum.wall += spent.wall;
      sum.cpu += spent.cpu;
      sum.busiest_thread += spent.busiest_thread;
    }
    return sum;
  }

  void check(std::uint64_t found) {
    if (!checksum_) checksum_ = found;
    if (*checksum_ != found) {
      throw std::runtime_error(benchmark_ + ": " + what_->name + " returned the checksum " +
                               std::to_string(found) + ", expected " + std::to_string(*checksum_) +
                               " as before");
    }
  }

  std::string benchmark_;
  const variant* what_;
  std::optional<std::uint64_t> checksum_;
};

/// Runs that take `seconds` together.
inline std::uint64_t calibrate(checked_variant& variant, double seconds) {
  if (variant.runs_once()) {
    variant.run(1);
    return 1;
  }
  std::uint64_t iterations = 1;
  for (;;) {
    const double spent = variant.run(iterations).wall;
    if (spent >= seconds) return iterations;
    const double wanted = static_cast<double>(iterations) * 1.2 * seconds / std::max(spent, 1e-9);
    iterations = std::clamp(static_cast<std::uint64_t>(wanted), iterations + 1, iterations * 16);
  }
}

}  // namespace detail

/// Makes and measures a benchmark: every variant is warmed up and its runs are counted out, then
/// all take turns.
/// @param progress  Told (epochs done, epochs).
/// @throws std::runtime_error  A checksum is not what it was, or not that of the others.
inline outcome measure(const benchmark& what, const settings& how,
                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  outcome out;
  out.name = what.name;
  out.what = what.make(how);
  // Sizes that fit the caches say nothing about goals.
  if (how.quick) out.what.wanted.reset();
  const std::vector<variant>& variants = out.what.variants;
  std::vector<detail::checked_variant> checked;
  for (const variant& each : variants) {
    checked.emplace_back(what.name, each);
    measurement result;
    result.name = each.name;
    result.iterations = detail::calibrate(checked.back(), how.epoch_seconds);
    out.measured.push_back(std::move(result));
    if (out.what.same_checksum && checked.back().checksum() != checked.front().checksum()) {
      throw std::runtime_error(what.name + ": " + each.name + " has another checksum than " +
                               variants.front().name);
    }
  }
  std::vector<std::size_t> order(variants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::uint64_t draws = 0;
  for (std::size_t epoch = 0; epoch < how.epochs; ++epoch) {
    for (std::size_t i = order.size(); i > 1; --i) {
      const std::uint64_t bits = lanepack::counter_random({.seed = 1}, draws++);
      std::swap(order[i - 1], order[static_cast<std::size_t>(lanepack::random_below(bits, i))]);
    }
    for (const std::size_t i : order) {
      measurement& result = out.measured[i];
      const timing spent = checked[i].run(result.iterations);
      const auto runs = static_cast<double>(result.iterations);
      result.wall.push_back(spent.wall / runs);
      result.cpu.push_back(spent.cpu / runs);
      result.busiest_thread.push_back(spent.busiest_thread / runs);
    }
    if (progress) progress(epoch + 1, how.epochs);
  }
  return out;
}

}  // namespace lanepack_bench
