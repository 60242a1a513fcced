#pragma once

/// @file
/// A progress bar on stderr.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <lanepack/core/progress.hpp>

#include "support/terminal.hpp"

namespace lanepack_programs {

/// When a progress bar is drawn.
enum class progress_mode {
  /// A bar where stderr is a terminal, plain lines elsewhere.
  automatic,
  always,
  never,
};

/// What the units of a progress bar are.
enum class progress_unit { count, bytes };

/// Draws how far long work is: share, amount, rate and time left. It appears only once the work has
/// taken a moment, redraws at most ten times a second and wipes its line at the end. Where stderr
/// is no terminal, work that takes long gets a plain line every ten seconds.
/// @thread_safety  Any number of threads may report.
class progress_bar {
 public:
  /// @param label  What is being done, in a word or two.
  explicit progress_bar(std::string label, progress_unit unit = progress_unit::count,
                        progress_mode mode = progress_mode::automatic)
      : state_(std::make_shared<state>(std::move(label), unit, mode)) {}

  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar() { finish(); }

  /// Reports `done` units out of `total`.
  void report(std::uint64_t done, std::uint64_t total) { state_->report(done, total); }

  /// Wipes the bar; nothing is drawn afterwards.
  void finish() noexcept { state_->finish(); }

  /// What a library function calls; it may outlive the bar.
  [[nodiscard]] lanepack::progress_callback callback() const {
    return
        [shared = state_](std::uint64_t done, std::uint64_t total) { shared->report(done, total); };
  }

 private:
  using clock = std::chrono::steady_clock;

  class state {
   public:
    state(std::string label, progress_unit unit, progress_mode mode)
        : label_(std::move(label)), unit_(unit), style_(style_of(STDERR_FILENO)) {
      active_ = mode != progress_mode::never;
      plain_ = mode == progress_mode::automatic && !style_.is_terminal;
      start_ = clock::now();
      next_draw_ = mode == progress_mode::always ? start_
                   : plain_                      ? start_ + between_lines
                                                 : start_ + std::chrono::milliseconds(300);
    }

    void report(std::uint64_t done, std::uint64_t total) {
      if (!active_) return;
      const std::lock_guard lock(mutex_);
      const clock::time_point now = clock::now();
      if (finished_ || now < next_draw_) return;
      const double seconds = std::chrono::duration<double>(now - start_).count();
      if (plain_) {
        next_draw_ = now + between_lines;
        print_line(done, total, seconds);
        return;
      }
      next_draw_ = now + std::chrono::milliseconds(100);
      draw(done, total, seconds);
    }

    void finish() noexcept {
      const std::lock_guard lock(mutex_);
      finished_ = true;
      if (!drawn_) return;
      std::fputs("\r\033[K", stderr);
      std::fflush(stderr);
      drawn_ = false;
    }

   private:
    static constexpr std::chrono::seconds between_lines{10};

    void print_line(std::uint64_t done, std::uint64_t total, double seconds) const {
      const std::string line = label_ + ": " + amount(done) + " of " + amount(total) + ", " +
                               short_time(seconds) + " so far\n";
      std::fputs(line.c_str(), stderr);
      std::fflush(stderr);
    }

    void draw(std::uint64_t done, std::uint64_t total, double seconds) {
      done = done < total ? done : total;
      const double share =
          total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
      const double rate = seconds > 0.0 ? static_cast<double>(done) / seconds : 0.0;
      std::string figures = " " + fixed(share * 100.0, 0) + "%  " + amount(done) + "/" +
                            amount(total) + "  " + amount(rate) + "/s";
      if (rate > 0.0) {
        figures += "  " + short_time(static_cast<double>(total - done) / rate) + " left";
      }
      std::string line = label_ + " ";
      const std::size_t taken = columns_of(line) + figures.size() + 3;
      if (taken + 8 <= style_.width) {
        const std::size_t columns = std::min<std::size_t>(40, style_.width - taken);
        const std::string bar = horizontal_bar(share, columns, style_);
        line += (style_.unicode ? "\u2595" : "[") + bar +
                std::string(columns - columns_of(bar), ' ') + (style_.unicode ? "\u258f" : "]");
      }
      line += figures;
      line = "\r" + cut_to(line, style_.width - 1) + "\033[K";
      std::fputs(line.c_str(), stderr);
      std::fflush(stderr);
      drawn_ = true;
    }

    template <class Number>
    [[nodiscard]] std::string amount(Number value) const {
      const auto number = static_cast<double>(value);
      return unit_ == progress_unit::bytes ? short_bytes(number) : short_count(number);
    }

    std::string label_;
    progress_unit unit_;
    text_style style_;
    bool active_ = false;
    bool plain_ = false;
    bool drawn_ = false;
    bool finished_ = false;
    clock::time_point start_;
    clock::time_point next_draw_;
    std::mutex mutex_;
  };

  std::shared_ptr<state> state_;
};

}  // namespace lanepack_programs
