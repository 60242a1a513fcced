#pragma once

/// @file
/// `cost_profile`: what the records of a corpus cost in all, and how many no pack can balance.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/feasibility.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Costs of the records that the limits keep, as they are delivered.
struct cost_profile {
  /// Records kept.
  std::uint64_t records = 0;
  /// Sum of their costs.
  uint128 total_cost = 0;
  /// Cost of the dearest.
  std::uint64_t max_cost = 0;
  /// Records that cost more than `target_cost` of a pack.
  std::uint64_t unbalanceable_records = 0;

  /// Cost of a mean pack of `records_per_pack` records, rounded down; 0 without records.
  [[nodiscard]] std::uint64_t target_cost(std::uint64_t records_per_pack) const noexcept {
    if (records == 0) return 0;
    // A mean cost is at most 2^40, so that any number of records that fits 64 bits is safe.
    const uint128 target =
        total_cost / records * records_per_pack + total_cost % records * records_per_pack / records;
    constexpr uint128 most = std::numeric_limits<std::uint64_t>::max();
    return static_cast<std::uint64_t>(target < most ? target : most);
  }
};

/// Computes the cost profile of a corpus from all its shapes.
/// @param records_per_pack  b, which decides what is unbalanceable.
/// @throws invalid_option  `threads` is 0.
/// @throws state_error     The source does not know all shapes.
/// @throws data_error      The index is corrupt.
/// @complexity  Two passes over the shapes.
[[nodiscard]] inline cost_profile profile_costs(const any_source& source,
                                                const any_estimator& estimator,
                                                const feasibility& limits,
                                                std::uint64_t records_per_pack,
                                                const scan_options& options = {}) {
  const auto cost_of = [&](const record_shape& shape) {
    return estimator.cost(limits.delivered(shape));
  };
  cost_profile profile;
  for (const auto& part : detail::scan_shapes<cost_profile>(
           source, options, [&](cost_profile&sums, record_id, const record_shape&shape) {
             if (!limits.keeps(shape.tokens)) return;
             const std::uint64_t cost = cost_of(shape);
             ++sums.records;
             sums.total_cost += cost;
             sums.max_cost = std::max(sums.max_cost, cost);
           })) {
    profile.records += part->records;
    profile.total_cost += part->total_cost;
    profile.max_cost = std::max(profile.max_cost, part->max_cost);
  }
  const std::uint64_t target = profile.target_cost(records_per_pack);
  if (!unbalanceable(profile.max_cost, target)) return profile;
  for (const auto& part : detail::scan_shapes<std::uint64_t>(
           source, options, [&](std::uint64_t&count, record_id, const record_shape&shape) {
             if (limits.keeps(shape.tokens) && unbalanceable(cost_of(shape), target)) ++count;
           })) {
    profile.unbalanceable_records += *part;
  }
  return profile;
}

/// Estimates the cost profile of a corpus from its summary, without reading an index.
///
/// Every record counts as one of its bucket's mean length (off by at most 1/2048 above 4095 tokens,
/// exact below) with the corpus' mean number of patches a token; the longest is taken exactly.
/// @complexity  O(buckets).
[[nodiscard]] inline cost_profile estimate_costs(const corpus_summary& summary,
                                                 const any_estimator& estimator,
                                                 const feasibility& limits,
                                                 std::uint64_t records_per_pack) {
  const auto shape_of = [&](std::uint64_t tokens) {
    record_shape shape;
    shape.tokens = tokens;
    shape.loss_tokens = tokens == 0 ? 0 : tokens - 1;
    if (summary.tokens != 0) {
      const uint128 patches = static_cast<uint128>(tokens) * summary.patches / summary.tokens;
      constexpr uint128 most = std::numeric_limits<std::uint64_t>::max();
      shape.patches = static_cast<std::uint64_t>(patches < most ? patches : most);
    }
    return limits.delivered(shape);
  };
  std::vector<record_shape> shapes;
  std::vector<std::uint64_t> counts;
  for (const length_bucket& bucket : summary.histogram.buckets()) {
    const std::uint64_t mean = bucket.tokens / bucket.records;
    if (!limits.keeps(mean)) continue;
    shapes.push_back(shape_of(mean));
    counts.push_back(bucket.records);
  }
  std::vector<std::uint64_t> costs(shapes.size());
  estimator.costs(shapes, costs);
  cost_profile profile;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    profile.records += counts[i];
    profile.total_cost += static_cast<uint128>(costs[i]) * counts[i];
    profile.max_cost = std::max(profile.max_cost, costs[i]);
  }
  if (limits.keeps(summary.max_tokens)) {
    profile.max_cost = std::max(profile.max_cost, estimator.cost(shape_of(summary.max_tokens)));
  }
  const std::uint64_t target = profile.target_cost(records_per_pack);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (unbalanceable(costs[i], target)) profile.unbalanceable_records += counts[i];
  }
  return profile;
}

}  // namespace lanepack::inline LANEPACK_ABI
