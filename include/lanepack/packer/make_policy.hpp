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
#include <lanepack/packer/calendar_parameters.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/step_limits.hpp>

namespace lanepack::inline LANEPACK_ABI {

class cost_distribution;

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

[[nodiscard]] LANEPACK_FUNCTION any_policy make_sequential(const policy_options& options);
[[nodiscard]] LANEPACK_FUNCTION any_policy make_window(const policy_options& options);
[[nodiscard]] LANEPACK_FUNCTION any_policy make_calendar(const policy_options& options);
[[nodiscard]] LANEPACK_FUNCTION any_policy make_replicated(const policy_options& options);

/// A new policy is added here and nowhere else.
inline constexpr std::array policy_table{
    named_policy{"sequential", "records in the order in which they arrive", make_sequential},
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

#if !LANEPACK_COMPILED
#include <lanepack/packer/make_policy.ipp>
#endif
