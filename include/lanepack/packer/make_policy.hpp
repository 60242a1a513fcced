#pragma once

/// @file
/// Policies by name: the one table that programs, configuration files and messages read.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/calendar.hpp>
#include <lanepack/packer/calendar_caps.hpp>
#include <lanepack/packer/calendar_tuning.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/replicated.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/step_limits.hpp>
#include <lanepack/packer/window.hpp>
#include <lanepack/packer/window_stagger.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of all policies that have names; each policy reads what concerns it.
struct policy_options {
  /// All that a policy may buffer, in steps, at least 1; `sequential` buffers nothing.
  std::uint32_t lookahead_steps = 16;
  /// What the stream's records cost, the same on every rank: of a corpus, of a declared histogram
  /// or of a common prefix. `calendar` needs it; without it `window` keeps no limit on a step.
  std::shared_ptr<const cost_distribution> costs = nullptr;
  /// Records of a pack (b), at least 1, and the fewest and most that a pack of the run has where
  /// that changes.
  std::uint32_t records_per_pack = 16;
  std::optional<std::uint32_t> min_records_per_pack = std::nullopt;
  std::optional<std::uint32_t> max_records_per_pack = std::nullopt;
  /// Packs that meet in a step: L.
  std::uint32_t lanes = 512;
  /// Hard bound on the steps between a record's admission and its pack's step, at least what the
  /// lookahead needs; 0: 32 x `lookahead_steps`.
  std::uint64_t max_displacement_steps = 0;
  /// Largest expected tokens and largest expected cost of a step over the mean step.
  step_limits limits = {.max_tokens_ppm = 1'500'000, .max_cost_ppm = 0};
  /// Numbers of a calendar that were found before; nullopt: found when the policy is made.
  std::optional<calendar_tuning> tuning = std::nullopt;
};

/// A policy that has a name.
struct named_policy {
  std::string_view name;
  /// What it does, in one line.
  std::string_view description;
  /// Makes it; throws invalid_option where an option that concerns it cannot work.
  any_policy (*make)(const policy_options& options);
  /// `all_lanes`: it needs the shapes of all records and random access to them on every rank.
  policy_scope scope = policy_scope::lane;
};

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

[[nodiscard]] inline any_policy make_window(const policy_options& options) {
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

[[nodiscard]] inline any_policy make_calendar(const policy_options& options) {
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

[[nodiscard]] inline any_policy make_replicated(const policy_options& options) {
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

/// A new policy is added here and nowhere else.
inline constexpr std::array policy_table{
    named_policy{"sequential", "records in the order in which they arrive",
                 [](const policy_options&) -> any_policy { return sequential_policy(); }},
    named_policy{"window", "each window of records in packs of balanced cost, heaviest pack first",
                 make_window},
    named_policy{"calendar", "packs filled up to caps that all lanes know beforehand",
                 make_calendar},
    named_policy{"replicated", "the packs of all lanes planned together, on every rank",
                 make_replicated, policy_scope::all_lanes},
};

}  // namespace detail

/// All policies that have names, in the order in which to list them.
[[nodiscard]] constexpr std::span<const named_policy> policies() noexcept {
  return detail::policy_table;
}

/// The policy called `name`.
/// @param also  Another name that the message of an error lists.
/// @throws invalid_option if no policy has that name; the message lists those that exist.
[[nodiscard]] inline const named_policy& policy_named(std::string_view name,
                                                      std::string_view also = {}) {
  std::string names;
  for (const named_policy& policy : policies()) {
    if (policy.name == name) return policy;
    if (!names.empty()) names += ", ";
    names += policy.name;
  }
  if (!also.empty()) names += ", " + std::string(also);
  detail::throw_invalid_option("policy", detail::quoted(name), "one of " + names);
}

/// Makes the policy called `name`. Copies of it are independent and share what was computed here,
/// so one is made for all lanes; `calendar` takes seconds where no tuning is given.
///
/// Limits on a step: `sequential` does not move records, so every step's expectation is the mean;
/// `window` and `calendar` keep the expected tokens and cost of every step below the limits, as far
/// as `costs` says what arrives. No lane-local policy can promise more for a single step, because a
/// lane does not see what the others emit: with L lanes of b records a step strays from its
/// expectation by about cv / sqrt(L b).
/// @throws invalid_option as `policy_named`, or if one of the options cannot work.
[[nodiscard]] inline any_policy make_policy(std::string_view name,
                                            const policy_options& options = {}) {
  return policy_named(name).make(options);
}

}  // namespace lanepack::inline LANEPACK_ABI
