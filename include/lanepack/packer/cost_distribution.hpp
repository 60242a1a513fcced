#pragma once

/// @file
/// `cost_distribution`: how many records of a stream have which cost and how many tokens.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/length_histogram.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/feasibility.hpp>
#include <lanepack/packer/candidate.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Records that cost the same and have equally many tokens.
struct cost_bucket {
  /// Cost of each of them, at most `max_record_cost`.
  std::uint64_t cost = 0;
  /// Tokens of each of them, at most 2^40.
  std::uint64_t tokens = 0;
  /// Number of records.
  std::uint64_t records = 0;

  friend bool operator==(const cost_bucket&, const cost_bucket&) = default;
};

/// The costs of a stream's records in ascending order, with exact sums: what every rank knows
/// before the first record arrives.
///
/// @thread_safety  Immutable.
/// @determinism    Integers only; the order in which buckets were given does not matter.
class cost_distribution {
 public:
  /// Most records that a distribution counts; larger histograms have to be scaled down.
  static constexpr std::uint64_t max_records = std::uint64_t{1} << 56;

  /// @param buckets  In any order; equal ones are merged, empty ones dropped.
  /// @throws invalid_option if no bucket holds a record, there are more than `max_records`, or a
  ///         cost or a number of tokens exceeds 2^40.
  explicit cost_distribution(std::vector<cost_bucket> buckets) : buckets_(std::move(buckets)) {
    std::sort(buckets_.begin(), buckets_.end(), [](const cost_bucket& a, const cost_bucket& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.tokens < b.tokens;
    });
    std::size_t kept = 0;
    for (const cost_bucket& bucket : buckets_) {
      if (bucket.records == 0) continue;
      if (bucket.cost > max_record_cost || bucket.tokens > max_record_cost) {
        detail::throw_invalid_option("cost distribution",
                                     "a record of cost " + std::to_string(bucket.cost) + " and " +
                                         std::to_string(bucket.tokens) + " tokens",
                                     "at most 2^40 of each");
      }
      if (kept > 0 && buckets_[kept - 1].cost == bucket.cost &&
          buckets_[kept - 1].tokens == bucket.tokens) {
        buckets_[kept - 1].records = saturating_add(buckets_[kept - 1].records, bucket.records);
      } else {
        buckets_[kept++] = bucket;
      }
    }
    buckets_.resize(kept);
    ends_.reserve(kept);
    for (const cost_bucket& bucket : buckets_) {
      records_ = saturating_add(records_, bucket.records);
      if (records_ > max_records) {
        detail::throw_invalid_option("cost distribution", "more than 2^56 records", "at most 2^56");
      }
      const uint128 n = bucket.records;
      const uint128 cost = n * bucket.cost + (ends_.empty() ? 0 : ends_.back().cost);
      const uint128 tokens = n * bucket.tokens + (ends_.empty() ? 0 : ends_.back().tokens);
      ends_.push_back({.records = records_, .cost = cost, .tokens = tokens});
    }
    if (records_ == 0) {
      detail::throw_invalid_option("cost distribution", "no records", "at least one record");
    }
  }

  /// Of records that are known one by one, such as the common prefix of a stream.
  /// @throws invalid_option as the constructor.
  [[nodiscard]] static cost_distribution of_records(std::span<const candidate> records) {
    std::vector<cost_bucket> buckets;
    buckets.reserve(records.size());
    for (const candidate& record : records) {
      buckets.push_back({.cost = record.cost, .tokens = record.tokens, .records = 1});
    }
    return cost_distribution(std::move(buckets));
  }

  /// Of records whose shapes are known, as they are delivered.
  /// @throws invalid_option as the constructor.
  template <cost_estimator Estimator>
  [[nodiscard]] static cost_distribution of_shapes(std::span<const record_shape> shapes,
                                                   const Estimator& estimator) {
    std::vector<std::uint64_t> costs(shapes.size());
    estimator.costs(shapes, costs);
    std::vector<cost_bucket> buckets;
    buckets.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      buckets.push_back({.cost = costs[i], .tokens = shapes[i].tokens, .records = 1});
    }
    return cost_distribution(std::move(buckets));
  }

  /// Of a length histogram, declared or from a corpus summary.
  ///
  /// Every record of a bucket counts as one of its mean length (off by at most 1/2048 above 4095
  /// tokens, exact below).
  /// @param limits   What becomes of infeasible records: those dropped are not counted, those
  ///                 truncated count as they are delivered.
  /// @param patches  Vision patches of all records together, spread in proportion to tokens.
  /// @throws invalid_option as the constructor.
  template <cost_estimator Estimator>
  [[nodiscard]] static cost_distribution of_lengths(std::span<const length_bucket> histogram,
                                                    const Estimator& estimator,
                                                    const feasibility& limits,
                                                    std::uint64_t patches = 0) {
    uint128 all_tokens = 0;
    for (const length_bucket& bucket : histogram) all_tokens += bucket.tokens;
    std::vector<record_shape> shapes;
    std::vector<cost_bucket> buckets;
    for (const length_bucket& bucket : histogram) {
      if (bucket.records == 0) continue;
      const std::uint64_t mean = bucket.tokens / bucket.records;
      if (!limits.keeps(mean)) continue;
      const uint128 share = all_tokens == 0 ? 0 : static_cast<uint128>(mean) * patches / all_tokens;
      shapes.push_back(limits.delivered({.tokens = mean,
                                         .loss_tokens = mean == 0 ? 0 : mean - 1,
                                         .patches = static_cast<std::uint64_t>(share)}));
      buckets.push_back({.cost = 0, .tokens = shapes.back().tokens, .records = bucket.records});
    }
    std::vector<std::uint64_t> costs(shapes.size());
    estimator.costs(shapes, costs);
    for (std::size_t i = 0; i < costs.size(); ++i) buckets[i].cost = costs[i];
    return cost_distribution(std::move(buckets));
  }

  /// Buckets by ascending cost, then tokens; none is empty.
  [[nodiscard]] std::span<const cost_bucket> buckets() const noexcept { return buckets_; }
  /// Number of records, at least 1.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Cost of all records.
  [[nodiscard]] uint128 total_cost() const noexcept { return ends_.back().cost; }
  /// Tokens of all records.
  [[nodiscard]] uint128 total_tokens() const noexcept { return ends_.back().tokens; }
  /// Cost of the dearest record.
  [[nodiscard]] std::uint64_t max_cost() const noexcept { return buckets_.back().cost; }

  /// Mean cost of `count` records, rounded down.
  [[nodiscard]] std::uint64_t mean_cost(std::uint64_t count) const noexcept {
    return scaled(total_cost(), count, records_);
  }
  /// Mean tokens of `count` records, rounded down.
  [[nodiscard]] std::uint64_t mean_tokens(std::uint64_t count) const noexcept {
    return scaled(total_tokens(), count, records_);
  }

  /// The record of a rank: 0 is the cheapest, `records() - 1` the dearest.
  /// @complexity  O(log buckets).
  [[nodiscard]] const cost_bucket& at_rank(std::uint64_t rank) const noexcept {
    LANEPACK_ASSERT(rank < records_);
    return buckets_[bucket_of_rank(rank)];
  }

  /// Cost of the `count` cheapest records.
  /// @complexity  O(log buckets).
  [[nodiscard]] uint128 cheapest_cost(std::uint64_t count) const noexcept {
    LANEPACK_ASSERT(count <= records_);
    if (count == 0) return 0;
    const std::size_t i = bucket_of_rank(count - 1);
    return ends_[i].cost - static_cast<uint128>(ends_[i].records - count) * buckets_[i].cost;
  }
  /// Tokens of the `count` cheapest records.
  /// @complexity  O(log buckets).
  [[nodiscard]] uint128 cheapest_tokens(std::uint64_t count) const noexcept {
    LANEPACK_ASSERT(count <= records_);
    if (count == 0) return 0;
    const std::size_t i = bucket_of_rank(count - 1);
    return ends_[i].tokens - static_cast<uint128>(ends_[i].records - count) * buckets_[i].tokens;
  }

  /// Number of records that cost at most `cost`.
  /// @complexity  O(log buckets).
  [[nodiscard]] std::uint64_t records_up_to(std::uint64_t cost) const noexcept {
    const auto end =
        std::upper_bound(buckets_.begin(), buckets_.end(), cost,
                         [](std::uint64_t value, const cost_bucket& b) { return value < b.cost; });
    const auto index = static_cast<std::size_t>(end - buckets_.begin());
    return index == 0 ? 0 : ends_[index - 1].records;
  }

 private:
  struct sums {
    std::uint64_t records = 0;
    uint128 cost = 0;
    uint128 tokens = 0;
  };

  [[nodiscard]] std::size_t bucket_of_rank(std::uint64_t rank) const noexcept {
    const auto at =
        std::upper_bound(ends_.begin(), ends_.end(), rank,
                         [](std::uint64_t value, const sums& end) { return value < end.records; });
    return static_cast<std::size_t>(at - ends_.begin());
  }

  [[nodiscard]] static std::uint64_t scaled(uint128 total, std::uint64_t count,
                                            std::uint64_t records) noexcept {
    return static_cast<std::uint64_t>(total / records * count + total % records * count / records);
  }

  std::vector<cost_bucket> buckets_;
  /// Sums over all buckets up to and with the one of the same index.
  std::vector<sums> ends_;
  std::uint64_t records_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
