#pragma once

/// @file
/// Policies by name: the one table that programs, configuration files and messages read.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/window.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of all policies that have names; each policy reads what concerns it.
struct policy_options {
  /// All that a policy may buffer, in steps, at least 1; `sequential` buffers nothing.
  std::uint32_t lookahead_steps = 16;
};

/// A policy that has a name.
struct named_policy {
  std::string_view name;
  /// What it does, in one line.
  std::string_view description;
  /// Makes it; throws invalid_option where an option that concerns it cannot work.
  any_policy (*make)(const policy_options& options);
};

namespace detail {

/// A new policy is added here and nowhere else.
inline constexpr std::array policy_table{
    named_policy{"sequential", "records in the order in which they arrive",
                 [](const policy_options&) -> any_policy { return sequential_policy(); }},
    named_policy{"window", "each window of records in packs of balanced cost, heaviest pack first",
                 [](const policy_options& options) -> any_policy {
                   return window_policy({.lookahead_steps = options.lookahead_steps});
                 }},
};

}  // namespace detail

/// All policies that have names, in the order in which to list them.
[[nodiscard]] constexpr std::span<const named_policy> policies() noexcept {
  return detail::policy_table;
}

/// Makes the policy called `name`.
/// @throws invalid_option if no policy has that name (the message lists those that exist), or if
///         one of its options cannot work.
[[nodiscard]] inline any_policy make_policy(std::string_view name,
                                            const policy_options& options = {}) {
  std::string names;
  for (const named_policy& policy : policies()) {
    if (policy.name == name) return policy.make(options);
    if (!names.empty()) names += ", ";
    names += policy.name;
  }
  detail::throw_invalid_option("policy", detail::quoted(name), "one of " + names);
}

}  // namespace lanepack::inline LANEPACK_ABI
