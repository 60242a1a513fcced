#pragma once

/// @file
/// Karmarkar-Karp differencing over several parts, with equal counts and without.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/cost_order.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Splits items over parts by the largest differencing method of N. Karmarkar and R. M. Karp, "The
/// differencing method of set partitioning" (1982), in the form in which verl uses it: of the
/// partial solutions the two with the largest spread are joined, heavy parts to light ones, until
/// one is left.
///
/// Parts stand from heavy to light (ties: more items, then the higher first item), items ascend.
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only; depends on the arguments alone.
class karmarkar_karp {
 public:
  /// Equal counts: the items in ascending order of cost, `parts` neighbours at a time, are the
  /// first partial solutions.
  /// @param costs  At most `max_ordered_records`.
  /// @throws state_error if the number of items is no multiple of `parts`.
  /// @complexity  O(n log parts) time, O(n) memory.
  void partition_equal(std::span<const std::uint64_t> costs, std::size_t parts,
                       micro_batch_list& out) {
    if (parts == 0 || costs.size() % parts != 0) {
      detail::throw_state_error("Karmarkar-Karp: found " + std::to_string(costs.size()) +
                                " items, expected a multiple of " + std::to_string(parts));
    }
    start(costs, parts, parts, out);
  }

  /// Counts are free; a part may stay empty.
  /// @param costs  At most `max_ordered_records`.
  /// @complexity  O(n parts log parts) time, O(n parts) memory: for few items.
  void partition(std::span<const std::uint64_t> costs, std::size_t parts, micro_batch_list& out) {
    if (parts == 0) detail::throw_state_error("Karmarkar-Karp: found 0 parts, expected 1 or more");
    start(costs, parts, 1, out);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Items of a part, linked through `next_`.
  struct item_set {
    std::uint64_t sum = 0;
    std::uint32_t count = 0;
    std::uint32_t first = none;
    std::uint32_t last = none;

    /// No two sets with items are equal: their first items differ.
    friend bool operator<(const item_set& a, const item_set& b) noexcept {
      if (a.sum != b.sum) return a.sum < b.sum;
      if (a.count != b.count) return a.count < b.count;
      return a.count != 0 && a.first < b.first;
    }
  };

  /// A partial solution: `parts_` sets from heavy to light.
  [[nodiscard]] std::span<item_set> solution(std::uint32_t index) {
    return std::span(sets_).subspan(index * parts_, parts_);
  }

  /// Puts on top of a heap the solution with the largest spread.
  [[nodiscard]] bool joins_later(std::uint32_t a, std::uint32_t b) {
    const std::span<const item_set> left = solution(a);
    const std::span<const item_set> right = solution(b);
    const std::uint64_t spread_left = left.front().sum - left.back().sum;
    const std::uint64_t spread_right = right.front().sum - right.back().sum;
    if (spread_left != spread_right) return spread_left < spread_right;
    return left.front() < right.front();
  }

  static void sort_sets(std::span<item_set> sets) {
    std::sort(sets.begin(), sets.end(), [](const item_set& a, const item_set& b) { return b < a; });
  }

  void start(std::span<const std::uint64_t> costs, std::size_t parts, std::size_t items_of_solution,
             micro_batch_list& out) {
    parts_ = parts;
    const std::span<const std::uint64_t> keys = order_.sort_descending(costs);
    const std::size_t n = keys.size();
    const std::size_t solutions = n / items_of_solution;
    next_.assign(n, none);
    sets_.assign(solutions * parts, {});
    // Ascending by (cost, index): runs of equal costs from the end, each in its own order.
    std::size_t placed = 0;
    for (std::size_t end = n; end > 0;) {
      const std::uint64_t cost = detail::descending_key_cost(keys[end - 1]);
      std::size_t begin = end - 1;
      while (begin > 0 && detail::descending_key_cost(keys[begin - 1]) == cost) --begin;
      for (std::size_t i = begin; i < end; ++i, ++placed) {
        const std::uint32_t item = detail::descending_key_index(keys[i]);
        sets_[placed / items_of_solution * parts + placed % items_of_solution] = {cost, 1, item,
                                                                                  item};
      }
      end = begin;
    }
    heap_.clear();
    for (std::uint32_t i = 0; i < solutions; ++i) {
      sort_sets(solution(i));
      heap_.push_back(i);
    }
    const auto later = [this](std::uint32_t a, std::uint32_t b) { return joins_later(a, b); };
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (heap_.size() > 1) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const std::uint32_t kept = heap_.back();
      heap_.pop_back();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      join(solution(kept), solution(heap_.back()));
      heap_.back() = kept;
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
    emit(n, out);
  }

  void join(std::span<item_set> kept, std::span<const item_set> other) {
    for (std::size_t i = 0; i < parts_; ++i) {
      const item_set& added = other[parts_ - 1 - i];
      if (added.count == 0) continue;
      item_set& set = kept[i];
      if (set.count == 0) {
        set = added;
      } else {
        next_[set.last] = added.first;
        set.last = added.last;
        set.sum += added.sum;
        set.count += added.count;
      }
    }
    sort_sets(kept);
  }

  void emit(std::size_t n, micro_batch_list& out) {
    out.clear();
    if (n == 0) {
      for (std::size_t part = 0; part < parts_; ++part) out.close();
      return;
    }
    for (const item_set& set : solution(heap_.front())) {
      members_.clear();
      for (std::uint32_t item = set.first; item != none; item = next_[item]) {
        members_.push_back(item);
      }
      std::sort(members_.begin(), members_.end());
      for (const std::uint32_t item : members_) out.add(item);
      out.close();
    }
  }

  std::size_t parts_ = 1;
  detail::cost_order order_;
  std::vector<item_set> sets_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> heap_;
  std::vector<std::uint32_t> members_;
};

}  // namespace lanepack::inline LANEPACK_ABI
