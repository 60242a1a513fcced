#pragma once

/// @file
/// The plan of a run: for each step the packs of the lanes asked for, without reading payload.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/loader/candidate_feed.hpp>
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
  /// Largest number of steps between a record's admission and its pack's step.
  std::uint64_t max_displacement_steps = 0;
  /// Largest number of records that one lane had admitted and not emitted at the same time.
  std::uint64_t peak_buffered_records = 0;
  /// What policies that plan by a distribution of costs report, summed over lanes. Where
  /// `policy.expected_cost` is not 0, `admitted_cost` over it says by how much the distribution
  /// missed the stream; a few in a hundred do no harm, more cost efficiency.
  policy_statistics policy;
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
        buffered_steps_(policy.buffered_steps()) {
    restart();
  }

  /// Makes the first step that is not below `step` the next one.
  /// @complexity  O(1) for a policy without memory: the window that holds `step` is formed again
  /// when
  ///              it is asked for. A policy with memory lives through all steps before.
  void start_at(step_index step) {
    if (buffered_steps_ == 0) {
      formed_first_ = formed_end_ = 0;
    } else {
      if (step < formed_end_) restart();
      const std::optional<std::uint64_t> steps = feed_->sampler().schedule().steps();
      const step_index end = steps ? std::min(step, *steps) : step;
      while (formed_end_ < end) form_window(formed_end_);
    }
    next_ = step;
  }

  /// The next step that is not skipped, or nullopt at the end of the run. The spans stay valid
  /// until the next call.
  /// @complexity  Amortised: one permutation, one shape, one cost and the policy's work a record.
  [[nodiscard]] std::optional<step_plan> next() {
    const step_schedule& schedule = feed_->sampler().schedule();
    const std::optional<std::uint64_t> steps = schedule.steps();
    for (;; ++next_) {
      if (steps && next_ >= *steps) return std::nullopt;
      const bool wanted = !schedule.skipped(next_);
      // A policy with memory has to live through the skipped steps; one without jumps over them.
      if ((wanted || buffered_steps_ != 0) && (next_ < formed_first_ || next_ >= formed_end_)) {
        form_window(next_);
      }
      if (wanted) break;
    }
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
  [[nodiscard]] step_index next_step() const noexcept { return next_; }

  [[nodiscard]] const planner_statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] const candidate_feed& feed() const noexcept { return *feed_; }
  [[nodiscard]] std::span<const lane_index> lanes() const noexcept { return lanes_; }

 private:
  struct stream {
    any_policy policy;
    pack_list packs;
    /// Arrivals handed to the policy so far, counted from the run's first.
    std::uint64_t admitted = 0;
  };

  void restart() {
    const std::size_t count = scope_ == policy_scope::lane ? lanes_.size() : 1;
    streams_.clear();
    streams_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) streams_.push_back({prototype_, {}, 0});
    formed_first_ = formed_end_ = 0;
  }

  void form_window(step_index step) {
    const step_schedule& schedule = feed_->sampler().schedule();
    const run_of_steps run = schedule.run(step);
    const step_index first =
        buffered_steps_ != 0
            ? step
            : run.first_step + (step - run.first_step) / window_steps_ * window_steps_;
    std::uint64_t steps = window_steps_;
    if (run.end_step) steps = std::min(steps, *run.end_step - first);
    const std::uint32_t packs_per_step = scope_ == policy_scope::lane ? 1 : schedule.lanes();

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
    const std::uint64_t admitted_end = schedule.lane_records_before(admit_end) * packs_per_step;

    for (std::size_t i = 0; i < streams_.size(); ++i) {
      stream& from = streams_[i];
      if (buffered_steps_ == 0)
        from.admitted = schedule.lane_records_before(first) * packs_per_step;
      arrivals_.resize(static_cast<std::size_t>(admitted_end - from.admitted));
      if (scope_ == policy_scope::lane) {
        feed_->lane(lanes_[i], from.admitted, arrivals_, scratch_);
      } else {
        feed_->stream(from.admitted, arrivals_, scratch_);
      }
      for (candidate& record : arrivals_) {
        record.admitted = first;
        statistics_.admitted_cost += record.cost;
      }
      const std::uint64_t taken = schedule.lane_records_before(first) * packs_per_step;
      statistics_.peak_buffered_records =
          std::max(statistics_.peak_buffered_records, (admitted_end - taken) / packs_per_step);
      from.packs.clear();
      window.lane = scope_ == policy_scope::lane ? lanes_[i] : 0;
      const policy_statistics before = from.policy.statistics();
      from.policy.form(window, arrivals_, from.packs);
      add_change(before, from.policy.statistics());
      from.admitted = admitted_end;
      LANEPACK_ASSERT(from.packs.size() == steps * packs_per_step);
      account(from.packs, window);
      if (scope_ == policy_scope::all_lanes) count_globally(from.packs, window);
    }
    formed_first_ = first;
    formed_end_ = first + steps;
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
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const step_index step = window.first_step + i / window.packs_per_step;
      LANEPACK_ASSERT(packs[i].size() == window.records_per_pack);
      for (const candidate& record : packs[i]) {
        statistics_.emitted_cost += record.cost;
        statistics_.max_displacement_steps =
            std::max(statistics_.max_displacement_steps, step - record.admitted);
        if (record.role != record_role::regular) ++statistics_.filling_records;
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
  std::vector<stream> streams_;
  step_index next_ = 0;
  step_index formed_first_ = 0;
  step_index formed_end_ = 0;
  planner_statistics statistics_;
  std::vector<candidate> arrivals_;
  candidate_feed::scratch scratch_;
  std::vector<pack_plan> packs_;
  /// By step of the window, where one policy plans all lanes.
  std::vector<global_step_counts> global_;
};

}  // namespace lanepack::inline LANEPACK_ABI
