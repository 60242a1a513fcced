#pragma once

/// @file
/// Refuses plans that this machine cannot hold, before it runs out of memory.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/loader/options.hpp>

#include "support/terminal.hpp"

namespace lanepack_programs {

/// Bytes that this machine has; all that 64 bits hold where it does not say.
inline std::uint64_t machine_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::numeric_limits<std::uint64_t>::max();
  return lanepack::saturating_mul(static_cast<std::uint64_t>(pages),
                                  static_cast<std::uint64_t>(page));
}

/// What planners of so many lanes take, as measured of `sequential`, which holds a step, and of
/// `window` and `calendar`.
inline std::uint64_t planning_bytes(const lanepack::plan_options& plan, std::uint64_t lanes) {
  const bool holds_step = plan.policy == "sequential";
  const std::uint64_t lane_bytes = holds_step ? 320 : 800;
  const std::uint64_t record_bytes = holds_step ? 56 : 140;
  std::uint64_t records = plan.records_per_pack;
  for (const lanepack::pack_size_change& change : plan.pack_size_changes) {
    records = std::max<std::uint64_t>(records, change.records_per_pack);
  }
  if (!holds_step) records = lanepack::saturating_mul(records, plan.lookahead_steps);
  return lanepack::saturating_mul(
      lanes, lanepack::saturating_add(lane_bytes, lanepack::saturating_mul(records, record_bytes)));
}

/// Refuses more lanes than fit into memory.
/// @param option  That sets them.
/// @throws  lanepack::invalid_option
inline void check_memory(const std::string& option, const lanepack::plan_options& plan,
                         std::uint64_t lanes) {
  const std::uint64_t most = machine_bytes();
  const std::uint64_t bytes = planning_bytes(plan, lanes);
  if (bytes <= most) return;
  const std::uint64_t fitting = most / planning_bytes(plan, 1);
  lanepack::detail::throw_invalid_option(
      option,
      std::to_string(lanes) + ", which takes about " + short_bytes(static_cast<double>(bytes)) +
          " with packs of " + std::to_string(plan.records_per_pack) +
          " records and a lookahead of " + std::to_string(plan.lookahead_steps) + " steps",
      "at most " + std::to_string(fitting) + ", for which this machine's " +
          short_bytes(static_cast<double>(most)) + " suffice");
}

}  // namespace lanepack_programs
