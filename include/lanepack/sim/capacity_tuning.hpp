#pragma once

/// @file
/// The capacity at which a baseline is fastest, up to the one that the user has.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/sim/baselines.hpp>
#include <lanepack/sim/step_assigner.hpp>
#include <lanepack/sim/step_time.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The first steps of a run, kept.
class recorded_steps {
 public:
  /// Plans all lanes of a feed.
  /// @param steps  Fewer are kept where the run ends.
  recorded_steps(const std::shared_ptr<const candidate_feed>& feed, const any_policy& policy,
                 std::uint64_t steps) {
    std::vector<lane_index> lanes(feed->sampler().lanes());
    for (lane_index lane = 0; lane < lanes.size(); ++lane) lanes[lane] = lane;
    planner plan(feed, policy, lanes);
    while (steps_.size() < steps) {
      const std::optional<step_plan> step = plan.next();
      if (!step) break;
      kept_step& kept = steps_.emplace_back();
      kept.step = step->step;
      for (const pack_plan& pack : step->packs) {
        for (const candidate& record : pack.records) kept.records.add(record);
        kept.records.close();
      }
      for (std::size_t i = 0; i < step->packs.size(); ++i) {
        kept.packs.push_back(
            {.lane = step->packs[i].lane, .cost = step->packs[i].cost, .records = kept.records[i]});
      }
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return steps_.size(); }
  [[nodiscard]] step_plan operator[](std::size_t index) const noexcept {
    return {.step = steps_[index].step, .packs = steps_[index].packs};
  }

 private:
  struct kept_step {
    step_index step = 0;
    pack_list records;
    std::vector<pack_plan> packs;
  };

  std::vector<kept_step> steps_;
};

/// A capacity and the time that the recorded steps take with it.
struct tuned_capacity {
  std::uint64_t capacity_tokens = 0;
  /// Sum over the recorded steps, in cost units.
  std::uint64_t elapsed = 0;
};

/// The capacity, up to `options.capacity_tokens`, at which the recorded steps take the least time;
/// of equal ones the largest.
///
/// Tried are the capacities a quarter of an octave apart from the given one down to the largest
/// record, or to a sixty-fourth; then thirty-seconds of an octave around the best of them. A number
/// of bins that is forced up to a multiple of the ranks leaves bins half empty at most capacities
/// and full at a few: these are found.
/// @param largest_record        Tokens of the longest record of the run after padding.
/// @param micro_batch_overhead  Cost units of every micro-batch.
/// @param progress              Told the number of capacities tried.
/// @throws data_error  As the baseline does at the given capacity.
/// @complexity  About 40 assignments of every recorded step.
[[nodiscard]] inline tuned_capacity tune_capacity(const recorded_steps& steps, std::uint32_t ranks,
                                                  const named_baseline& baseline,
                                                  const baseline_options& options,
                                                  std::uint64_t largest_record,
                                                  std::uint64_t micro_batch_overhead,
                                                  const progress_callback& progress = {}) {
  // 2^20 x 2^(-i / 32).
  constexpr std::array<std::uint64_t, 32> fractions{
      1048576, 1026107, 1004120, 982604, 961548, 940944, 920782, 901051, 881744, 862850, 844361,
      826268,  808563,  791237,  774282, 757691, 741455, 725567, 710020, 694806, 679917, 665348,
      651091,  637140,  623487,  610127, 597053, 584260, 571740, 559489, 547500, 535768};
  const auto capacity_at = [&](std::int64_t place) {
    const std::uint64_t fraction = fractions[static_cast<std::size_t>(place % 32)] >> (place / 32);
    return static_cast<std::uint64_t>((static_cast<uint128>(options.capacity_tokens) * fraction) >>
                                      20);
  };
  step_assignment assignment;
  // Stops early above the limit.
  const auto time_with = [&](std::uint64_t capacity, std::uint64_t limit) {
    baseline_options tried = options;
    tried.capacity_tokens = capacity;
    any_step_assigner assigner = baseline.make_assigner(tried);
    std::uint64_t elapsed = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      assigner.assign(steps[i], ranks, assignment);
      elapsed =
          saturating_add(elapsed, time_of(assignment, options.sync, micro_batch_overhead).elapsed);
      if (elapsed > limit) break;
    }
    return elapsed;
  };

  tuned_capacity best{
      options.capacity_tokens,
      time_with(options.capacity_tokens, std::numeric_limits<std::uint64_t>::max())};
  std::int64_t best_place = 0;
  std::uint64_t tried_places = 0;
  const auto try_place = [&](std::int64_t place) {
    if (progress) progress(++tried_places, 37);
    if (place <= 0 || place >= 32 * 6) return;
    const std::uint64_t capacity = capacity_at(place);
    if (capacity < largest_record) return;
    const std::uint64_t elapsed = time_with(capacity, best.elapsed);
    if (elapsed < best.elapsed || (elapsed == best.elapsed && capacity > best.capacity_tokens)) {
      best = {capacity, elapsed};
      best_place = place;
    }
  };
  for (std::int64_t place = 8; place < 32 * 6; place += 8) try_place(place);
  const std::int64_t coarse = best_place;
  for (std::int64_t place = coarse - 7; place < coarse + 8; ++place) {
    if (place != coarse) try_place(place);
  }
  return best;
}

}  // namespace lanepack::inline LANEPACK_ABI
