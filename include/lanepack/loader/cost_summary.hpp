#pragma once

/// @file
/// The costs of a corpus in all: the mean, and the records that no pack can balance.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/selection.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What the records of a run cost, each taken once.
struct cost_summary {
  std::uint64_t records = 0;
  /// Sum of all costs, at most 2^64 - 1 for up to 2^24 records at the largest cost.
  uint128 total = 0;
  std::uint64_t largest = 0;

  /// Mean cost, rounded down.
  [[nodiscard]] std::uint64_t mean() const noexcept {
    return records == 0 ? 0 : static_cast<std::uint64_t>(total / records);
  }
};

namespace detail {

/// Costs of the records that take part, batch by batch, on all cores.
template <class State, class Visit>
[[nodiscard]] auto scan_costs(const any_source& source, const record_selection& selection,
                              const any_estimator& estimator, const scan_options& options,
                              Visit&& visit) {
  return scan_shapes<State>(source, options,
                            [&](State& state, record_id, const record_shape& shape) {
                              if (!selection.limits.keeps(shape.tokens)) return;
                              const record_shape delivered = selection.delivered(shape);
                              std::uint64_t cost = 0;
                              estimator.costs({&delivered, 1}, {&cost, 1});
                              visit(state, cost);
                            });
}

}  // namespace detail

/// Sums up the costs of the records that take part.
/// @complexity  O(records) in parallel.
[[nodiscard]] inline cost_summary summarize_costs(const any_source& source,
                                                  const record_selection& selection,
                                                  const any_estimator& estimator,
                                                  const scan_options& options = {}) {
  cost_summary all;
  for (const auto& part : detail::scan_costs<cost_summary>(
           source, selection, estimator, options, [](cost_summary&state, std::uint64_t cost) {
             ++state.records;
             state.total += cost;
             state.largest = std::max(state.largest, cost);
           })) {
    all.records += part->records;
    all.total += part->total;
    all.largest = std::max(all.largest, part->largest);
  }
  return all;
}

/// Records that cost more than a whole mean pack of `records_per_pack` records: no partition can
/// balance them, only align them.
/// @complexity  O(records) in parallel.
[[nodiscard]] inline std::uint64_t count_unbalanceable(
    const any_source& source, const record_selection& selection, const any_estimator& estimator,
    const cost_summary& costs, std::uint64_t records_per_pack, const scan_options& options = {}) {
  const uint128 target = costs.total * records_per_pack;
  std::uint64_t count = 0;
  for (const auto& part : detail::scan_costs<std::uint64_t>(
           source, selection, estimator, options, [&](std::uint64_t&state, std::uint64_t cost) {
             if (static_cast<uint128>(cost) * costs.records > target) ++state;
           })) {
    count += *part;
  }
  return count;
}

}  // namespace lanepack::inline LANEPACK_ABI
