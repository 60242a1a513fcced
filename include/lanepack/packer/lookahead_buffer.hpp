#pragma once

/// @file
/// `lookahead_buffer`: the records that a policy with memory holds, in order of cost and of
/// arrival.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_order.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Number of ascending keys that are below `key`.
/// @complexity  O(log keys), without a branch that depends on them.
[[nodiscard]] inline std::size_t keys_below(std::span<const std::uint64_t> keys,
                                            std::uint64_t key) noexcept {
  const std::uint64_t* first = keys.data();
  for (std::size_t left = keys.size(); left > 0;) {
    const std::size_t half = (left + 1) / 2;
    // Compilers make a conditional move of this form.
    const std::uint64_t* const next = first + half;
    first = next[-1] < key ? next : first;
    left -= half;
  }
  return static_cast<std::size_t>(first - keys.data());
}

}  // namespace detail

/// A bounded number of records in two orders: by arrival, where a record has a `position`, and by
/// (cost, arrival), where it has a `place`. Both count from 0 and change with `insert` and
/// `take_picked` alone.
///
/// A step inserts its arrivals, picks the records of its pack one by one, and takes them out. What
/// is held is canonical: a buffer refilled from `list` has the same orders. Records stay in the
/// slot that they were written to until they are taken; only the slots' numbers move.
///
/// @thread_safety  Const members may be called by any number of threads.
class lookahead_buffer {
 public:
  /// @param capacity  Most records held, 1 to `max_ordered_records`; memory for them is allocated.
  /// @throws invalid_option if the capacity is outside that range.
  explicit lookahead_buffer(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0 || capacity > max_ordered_records) {
      detail::throw_invalid_option("capacity of the lookahead buffer", std::to_string(capacity),
                                   "1 to " + std::to_string(max_ordered_records));
    }
    records_.resize(capacity);
    slots_.resize(capacity);
    std::iota(slots_.begin(), slots_.end(), 0U);
    by_cost_.reserve(capacity);
    picked_.assign(capacity / word_bits + 1, 0);
    leaving_.assign(capacity, 0);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return by_cost_.size(); }
  [[nodiscard]] bool empty() const noexcept { return by_cost_.empty(); }

  /// Record at a position: 0 is the oldest.
  [[nodiscard]] const candidate& at(std::size_t position) const noexcept {
    LANEPACK_ASSERT(position < size());
    return records_[slots_[position]];
  }
  /// Sets `out` to the records in order of arrival.
  void list(std::vector<candidate>& out) const {
    out.resize(size());
    for (std::size_t position = 0; position < size(); ++position) out[position] = at(position);
  }

  /// Record at a place: 0 is the cheapest.
  [[nodiscard]] const candidate& at_place(std::size_t place) const noexcept {
    return records_[slot(place)];
  }
  /// Cost of the record at a place.
  [[nodiscard]] std::uint64_t cost(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return by_cost_[place] >> detail::order_index_bits;
  }
  /// Place of the record at a position.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t place(std::size_t position) const noexcept {
    const candidate& record = at(position);
    const std::size_t first = detail::keys_below(by_cost_, key(record.cost, 0));
    if (slot(first) == slots_[position]) return first;
    // Records of the same cost stand in the order of arrival.
    const auto begin = by_cost_.begin();
    const auto found = std::partition_point(
        begin + static_cast<std::ptrdiff_t>(first),
        begin + static_cast<std::ptrdiff_t>(count_below(record.cost + 1)), [&](std::uint64_t key) {
          return records_[key & detail::order_index_mask].arrival < record.arrival;
        });
    return static_cast<std::size_t>(found - begin);
  }

  /// Number of records that cost less than `cost`: the first place that does not.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t count_below(std::uint64_t cost) const noexcept {
    return detail::keys_below(by_cost_, key(std::min(cost, detail::order_cost_mask), 0));
  }

  /// Sum of the costs of the records at the first `count` places.
  /// @complexity  O(count) or O(size - count), whichever is less.
  [[nodiscard]] std::uint64_t sum_of_first(std::size_t count) const noexcept {
    LANEPACK_ASSERT(count <= size());
    const std::span<const std::uint64_t> keys = by_cost_;
    return count <= size() / 2 ? sum_of(keys.first(count)) : cost_ - sum_of(keys.subspan(count));
  }
  /// Sum of the costs of the `count` cheapest records that are not picked.
  /// @pre  `count` such records are held.
  /// @complexity  O(count + records picked).
  [[nodiscard]] std::uint64_t cheapest_sum(std::size_t count) const noexcept {
    const std::size_t end = end_of_cheapest(count);
    std::uint64_t sum = sum_of_first(end);
    if (end != count) {
      for_each_picked([&](std::size_t place) { sum -= place < end ? cost(place) : 0; });
    }
    return sum;
  }
  /// One more than the last place of the `count` cheapest records that are not picked; 0 for none.
  /// @pre  `count` such records are held.
  /// @complexity  O(count + records picked).
  [[nodiscard]] std::size_t end_of_cheapest(std::size_t count) const noexcept {
    LANEPACK_ASSERT(count + picked_records_ <= size());
    std::size_t end = count;
    for (;;) {
      const std::size_t next = count + picked_before(end);
      if (next == end) return end;
      end = next;
    }
  }

  /// Adds arrivals.
  /// @param arrivals  In arrival order, all later than those held; costs at most `max_record_cost`.
  /// @throws state_error if they are not in order, would exceed the capacity, or records are picked
  ///         and not taken; the buffer is then unchanged.
  /// @complexity  O(size + arrivals log arrivals).
  void insert(std::span<const candidate> arrivals) {
    if (picked_records_ != 0) {
      detail::throw_state_error("lookahead buffer: found " + std::to_string(picked_records_) +
                                " picked records at an insertion, expected none");
    }
    if (arrivals.size() > capacity_ - size()) {
      detail::throw_state_error("lookahead buffer: found " +
                                std::to_string(size() + arrivals.size()) +
                                " records, expected at most " + std::to_string(capacity_));
    }
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const candidate* const before =
          i > 0 ? &arrivals[i - 1] : (empty() ? nullptr : &at(size() - 1));
      if (before != nullptr && before->arrival >= arrivals[i].arrival) {
        detail::throw_state_error("lookahead buffer: found arrival " +
                                  std::to_string(arrivals[i].arrival) + " after " +
                                  std::to_string(before->arrival) + ", expected a later one");
      }
    }
    arrived_.clear();
    for (const candidate& record : arrivals) {
      const std::size_t position = size() + arrived_.size();
      arrived_.push_back(key(record.cost, position));
      records_[slots_[position]] = record;
    }
    cost_ += sum_of(arrived_);
    std::sort(arrived_.begin(), arrived_.end());
    merge_arrived();
  }

  /// Marks the record at a place, which must not be marked, as part of the next pack.
  void pick(std::size_t place) noexcept {
    LANEPACK_ASSERT(!is_picked(place));
    picked_[place / word_bits] |= bit(place);
    picked_cost_ += cost(place);
    ++picked_records_;
  }

  /// Takes a mark back.
  void unpick(std::size_t place) noexcept {
    LANEPACK_ASSERT(is_picked(place));
    picked_[place / word_bits] &= ~bit(place);
    picked_cost_ -= cost(place);
    --picked_records_;
  }

  [[nodiscard]] bool is_picked(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return (picked_[place / word_bits] & bit(place)) != 0;
  }
  /// The first place at or after `place` that is not picked; `size()` or more if there is none.
  [[nodiscard]] std::size_t unpicked_from(std::size_t place) const noexcept {
    std::size_t word = place / word_bits;
    std::uint64_t unpicked = ~picked_[word] & (~std::uint64_t{0} << (place % word_bits));
    // No place from `size()` on is picked.
    while (unpicked == 0 && ++word < picked_.size()) unpicked = ~picked_[word];
    return word * word_bits + static_cast<std::size_t>(std::countr_zero(unpicked));
  }
  /// One more than the last place before `end` that is not picked; 0 if there is none.
  [[nodiscard]] std::size_t end_of_unpicked_before(std::size_t end) const noexcept {
    LANEPACK_ASSERT(end <= size());
    std::size_t word = end / word_bits;
    std::uint64_t unpicked = ~picked_[word] & (bit(end) - 1);
    while (unpicked == 0 && word > 0) unpicked = ~picked_[--word];
    return word * word_bits + static_cast<std::size_t>(std::bit_width(unpicked));
  }
  /// Number of records that are picked.
  [[nodiscard]] std::size_t picked_records() const noexcept { return picked_records_; }
  /// Calls `visit` with the place of every picked record, ascending.
  /// @complexity  O(records picked + capacity / 64).
  template <class Visit>
  void for_each_picked(Visit&& visit) const {
    for (std::size_t word = 0; word < picked_.size(); ++word) {
      for (std::uint64_t bits = picked_[word]; bits != 0; bits &= bits - 1) {
        visit(word * word_bits + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }
  /// Sum of the costs of the picked records.
  [[nodiscard]] std::uint64_t picked_cost() const noexcept { return picked_cost_; }

  /// Appends the picked records to `out` as one pack, in arrival order, and removes them.
  /// @complexity  O(size).
  void take_picked(pack_list& out) {
    places_.clear();
    for_each_picked([this](std::size_t place) {
      places_.push_back(static_cast<std::uint32_t>(place));
      leaving_[slot(place)] = 1;
    });
    // Without a branch on what leaves: the last slot of `taken_` is written over.
    taken_.resize(picked_records_ + 1);
    std::size_t taken = 0;
    for (std::size_t position = 0; position < size(); ++position) {
      const std::uint32_t slot = slots_[position];
      slots_[position - taken] = taken_[taken] = slot;
      taken += leaving_[slot];
    }
    for (std::size_t i = 0; i < taken; ++i) {
      out.add(records_[taken_[i]]);
      leaving_[taken_[i]] = 0;
      slots_[size() - taken + i] = taken_[i];
    }
    out.close();
    cost_ -= picked_cost_;
    remove_places();
    unpick_all();
  }

  /// Empties the buffer and keeps its memory.
  void clear() noexcept {
    by_cost_.clear();
    cost_ = 0;
    unpick_all();
  }

 private:
  static constexpr std::size_t word_bits = 64;

  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t place) noexcept {
    return std::uint64_t{1} << (place % word_bits);
  }
  [[nodiscard]] static constexpr std::uint64_t key(std::uint64_t cost,
                                                   std::uint64_t slot) noexcept {
    return (cost << detail::order_index_bits) | slot;
  }
  [[nodiscard]] std::size_t slot(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return static_cast<std::size_t>(by_cost_[place] & detail::order_index_mask);
  }

  [[nodiscard]] static std::uint64_t sum_of(std::span<const std::uint64_t> keys) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t key : keys) sum += key >> detail::order_index_bits;
    return sum;
  }

  /// Merges the sorted keys of arrivals, which hold their positions, with those held.
  void merge_arrived() {
    const std::size_t before = by_cost_.size();
    count_up_to_arrived();
    by_cost_.resize(before + arrived_.size());
    const auto begin = by_cost_.begin();
    std::size_t end = before;
    for (std::size_t left = arrived_.size(); left > 0; --left) {
      const std::size_t above = places_[left - 1];
      std::copy_backward(begin + static_cast<std::ptrdiff_t>(above),
                         begin + static_cast<std::ptrdiff_t>(end),
                         begin + static_cast<std::ptrdiff_t>(end + left));
      const std::uint64_t arrived = arrived_[left - 1];
      by_cost_[above + left - 1] =
          key(arrived >> detail::order_index_bits, slots_[arrived & detail::order_index_mask]);
      end = above;
    }
  }

  /// Sets `places_` to the number of records that cost at most as much as each arrival; those that
  /// cost the same arrived before. All are searched together, so that none waits for another.
  void count_up_to_arrived() {
    places_.assign(arrived_.size(), 0);
    for (std::size_t left = by_cost_.size(); left > 0;) {
      const auto half = static_cast<std::uint32_t>((left + 1) / 2);
      for (std::size_t i = 0; i < arrived_.size(); ++i) {
        const std::uint64_t last = arrived_[i] | detail::order_index_mask;
        places_[i] += half * static_cast<std::uint32_t>(by_cost_[places_[i] + half - 1] <= last);
      }
      left -= half;
    }
  }

  /// Removes the keys at `places_`.
  void remove_places() {
    if (places_.empty()) return;
    auto to = by_cost_.begin() + places_.front();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto next = i + 1 < places_.size() ? by_cost_.begin() + places_[i + 1] : by_cost_.end();
      to = std::copy(by_cost_.begin() + places_[i] + 1, next, to);
    }
    by_cost_.resize(by_cost_.size() - places_.size());
  }

  void unpick_all() noexcept {
    std::fill(picked_.begin(), picked_.end(), 0);
    picked_records_ = 0;
    picked_cost_ = 0;
  }

  /// Number of records picked at the first `count` places.
  [[nodiscard]] std::size_t picked_before(std::size_t count) const noexcept {
    if (picked_records_ == 0) return 0;
    std::size_t picked = 0;
    std::size_t word = 0;
    for (; word < count / word_bits; ++word) {
      picked += static_cast<std::size_t>(std::popcount(picked_[word]));
    }
    return picked + static_cast<std::size_t>(std::popcount(picked_[word] & (bit(count) - 1)));
  }

  std::size_t capacity_;
  /// By slot.
  std::vector<candidate> records_;
  /// The slot at every position, then those that are free.
  std::vector<std::uint32_t> slots_;
  /// Keys of (cost, slot) by place.
  std::vector<std::uint64_t> by_cost_;
  /// Of all records.
  std::uint64_t cost_ = 0;
  /// One bit a place.
  std::vector<std::uint64_t> picked_;
  std::size_t picked_records_ = 0;
  std::uint64_t picked_cost_ = 0;
  // Scratch.
  std::vector<std::uint64_t> arrived_;
  std::vector<std::uint32_t> places_;
  /// By slot, 0 between calls.
  std::vector<std::uint8_t> leaving_;
  std::vector<std::uint32_t> taken_;
};

}  // namespace lanepack::inline LANEPACK_ABI
