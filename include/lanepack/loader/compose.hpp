#pragma once

/// @file
/// Composes the parts that a plan needs from its options.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/feasibility.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/choose_policy.hpp>
#include <lanepack/loader/compose_mixture.hpp>
#include <lanepack/loader/compose_unindexed.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/loader/stream_costs.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/make_policy.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/step_limits.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/lane_sampler.hpp>
#include <lanepack/sampler/schedule.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Whether the options name a policy that plans all lanes; `auto` chooses one only where it can.
/// @throws  invalid_option if no policy has that name.
[[nodiscard]] inline bool plans_all_lanes(const plan_options& options) {
  return options.policy != auto_policy &&
         policy_named(options.policy, auto_policy).scope == policy_scope::all_lanes;
}

[[nodiscard]] inline step_limits limits_of(const plan_options& options) noexcept {
  return {.max_tokens_ppm = options.max_step_tokens_ppm, .max_cost_ppm = options.max_step_cost_ppm};
}

}  // namespace detail

/// Checks the options that a schedule or a policy does not check itself.
/// @throws  invalid_option
inline void validate(const plan_options& options) {
  if (options.lanes == 0) {
    detail::throw_invalid_option(
        "lanes", "0", "at least 1; a multiple of every world size that the run will have, e.g. 64");
  }
  if (options.records_per_pack == 0 || options.records_per_pack > max_ordered_records) {
    detail::throw_invalid_option("records_per_pack", std::to_string(options.records_per_pack),
                                 "1 to " + std::to_string(max_ordered_records));
  }
  if (options.lookahead_steps == 0) {
    detail::throw_invalid_option("lookahead_steps", "0", "at least 1");
  }
  if (options.mixture && options.rule != epoch_end::continue_epochs) {
    detail::throw_invalid_option("rule", to_string(options.rule),
                                 "continue for a mixture, whose parts end at different steps");
  }
  if (options.mixture && options.epochs) {
    detail::throw_invalid_option("epochs", std::to_string(*options.epochs),
                                 "none for a mixture: its parts have epochs of their own, see "
                                 "mixture.ends, and steps ends the run");
  }
  const bool all_lanes = detail::plans_all_lanes(options);
  validate(detail::limits_of(options));
  const std::uint64_t largest = detail::pack_sizes(options).largest;
  if (largest * options.lookahead_steps > max_ordered_records) {
    detail::throw_invalid_option("lookahead_steps", std::to_string(options.lookahead_steps),
                                 "at most " + std::to_string(max_ordered_records / largest) +
                                     ", a window of " + std::to_string(max_ordered_records) +
                                     " records with packs of " + std::to_string(largest));
  }
  if (all_lanes && largest * options.lanes > max_ordered_records) {
    detail::throw_invalid_option("lanes", std::to_string(options.lanes),
                                 "at most " + std::to_string(max_ordered_records / largest) +
                                     " for the policy " + options.policy + ", whose steps hold " +
                                     std::to_string(max_ordered_records) +
                                     " records at most; lane-local policies have no such bound");
  }
}

/// What a user of lane-local balancing should know about these options, in sentences; empty where
/// there is nothing to say.
[[nodiscard]] inline std::vector<std::string> advice(const plan_options& options) {
  constexpr std::uint32_t fewest_records = 8;
  if (options.policy == "sequential") return {};
  const std::uint32_t smallest = detail::pack_sizes(options).smallest;
  if (smallest == 1) {
    return {
        "With 1 record a pack there is nothing to balance: heavy records are only aligned, so "
        "that they fall on the same steps of all lanes. Fewer lanes with more records a pack "
        "balance better."};
  }
  if (smallest < fewest_records && !detail::plans_all_lanes(options)) {
    return {"Packs of " + std::to_string(smallest) +
            " records balance poorly: fewer lanes with at least " + std::to_string(fewest_records) +
            " records a pack do better."};
  }
  return {};
}

/// The schedule part of plan options.
[[nodiscard]] inline schedule_options schedule_of(const plan_options& options) {
  return {.lanes = options.lanes,
          .records_per_pack = options.records_per_pack,
          .changes = options.pack_size_changes,
          .rule = options.rule,
          .epochs = options.epochs,
          .steps = options.steps,
          .skip_steps = options.skip_steps};
}

namespace detail {

[[nodiscard]] inline lane_sampler sampler_of(const any_source& source,
                                             const record_selection& selection,
                                             const plan_options& options) {
  schedule_options timing = schedule_of(options);
  step_schedule schedule(selection.domain.size(), timing);
  if (!options.mixture) {
    return {epoch_order(selection.domain, options.shuffle, options.seed), std::move(schedule)};
  }
  auto mixture =
      make_mixture(source, selection, *options.mixture, options.shuffle, options.seed, schedule);
  if (const auto steps = steps_of_mixture(mixture->mixture(), schedule)) {
    timing.steps = std::min(timing.steps.value_or(*steps), *steps);
    schedule = step_schedule(selection.domain.size(), std::move(timing));
  }
  return {std::move(mixture), std::move(schedule)};
}

/// Throws where the limits do not go with records of several segments.
/// @param longest  Tokens of the longest record that is delivered.
inline void validate_segments(const any_source& source, const feasibility& limits,
                              std::uint64_t longest) {
  const std::uint64_t most = source.most_segments();
  if (most == 1) return;
  if (limits.chunks()) {
    throw_invalid_option("infeasible", "chunk",
                         "fail, skip_and_count or truncate for " + source.describe() +
                             ", where a record may be several segments");
  }
  // Every segment is padded.
  const std::uint64_t multiple = limits.options().record_multiple;
  const std::uint64_t needed =
      saturating_add(longest, saturating_mul(std::min(most, longest), multiple - 1));
  if (needed > limits.largest_record()) {
    throw_invalid_option("capacity_tokens", std::to_string(limits.largest_record()),
                         "at least " + std::to_string(needed) +
                             ", as a record of several segments may take so many tokens with each "
                             "padded to record_multiple = " +
                             std::to_string(multiple));
  }
}

}  // namespace detail

/// What every planner of a run shares: selection, order, schedule and costs, which come from the
/// corpus unless the options have them. For a corpus without an index the summary does not matter.
/// @throws  invalid_option, or data_error where the limits forbid a record.
[[nodiscard]] inline std::shared_ptr<const candidate_feed> make_candidate_feed(
    const any_source& source, const corpus_summary& summary, any_estimator estimator,
    const plan_options& options) {
  validate(options);
  if (source.unindexed() != nullptr) {
    detail::validate_unindexed(source, options, detail::plans_all_lanes(options));
    const feasibility limits(options.limits);
    detail::validate_segments(source, limits, limits.largest_record());
    return detail::make_unindexed_feed(source, std::move(estimator), options, schedule_of(options));
  }
  if (source.size() != summary.records) {
    detail::throw_state_error("the summary is of another corpus: found " +
                              std::to_string(summary.records) + " records, expected " +
                              std::to_string(source.size()));
  }
  if (source.fingerprint() != summary.fingerprint) {
    detail::throw_state_error("the summary is of another corpus: found the fingerprint " +
                              summary.fingerprint.hex() + ", expected " +
                              source.fingerprint().hex() + ", that of " + source.describe());
  }
  if (detail::plans_all_lanes(options) && !source.traits().has_all_shapes) {
    detail::throw_invalid_option(
        "policy", options.policy,
        "a lane-local one such as calendar, or an index of all lengths, which " +
            source.describe() + " lacks; lanepack-inspect makes one");
  }
  record_selection selection = select_records(source, summary, options.limits);
  if (selection.domain.size() == 0) {
    detail::throw_data_error({.path = source.describe()},
                             "found no record that can be delivered, expected at least 1");
  }
  detail::validate_segments(source, selection.limits,
                            std::min(summary.max_tokens, selection.limits.largest_record()));
  lane_sampler sampler = detail::sampler_of(source, selection, options);
  std::shared_ptr<const cost_distribution> costs = options.costs;
  if (costs == nullptr && source.traits().has_all_shapes) {
    costs = sampler.mixture() == nullptr
                ? costs_of_corpus(source, summary, selection, estimator)
                : costs_of_mixture(source, summary, selection, estimator,
                                   sampler.mixture()->mixture().section_weights(0));
  }
  return std::make_shared<const candidate_feed>(source, std::move(selection), std::move(sampler),
                                                std::move(estimator), std::move(costs));
}

namespace detail {

[[nodiscard]] inline any_policy make_policy_of(const policy_choice& choice,
                                               const plan_options& options,
                                               std::shared_ptr<const cost_distribution> costs) {
  validate(options);
  const pack_size_range sizes = pack_sizes(options);
  return make_policy(choice.policy, {.lookahead_steps = options.lookahead_steps,
                                     .costs = std::move(costs),
                                     .records_per_pack = options.records_per_pack,
                                     .min_records_per_pack = sizes.smallest,
                                     .max_records_per_pack = sizes.largest,
                                     .lanes = options.lanes,
                                     .max_displacement_steps = options.max_displacement_steps,
                                     .limits = limits_of(options),
                                     .tuning = options.tuning});
}

}  // namespace detail

/// The policy that plan options name, for records that cost what `costs` says; null where nobody
/// knows. `auto` chooses a lane-local one. Make one for all lanes: copies share what was computed,
/// which for `calendar` takes seconds unless the options have a tuning.
/// @throws  invalid_option
[[nodiscard]] inline any_policy make_policy(const plan_options& options,
                                            std::shared_ptr<const cost_distribution> costs) {
  const policy_choice choice = choose_policy(options, false, costs != nullptr);
  return detail::make_policy_of(choice, options, std::move(costs));
}

/// The policy that plan options name, for the records of a feed that was made with the same
/// options; `auto` is resolved as `choose_policy` says.
/// @throws  invalid_option
[[nodiscard]] inline any_policy make_policy(const plan_options& options,
                                            const candidate_feed& feed) {
  return detail::make_policy_of(choose_policy(options, feed), options,
                                options.costs != nullptr ? options.costs : feed.costs());
}

}  // namespace lanepack::inline LANEPACK_ABI
