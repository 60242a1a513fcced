#pragma once

/// @file
/// `length_histogram`: how many records have which length, in bounded memory.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The records of a corpus whose lengths lie in [first, last].
struct length_bucket {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  /// Records with such a length.
  std::uint64_t records = 0;
  /// Tokens of all of them.
  std::uint64_t tokens = 0;

  friend bool operator==(const length_bucket&, const length_bucket&) = default;
};

/// How many records have which length: every length below 4096 apart, longer ones in buckets whose
/// width is at most 1/2048 of their first length, with exact counts and token sums throughout.
/// @complexity  Memory 16 bytes a bucket up to the longest record: 350 KB at 2^20 tokens.
class length_histogram {
 public:
  /// Lengths below this are counted apart.
  static constexpr std::uint64_t exact_below = 4096;

  /// Counts `records` records of `length` tokens.
  void add(std::uint64_t length, std::uint64_t records = 1) {
    if (records == 0) return;
    const std::size_t index = index_of(length);
    if (index >= cells_.size()) cells_.resize(index + 1);
    const std::uint64_t tokens = saturating_mul(length, records);
    cells_[index].records = saturating_add(cells_[index].records, records);
    cells_[index].tokens = saturating_add(cells_[index].tokens, tokens);
    records_ = saturating_add(records_, records);
    tokens_ = saturating_add(tokens_, tokens);
  }

  /// Adds everything that `other` has counted.
  void merge(const length_histogram& other) {
    if (other.cells_.size() > cells_.size()) cells_.resize(other.cells_.size());
    for (std::size_t i = 0; i < other.cells_.size(); ++i) {
      cells_[i].records = saturating_add(cells_[i].records, other.cells_[i].records);
      cells_[i].tokens = saturating_add(cells_[i].tokens, other.cells_[i].tokens);
    }
    records_ = saturating_add(records_, other.records_);
    tokens_ = saturating_add(tokens_, other.tokens_);
  }

  /// Records counted.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Tokens of all of them.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }

  /// The buckets that hold a record, by rising length.
  [[nodiscard]] std::vector<length_bucket> buckets() const {
    std::vector<length_bucket> filled;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].records == 0) continue;
      filled.push_back({first_of(i), last_of(i), cells_[i].records, cells_[i].tokens});
    }
    return filled;
  }

  /// Length of the record number `rank`, from 0, of all records sorted by length: exact below
  /// `exact_below`, else the mean length of the record's bucket, rounded down.
  /// @pre         `rank < records()`.
  /// @complexity  O(buckets).
  [[nodiscard]] std::uint64_t length_at_rank(std::uint64_t rank) const {
    LANEPACK_ASSERT(rank < records_);
    for (const cell& counted : cells_) {
      if (rank < counted.records) return counted.tokens / counted.records;
      rank -= counted.records;
    }
    return 0;
  }

  /// The smallest length that at least `numerator / denominator` of the records do not exceed
  /// (0 for an empty histogram), as exact as `length_at_rank`: 1/2 is the lower median, 1/1 the
  /// longest.
  /// @pre  `numerator <= denominator`, `denominator > 0`.
  [[nodiscard]] std::uint64_t quantile(std::uint64_t numerator, std::uint64_t denominator) const {
    LANEPACK_ASSERT(denominator > 0 && numerator <= denominator);
    if (records_ == 0) return 0;
    const uint128 product = static_cast<uint128>(records_) * numerator;
    const auto covered = static_cast<std::uint64_t>((product + denominator - 1) / denominator);
    return length_at_rank(covered == 0 ? 0 : covered - 1);
  }

  /// First and last length of the bucket that `length` belongs to.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> bounds_of(
      std::uint64_t length) noexcept {
    const std::size_t index = index_of(length);
    return {first_of(index), last_of(index)};
  }

  /// Counts of one bucket, as `buckets` lists them; for restoring a saved histogram.
  /// @return  False, and nothing is added, where it is no bucket of this histogram or its token sum
  ///          cannot come from its records.
  [[nodiscard]] bool add_bucket(const length_bucket& bucket) {
    const std::size_t index = index_of(bucket.first);
    const uint128 count = bucket.records;
    if (first_of(index) != bucket.first || last_of(index) != bucket.last ||
        bucket.tokens < saturating_mul(bucket.first, bucket.records) ||
        static_cast<uint128>(bucket.tokens) > count * bucket.last) {
      return false;
    }
    if (index >= cells_.size()) cells_.resize(index + 1);
    cells_[index].records = saturating_add(cells_[index].records, bucket.records);
    cells_[index].tokens = saturating_add(cells_[index].tokens, bucket.tokens);
    records_ = saturating_add(records_, bucket.records);
    tokens_ = saturating_add(tokens_, bucket.tokens);
    return true;
  }

  friend bool operator==(const length_histogram& a, const length_histogram& b) {
    return a.records_ == b.records_ && a.tokens_ == b.tokens_ && a.buckets() == b.buckets();
  }

 private:
  static constexpr unsigned mantissa_bits = 11;
  static constexpr std::uint64_t mantissas = std::uint64_t{1} << mantissa_bits;

  struct cell {
    std::uint64_t records = 0;
    std::uint64_t tokens = 0;
  };

  static std::size_t index_of(std::uint64_t length) noexcept {
    if (length < 2 * mantissas) return static_cast<std::size_t>(length);
    const unsigned shift = static_cast<unsigned>(std::bit_width(length)) - 1 - mantissa_bits;
    return static_cast<std::size_t>(shift * mantissas + (length >> shift));
  }

  static std::uint64_t first_of(std::size_t index) noexcept {
    if (index < 2 * mantissas) return index;
    const std::uint64_t shift = index / mantissas - 1;
    return (index - shift * mantissas) << shift;
  }

  static std::uint64_t last_of(std::size_t index) noexcept {
    if (index < 2 * mantissas) return index;
    const std::uint64_t shift = index / mantissas - 1;
    return ((index - shift * mantissas) << shift) + ((std::uint64_t{1} << shift) - 1);
  }

  std::vector<cell> cells_;
  std::uint64_t records_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
