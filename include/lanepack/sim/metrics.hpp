#pragma once

/// @file
/// What a simulated run is judged by: variability, step efficiency, what alignment does to tokens.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Collects the cost of every rank in every step.
///
/// Figures for people: sums run in floating point, in call order.
class step_cost_metrics {
 public:
  /// Adds one step: the cost of each rank, in rank order.
  void add(std::span<const std::uint64_t> rank_costs) {
    if (rank_costs.empty()) return;
    double sum = 0;
    std::uint64_t largest = 0;
    for (const std::uint64_t cost : rank_costs) {
      sum += static_cast<double>(cost);
      largest = std::max(largest, cost);
    }
    const double ranks = static_cast<double>(rank_costs.size());
    const double mean = sum / ranks;
    for (const std::uint64_t cost : rank_costs) {
      const double value = static_cast<double>(cost);
      within_squares_ += (value - mean) * (value - mean);
      // Welford's update keeps the variance exact where costs are large and alike.
      samples_ += 1;
      const double delta = value - mean_;
      mean_ += delta / samples_;
      squares_ += delta * (value - mean_);
    }
    sum_of_means_ += mean;
    sum_of_maxima_ += static_cast<double>(largest);
    if (has_previous_) {
      lag_product_ += mean * previous_;
      lag_first_ += previous_;
      lag_second_ += mean;
      lag_first_square_ += previous_ * previous_;
      lag_second_square_ += mean * mean;
      lag_pairs_ += 1;
    }
    previous_ = mean;
    has_previous_ = true;
  }

  /// Standard deviation over mean of a rank's cost in a step, over all ranks and steps.
  [[nodiscard]] double rank_cost_cv() const {
    return mean_ > 0 ? std::sqrt(squares_ / samples_) / mean_ : 0;
  }
  /// As `rank_cost_cv`, but of the deviation from the step's mean over ranks: the part that costs
  /// time.
  [[nodiscard]] double within_step_cv() const {
    return mean_ > 0 ? std::sqrt(within_squares_ / samples_) / mean_ : 0;
  }
  /// Sum over steps of the mean over ranks, over the sum of the maximum over ranks; 1 is ideal.
  [[nodiscard]] double step_efficiency() const {
    return sum_of_maxima_ > 0 ? sum_of_means_ / sum_of_maxima_ : 1;
  }
  /// Correlation of a step's mean cost with that of the step before; 0 where it is undefined.
  [[nodiscard]] double lag1_correlation() const {
    if (lag_pairs_ < 2) return 0;
    const double covariance = lag_product_ - lag_first_ * lag_second_ / lag_pairs_;
    const double first = lag_first_square_ - lag_first_ * lag_first_ / lag_pairs_;
    const double second = lag_second_square_ - lag_second_ * lag_second_ / lag_pairs_;
    if (!(first > 0 && second > 0)) return 0;
    // Rounding may leave more than a correlation can be.
    return std::clamp(covariance / (std::sqrt(first) * std::sqrt(second)), -1.0, 1.0);
  }
  /// Sum over steps of the largest rank cost.
  [[nodiscard]] double sum_of_maxima() const { return sum_of_maxima_; }
  /// Sum over steps of the mean rank cost.
  [[nodiscard]] double sum_of_means() const { return sum_of_means_; }

 private:
  double samples_ = 0;
  double mean_ = 0;
  double squares_ = 0;
  double within_squares_ = 0;
  double sum_of_means_ = 0;
  double sum_of_maxima_ = 0;
  double previous_ = 0;
  bool has_previous_ = false;
  double lag_pairs_ = 0;
  double lag_product_ = 0;
  double lag_first_ = 0;
  double lag_second_ = 0;
  double lag_first_square_ = 0;
  double lag_second_square_ = 0;
};

/// Collects what a policy does to the weight of a token, where a loss is divided by the tokens of
/// its step: a token in a step with many tokens weighs less.
class token_weight_metrics {
 public:
  /// Adds one step: the tokens of each of its records, over all ranks.
  void add(std::span<const std::uint64_t> record_tokens) {
    double total = 0;
    for (const std::uint64_t tokens : record_tokens) total += static_cast<double>(tokens);
    if (total <= 0) return;
    for (const std::uint64_t tokens : record_tokens) {
      length_class& entry = by_length_[tokens];
      entry.records += 1;
      entry.weight += static_cast<double>(tokens) / total;
    }
    steps_ += 1;
    tokens_ += total;
    largest_ = std::max(largest_, total);
  }

  /// The largest number of tokens of a step over the mean.
  [[nodiscard]] double step_tokens_max_ratio() const {
    return tokens_ > 0 ? largest_ * steps_ / tokens_ : 1;
  }

  /// Mean weight of the tokens in the longest 1 % of records over the mean weight of all tokens;
  /// the records at the boundary length count in the share that fills the 1 %.
  [[nodiscard]] double token_weight_p99() const {
    std::vector<std::pair<std::uint64_t, length_class>> sorted(by_length_.begin(),
                                                               by_length_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    double records = 0;
    double all_weight = 0;
    for (const auto& [length, entry] : sorted) {
      records += entry.records;
      all_weight += entry.weight;
    }
    double wanted = records / 100;
    double weight = 0;
    double tokens = 0;
    for (const auto& [length, entry] : sorted) {
      const double share = std::min(1.0, wanted / entry.records);
      weight += share * entry.weight;
      tokens += share * entry.records * static_cast<double>(length);
      wanted -= share * entry.records;
      if (wanted <= 0) break;
    }
    return tokens > 0 && all_weight > 0 ? (weight / tokens) / (all_weight / tokens_) : 1;
  }

 private:
  struct length_class {
    double records = 0;
    /// Sum over records of tokens / tokens of the record's step.
    double weight = 0;
  };

  std::unordered_map<std::uint64_t, length_class> by_length_;
  double steps_ = 0;
  double tokens_ = 0;
  double largest_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
