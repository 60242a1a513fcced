#pragma once

/// @file
/// The policy `auto`: which policy suits what is known about the records, and why.

#include <cstdint>
#include <string>
#include <string_view>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Name of the policy that is chosen by what is available.
inline constexpr std::string_view auto_policy = "auto";

/// The largest window, in records of all lanes, that `auto` lets every rank plan: about 10 ms a
/// step of one core for 65536 records a step, and 200 MB.
inline constexpr std::uint64_t most_replicated_records = std::uint64_t{1} << 20;

/// The policy of a run.
struct policy_choice {
  /// Name in the table of policies.
  std::string policy;
  /// Why, in one sentence; empty where the options name the policy.
  std::string reason;
};

/// The policy that plan options name; for `auto` the first of these that is possible:
/// - `replicated`, where the shapes of all records are known and a window of all lanes has at most
///   `most_replicated_records` records;
/// - `calendar`, where somebody knows what the records cost;
/// - `window`.
/// @param has_all_shapes  Whether every rank knows the shapes of all records.
/// @param has_costs       Whether the distribution of costs is known.
/// @determinism  The same on every rank, as the arguments are.
[[nodiscard]] inline policy_choice choose_policy(const plan_options& options, bool has_all_shapes,
                                                 bool has_costs) {
  if (options.policy != auto_policy) return {options.policy, {}};
  const std::uint64_t records = saturating_mul(
      saturating_mul(options.lanes, detail::pack_sizes(options).largest), options.lookahead_steps);
  const bool small = records <= most_replicated_records;
  if (has_all_shapes && small) {
    return {"replicated",
            "Policy replicated: the lengths of all records are known, and every rank can plan a "
            "window of " +
                std::to_string(records) + " records for all lanes."};
  }
  const std::string without =
      has_all_shapes
          ? "a window of all lanes has " + std::to_string(records) + " records, more than the " +
                std::to_string(most_replicated_records) + " that every rank should plan"
          : std::string("the lengths of the records are not known beforehand");
  if (has_costs) {
    return {"calendar",
            "Policy calendar: " + without + ", but how costs are distributed is known."};
  }
  return {"window", "Policy window: " + without +
                        ", and nothing says how costs are distributed. A declared "
                        "length histogram would allow calendar."};
}

/// The same for the records of a feed that was made with these options.
[[nodiscard]] inline policy_choice choose_policy(const plan_options& options,
                                                 const candidate_feed& feed) {
  return choose_policy(options, feed.source().traits().has_all_shapes,
                       options.costs != nullptr || feed.costs() != nullptr);
}

}  // namespace lanepack::inline LANEPACK_ABI
