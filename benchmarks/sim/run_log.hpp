#pragma once

/// @file
/// What lanepack-sim says on stderr while it simulates.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include <lanepack/lanepack.hpp>

#include "support/terminal.hpp"

namespace lanepack_programs {

/// Counts the simulations of a command and says which of them runs: on a terminal at the beginning
/// of each, elsewhere in a line every few seconds. Notes are said once.
/// @thread_safety  One thread.
class run_log {
 public:
  /// @param total      Simulations of the command.
  /// @param announced  Say at once how many there are.
  explicit run_log(std::uint64_t total, bool announced = false)
      : total_(total), style_(style_of(STDERR_FILENO)) {
    if (announced) {
      print(std::to_string(total) + " simulations\n");
    }
  }

  run_log(const run_log&) = delete;
  run_log& operator=(const run_log&) = delete;
  ~run_log() { end(); }

  /// A simulation begins.
  /// @return  Its number and name, for a progress bar.
  std::string begin(const std::string& name) {
    ++begun_;
    const std::string label =
        "[" + std::to_string(begun_) + "/" + std::to_string(total_) + "] " + name;
    const clock::time_point now = clock::now();
    if (style_.is_terminal) {
      // A policy that takes seconds to be made reports no steps meanwhile.
      print("\r" + cut_to(label, style_.width - 1) + "\033[K");
      drawn_ = true;
    } else if (now - last_line_ >= std::chrono::seconds(5)) {
      last_line_ = now;
      print(label + ", " + short_time(std::chrono::duration<double>(now - start_).count()) +
            " so far\n");
    }
    return label;
  }

  /// The simulation has ended: nothing stays on the line.
  void end() noexcept {
    if (drawn_) print("\r\033[K");
    drawn_ = false;
  }

  /// Says which policy `auto` chose and why; not again for the same choice.
  void note(const std::string& corpus, const lanepack::policy_choice& choice) {
    if (choice.reason.empty() || !noted_.insert(choice.policy).second) return;
    end();
    print("note: " + corpus + ": " + choice.reason + "\n");
  }

 private:
  using clock = std::chrono::steady_clock;

  static void print(const std::string& text) { print(text.c_str()); }
  static void print(const char* text) noexcept {
    std::fputs(text, stderr);
    std::fflush(stderr);
  }

  std::uint64_t total_;
  std::uint64_t begun_ = 0;
  text_style style_;
  bool drawn_ = false;
  clock::time_point start_ = clock::now();
  clock::time_point last_line_ = start_;
  std::set<std::string> noted_;
};

}  // namespace lanepack_programs
