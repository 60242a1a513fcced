#pragma once

/// @file
/// Packages of others, measured in turn with lanepack: a Python process does the same work when it
/// is asked to and says how long it took.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness.hpp"
#include "support/script.hpp"

#if !defined(LANEPACK_BENCH_REFERENCE)
#define LANEPACK_BENCH_REFERENCE "reference.py"
#endif

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace lanepack_bench {

/// `reference.py`, started with a piece of work; it answers a line for each line that it is sent.
class reference_process {
 public:
  /// @throws std::runtime_error  There is no script or no python3.
  explicit reference_process(const std::vector<std::string>& work) {
    const lanepack_programs::found_script script =
        lanepack_programs::find_script("reference.py", LANEPACK_BENCH_REFERENCE);
    if (script.path.empty()) {
      throw std::runtime_error("found no reference.py, expected it at " + script.places);
    }
    std::vector<std::string> words = {"python3", script.path};
    words.insert(words.end(), work.begin(), work.end());
    start(std::move(words));
    answer_ = ask_line();
  }
  reference_process(const reference_process&) = delete;
  reference_process& operator=(const reference_process&) = delete;
  ~reference_process() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (child_ > 0) {
      while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  /// The package with its version; empty where Python has none that can do the work.
  [[nodiscard]] std::string package() const {
    return answer_.starts_with("ready ") ? answer_.substr(6) : std::string();
  }
  /// Why it cannot do the work.
  [[nodiscard]] const std::string& problem() const { return answer_; }

  /// Does the work once and returns its checksum; `spent` tells the time.
  std::uint64_t run() {
    if (std::fputs("run\n", to_) < 0 || std::fflush(to_) != 0) {
      throw std::runtime_error("reference.py has ended");
    }
    const std::string line = ask_line();
    std::uint64_t sum = 0;
    if (std::sscanf(line.c_str(), "%" SCNu64 " %lf %lf", &sum, &spent_.wall, &spent_.cpu) != 3) {
      throw std::runtime_error("reference.py: found the answer '" + line +
                               "', expected a checksum and two times");
    }
    spent_.busiest_thread = spent_.cpu;
    return sum;
  }
  /// The time of the last `run`, as the process itself measured it.
  [[nodiscard]] const timing& spent() const { return spent_; }

 private:
  void start(std::vector<std::string> words) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("found no pipe for reference.py");
    }
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const int failed =
        ::posix_spawnp(&child_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    // A child that ends early is an error to report, no reason to die.
    ::signal(SIGPIPE, SIG_IGN);
    if (failed != 0) {
      child_ = 0;
      throw std::runtime_error("found no python3, which runs the references");
    }
  }

  std::string ask_line() {
    std::string line;
    for (int each = std::fgetc(from_); each != EOF && each != '\n'; each = std::fgetc(from_)) {
      line += static_cast<char>(each);
    }
    return line.empty() ? "reference.py ended without an answer" : line;
  }

  ::pid_t child_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string answer_;
  timing spent_;
};

/// Adds the package that does `work` to the variants of a benchmark; where Python does not have it,
/// the note says so.
inline void add_reference(comparison& out, const std::vector<std::string>& work) {
  const auto process = std::make_shared<reference_process>(work);
  const std::string package = process->package();
  if (!out.note.empty()) out.note += "; ";
  out.note += package.empty() ? process->problem() : package;
  if (package.empty()) return;
  out.variants.push_back({.name = package.substr(0, package.find(' ')),
                          .run = [process] { return process->run(); },
                          .own_time = [process] { return process->spent(); }});
}

}  // namespace lanepack_bench
