#pragma once

/// @file
/// `step_schedule`: how many records every step takes, where epochs end, and how many steps there
/// are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/permutation.hpp>
#include <lanepack/sampler/schedule_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Neighbouring steps that are planned alike.
struct run_of_steps {
  step_index first_step = 0;
  /// The step after the run; nullopt where it has no end. It does not depend on `steps`: a run
  /// that is cut there is planned as if it went on, so that a longer one begins with the same
  /// packs.
  std::optional<step_index> end_step;
  /// Records of every pack (b).
  std::uint32_t records_per_pack = 1;
  /// Under draining rules the epoch of all steps; under `continue_epochs` the epoch of the first
  /// record that arrives for `first_step`.
  epoch_index epoch = 0;
  /// True if no record that arrives for these steps or earlier may be held after `end_step`.
  bool drains = false;
  /// Under draining rules, the step after the epoch: not before `end_step`, and equal to it where
  /// the run drains.
  std::optional<step_index> epoch_end_step;

  friend bool operator==(const run_of_steps&, const run_of_steps&) = default;
};

/// The steps and arrivals of one epoch under a draining rule.
struct epoch_extent {
  epoch_index epoch = 0;
  step_index first_step = 0;
  /// The step after the epoch.
  step_index end_step = 0;
  /// Arrivals of every lane before the epoch.
  std::uint64_t first_arrival = 0;
  /// Arrivals of every lane before the end of the epoch.
  std::uint64_t end_arrival = 0;

  friend bool operator==(const epoch_extent&, const epoch_extent&) = default;
};

/// Which arrivals every step takes, for all steps of a run.
///
/// Every lane has the same number of arrivals for a step: its b. Under draining rules every epoch
/// is dealt on its own and has a whole number of steps.
/// @complexity     Memory and construction O(changes + skip ranges), queries O(log of that): the
///                 numbers of records, epochs and steps do not matter.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    A pure function of (feasible records, options): equal on every rank.
class step_schedule {
 public:
  /// @param feasible_records  Records of every epoch (n), 1 to 2^63.
  /// @throws invalid_option  where an option is out of its range, where an epoch of the run would
  ///                         have no step, or where the run would take 2^64 - 2^32 records or more.
  step_schedule(std::uint64_t feasible_records, schedule_options options)
      : records_(feasible_records), options_(std::move(options)) {
    check_options();
    lay_out_rates();
    merge_skipped();
    if (options_.rule == epoch_end::continue_epochs) {
      count_endless();
    } else {
      lay_out_epochs();
    }
  }

  /// Steps of the run; nullopt where it is endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return options_.lanes; }
  [[nodiscard]] epoch_end rule() const noexcept { return options_.rule; }
  /// Records of every epoch (n).
  [[nodiscard]] std::uint64_t feasible_records() const noexcept { return records_; }
  [[nodiscard]] const schedule_options& options() const noexcept { return options_; }
  /// True if lanes drain at the end of every epoch.
  [[nodiscard]] bool drains() const noexcept { return options_.rule != epoch_end::continue_epochs; }
  /// Role of the records that fill the last step of an epoch.
  [[nodiscard]] record_role filling_role() const noexcept {
    return options_.rule == epoch_end::finite ? record_role::masked : record_role::repeated;
  }

  /// Records of every pack of `step`.
  [[nodiscard]] std::uint32_t records_per_pack(step_index step) const noexcept {
    return rate_of_step(step).records_per_pack;
  }

  /// True if `step` is neither read nor emitted.
  [[nodiscard]] bool skipped(step_index step) const noexcept {
    return first_not_skipped(step) != step;
  }

  /// The first step at or after `step` that is not skipped; it may lie past the end of the run.
  [[nodiscard]] step_index first_not_skipped(step_index step) const noexcept {
    const auto range =
        std::upper_bound(options_.skip_steps.begin(), options_.skip_steps.end(), step,
                         [](step_index value, const step_range& r) { return value < r.first; });
    if (range == options_.skip_steps.begin()) return step;
    return std::max(step, std::prev(range)->last);
  }

  /// Arrivals of every lane before `step`: the sum of the pack sizes of all earlier steps.
  /// @throws state_error  where all lanes together would have 2^64 - 2^32 arrivals or more.
  [[nodiscard]] std::uint64_t lane_records_before(step_index step) const {
    const uint128 records = records_before(step);
    if (records * options_.lanes > max_positions) {
      detail::throw_state_error("step " + std::to_string(step) + " begins after more than " +
                                std::to_string(max_positions) + " arrivals");
    }
    return static_cast<std::uint64_t>(records);
  }

  /// The step that takes arrival number `arrival` of a lane.
  [[nodiscard]] step_index step_of_lane_record(std::uint64_t arrival) const noexcept {
    const rate& part = *std::prev(std::upper_bound(
        rates_.begin(), rates_.end(), arrival,
        [](std::uint64_t value, const rate& r) { return value < r.records_before; }));
    return part.first_step + (arrival - part.records_before) / part.records_per_pack;
  }

  /// The longest run of steps around `step` with one pack size and, under draining rules, in one
  /// epoch.
  /// @throws state_error  under draining rules, where `step` lies past the last epoch.
  [[nodiscard]] run_of_steps run(step_index step) const {
    run_of_steps result;
    if (!drains()) {
      const auto part = rates_.begin() + (&rate_of_step(step) - rates_.data());
      result.first_step = part->first_step;
      if (std::next(part) != rates_.end()) result.end_step = std::next(part)->first_step;
      result.records_per_pack = part->records_per_pack;
      result.epoch = lane_records_before(part->first_step) * options_.lanes / records_;
      return result;
    }
    const epoch_part& part = part_of_step(step);
    const std::uint64_t skip = (step - part.first_step) / part.steps;
    result.first_step = part.first_step + skip * part.steps;
    result.end_step = result.first_step + part.steps;
    result.records_per_pack = part.records_per_pack;
    result.epoch = part.first_epoch + skip;
    result.epoch_end_step = part.epoch_end_step + skip * part.steps;
    result.drains = result.end_step == result.epoch_end_step;
    return result;
  }

  /// The epoch of `step` under a draining rule.
  /// @throws state_error  where `step` lies past the last epoch, or epochs do not drain.
  [[nodiscard]] epoch_extent epoch_of_step(step_index step) const {
    if (!drains()) detail::throw_state_error("under 'continue' a step is not in one epoch");
    const epoch_part& part = part_of_step(step);
    const std::uint64_t skip = (step - part.first_step) / part.steps;
    epoch_extent result;
    result.epoch = part.first_epoch + skip;
    result.first_step = part.epoch_first_step + skip * part.steps;
    result.end_step = part.epoch_end_step + skip * part.steps;
    result.first_arrival = lane_records_before(result.first_step);
    result.end_arrival = lane_records_before(result.end_step);
    return result;
  }

  /// What the run emits, repeats and drops; nullopt where it is endless.
  [[nodiscard]] std::optional<schedule_counts> counts() const {
    if (!steps_) return std::nullopt;
    schedule_counts result;
    const std::uint64_t emitted = lane_records_before(*steps_) * options_.lanes;
    if (!drains()) {
      result.regular = emitted;
      result.dropped = left_over_;
      return result;
    }
    std::uint64_t filling = 0;
    for (const epoch_part& part : parts_) {
      if (part.first_step != part.epoch_first_step) continue;
      // Epochs of a part are alike. One that `steps` cuts has neither filled nor dropped anything.
      const std::uint64_t length = part.epoch_end_step - part.epoch_first_step;
      const std::uint64_t whole = std::min(part.epochs, (*steps_ - part.epoch_first_step) / length);
      const std::uint64_t taken =
          (lane_records_before(part.epoch_end_step) - lane_records_before(part.epoch_first_step)) *
          options_.lanes;
      if (taken > records_) {
        filling += whole * (taken - records_);
      } else {
        result.dropped += whole * (records_ - taken);
      }
    }
    result.regular = emitted - filling;
    (options_.rule == epoch_end::finite ? result.masked : result.repeated) = filling;
    return result;
  }

 private:
  /// Steps with one pack size.
  struct rate {
    step_index first_step;
    std::uint32_t records_per_pack;
    /// Arrivals of a lane before; the largest value where they do not fit.
    std::uint64_t records_before;
  };

  /// Whole epochs that are alike, or the part of one epoch that has one pack size.
  struct epoch_part {
    step_index first_step;
    epoch_index first_epoch;
    std::uint64_t epochs;
    /// Steps of the part in each of its epochs.
    std::uint64_t steps;
    std::uint32_t records_per_pack;
    /// Steps of the first of its epochs.
    step_index epoch_first_step;
    step_index epoch_end_step;
  };

  static constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  // A stride of one lane past the last position must not wrap.
  static constexpr std::uint64_t max_positions =
      largest - std::numeric_limits<std::uint32_t>::max();

  void check_options() const {
    if (records_ == 0) {
      detail::throw_invalid_option("records", "0", "at least one feasible record");
    }
    if (records_ > max_permutation_size) {
      detail::throw_invalid_option("records", std::to_string(records_), "at most 2^63");
    }
    if (options_.lanes == 0) detail::throw_invalid_option("lanes", "0", "at least 1");
    if (options_.records_per_pack == 0) {
      detail::throw_invalid_option("records_per_pack", "0", "at least 1");
    }
    if (to_string(options_.rule) == "?") {
      detail::throw_invalid_option("rule", std::to_string(static_cast<unsigned>(options_.rule)),
                                   "one of its named values");
    }
    if (options_.epochs && *options_.epochs == 0) {
      detail::throw_invalid_option("epochs", "0", "at least 1");
    }
    if (options_.steps && *options_.steps == 0) {
      detail::throw_invalid_option("steps", "0", "at least 1");
    }
    for (std::size_t i = 0; i < options_.changes.size(); ++i) {
      const pack_size_change& change = options_.changes[i];
      const std::string name = "changes[" + std::to_string(i) + "]";
      const step_index previous = i == 0 ? 0 : options_.changes[i - 1].step;
      if (change.step <= previous) {
        detail::throw_invalid_option(name + ".step", std::to_string(change.step),
                                     "a step after " + std::to_string(previous));
      }
      if (change.records_per_pack == 0) {
        detail::throw_invalid_option(name + ".records_per_pack", "0", "at least 1");
      }
    }
    for (std::size_t i = 0; i < options_.skip_steps.size(); ++i) {
      const step_range& range = options_.skip_steps[i];
      if (range.first >= range.last) {
        detail::throw_invalid_option(
            "skip_steps[" + std::to_string(i) + "]",
            std::to_string(range.first) + " to " + std::to_string(range.last),
            "an end after the first step");
      }
    }
  }

  void lay_out_rates() {
    rates_.push_back({0, options_.records_per_pack, 0});
    for (const pack_size_change& change : options_.changes) {
      const rate& last = rates_.back();
      if (last.records_per_pack == change.records_per_pack) continue;
      const std::uint64_t records =
          saturating_add(last.records_before,
                         saturating_mul(change.step - last.first_step, last.records_per_pack));
      rates_.push_back({change.step, change.records_per_pack, records});
    }
  }

  void merge_skipped() {
    std::vector<step_range>& ranges = options_.skip_steps;
    std::sort(ranges.begin(), ranges.end(), [](const step_range& a, const step_range& b) {
      return a.first != b.first ? a.first < b.first : a.last < b.last;
    });
    std::size_t kept = 0;
    for (const step_range& range : ranges) {
      if (kept != 0 && range.first <= ranges[kept - 1].last) {
        ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
      } else {
        ranges[kept++] = range;
      }
    }
    ranges.resize(kept);
  }

  void count_endless() {
    steps_ = options_.steps;
    if (options_.epochs) {
      const uint128 positions = static_cast<uint128>(*options_.epochs) * records_;
      const std::uint64_t lane_records =
          static_cast<std::uint64_t>(std::min<uint128>(positions / options_.lanes, largest - 1));
      const step_index whole = step_of_lane_record(lane_records);
      if (whole == 0) throw_step_too_large(options_.records_per_pack, *options_.epochs);
      if (!steps_ || whole <= *steps_) {
        steps_ = whole;
        check_end(whole);
        left_over_ = static_cast<std::uint64_t>(positions - records_before(whole) * options_.lanes);
      }
    }
    if (steps_) check_end(*steps_);
  }

  void lay_out_epochs() {
    const std::uint64_t max_steps = options_.steps.value_or(largest);
    const std::uint64_t max_epochs =
        options_.epochs.value_or(options_.steps.has_value() ? largest : 1);
    step_index step = 0;
    epoch_index epoch = 0;
    auto current = rates_.begin();
    const auto next_change = [&] {
      return std::next(current) == rates_.end() ? largest : std::next(current)->first_step;
    };
    while (epoch < max_epochs && step < max_steps) {
      const std::uint64_t length = steps_for(records_, current->records_per_pack);
      if (length == 0) throw_step_too_large(current->records_per_pack, 1);
      // An epoch that ends where the pack size changes may have room for a smaller step after it.
      const std::uint64_t alike = std::min(
          {(next_change() - step - (options_.rule == epoch_end::drop_last ? 1 : 0)) / length,
           max_epochs - epoch, ceil_div(max_steps - step, length)});
      if (alike != 0) {
        parts_.push_back(
            {step, epoch, alike, length, current->records_per_pack, step, step + length});
        step += alike * length;
        epoch += alike;
        check_end(step);
        if (step == next_change()) ++current;
        continue;
      }
      const step_index first_step = step;
      const std::size_t first_part = parts_.size();
      std::uint64_t left = records_;
      while (true) {
        const std::uint64_t whole = steps_for(left, current->records_per_pack);
        const std::uint64_t taken = std::min(whole, next_change() - step);
        if (taken != 0) {
          parts_.push_back({step, epoch, 1, taken, current->records_per_pack, first_step, 0});
        }
        step += taken;
        check_end(step);
        const uint128 positions =
            static_cast<uint128>(taken) * current->records_per_pack * options_.lanes;
        left = positions > left ? 0 : left - static_cast<std::uint64_t>(positions);
        const bool changed = step == next_change();
        if (changed) ++current;
        if (left == 0 || !changed) break;
      }
      for (std::size_t i = first_part; i < parts_.size(); ++i) parts_[i].epoch_end_step = step;
      ++epoch;
    }
    end_step_ = step;
    steps_ = std::min(step, max_steps);
  }

  /// Steps of `left` records of an epoch at one pack size.
  [[nodiscard]] std::uint64_t steps_for(std::uint64_t left, std::uint32_t pack) const noexcept {
    const std::uint64_t step_records = static_cast<std::uint64_t>(options_.lanes) * pack;
    return options_.rule == epoch_end::drop_last ? left / step_records
                                                 : ceil_div(left, step_records);
  }

  [[nodiscard]] const rate& rate_of_step(step_index step) const noexcept {
    return *std::prev(
        std::upper_bound(rates_.begin(), rates_.end(), step,
                         [](step_index value, const rate& r) { return value < r.first_step; }));
  }

  [[nodiscard]] uint128 records_before(step_index step) const noexcept {
    const rate& part = rate_of_step(step);
    return static_cast<uint128>(step - part.first_step) * part.records_per_pack +
           part.records_before;
  }

  [[nodiscard]] const epoch_part& part_of_step(step_index step) const {
    if (step >= end_step_) {
      detail::throw_state_error("step " + std::to_string(step) +
                                " lies past the last epoch, which ends at step " +
                                std::to_string(end_step_));
    }
    return *std::prev(std::upper_bound(
        parts_.begin(), parts_.end(), step,
        [](step_index value, const epoch_part& p) { return value < p.first_step; }));
  }

  void check_end(step_index step) const {
    if (records_before(step) * options_.lanes <= max_positions) return;
    const bool by_steps = options_.steps.has_value();
    const std::uint64_t found = by_steps ? *options_.steps : options_.epochs.value_or(1);
    detail::throw_invalid_option(by_steps ? "steps" : "epochs", std::to_string(found),
                                 "a run of fewer than 2^64 - 2^32 records");
  }

  [[noreturn]] LANEPACK_COLD void throw_step_too_large(std::uint32_t pack,
                                                       std::uint64_t epochs) const {
    const std::uint64_t fitting = saturating_mul(records_, epochs) / options_.lanes;
    const std::string lanes = std::to_string(options_.lanes);
    std::string found = std::to_string(pack) + " (a step of " + lanes + " lanes takes " +
                        std::to_string(static_cast<std::uint64_t>(options_.lanes) * pack) +
                        " records, " +
                        (epochs == 1 ? "an epoch" : std::to_string(epochs) + " epochs") + " of " +
                        std::to_string(records_) + " feasible records fill none)";
    std::string expected = fitting != 0 ? "at most " + std::to_string(fitting)
                                        : "at most " + std::to_string(records_) + " lanes";
    expected += drains() ? ", or epoch_end pad, finite or continue"
                         : ", more epochs, or epoch_end pad or finite";
    detail::throw_invalid_option("records_per_pack", std::move(found), std::move(expected));
  }

  std::uint64_t records_;
  schedule_options options_;
  std::optional<std::uint64_t> steps_;
  /// The step after the last epoch, under draining rules.
  step_index end_step_ = 0;
  std::uint64_t left_over_ = 0;
  std::vector<rate> rates_;
  std::vector<epoch_part> parts_;
};

}  // namespace lanepack::inline LANEPACK_ABI
