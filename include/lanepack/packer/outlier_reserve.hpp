#pragma once

/// @file
/// Outliers that are held until a step can be filled with them: which ones, and whether it helps.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/outlier_steps.hpp>

namespace lanepack::inline LANEPACK_ABI::detail {

/// What packs can cost at most in a step that is given the dearest ordinary records of `steps` of
/// them: the mean of those times b. Ordinary records cost less than a mean pack.
[[nodiscard]] inline std::uint64_t filled_pack_cost(const cost_distribution& costs, std::uint32_t b,
                                                    std::uint32_t steps) {
  const std::uint64_t ordinary =
      std::max<std::uint64_t>(1, costs.records_up_to(costs.mean_cost(b)));
  const std::uint64_t dearest = ceil_div(ordinary, steps);
  const uint128 cost = costs.cheapest_cost(ordinary) - costs.cheapest_cost(ordinary - dearest);
  return static_cast<std::uint64_t>(std::min<uint128>(cost / dearest, max_record_cost)) * b;
}

/// What windows lose to outliers that their steps cannot be filled up to, in parts per million of
/// the time: the expected excess of such records in a step over the mean pack, not counting that
/// several may meet.
[[nodiscard]] inline std::uint64_t loss_to_outliers_ppm(const cost_distribution& costs,
                                                        std::uint32_t lanes, std::uint32_t b,
                                                        std::uint32_t steps) {
  const std::uint64_t mean = std::max<std::uint64_t>(1, costs.mean_cost(b));
  // Outliers fill steps too, as far as they are frequent.
  const std::uint64_t dearest = ceil_div(costs.records(), steps);
  const uint128 dearest_cost = costs.total_cost() - costs.cheapest_cost(costs.records() - dearest);
  const uint128 filled = dearest_cost / dearest * b;
  uint128 excess = 0;
  for (const cost_bucket& bucket : costs.buckets()) {
    if (bucket.cost <= filled) continue;
    // At most 2^56 records of 2^40 each.
    excess +=
        static_cast<uint128>(bucket.records) * static_cast<std::uint64_t>(bucket.cost - filled);
  }
  const uint128 of_a_step =
      excess / costs.records() * lanes * b + excess % costs.records() * lanes * b / costs.records();
  constexpr std::uint64_t million = 1'000'000;
  return static_cast<std::uint64_t>(std::min<uint128>(of_a_step * million / mean, 1000 * million));
}

/// Chooses the outliers of a pool of records that are worth holding back.
///
/// From the dearest down, outliers are held until one is found from which on the pool has enough to
/// fill a step at that one's level, or one that has to leave: it and all that cost less are let go,
/// because they find room in its step.
///
/// @thread_safety  None: one thread per object.
/// @determinism    Integers only; depends on the arguments alone.
class outlier_reserve {
 public:
  /// What the choice depends on beside the records.
  struct situation {
    /// Cost from which on a record is an outlier.
    std::uint64_t share = 0;
    /// What a pack costs at most without an outlier, see `filled_pack_cost`.
    std::uint64_t filled = 0;
    /// Packs of a step.
    std::uint32_t packs = 1;
    /// Tokens that fit a step, `step_budget::none` without a limit.
    std::uint64_t step_tokens = step_budget::none;
    /// Records admitted before this step may not be held.
    step_index oldest_admitted = 0;
  };

  /// Marks `count` of the records as held: outliers worth it, then the latest of the others.
  /// @param pool  In arrival order, at least `count` of them, at most `max_ordered_records`. At
  ///              least as many as are not held must be allowed to leave.
  /// @param held  One mark a record: 1 where it is held.
  /// @complexity  O(pool + outliers log outliers).
  void choose(std::span<const candidate> pool, std::size_t count, const situation& now,
              std::vector<std::uint8_t>& held) {
    held.assign(pool.size(), 0);
    outliers_.clear();
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (pool[i].cost > now.share) outliers_.push_back(descending_key(pool[i].cost, i));
    }
    std::sort(outliers_.begin(), outliers_.end());
    const std::size_t worth = std::min(count, held_outliers(pool, now));
    for (std::size_t i = 0; i < worth; ++i) held[descending_key_index(outliers_[i])] = 1;
    std::size_t missing = count - worth;
    // The latest records that are no outliers; only a pool of outliers has too few of them.
    for (const bool any : {false, true}) {
      for (std::size_t i = pool.size(); i > 0 && missing > 0; --i) {
        if (held[i - 1] != 0 || (!any && pool[i - 1].cost > now.share)) continue;
        held[i - 1] = 1;
        --missing;
      }
    }
  }

 private:
  /// How many of the dearest outliers are worth holding.
  [[nodiscard]] std::size_t held_outliers(std::span<const candidate> pool, const situation& now) {
    const std::size_t n = outliers_.size();
    sums_.assign(1, {0, 0});
    for (const std::uint64_t key : outliers_) {
      sums_.push_back({sums_.back().cost + descending_key_cost(key),
                       sums_.back().tokens + pool[descending_key_index(key)].tokens});
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t level = descending_key_cost(outliers_[i]);
      if (pool[descending_key_index(outliers_[i])].admitted < now.oldest_admitted) {
        // Those little dearer would soon need a step as dear.
        std::size_t first = i;
        while (first > 0 && descending_key_cost(outliers_[first - 1]) <= level + level / 2) {
          --first;
        }
        return first;
      }
      if (fills_a_step(i, level, now)) return i;
    }
    return n;
  }

  /// Whether the outliers from one on fill a step at its level, as far as anything can.
  [[nodiscard]] bool fills_a_step(std::size_t first, std::uint64_t level,
                                  const situation& now) const {
    const std::size_t last = std::min(outliers_.size(), first + now.packs);
    if (now.step_tokens != step_budget::none &&
        sums_[last].tokens - sums_[first].tokens >= now.step_tokens - now.step_tokens / 8) {
      return true;
    }
    // Packs whose outlier leaves no more than what can be filled reach the level.
    std::size_t full = first;
    while (full < last && descending_key_cost(outliers_[full]) + now.filled >= level) ++full;
    const uint128 cost =
        static_cast<uint128>(full - first) * level + (sums_[last].cost - sums_[full].cost) +
        static_cast<uint128>(last - full) * now.filled +
        static_cast<uint128>(now.packs - (last - first)) * std::min(level, now.filled);
    // A little less than full, because the last few outliers may be long in coming.
    return cost * 64 >= static_cast<uint128>(level) * now.packs * 63;
  }

  struct sums {
    std::uint64_t cost;
    std::uint64_t tokens;
  };

  std::vector<std::uint64_t> outliers_;
  /// Over the first so many outliers.
  std::vector<sums> sums_;
};

}  // namespace lanepack::inline LANEPACK_ABI::detail
