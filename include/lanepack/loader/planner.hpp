#pragma once

/// @file
/// The plan of a run: for each step the packs of the lanes asked for, without reading payload.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/step_counts.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/sampler/schedule.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// One pack of a step.
struct pack_plan {
  /// Number of the pack in its step: the lane that emitted it, or the pack's number where one
  /// policy plans all lanes.
  lane_index lane = 0;
  /// Sum of its records' costs.
  std::uint64_t cost = 0;
  /// Its records in the order in which they are delivered.
  std::span<const candidate> records;
};

/// The packs of one step that were asked for, by ascending lane.
struct step_plan {
  step_index step = 0;
  std::span<const pack_plan> packs;
  /// Known where one policy plans all lanes: the same on every rank, without an all-reduce.
  std::optional<global_step_counts> global = std::nullopt;
};

/// What a planner has done since it was made.
struct planner_statistics {
  /// Cost of all records that were admitted to a buffer and of those that left in a pack.
  std::uint64_t admitted_cost = 0;
  std::uint64_t emitted_cost = 0;
  std::uint64_t emitted_records = 0;
  /// Records of a pack that only fill up a last step (rules `pad` and `finite`).
  std::uint64_t filling_records = 0;
  /// Records that the limits left out on the way, of a corpus without an index; with one they are
  /// counted beforehand.
  std::uint64_t left_out_records = 0;
  /// Largest number of steps between a record's admission and its pack's step.
  std::uint64_t max_displacement_steps = 0;
  /// Largest number of records that one lane had admitted and not emitted at the same time.
  std::uint64_t peak_buffered_records = 0;
  /// What policies that plan by a distribution of costs report, summed over lanes. Where
  /// `policy.expected_cost` is not 0, `admitted_cost` over it says by how much the distribution
  /// missed the stream; a few in a hundred do no harm, more cost efficiency.
  policy_statistics policy;
  /// Of a mixture, the records planned so far by part: the shares that were achieved. Else empty.
  std::vector<part_share> parts;
};

/// Plans the packs of some lanes step by step.
///
/// The packs of a lane do not depend on which other lanes the planner was asked for, so ranks agree
/// without a message.
///
/// @thread_safety  None: one thread per object.
/// @determinism    A pure function of the feed, the policy and the step.
class planner {
 public:
  /// @param feed    Shared by all planners of a process.
  /// @param policy  Copied for every lane, or once where it plans all lanes.
  /// @param lanes   Lanes wanted, ascending, each below L.
  planner(std::shared_ptr<const candidate_feed> feed, const any_policy& policy,
          std::span<const lane_index> lanes)
      : feed_(std::move(feed)),
        lanes_(lanes.begin(), lanes.end()),
        prototype_(policy),
        scope_(policy.scope()),
        window_steps_(policy.window_steps()),
        buffered_steps_(policy.buffered_steps()),
        remembers_(buffered_steps_ != 0 || feed_->unindexed()) {
    LANEPACK_ASSERT(scope_ == policy_scope::lane || !feed_->unindexed());
    if (const mixed_records* mixture = feed_->sampler().mixture()) {
      statistics_.parts.resize(mixture->mixture().parts());
    }
    restart();
  }

  /// Makes the first step that is not below `step` the next one, at most the end of the run.
  /// @complexity  O(1) for a policy without memory: the window that holds `step` is formed again
  ///              when it is asked for. A policy with memory lives through the steps before when
  ///              the next one is asked for.
  void start_at(step_index step) {
    const std::optional<std::uint64_t> steps = feed_->sampler().schedule().steps();
    const step_index start = steps ? std::min(step, *steps) : step;
    if (start < formed_end_ || !remembers_) restart();
    next_ = remembers_ ? formed_end_ : start;
    start_ = start;
  }

  /// Lives through the steps that come before the next one that is wanted, at most `most` windows
  /// of them, so that a caller can do something else in between.
  /// @return  True if none is left; a policy without memory has none.
  bool pass_over(std::uint64_t most) {
    const step_schedule& schedule = feed_->sampler().schedule();
    step_index wanted = schedule.first_not_skipped(std::max(next_, start_));
    if (const auto steps = schedule.steps()) wanted = std::min(wanted, *steps);
    if (!remembers_) {
      next_ = wanted;
      return true;
    }
    for (; next_ < wanted; next_ = std::min(wanted, formed_end_)) {
      if (next_ < formed_end_) continue;
      if (most-- == 0) return false;
      form_window(next_);
    }
    return true;
  }

  /// Makes `state.next_step` the next one, without living through the steps before.
  /// @throws  state_error  The state has no fragment of one of the lanes, the policy refuses it, or
  ///          its steps contradict each other (`planned_until` only where there is a mixture). The
  ///          planner is then as new. That it belongs to the same run is for the caller to check.
  /// @complexity  One shape and one cost for every record held; then what the window costs that
  ///              holds the step.
  void restore(const run_state& state) {
    restart();
    if (remembers_) {
      if (state.fragments_step > state.next_step ||
          state.next_step - state.fragments_step >= window_steps_) {
        detail::throw_state_error("found fragments before step " +
                                  std::to_string(state.fragments_step) +
                                  " in a state before step " + std::to_string(state.next_step));
      }
      try {
        for (std::size_t i = 0; i < streams_.size(); ++i) {
          restore(streams_[i], i, state);
        }
      } catch (...) {
        restart();
        throw;
      }
      formed_first_ = formed_end_ = state.fragments_step;
      if (state.next_step != state.fragments_step) form_window(state.fragments_step);
    }
    next_ = start_ = state.next_step;
    const step_index until = planned_until();
    if (feed_->sampler().mixture() != nullptr && state.planned_until != until) {
      restart();
      detail::throw_state_error("found planned_until " + std::to_string(state.planned_until) +
                                " in a state before step " + std::to_string(state.next_step) +
                                ", expected " + std::to_string(until));
    }
  }

  /// Where the lanes stand after what was planned or passed over; `run` is left empty.
  /// @complexity  O(records held).
  [[nodiscard]] run_state state() const {
    run_state state;
    state.next_step = state.fragments_step = next_;
    state.planned_until = planned_until();
    if (!remembers_) return state;
    state.fragments_wanted = scope_ == policy_scope::lane ? feed_->sampler().schedule().lanes() : 1;
    if (next_ == formed_end_) {
      state.fragments = fragments();
    } else {
      state.fragments_step = formed_first_;
      state.fragments = before_window_;
    }
    return state;
  }

  /// The next step that is not skipped, or nullopt at the end of the run. The spans stay valid
  /// until the next call.
  /// @complexity  Amortised: one permutation, one shape, one cost and the policy's work a record.
  [[nodiscard]] std::optional<step_plan> next() {
    const step_schedule& schedule = feed_->sampler().schedule();
    const std::optional<std::uint64_t> steps = schedule.steps();
    static_cast<void>(pass_over(std::numeric_limits<std::uint64_t>::max()));
    if (steps && next_ >= *steps) return std::nullopt;
    if (next_ < formed_first_ || next_ >= formed_end_) form_window(next_);
    packs_.clear();
    const step_index offset = next_ - formed_first_;
    if (scope_ == policy_scope::lane) {
      for (std::size_t i = 0; i < lanes_.size(); ++i) {
        add_pack(lanes_[i], streams_[i].packs[static_cast<std::size_t>(offset)]);
      }
    } else {
      const std::size_t first = static_cast<std::size_t>(offset) * schedule.lanes();
      for (const lane_index lane : lanes_) add_pack(lane, streams_[0].packs[first + lane]);
    }
    step_plan plan{.step = next_++, .packs = packs_, .global = std::nullopt};
    if (scope_ == policy_scope::all_lanes) plan.global = global_[static_cast<std::size_t>(offset)];
    return plan;
  }

  /// Number of the step that `next` looks at first.
  [[nodiscard]] step_index next_step() const noexcept { return std::max(next_, start_); }

  [[nodiscard]] const planner_statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] const candidate_feed& feed() const noexcept { return *feed_; }
  [[nodiscard]] std::span<const lane_index> lanes() const noexcept { return lanes_; }

 private:
  struct stream {
    any_policy policy;
    pack_list packs;
    /// Number of the arrival that comes next.
    std::uint64_t admitted = 0;
    /// Arrivals handed to the policy so far.
    std::uint64_t records = 0;
  };

  [[nodiscard]] lane_index lane_of(std::size_t index) const noexcept {
    return scope_ == policy_scope::lane ? lanes_[index] : 0;
  }

  [[nodiscard]] std::vector<lane_fragment> fragments() const {
    std::vector<lane_fragment> result(streams_.size());
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      lane_fragment& fragment = result[i];
      fragment.lane = lane_of(i);
      fragment.admitted = streams_[i].admitted;
      fragment.policy = streams_[i].policy.save().words;
      const std::span<const candidate> held = streams_[i].policy.held();
      fragment.held.reserve(held.size());
      for (const candidate& record : held) {
        fragment.held.push_back({.arrival = record.arrival, .admitted = record.admitted});
      }
    }
    return result;
  }

  void restore(stream& to, std::size_t index, const run_state& state) {
    const lane_index lane = lane_of(index);
    const auto found = std::lower_bound(
        state.fragments.begin(), state.fragments.end(), lane,
        [](const lane_fragment& fragment, lane_index value) { return fragment.lane < value; });
    if (found == state.fragments.end() || found->lane != lane) {
      detail::throw_state_error(
          "found no state of lanes " +
          detail::lanes_missing(state, 0, std::max(state.fragments_wanted, lane + 1)) +
          ", expected that of every lane; merge the states of all ranks");
    }
    std::vector<candidate> held(found->held.size());
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const held_record& record = found->held[i];
      if (record.arrival < end || record.arrival >= found->admitted ||
          record.admitted >= state.fragments_step) {
        detail::throw_state_error("found arrival " + std::to_string(record.arrival) +
                                  ", admitted at step " + std::to_string(record.admitted) +
                                  ", in the state of lane " + std::to_string(lane) +
                                  ", expected one from " + std::to_string(end) + " on, below " +
                                  std::to_string(found->admitted) + ", admitted before step " +
                                  std::to_string(state.fragments_step));
      }
      end = record.arrival + 1;
      held[i].arrival = record.arrival;
    }
    fetch_held(lane, held);
    for (std::size_t i = 0; i < held.size(); ++i) held[i].admitted = found->held[i].admitted;
    to.policy.restore({found->policy}, held);
    to.admitted = found->admitted;
    to.records = records_before(held.size(), found->admitted, lane, state.fragments_step);
  }

  /// Arrivals of the stream before a step; every step takes as many as its packs have records.
  [[nodiscard]] std::uint64_t arrivals_before(step_index step) const {
    const step_schedule& schedule = feed_->sampler().schedule();
    return schedule.lane_records_before(step) *
           (scope_ == policy_scope::lane ? 1 : schedule.lanes());
  }

  /// Arrivals `first` and following of the stream that a policy of that lane sees.
  void fetch(lane_index lane, std::uint64_t first, std::span<candidate> out) {
    if (scope_ == policy_scope::lane) {
      feed_->lane(lane, first, out, scratch_);
    } else {
      feed_->stream(first, out, scratch_);
    }
  }

  /// Writes the arrivals with the numbers that `held` has.
  void fetch_held(lane_index lane, std::span<candidate> held) {
    if (scope_ == policy_scope::lane) {
      feed_->lane_records(lane, held, scratch_);
    } else {
      for (candidate& record : held) feed_->stream(record.arrival, {&record, 1}, scratch_);
    }
  }

  /// Arrivals handed to a policy before a step: what has left in the steps before, and what is
  /// held.
  /// @throws state_error  `held` or `admitted` contradict that.
  [[nodiscard]] std::uint64_t records_before(std::size_t held, std::uint64_t admitted,
                                             lane_index lane, step_index step) const {
    const std::uint64_t emitted = arrivals_before(step);
    std::uint64_t records = admitted;
    if (feed_->unindexed()) {
      // Arrivals are numbered with gaps there, so the steps say how many they are.
      records = step == 0 ? 0 : arrivals_before(step + buffered_steps_);
    }
    if (records < emitted || records - emitted != held) {
      detail::throw_state_error("found " + std::to_string(held) + " records held and " +
                                std::to_string(records) + " admitted in the state of lane " +
                                std::to_string(lane) + ", expected " + std::to_string(emitted) +
                                " emitted records between them");
    }
    return records;
  }

  /// The first step of which nothing has been admitted before `next_`: a function of that step, so
  /// that every rank says the same. Nothing may change later in a run that drains.
  [[nodiscard]] step_index planned_until() const {
    const step_schedule& schedule = feed_->sampler().schedule();
    if (next_ == 0 || schedule.drains()) return next_;
    if (buffered_steps_ == 0) {
      const run_of_steps run = schedule.run(next_);
      const step_index into = (next_ - run.first_step) % window_steps_;
      if (into == 0) return next_;
      const step_index end = next_ - into + window_steps_;
      return run.end_step ? std::min(end, *run.end_step) : end;
    }
    return formed_end_ + buffered_steps_;
  }

  void restart() {
    const std::size_t count = scope_ == policy_scope::lane ? lanes_.size() : 1;
    streams_.clear();
    streams_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) streams_.push_back({prototype_, {}, 0, 0});
    formed_first_ = formed_end_ = 0;
    next_ = start_ = 0;
  }

  void form_window(step_index step) {
    const step_schedule& schedule = feed_->sampler().schedule();
    const run_of_steps run = schedule.run(step);
    const step_index first =
        remembers_ ? step
                   : run.first_step + (step - run.first_step) / window_steps_ * window_steps_;
    std::uint64_t steps = window_steps_;
    if (run.end_step) steps = std::min(steps, *run.end_step - first);
    const std::uint32_t packs_per_step = scope_ == policy_scope::lane ? 1 : schedule.lanes();
    // A window of one step is never left in the middle.
    if (remembers_ && steps > 1) before_window_ = fragments();

    step_window window{.first_step = first,
                       .steps = static_cast<std::uint32_t>(steps),
                       .records_per_pack = run.records_per_pack,
                       .packs_per_step = packs_per_step,
                       .steps_to_drain = std::nullopt,
                       .lane = 0};
    step_index admit_end = first + steps + buffered_steps_;
    if (run.epoch_end_step) {
      window.steps_to_drain = *run.epoch_end_step - first;
      admit_end = std::min(admit_end, *run.epoch_end_step);
    }
    const std::uint64_t admitted_end = arrivals_before(admit_end);
    const std::uint64_t taken = arrivals_before(first);

    for (std::size_t i = 0; i < streams_.size(); ++i) {
      stream& from = streams_[i];
      if (!remembers_) from.admitted = from.records = taken;
      arrivals_.resize(static_cast<std::size_t>(admitted_end - from.records));
      window.lane = lane_of(i);
      fetch(window.lane, from.admitted, arrivals_);
      for (candidate& record : arrivals_) {
        record.admitted = first;
        statistics_.admitted_cost += record.cost;
      }
      statistics_.peak_buffered_records =
          std::max(statistics_.peak_buffered_records, (admitted_end - taken) / packs_per_step);
      from.packs.clear();
      const policy_statistics before = from.policy.statistics();
      from.policy.form(window, arrivals_, from.packs);
      add_change(before, from.policy.statistics());
      from.records = admitted_end;
      if (!arrivals_.empty()) from.admitted = arrivals_.back().arrival + 1;
      LANEPACK_ASSERT(from.packs.size() == steps * packs_per_step);
      account(from.packs, window);
      if (scope_ == policy_scope::all_lanes) count_globally(from.packs, window);
    }
    formed_first_ = first;
    formed_end_ = first + steps;
    statistics_.left_out_records = scratch_.left_out;
  }

  void add_change(const policy_statistics& before, const policy_statistics& after) noexcept {
    policy_statistics& sum = statistics_.policy;
    sum.packs += after.packs - before.packs;
    sum.packs_above_cap += after.packs_above_cap - before.packs_above_cap;
    sum.due_records += after.due_records - before.due_records;
    sum.expected_cost += after.expected_cost - before.expected_cost;
  }

  void count_globally(const pack_list& packs, const step_window& window) {
    global_.assign(window.steps, {});
    for (std::size_t i = 0; i < packs.size(); ++i) {
      global_step_counts& global = global_[i / window.packs_per_step];
      global.records += packs[i].size();
      for (const candidate& record : packs[i]) {
        global.tokens += record.tokens;
        global.loss_tokens += record.loss_tokens;
      }
    }
  }

  void account(const pack_list& packs, const step_window& window) {
    const mixed_records* mixture = feed_->sampler().mixture();
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const step_index step = window.first_step + i / window.packs_per_step;
      LANEPACK_ASSERT(packs[i].size() == window.records_per_pack);
      for (const candidate& record : packs[i]) {
        statistics_.emitted_cost += record.cost;
        statistics_.max_displacement_steps =
            std::max(statistics_.max_displacement_steps, step - record.admitted);
        if (record.role != record_role::regular) ++statistics_.filling_records;
        if (mixture != nullptr) {
          part_share& share = statistics_.parts[mixture->part_of(record.record.id)];
          ++share.records;
          share.tokens += record.tokens;
        }
      }
      statistics_.emitted_records += packs[i].size();
    }
  }

  void add_pack(lane_index lane, std::span<const candidate> records) {
    std::uint64_t cost = 0;
    for (const candidate& record : records) cost += record.cost;
    packs_.push_back({.lane = lane, .cost = cost, .records = records});
  }

  std::shared_ptr<const candidate_feed> feed_;
  std::vector<lane_index> lanes_;
  any_policy prototype_;
  policy_scope scope_;
  std::uint32_t window_steps_;
  std::uint32_t buffered_steps_;
  /// Whether the lanes go on from where they stood: the policy holds records, or nobody knows where
  /// the arrivals of a step begin.
  bool remembers_;
  std::vector<stream> streams_;
  step_index next_ = 0;
  /// Steps before it are not wanted.
  step_index start_ = 0;
  step_index formed_first_ = 0;
  step_index formed_end_ = 0;
  /// Of a policy with memory, before the window [`formed_first_`, `formed_end_`) was formed.
  std::vector<lane_fragment> before_window_;
  planner_statistics statistics_;
  std::vector<candidate> arrivals_;
  candidate_feed::scratch scratch_;
  std::vector<pack_plan> packs_;
  /// By step of the window, where one policy plans all lanes.
  std::vector<global_step_counts> global_;
};

}  // namespace lanepack::inline LANEPACK_ABI
