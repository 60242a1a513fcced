#pragma once

/// @file
/// `lookahead_buffer`: the records that a policy with memory holds, in order of cost and of
/// arrival.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
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
/// A step inserts its arrivals, picks the records of its pack one by one, and takes them out.
/// Records stay where they were written until they are taken; what moves are numbers of 8 bytes.
/// What is held is canonical: a buffer refilled from `list` has the same orders.
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
    free_.reserve(capacity);
    by_arrival_.reserve(capacity);
    by_cost_.reserve(capacity);
    picked_.assign(capacity / word_bits + 1, 0);
    leaving_ = picked_;
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return by_arrival_.size(); }
  [[nodiscard]] bool empty() const noexcept { return by_arrival_.empty(); }

  /// Record at a position: 0 is the oldest.
  [[nodiscard]] const candidate& at(std::size_t position) const noexcept {
    LANEPACK_ASSERT(position < size());
    return records_[static_cast<std::size_t>(by_arrival_[position] & detail::order_index_mask)];
  }
  /// Sets `out` to the records in order of arrival.
  void list(std::vector<candidate>& out) const {
    out.resize(size());
    for (std::size_t position = 0; position < size(); ++position) out[position] = at(position);
  }

  /// Record at a place: 0 is the cheapest.
  /// @complexity  O(log size).
  [[nodiscard]] const candidate& at_place(std::size_t place) const noexcept {
    return at(position(place));
  }
  /// Cost of the record at a place.
  [[nodiscard]] std::uint64_t cost(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return by_cost_[place] >> detail::order_index_bits;
  }
  /// True where the record at one place arrived before that at another.
  [[nodiscard]] bool is_older(std::size_t place, std::size_t other) const noexcept {
    return number(place) < number(other);
  }
  /// Position of the record at a place.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t position(std::size_t place) const noexcept {
    return position_of(number(place));
  }
  /// Place of the record at a position.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t place(std::size_t position) const noexcept {
    return below(key(at(position).cost, by_arrival_[position] >> detail::order_index_bits));
  }

  /// Number of records that cost less than `cost`: the first place that does not.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t count_below(std::uint64_t cost) const noexcept {
    return below(key(std::min(cost, detail::order_cost_mask), 0));
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
    if (arrivals.size() > max_ordered_records - next_number_) renumber();
    arrived_.clear();
    for (const candidate& record : arrivals) {
      arrived_.push_back(key(record.cost, next_number_));
      by_arrival_.push_back((next_number_++ << detail::order_index_bits) | store(record));
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
  template <class Visit>
  void for_each_picked(Visit&& visit) const {
    for_each_bit(picked_, visit);
  }
  /// Sum of the costs of the picked records.
  [[nodiscard]] std::uint64_t picked_cost() const noexcept { return picked_cost_; }

  /// Appends the picked records to `out` as one pack, in arrival order, and removes them.
  /// @complexity  O(size).
  void take_picked(pack_list& out) {
    places_.clear();
    for_each_picked([this](std::size_t place) {
      places_.push_back(static_cast<std::uint32_t>(place));
      const std::size_t leaving = position(place);
      leaving_[leaving / word_bits] |= bit(leaving);
    });
    positions_.clear();
    for_each_bit(leaving_, [&](std::size_t position) {
      positions_.push_back(static_cast<std::uint32_t>(position));
      const std::uint64_t slot = by_arrival_[position] & detail::order_index_mask;
      out.add(records_[static_cast<std::size_t>(slot)]);
      free_.push_back(static_cast<std::uint32_t>(slot));
    });
    out.close();
    cost_ -= picked_cost_;
    for (const std::uint32_t position : positions_) leaving_[position / word_bits] = 0;
    remove(by_arrival_, positions_);
    remove(by_cost_, places_);
    unpick_all();
  }

  /// Empties the buffer and keeps its memory.
  void clear() noexcept {
    by_arrival_.clear();
    free_.clear();
    stored_ = 0;
    next_number_ = 0;
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
                                                   std::uint64_t number) noexcept {
    return (cost << detail::order_index_bits) | number;
  }
  [[nodiscard]] std::uint64_t number(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return by_cost_[place] & detail::order_index_mask;
  }

  [[nodiscard]] static std::uint64_t sum_of(std::span<const std::uint64_t> keys) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t key : keys) sum += key >> detail::order_index_bits;
    return sum;
  }

  /// Writes a record where there is room; returns its slot.
  std::uint32_t store(const candidate& record) {
    std::uint32_t slot = stored_;
    if (free_.empty()) {
      ++stored_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    records_[slot] = record;
    return slot;
  }

  /// Merges the sorted keys of arrivals with those held.
  void merge_arrived() {
    const std::size_t before = by_cost_.size();
    by_cost_.resize(before + arrived_.size());
    const auto begin = by_cost_.begin();
    const auto old = std::span<const std::uint64_t>(by_cost_).first(before);
    auto end = begin + static_cast<std::ptrdiff_t>(before);
    for (std::size_t left = arrived_.size(); left > 0; --left) {
      const std::uint64_t arrival = arrived_[left - 1];
      // From `end` on all keys are above the arrival, wherever they stand by now.
      const auto above = begin + static_cast<std::ptrdiff_t>(detail::keys_below(old, arrival));
      const auto to = std::copy_backward(above, end, end + static_cast<std::ptrdiff_t>(left));
      *(to - 1) = arrival;
      end = above;
    }
  }

  /// Numbers the records held from 0, so that there are numbers for later ones.
  void renumber() {
    for (std::uint64_t& key : by_cost_) {
      const std::uint64_t number = key & detail::order_index_mask;
      key = key - number + position_of(number);
    }
    for (std::size_t position = 0; position < size(); ++position) {
      by_arrival_[position] &= detail::order_index_mask;
      by_arrival_[position] |= position << detail::order_index_bits;
    }
    next_number_ = size();
  }

  /// Removes the elements at ascending places.
  static void remove(std::vector<std::uint64_t>& from, std::span<const std::uint32_t> places) {
    if (places.empty()) return;
    auto to = from.begin() + places.front();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto next = i + 1 < places.size() ? from.begin() + places[i + 1] : from.end();
      to = std::copy(from.begin() + places[i] + 1, next, to);
    }
    from.resize(from.size() - places.size());
  }

  template <class Visit>
  static void for_each_bit(std::span<const std::uint64_t> words, Visit&& visit) {
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (std::uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        visit(word * word_bits + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
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

  /// Number of keys below one.
  [[nodiscard]] std::size_t below(std::uint64_t key) const noexcept {
    return detail::keys_below(by_cost_, key);
  }
  [[nodiscard]] std::size_t position_of(std::uint64_t number) const noexcept {
    return detail::keys_below(by_arrival_, number << detail::order_index_bits);
  }

  std::size_t capacity_;
  /// In slots; `free_` are those of the first `stored_` that are not in use.
  std::vector<candidate> records_;
  std::vector<std::uint32_t> free_;
  std::uint32_t stored_ = 0;
  /// (number, slot) by position; numbers ascend, with gaps where records were taken.
  std::vector<std::uint64_t> by_arrival_;
  std::uint64_t next_number_ = 0;
  /// Keys of (cost, number) by place; numbers follow arrivals, so their order is that of (cost,
  /// arrival).
  std::vector<std::uint64_t> by_cost_;
  /// Of all records.
  std::uint64_t cost_ = 0;
  /// One bit a place.
  std::vector<std::uint64_t> picked_;
  std::size_t picked_records_ = 0;
  std::uint64_t picked_cost_ = 0;
  // Scratch.
  std::vector<std::uint64_t> arrived_;
  std::vector<std::uint64_t> leaving_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace lanepack::inline LANEPACK_ABI
