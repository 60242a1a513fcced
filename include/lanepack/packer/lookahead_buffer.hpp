#pragma once

/// @file
/// `lookahead_buffer`: the records that a policy with memory holds, in order of cost and of
/// arrival.

#include <algorithm>
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

/// A bounded number of records in two orders: by arrival, where a record has a `position`, and by
/// (cost, arrival), where it has a `place`. Both count from 0 and change with `insert` and
/// `take_picked` alone.
///
/// A step inserts its arrivals, picks the records of its pack one by one, and takes them out. What
/// is stored is canonical: `held()` and a buffer refilled from it are equal.
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
    held_.reserve(capacity);
    by_cost_.reserve(capacity);
    place_of_.reserve(capacity);
    picked_.reserve(capacity);
    position_after_.reserve(capacity);
    sums_.reserve(capacity + 1);
    index();
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return held_.size(); }
  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }

  /// Records by position: the oldest first.
  [[nodiscard]] std::span<const candidate> held() const noexcept { return held_; }

  /// Record at a place: 0 is the cheapest.
  [[nodiscard]] const candidate& at_place(std::size_t place) const noexcept {
    return held_[position(place)];
  }
  /// Cost of the record at a place.
  [[nodiscard]] std::uint64_t cost(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return by_cost_[place] >> detail::order_index_bits;
  }
  /// Position of the record at a place.
  [[nodiscard]] std::size_t position(std::size_t place) const noexcept {
    LANEPACK_ASSERT(place < size());
    return static_cast<std::size_t>(by_cost_[place] & detail::order_index_mask);
  }
  /// Place of the record at a position.
  [[nodiscard]] std::size_t place(std::size_t position) const noexcept {
    LANEPACK_ASSERT(position < size());
    return place_of_[position];
  }

  /// Number of records that cost less than `cost`: the first place that does not.
  /// @complexity  O(log size).
  [[nodiscard]] std::size_t count_below(std::uint64_t cost) const noexcept {
    return static_cast<std::size_t>(
        std::partition_point(
            by_cost_.begin(), by_cost_.end(),
            [cost](std::uint64_t key) { return (key >> detail::order_index_bits) < cost; }) -
        by_cost_.begin());
  }

  /// Sum of the costs of the `count` cheapest records that are not picked.
  /// @pre  `count` such records are held.
  /// @complexity  O(records picked).
  [[nodiscard]] std::uint64_t cheapest_sum(std::size_t count) const noexcept {
    LANEPACK_ASSERT(count + picked_places_.size() <= size());
    std::size_t end = count;
    std::uint64_t picked = 0;
    for (const std::uint32_t place : picked_places_) {
      if (place >= end) break;
      ++end;
      picked += cost(place);
    }
    return sums_[end] - picked;
  }

  /// Adds arrivals.
  /// @param arrivals  In arrival order, all later than those held; costs at most `max_record_cost`.
  /// @throws state_error if they are not in order, would exceed the capacity, or records are picked
  ///         and not taken; the buffer is then unchanged.
  /// @complexity  O(size + arrivals log arrivals).
  void insert(std::span<const candidate> arrivals) {
    if (!picked_places_.empty()) {
      detail::throw_state_error("lookahead buffer: found " + std::to_string(picked_places_.size()) +
                                " picked records at an insertion, expected none");
    }
    if (arrivals.size() > capacity_ - size()) {
      detail::throw_state_error("lookahead buffer: found " +
                                std::to_string(size() + arrivals.size()) +
                                " records, expected at most " + std::to_string(capacity_));
    }
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const candidate* const before =
          i > 0 ? &arrivals[i - 1] : (held_.empty() ? nullptr : &held_.back());
      if (before != nullptr && before->arrival >= arrivals[i].arrival) {
        detail::throw_state_error("lookahead buffer: found arrival " +
                                  std::to_string(arrivals[i].arrival) + " after " +
                                  std::to_string(before->arrival) + ", expected a later one");
      }
    }
    const std::size_t before = size();
    for (const candidate& record : arrivals) {
      by_cost_.push_back((record.cost << detail::order_index_bits) | held_.size());
      held_.push_back(record);
    }
    const auto middle = by_cost_.begin() + static_cast<std::ptrdiff_t>(before);
    std::sort(middle, by_cost_.end());
    merge(before);
    index();
  }

  /// Marks the record at a place, which must not be marked, as part of the next pack.
  /// @complexity  O(records picked).
  void pick(std::size_t place) {
    LANEPACK_ASSERT(!is_picked(place));
    picked_[position(place)] = 1;
    const auto key = static_cast<std::uint32_t>(place);
    picked_places_.insert(std::lower_bound(picked_places_.begin(), picked_places_.end(), key), key);
    picked_cost_ += cost(place);
  }

  /// Takes a mark back.
  /// @complexity  O(records picked).
  void unpick(std::size_t place) {
    LANEPACK_ASSERT(is_picked(place));
    picked_[position(place)] = 0;
    const auto key = static_cast<std::uint32_t>(place);
    picked_places_.erase(std::lower_bound(picked_places_.begin(), picked_places_.end(), key));
    picked_cost_ -= cost(place);
  }

  [[nodiscard]] bool is_picked(std::size_t place) const noexcept {
    return picked_[position(place)] != 0;
  }
  /// Places of the picked records, ascending.
  [[nodiscard]] std::span<const std::uint32_t> picked() const noexcept { return picked_places_; }
  /// Sum of the costs of the picked records.
  [[nodiscard]] std::uint64_t picked_cost() const noexcept { return picked_cost_; }

  /// Appends the picked records to `out` as one pack, in arrival order, and removes them.
  /// @complexity  O(size).
  void take_picked(pack_list& out) {
    position_after_.resize(size());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      position_after_[i] = static_cast<std::uint32_t>(kept);
      if (picked_[i] != 0) {
        out.add(held_[i]);
      } else {
        if (kept != i) held_[kept] = held_[i];
        ++kept;
      }
    }
    out.close();
    std::size_t to = 0;
    for (const std::uint64_t key : by_cost_) {
      const std::uint64_t from = key & detail::order_index_mask;
      if (picked_[from] != 0) continue;
      by_cost_[to++] = (key & ~detail::order_index_mask) | position_after_[from];
    }
    held_.resize(kept);
    by_cost_.resize(kept);
    picked_places_.clear();
    picked_cost_ = 0;
    index();
  }

  /// Empties the buffer and keeps its memory.
  void clear() noexcept {
    held_.clear();
    by_cost_.clear();
    picked_places_.clear();
    picked_cost_ = 0;
    index();
  }

 private:
  /// Merges the sorted keys before `middle` with those after it.
  void merge(std::size_t middle) {
    arrived_.assign(by_cost_.begin() + static_cast<std::ptrdiff_t>(middle), by_cost_.end());
    std::size_t from = middle;
    std::size_t to = by_cost_.size();
    for (std::size_t left = arrived_.size(); left > 0;) {
      const bool old_is_larger = from > 0 && by_cost_[from - 1] > arrived_[left - 1];
      by_cost_[--to] = old_is_larger ? by_cost_[--from] : arrived_[--left];
    }
  }

  /// Recomputes what follows from `held_` and `by_cost_`; capacity is reserved.
  void index() noexcept {
    place_of_.resize(held_.size());
    picked_.assign(held_.size(), 0);
    sums_.resize(held_.size() + 1);
    std::uint64_t sum = 0;
    for (std::size_t place = 0; place < held_.size(); ++place) {
      sums_[place] = sum;
      sum += by_cost_[place] >> detail::order_index_bits;
      place_of_[by_cost_[place] & detail::order_index_mask] = static_cast<std::uint32_t>(place);
    }
    sums_[held_.size()] = sum;
  }

  std::size_t capacity_;
  std::vector<candidate> held_;
  /// Keys of (cost, position); positions follow arrivals, so their order is that of (cost,
  /// arrival).
  std::vector<std::uint64_t> by_cost_;
  std::vector<std::uint64_t> arrived_;
  std::vector<std::uint32_t> place_of_;
  /// sums_[m] is the cost of the m cheapest records.
  std::vector<std::uint64_t> sums_;
  /// By position.
  std::vector<std::uint8_t> picked_;
  std::vector<std::uint32_t> picked_places_;
  std::uint64_t picked_cost_ = 0;
  std::vector<std::uint32_t> position_after_;
};

}  // namespace lanepack::inline LANEPACK_ABI
