#pragma once

/// @file
/// The bodies of the functions in make_policy.hpp.

#include <cstdint>
#include <optional>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/calendar.hpp>
#include <lanepack/packer/calendar_tuning.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/make_policy.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/replicated.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/step_limits.hpp>
#include <lanepack/packer/window.hpp>
#include <lanepack/packer/window_stagger.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Displacement is at most `lookahead_steps` - 1 for a policy that holds nothing between windows.
inline void check_window_displacement(const policy_options& options) {
  if (options.max_displacement_steps != 0 &&
      options.max_displacement_steps + 1 < options.lookahead_steps) {
    throw_invalid_option(
        "max_displacement_steps", std::to_string(options.max_displacement_steps),
        "at least lookahead_steps - 1, " + std::to_string(options.lookahead_steps - 1) + ", or 0");
  }
}

LANEPACK_FUNCTION any_policy make_sequential(const policy_options&) {
  return sequential_policy();
}

LANEPACK_FUNCTION any_policy make_window(const policy_options& options) {
  window_options window{.lookahead_steps = options.lookahead_steps};
  static_cast<void>(window_policy(window));
  check_window_displacement(options);
  validate(options.limits);
  if (options.costs != nullptr) {
    if (options.records_per_pack == 0) throw_invalid_option("records_per_pack", "0", "at least 1");
    window.stagger = stagger_window(*options.costs, options.records_per_pack,
                                    options.lookahead_steps, options.lanes, options.limits);
  }
  return window_policy(window);
}

LANEPACK_FUNCTION any_policy make_calendar(const policy_options& options) {
  validate(options.limits);
  if (options.costs == nullptr) {
    throw_invalid_option("costs", "none",
                         "for the policy calendar, what the records cost: a corpus with an index "
                         "of lengths, a declared length histogram, or the costs of a common "
                         "prefix of the stream");
  }
  const auto limit = [](std::uint32_t ppm) { return ppm == 0 ? std::nullopt : std::optional(ppm); };
  calendar_options calendar;
  calendar.costs = options.costs;
  calendar.records_per_pack = options.records_per_pack;
  calendar.min_records_per_pack = options.min_records_per_pack;
  calendar.max_records_per_pack = options.max_records_per_pack;
  calendar.lookahead_steps = options.lookahead_steps;
  if (options.max_displacement_steps != 0) {
    calendar.max_displacement_steps = options.max_displacement_steps;
  }
  calendar.max_ranks = options.lanes;
  calendar.max_step_cost_ppm = limit(options.limits.max_cost_ppm);
  calendar.max_step_tokens_ppm = limit(options.limits.max_tokens_ppm);
  calendar.tuning = options.tuning;
  return calendar_policy(calendar);
}

LANEPACK_FUNCTION any_policy make_replicated(const policy_options& options) {
  const std::uint32_t b = options.records_per_pack;
  const bool same_b = options.min_records_per_pack.value_or(b) == b &&
                      options.max_records_per_pack.value_or(b) == b;
  return replicated_policy({.lookahead_steps = options.lookahead_steps,
                            .costs = options.costs,
                            .records_per_pack = same_b ? b : 0,
                            .lanes = options.lanes,
                            .max_displacement_steps = options.max_displacement_steps,
                            .limits = options.limits});
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
