#pragma once

/// @file
/// How long a simulated step takes, by where ranks wait for each other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/sim/step_assignment.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Where ranks wait for each other.
enum class sync_model : std::uint8_t {
  /// Once a step: data parallelism with gradient accumulation.
  step,
  /// In every micro-batch: sharded parameters, expert parallelism.
  micro_batch,
};

/// "step" or "microbatch".
[[nodiscard]] constexpr std::string_view to_string(sync_model sync) noexcept {
  return sync == sync_model::step ? "step" : "microbatch";
}

/// The model of that name.
/// @throws  invalid_option
[[nodiscard]] inline sync_model parse_sync_model(std::string_view text) {
  for (const sync_model sync : {sync_model::step, sync_model::micro_batch}) {
    if (text == to_string(sync)) return sync;
  }
  detail::throw_invalid_option("sync", detail::quoted(text), "step or microbatch");
}

/// What a step takes, in cost units; 2^64 - 1 where that does not fit.
struct step_time {
  /// Sum over ranks of what a rank's records and micro-batches cost, without padding.
  std::uint64_t busy = 0;
  /// Until the last rank is done; every rank takes so long.
  std::uint64_t elapsed = 0;
};

/// Time of a step: the slowest rank, or the sum over the micro-batches of the slowest rank in each.
/// @param overhead  Cost units that every micro-batch takes beside its records. A rank that has no
///                  micro-batch left waits for those that have one.
/// @complexity  O(micro-batches).
[[nodiscard]] inline step_time time_of(const step_assignment& assignment, sync_model sync,
                                       std::uint64_t overhead) {
  step_time out;
  std::size_t rounds = 0;
  for (std::size_t rank = 0; rank < assignment.ranks(); ++rank) {
    const std::span<const simulated_micro_batch> own = assignment[rank];
    std::uint64_t time = saturating_mul(overhead, own.size());
    for (const simulated_micro_batch& micro_batch : own) {
      time = saturating_add(time, micro_batch.cost);
    }
    out.busy = saturating_add(out.busy, time);
    for (const simulated_micro_batch& micro_batch : own) {
      time = saturating_add(time, micro_batch.padding_cost);
    }
    out.elapsed = std::max(out.elapsed, time);
    rounds = std::max(rounds, own.size());
  }
  if (sync == sync_model::step) return out;
  out.elapsed = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::uint64_t slowest = 0;
    for (std::size_t rank = 0; rank < assignment.ranks(); ++rank) {
      const std::span<const simulated_micro_batch> own = assignment[rank];
      if (round < own.size()) {
        slowest = std::max(slowest, saturating_add(own[round].cost, own[round].padding_cost));
      }
    }
    out.elapsed = saturating_add(out.elapsed, saturating_add(slowest, overhead));
  }
  return out;
}

}  // namespace lanepack::inline LANEPACK_ABI
