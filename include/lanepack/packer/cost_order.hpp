#pragma once

/// @file
/// Orders records by (cost, index) without comparing them: a radix sort over the bits that differ.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/cost/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The most records that are ordered or partitioned together: a key of 64 bits holds the number of
/// the record beside a cost of up to `max_record_cost`, and their sum fits 63 bits.
inline constexpr std::size_t max_ordered_records = std::size_t{1} << 23;

namespace detail {

inline constexpr unsigned order_index_bits = 23;
inline constexpr std::uint64_t order_index_mask = (std::uint64_t{1} << order_index_bits) - 1;
inline constexpr std::uint64_t order_cost_mask = (std::uint64_t{1} << (64 - order_index_bits)) - 1;

static_assert(max_ordered_records == order_index_mask + 1 && max_record_cost <= order_cost_mask);

/// Key that sorts costs in descending order and equal costs by ascending index.
[[nodiscard]] constexpr std::uint64_t descending_key(std::uint64_t cost,
                                                     std::uint64_t index) noexcept {
  return ((order_cost_mask - cost) << order_index_bits) | index;
}

/// Cost in a descending key.
[[nodiscard]] constexpr std::uint64_t descending_key_cost(std::uint64_t key) noexcept {
  return order_cost_mask - (key >> order_index_bits);
}

/// Index in a descending key.
[[nodiscard]] constexpr std::uint32_t descending_key_index(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key & order_index_mask);
}

/// Orders indices from costly to cheap, equal costs by index: for a few that a comparison suffices.
struct costlier {
  std::span<const std::uint64_t> costs;
  bool operator()(std::uint32_t a, std::uint32_t b) const noexcept {
    return costs[a] != costs[b] ? costs[a] > costs[b] : a < b;
  }
};

/// Sorts costs, largest first, equal ones by index.
///
/// @complexity  O(n x digits that differ); no allocation once the scratch has grown.
/// @thread_safety  None: one thread per object.
class cost_order {
 public:
  /// Keys of `costs` in descending order of cost; valid until the next call.
  /// @pre  At most `max_ordered_records` costs, each at most `max_record_cost`.
  std::span<std::uint64_t> sort_descending(std::span<const std::uint64_t> costs) {
    const std::size_t n = costs.size();
    LANEPACK_ASSERT(n <= max_ordered_records);
    if (keys_.size() < n) {
      keys_.resize(n);
      other_.resize(n);
    }
    std::uint64_t largest = 0;
    for (const std::uint64_t cost : costs) largest = std::max(largest, cost);
    // Where records are cut at a capacity many share the largest cost; they need no sorting.
    std::uint64_t* const sorted = keys_.data();
    std::uint64_t* const rest = other_.data();
    std::size_t equal = 0;
    std::uint64_t any = 0;
    std::uint64_t all = ~std::uint64_t{0};
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t key = descending_key(costs[i], i);
      const bool is_largest = costs[i] == largest;
      sorted[equal] = key;
      rest[i - equal] = key;
      any |= is_largest ? 0 : costs[i];
      all &= is_largest ? all : costs[i];
      equal += is_largest ? 1 : 0;
    }
    std::copy_n(rest, n - equal, sorted + equal);
    // Keys stand in index order and every pass is stable, so only the bits of the cost are sorted.
    if (n - equal <= small_size) {
      insertion_sort(sorted + equal, n - equal);
    } else if (n - equal <= medium_size) {
      sort_digits<8>(equal, n, any & ~all);
    } else {
      sort_digits<11>(equal, n, any & ~all);
    }
    return std::span(keys_).first(n);
  }

 private:
  static constexpr std::size_t small_size = 24;
  static constexpr std::size_t medium_size = 4096;

  static void insertion_sort(std::uint64_t* keys, std::size_t n) noexcept {
    for (std::size_t i = 1; i < n; ++i) {
      const std::uint64_t key = keys[i];
      std::size_t at = i;
      for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
      keys[at] = key;
    }
  }

  template <unsigned DigitBits>
  void sort_digits(std::size_t begin, std::size_t end, std::uint64_t differing) {
    constexpr std::size_t buckets = std::size_t{1} << DigitBits;
    constexpr std::uint64_t digit_mask = buckets - 1;
    constexpr std::size_t most_digits = (64 - order_index_bits + DigitBits - 1) / DigitBits;
    std::array<unsigned, most_digits> shifts;
    std::size_t digits = 0;
    for (; differing != 0; ++digits) {
      const auto low = static_cast<unsigned>(std::countr_zero(differing));
      differing &= ~(digit_mask << low);
      shifts[digits] = order_index_bits + low;
    }
    std::uint64_t* from = keys_.data() + begin;
    std::uint64_t* to = other_.data() + begin;
    const std::size_t n = end - begin;
    starts_.assign(digits * buckets, 0);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t* counts = starts_.data();
      for (std::size_t digit = 0; digit < digits; ++digit, counts += buckets) {
        ++counts[(from[i] >> shifts[digit]) & digit_mask];
      }
    }
    for (std::size_t digit = 0; digit < digits; ++digit, std::swap(from, to)) {
      const std::span<std::uint32_t> starts = std::span(starts_).subspan(digit * buckets, buckets);
      std::uint32_t sum = 0;
      for (std::uint32_t& start : starts) sum += std::exchange(start, sum);
      const unsigned shift = shifts[digit];
      for (std::size_t i = 0; i < n; ++i) {
        to[starts[(from[i] >> shift) & digit_mask]++] = from[i];
      }
    }
    if (from != keys_.data() + begin) std::copy_n(from, n, keys_.data() + begin);
  }

  /// Counts of every digit, one digit after the other.
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> other_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
