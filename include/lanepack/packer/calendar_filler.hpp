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
    const std::uint64_t heavy = caps.base() / 2 + 1;
    const std::uint64_t goal_by_work = work_goal(buffer, slot, reserve);
    pick_overdue(buffer, slot, tuning, step);
    pick_heavy(buffer, slot, buffer.count_below(heavy));
    const std::uint64_t goal = std::min(goal_by_work, std::max(completed_cost_, slot.light_fill));
    pick_oldest(buffer, slot, heavy);
    take_cheapest(buffer);
    approach(buffer, slot.cap, goal, caps.pack_cost() / 10'000);
  }

  /// Marks only records that have to leave in this step; returns their number.
  std::uint32_t pick_due(lookahead_buffer& buffer, const displacement_rule& rule, step_index step) {
    std::size_t due = 0;
    for (std::size_t q = 0; q < buffer.size(); ++q) {
      const std::uint64_t age = step - buffer.at(q).admitted;
      LANEPACK_ASSERT(age <= rule.max_steps);
      const std::uint64_t served = (rule.max_steps - age) * rule.min_records_per_pack;
      // Later records have at least as many steps left.
      if (served >= buffer.size()) break;
      if (q + 1 > served) due = std::max(due, static_cast<std::size_t>(q + 1 - served));
    }
    LANEPACK_ASSERT(due <= left_);
    due = std::min<std::size_t>(due, left_);
    for (std::size_t q = 0; q < due; ++q) {
      fixed_.push_back(static_cast<std::uint32_t>(buffer.place(q)));
      buffer.pick(fixed_.back());
    }
    due_ = static_cast<std::uint32_t>(due);
    examined_ = due;
    left_ -= due_;
    complete_with_cheapest(buffer);
    return due_;
  }

  /// Starts a pack of `count` records without filling it.
  void start(std::uint32_t count) {
    fixed_.clear();
    due_ = 0;
    examined_ = 0;
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

  /// Sums up what the pack costs if the cheapest records complete it.
  void complete_with_cheapest(const lookahead_buffer& buffer) {
    cheapest_end_ = buffer.end_of_cheapest(left_);
    completed_cost_ = buffer.picked_cost() + buffer.cheapest_sum(left_);
  }

  /// Cost of the dearest of the cheapest records that complete the pack.
  /// @pre  The pack is not full.
  [[nodiscard]] std::uint64_t dearest_of_cheapest(const lookahead_buffer& buffer) const {
    return buffer.cost(cheapest_end_ - 1);
  }

  void pick(lookahead_buffer& buffer, std::size_t place) {
    buffer.pick(place);
    --left_;
    if (place + 1 >= cheapest_end_) replace_dearest_of_cheapest(buffer, buffer.cost(place));
  }

  /// Accounts for a record of the pack that is the dearest of the cheapest, or none of them.
  void replace_dearest_of_cheapest(const lookahead_buffer& buffer, std::uint64_t cost) {
    completed_cost_ += cost - dearest_of_cheapest(buffer);
    cheapest_end_ = buffer.end_of_unpicked_before(cheapest_end_ - 1);
  }

  /// What the lane should emit: its share and a tenth of what it is behind.
  [[nodiscard]] std::uint64_t work_goal(const lookahead_buffer& buffer, const calendar_slot& slot,
                                        std::int64_t reserve) const {
    const std::uint64_t counted = buffer.count_below(slot.counted_cost + 1);
    const std::uint64_t sum = buffer.sum_of_first(counted);
    const auto behind = static_cast<std::int64_t>(sum) -
                        static_cast<std::int64_t>(counted * slot.counted_mean) + reserve;
    const std::int64_t goal = static_cast<std::int64_t>(slot.share) + behind / 10;
    if (goal <= 0) return 0;
    return std::min(slot.cap, static_cast<std::uint64_t>(goal));
  }

  /// Records above the overdue age that fit, oldest first.
  void pick_overdue(lookahead_buffer& buffer, const calendar_slot& slot,
                    const calendar_tuning& tuning, step_index step) {
    for (std::size_t q = 0; q < buffer.size() && left_ > 0; ++q) {
      const candidate& record = buffer.at(q);
      if (step - record.admitted < tuning.overdue_steps) break;
      const std::size_t place = buffer.place(q);
      examined_ = q + 1;
      if (buffer.is_picked(place)) continue;
      const std::uint64_t dearest = dearest_of_cheapest(buffer);
      const std::uint64_t more = record.cost > dearest ? record.cost - dearest : 0;
      if (completed_cost_ + more > slot.cap) continue;
      pick(buffer, place);
      fixed_.push_back(static_cast<std::uint32_t>(place));
    }
  }

  /// Heavy records that the slot is for, the heaviest that fits first; among those that cost nearly
  /// the same the oldest.
  void pick_heavy(lookahead_buffer& buffer, const calendar_slot& slot, std::size_t ordinary) {
    if (ordinary == buffer.size()) return;
    const std::uint64_t ordinary_mean =
        ordinary == 0 ? 0 : buffer.sum_of_first(ordinary) / ordinary;
    bool first = buffer.picked_records() == 0;
    while (left_ > 0) {
      std::uint64_t beside = completed_cost_ - buffer.picked_cost() - dearest_of_cheapest(buffer);
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
        if (!buffer.is_picked(other) &&
            buffer.at_place(other).arrival < buffer.at_place(oldest).arrival) {
          oldest = other;
        }
      }
      pick(buffer, oldest);
      first = false;
    }
  }

  void take_cheapest(lookahead_buffer& buffer) {
    for (std::size_t place = 0; left_ > 0; --left_) {
      place = buffer.unpicked_from(place);
      buffer.pick(place);
    }
  }

  void pick_oldest(lookahead_buffer& buffer, const calendar_slot& slot, std::uint64_t heavy) {
    // Places are searched together at the end: nothing waits for one on the way.
    accepted_.clear();
    std::size_t offers = 0;
    for (std::size_t q = 0; q < buffer.size() && left_ > 0 && offers < max_offers; ++q) {
      const std::uint64_t cost = buffer.at(q).cost;
      if (cost >= heavy || (q < examined_ && buffer.is_picked(buffer.place(q)))) continue;
      ++offers;
      // A record that took all the room would leave the cheapest to complete the pack, and a lane
      // without cheap records cannot stay below a cap: four measured best.
      const std::uint64_t room = slot.cap > completed_cost_ ? slot.cap - completed_cost_ : 0;
      const std::uint64_t dearest = dearest_of_cheapest(buffer);
      if (cost > dearest + (left_ > 1 ? room / 4 : room)) continue;
      if (cost > dearest) {
        --left_;
        replace_dearest_of_cheapest(buffer, cost);
        accepted_.push_back(q);
      } else {
        pick(buffer, buffer.place(q));
      }
    }
    for (const std::size_t q : accepted_) buffer.pick(buffer.place(q));
  }

  /// Swaps a marked record for another while that brings the sum closer to the goal.
  void approach(lookahead_buffer& buffer, std::uint64_t cap, std::uint64_t goal,
                std::uint64_t tolerance) {
    const auto distance = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; };
    exchangeable_.clear();
    buffer.for_each_picked([this](std::size_t place) {
      if (std::find(fixed_.begin(), fixed_.end(), place) == fixed_.end()) {
        exchangeable_.push_back(static_cast<std::uint32_t>(place));
      }
    });
    for (int swaps = 0; swaps < max_swaps; ++swaps) {
      const std::uint64_t sum = buffer.picked_cost();
      std::uint64_t best = distance(sum, goal);
      if (sum <= cap && best <= tolerance) return;
      constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
      std::size_t out = none;
      std::size_t in = none;
      // Conditional moves: which offer is the best so far is hard to predict.
      const auto offer = [&](std::size_t i, std::uint64_t after, std::size_t place) {
        const std::uint64_t rest = distance(after, goal);
        const bool better = (rest < best) & ((after <= cap) | (after < sum));
        best = better ? rest : best;
        out = better ? i : out;
        in = better ? place : in;
      };
      // What a dearer record is exchanged for is dearer too, so that `split` moves up.
      std::size_t split = 0;
      std::size_t above = 0;
      for (std::size_t i = 0; i < exchangeable_.size(); ++i) {
        const std::uint64_t others = sum - buffer.cost(exchangeable_[i]);
        const std::uint64_t wanted = goal > others ? goal - others : 0;
        const bool moved = i == 0 || buffer.cost(split) < wanted;
        if (moved) {
          split = buffer.count_below(wanted);
          above = buffer.unpicked_from(split);
        }
        if (above < buffer.size()) offer(i, others + buffer.cost(above), above);
        if (moved) {
          const std::size_t end_below = buffer.end_of_unpicked_before(split);
          if (end_below > 0) offer(i, others + buffer.cost(end_below - 1), end_below - 1);
        }
        // The record below brings less for the dearer ones, and there is none above.
        if (above >= buffer.size()) break;
      }
      if (in == none) return;
      buffer.unpick(exchangeable_[out]);
      buffer.pick(in);
      exchange(out, static_cast<std::uint32_t>(in));
    }
  }

  /// Puts `place` into the ascending list of places that may be exchanged, for the one at `at`.
  void exchange(std::size_t at, std::uint32_t place) {
    for (; at > 0 && exchangeable_[at - 1] > place; --at) {
      exchangeable_[at] = exchangeable_[at - 1];
    }
    for (; at + 1 < exchangeable_.size() && exchangeable_[at + 1] < place; ++at) {
      exchangeable_[at] = exchangeable_[at + 1];
    }
    exchangeable_[at] = place;
  }

  std::uint32_t left_ = 0;
  std::uint32_t due_ = 0;
  /// Oldest records among which all that are `fixed_` are.
  std::size_t examined_ = 0;
  /// The cheapest records that complete the pack are those before this place that are not picked,
  /// with the last one.
  std::size_t cheapest_end_ = 0;
  /// What the pack costs together with them.
  std::uint64_t completed_cost_ = 0;
  /// Places of records that no swap may take out.
  std::vector<std::uint32_t> fixed_;
  /// Positions of records that `pick_oldest` accepts.
  std::vector<std::size_t> accepted_;
  /// Places of records that are not fixed, ascending.
  std::vector<std::uint32_t> exchangeable_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
