#pragma once

/// @file
/// What no assignment of the same records can beat: bounds on the step efficiency.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_order.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Collects the records of every step and bounds the step efficiency that ranks could reach with
/// them, each with the same number of records.
///
/// A step of n records on W ranks takes at least its mean, and at least its largest record with the
/// n / W - 1 smallest ones. Where the records of K steps may be exchanged, the steps together take
/// at least the sum of their means, and at least their 1st, (n + 1)th, (2n + 1)th, ... largest
/// record with the K (n / W - 1) smallest ones: one step holds n records, so however they are dealt
/// the j-th heaviest step has a record as large as the ((j - 1) n + 1)-th.
///
/// Where the number of records of a rank is free, the smallest ones need not keep the large ones
/// company, and the bounds are those without them. Where records keep their lane, the slowest rank
/// needs at least its own total.
/// @complexity  O(n) a step and a sort a window; memory of a window.
class bound_metrics {
 public:
  /// @param ranks         W, a divisor of the packs of a step.
  /// @param window_steps  K, at least 1.
  /// @param equal_counts  Whether every rank has the same number of records.
  bound_metrics(std::uint32_t ranks, std::uint32_t window_steps, bool equal_counts = true)
      : ranks_(ranks),
        window_steps_(std::max(window_steps, 1U)),
        equal_counts_(equal_counts),
        totals_(ranks, 0) {}

  /// Adds a step of all its packs, by lane.
  void add(const step_plan& step) {
    const std::size_t first = costs_.size();
    const std::size_t packs = step.packs.size() / ranks_;
    for (std::size_t i = 0; i < step.packs.size(); ++i) {
      for (const candidate& record : step.packs[i].records) {
        costs_.push_back(record.cost);
        totals_[i / packs] += static_cast<double>(record.cost);
      }
    }
    const std::span<const std::uint64_t> own = std::span(costs_).subspan(first);
    if (own.size() != step_records_) {
      // The number of records of a step changed: a window holds steps of one size.
      const std::vector<std::uint64_t> kept(own.begin(), own.end());
      costs_.resize(first);
      close_window();
      step_records_ = kept.size();
      costs_ = kept;
    }
    ++steps_;
    const double mean = sum(std::span(costs_).last(step_records_)) / ranks_;
    means_ += mean;
    step_bounds_ += std::max(mean, outliers(std::span(costs_).last(step_records_), 1));
    if (steps_ == window_steps_) close_window();
  }

  /// The most that any assignment inside every step reaches.
  [[nodiscard]] double step_bound() const { return step_bounds_ > 0 ? means_ / step_bounds_ : 1; }
  /// The most that any assignment inside every window of K steps reaches.
  [[nodiscard]] double window_bound() const {
    const double open = open_window_bound();
    return window_bounds_ + open > 0 ? means_ / (window_bounds_ + open) : 1;
  }
  /// The most that any order of the records reaches which leaves each in its lane.
  [[nodiscard]] double lane_total_bound() const {
    const double largest = *std::max_element(totals_.begin(), totals_.end());
    double total = 0;
    for (const double value : totals_) total += value;
    return largest > 0 ? total / ranks_ / largest : 1;
  }

 private:
  static double sum(std::span<const std::uint64_t> costs) {
    double out = 0;
    for (const std::uint64_t cost : costs) out += static_cast<double>(cost);
    return out;
  }

  /// The 1st, (n + 1)th, ... largest of the records of `steps` steps with the smallest ones.
  double outliers(std::span<const std::uint64_t> costs, std::size_t steps) const {
    const std::span<const std::uint64_t> keys = order_.sort_descending(costs);
    const std::size_t others = equal_counts_ ? steps * (step_records_ / ranks_ - 1) : 0;
    double out = 0;
    for (std::size_t i = 0; i < keys.size(); i += step_records_) {
      out += static_cast<double>(detail::descending_key_cost(keys[i]));
    }
    for (std::size_t i = keys.size() - others; i < keys.size(); ++i) {
      out += static_cast<double>(detail::descending_key_cost(keys[i]));
    }
    return out;
  }

  [[nodiscard]] double open_window_bound() const {
    if (costs_.empty()) return 0;
    return std::max(sum(costs_) / ranks_, outliers(costs_, costs_.size() / step_records_));
  }

  void close_window() {
    window_bounds_ += open_window_bound();
    costs_.clear();
    steps_ = 0;
  }

  std::uint32_t ranks_;
  std::uint32_t window_steps_;
  bool equal_counts_;
  std::size_t step_records_ = 0;
  std::uint32_t steps_ = 0;
  /// Costs of the window that is open, step by step.
  std::vector<std::uint64_t> costs_;
  std::vector<double> totals_;
  double means_ = 0;
  double step_bounds_ = 0;
  double window_bounds_ = 0;
  mutable detail::cost_order order_;
};

}  // namespace lanepack::inline LANEPACK_ABI
