#pragma once

/// @file
/// How a lane fills a slot of the calendar from its lookahead buffer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/calendar_caps.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/lookahead_buffer.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// When a record has to leave.
struct displacement_rule {
  /// Steps between the step at which a record was admitted and the one that it leaves in, at most.
  std::uint64_t max_steps = 512;
  /// Smallest number of records that any later pack has.
  std::uint32_t min_records_per_pack = 1;
};

namespace detail {

/// Marks the records of one pack.
///
/// Records that have to leave go first, then heavy ones that the slot is for, then the oldest of
/// the others; swaps bring the sum close to what the lane should emit, never above the cap.
///
/// Displacement: let r be the steps that a record still has, q its place in the order of arrival, b
/// the records of this pack and c the fewest of any later one. `pick_due` keeps, for every record
/// held at the start of a step, q < b + c r: it marks the oldest records up to the largest q + 1 -
/// c r, of which there are at most b by the same inequality; afterwards q < c r, which is q < c + c
/// (r - 1) one step later. Arrivals have r = max_steps and q below the lookahead's records, hence
/// satisfy it where the lookahead's records are at most c (max_steps + 1). With r = 0 the
/// inequality says that the record is among the b oldest, and it is marked. So no record is older
/// than `max_steps`.
///
/// @thread_safety  None: one thread per object.
/// @determinism    Integers only; ties by (cost, arrival).
class calendar_filler {
 public:
  /// Marks `count` records of the buffer, which has at least as many and none of them marked.
  /// @param reserve  Work that the lane may be short of before it emits less than its share.
  void fill(lookahead_buffer& buffer, const calendar_slot& slot, const calendar_caps& caps,
            const calendar_tuning& tuning, const displacement_rule& rule, step_index step,
            std::uint32_t count, std::int64_t reserve) {
    start(count);
    pick_due(buffer, rule, step);
    const std::size_t ordinary = buffer.count_below(caps.base() / 2 + 1);
    const std::uint64_t goal_by_work = work_goal(buffer, slot, reserve);
    pick_overdue(buffer, slot, tuning, step);
    pick_heavy(buffer, slot, ordinary);
    const std::uint64_t goal = std::min(
        goal_by_work, std::max(buffer.picked_cost() + buffer.cheapest_sum(left_), slot.light_fill));
    pick_oldest(buffer, slot, ordinary);
    take_cheapest(buffer);
    approach(buffer, slot.cap, goal, caps.pack_cost() / 10'000);
  }

  /// Marks only records that have to leave in this step; returns their number.
  std::uint32_t pick_due(lookahead_buffer& buffer, const displacement_rule& rule, step_index step) {
    const std::span<const candidate> held = buffer.held();
    std::size_t due = 0;
    for (std::size_t q = 0; q < held.size(); ++q) {
      const std::uint64_t age = step - held[q].admitted;
      LANEPACK_ASSERT(age <= rule.max_steps);
      const std::uint64_t served = (rule.max_steps - age) * rule.min_records_per_pack;
      // Later records have at least as many steps left.
      if (served >= held.size()) break;
      if (q + 1 > served) due = std::max(due, static_cast<std::size_t>(q + 1 - served));
    }
    LANEPACK_ASSERT(due <= left_);
    due = std::min<std::size_t>(due, left_);
    for (std::size_t q = 0; q < due; ++q) {
      pick(buffer, buffer.place(q));
      fixed_.push_back(static_cast<std::uint32_t>(buffer.place(q)));
    }
    due_ = static_cast<std::uint32_t>(due);
    return due_;
  }

  /// Starts a pack of `count` records without filling it.
  void start(std::uint32_t count) {
    fixed_.clear();
    due_ = 0;
    left_ = count;
  }

  /// Completes a pack that was started, close to a goal, without heed to a slot.
  void complete(lookahead_buffer& buffer, std::uint64_t goal, const calendar_caps& caps) {
    take_cheapest(buffer);
    approach(buffer, goal, goal, caps.pack_cost() / 10'000);
  }

  /// Records that had to leave in the pack that was marked last.
  [[nodiscard]] std::uint32_t due_records() const noexcept { return due_; }

 private:
  static constexpr int max_swaps = 24;
  /// Oldest records that are offered to a pack before it takes the cheapest.
  static constexpr std::size_t max_offers = 64;

  void pick(lookahead_buffer& buffer, std::size_t place) {
    buffer.pick(place);
    --left_;
  }

  /// Sum of the cheapest records that would complete the pack if the record at `place` were in it.
  [[nodiscard]] std::uint64_t cost_beside(lookahead_buffer& buffer, std::size_t place) const {
    const std::size_t rest = left_ - 1;
    if (place >= rest + buffer.picked().size()) return buffer.cheapest_sum(rest);
    buffer.pick(place);
    const std::uint64_t sum = buffer.cheapest_sum(rest);
    buffer.unpick(place);
    return sum;
  }

  /// What the lane should emit: its share and a tenth of what it is behind.
  [[nodiscard]] std::uint64_t work_goal(const lookahead_buffer& buffer, const calendar_slot& slot,
                                        std::int64_t reserve) const {
    std::uint64_t counted = buffer.count_below(slot.counted_cost + 1);
    std::uint64_t sum = 0;
    const auto picked = buffer.picked();
    for (const std::uint32_t place : picked) {
      if (place < counted) sum += buffer.cost(place);
    }
    const auto counted_picked = static_cast<std::uint64_t>(
        std::lower_bound(picked.begin(), picked.end(), counted) - picked.begin());
    sum += buffer.cheapest_sum(counted - counted_picked);
    const auto behind = static_cast<std::int64_t>(sum) -
                        static_cast<std::int64_t>(counted * slot.counted_mean) + reserve;
    const std::int64_t goal = static_cast<std::int64_t>(slot.share) + behind / 10;
    if (goal <= 0) return 0;
    return std::min(slot.cap, static_cast<std::uint64_t>(goal));
  }

  /// Records above the overdue age that fit, oldest first.
  void pick_overdue(lookahead_buffer& buffer, const calendar_slot& slot,
                    const calendar_tuning& tuning, step_index step) {
    const std::span<const candidate> held = buffer.held();
    for (std::size_t q = 0; q < held.size() && left_ > 0; ++q) {
      if (step - held[q].admitted < tuning.overdue_steps) break;
      const std::size_t place = buffer.place(q);
      if (buffer.is_picked(place)) continue;
      if (buffer.picked_cost() + held[q].cost + cost_beside(buffer, place) > slot.cap) continue;
      pick(buffer, place);
      fixed_.push_back(static_cast<std::uint32_t>(place));
    }
  }

  /// Heavy records that the slot is for, the heaviest that fits first; among those that cost nearly
  /// the same the oldest.
  void pick_heavy(lookahead_buffer& buffer, const calendar_slot& slot, std::size_t ordinary) {
    if (ordinary == buffer.size()) return;
    const std::uint64_t ordinary_mean = mean_of_cheapest(buffer, ordinary);
    bool first = buffer.picked().empty();
    while (left_ > 0) {
      std::uint64_t beside = buffer.cheapest_sum(left_ - 1);
      // Without this, two heavy records share a pack and burn the light ones that the next heavy
      // slot needs.
      if (!first) beside = std::max(beside, (left_ - 1) * ordinary_mean);
      const std::uint64_t taken = buffer.picked_cost() + beside;
      if (taken >= slot.cap) return;
      std::size_t place = buffer.count_below(slot.cap - taken + 1);
      while (place > ordinary && buffer.is_picked(place - 1)) --place;
      if (place <= ordinary) return;
      --place;
      if (buffer.cost(place) < slot.least_heavy) return;
      const std::uint64_t alike = buffer.cost(place) - buffer.cost(place) / 10;
      std::size_t oldest = place;
      for (std::size_t other = place; other > ordinary && buffer.cost(other - 1) >= alike;) {
        --other;
        if (!buffer.is_picked(other) && buffer.position(other) < buffer.position(oldest)) {
          oldest = other;
        }
      }
      pick(buffer, oldest);
      first = false;
    }
  }

  [[nodiscard]] static std::uint64_t mean_of_cheapest(const lookahead_buffer& buffer,
                                                      std::size_t count) {
    std::uint64_t sum = 0;
    std::size_t records = count;
    for (const std::uint32_t place : buffer.picked()) {
      if (place < count) {
        sum += buffer.cost(place);
        --records;
      }
    }
    sum += buffer.cheapest_sum(records);
    return count == 0 ? 0 : sum / count;
  }

  void take_cheapest(lookahead_buffer& buffer) {
    for (std::size_t place = 0; left_ > 0; ++place) {
      if (!buffer.is_picked(place)) pick(buffer, place);
    }
  }

  void pick_oldest(lookahead_buffer& buffer, const calendar_slot& slot, std::size_t ordinary) {
    std::size_t offers = 0;
    for (std::size_t q = 0; q < buffer.size() && left_ > 0 && offers < max_offers; ++q) {
      const std::size_t place = buffer.place(q);
      if (place >= ordinary || buffer.is_picked(place)) continue;
      ++offers;
      const std::uint64_t least = buffer.picked_cost() + buffer.cheapest_sum(left_);
      const std::uint64_t with =
          buffer.picked_cost() + buffer.cost(place) + cost_beside(buffer, place);
      // A record that took all the room would leave the cheapest to complete the pack, and a lane
      // without cheap records cannot stay below a cap: four measured best.
      const std::uint64_t room = slot.cap > least ? slot.cap - least : 0;
      if (with - least > (left_ > 1 ? room / 4 : room)) continue;
      pick(buffer, place);
    }
  }

  /// Swaps a marked record for another while that brings the sum closer to the goal.
  void approach(lookahead_buffer& buffer, std::uint64_t cap, std::uint64_t goal,
                std::uint64_t tolerance) {
    const auto distance = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; };
    for (int swaps = 0; swaps < max_swaps; ++swaps) {
      const std::uint64_t sum = buffer.picked_cost();
      std::uint64_t best = distance(sum, goal);
      if (sum <= cap && best <= tolerance) return;
      std::size_t out = 0;
      std::size_t in = 0;
      bool found = false;
      const auto offer = [&](std::size_t from, std::size_t to) {
        const std::uint64_t after = sum - buffer.cost(from) + buffer.cost(to);
        if (after > cap && after >= sum) return;
        const std::uint64_t rest = distance(after, goal);
        if (rest >= best) return;
        best = rest;
        out = from;
        in = to;
        found = true;
      };
      for (const std::uint32_t from : buffer.picked()) {
        if (std::find(fixed_.begin(), fixed_.end(), from) != fixed_.end()) continue;
        const std::uint64_t up = buffer.cost(from) + goal;
        const std::uint64_t wanted = up > sum ? up - sum : 0;
        const std::size_t split = buffer.count_below(wanted);
        std::size_t above = split;
        while (above < buffer.size() && buffer.is_picked(above)) ++above;
        if (above < buffer.size()) offer(from, above);
        std::size_t below = split;
        while (below > 0 && buffer.is_picked(below - 1)) --below;
        if (below > 0) offer(from, below - 1);
      }
      if (!found) return;
      buffer.unpick(out);
      buffer.pick(in);
    }
  }

  std::uint32_t left_ = 0;
  std::uint32_t due_ = 0;
  /// Places of records that no swap may take out.
  std::vector<std::uint32_t> fixed_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
