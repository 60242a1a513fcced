#pragma once

/// @file
/// `stagger_window`: how far lanes must drift apart so that aligned heavy packs keep the limits on
/// a step.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/packer/step_limits.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Which lanes emit the heavy packs of a window together.
///
/// Lane l belongs to group l mod `groups`; the packs of group r stand `shift` x r places later,
/// round the window.
struct window_stagger {
  /// At least 1; 1: all lanes emit their heaviest packs in the same step.
  std::uint32_t groups = 1;
  std::uint32_t shift = 0;

  /// Places by which the packs of a lane stand later in a window of `steps` steps.
  [[nodiscard]] std::uint32_t offset(lane_index lane, std::uint32_t steps) const noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{lane % groups} * shift % steps);
  }

  friend bool operator==(const window_stagger&, const window_stagger&) = default;
};

namespace detail {

/// What the packs of a window hold on average, heaviest pack first.
struct window_profile {
  std::vector<std::uint64_t> cost;
  std::vector<std::uint64_t> tokens;
  /// Tokens of the records among the dearest 1 %.
  std::vector<std::uint64_t> long_tokens;
};

/// Forms windows of records that are drawn from the distribution.
/// @complexity  About 2^16 records in 4 to 1024 windows.
[[nodiscard]] inline window_profile profile_window(const cost_distribution& costs,
                                                   std::uint32_t records_per_pack,
                                                   std::uint32_t lookahead_steps,
                                                   const partition_options& partition) {
  constexpr std::uint64_t wanted_records = std::uint64_t{1} << 16;
  // Lanes below this number are those of `calendar_trial`.
  constexpr std::uint32_t stream = 1U << 16;
  const std::size_t n = std::size_t{lookahead_steps} * records_per_pack;
  const std::uint64_t windows = std::clamp<std::uint64_t>(wanted_records / n, 4, 1024);
  const std::uint64_t long_cost = costs.at_rank(costs.records() - 1 - costs.records() / 100).cost;
  const random_key key{.seed = 0, .epoch = 0, .stage = random_stage::virtual_lanes, .lane = stream};
  balanced_partitioner partitioner(partition);
  std::vector<std::uint64_t> drawn(n);
  std::vector<std::uint64_t> tokens(n);
  std::vector<uint128> cost_sums(lookahead_steps);
  std::vector<uint128> token_sums(lookahead_steps);
  std::vector<uint128> long_sums(lookahead_steps);
  for (std::uint64_t window = 0; window < windows; ++window) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bits = counter_random(key, window * n + i);
      const cost_bucket& bucket = costs.at_rank(random_below(bits, costs.records()));
      drawn[i] = bucket.cost;
      tokens[i] = bucket.tokens;
    }
    const partition_view packs = partitioner.partition(drawn, records_per_pack);
    for (std::size_t pack = 0; pack < packs.size(); ++pack) {
      cost_sums[pack] += packs.costs[pack];
      for (const std::uint32_t index : packs[pack]) {
        token_sums[pack] += tokens[index];
        if (drawn[index] >= long_cost) long_sums[pack] += tokens[index];
      }
    }
  }
  window_profile profile;
  for (std::uint32_t pack = 0; pack < lookahead_steps; ++pack) {
    profile.cost.push_back(static_cast<std::uint64_t>(cost_sums[pack] / windows));
    profile.tokens.push_back(static_cast<std::uint64_t>(token_sums[pack] / windows));
    profile.long_tokens.push_back(static_cast<std::uint64_t>(long_sums[pack] / windows));
  }
  return profile;
}

/// What a stagger makes of the steps of a window.
struct staggered_steps {
  /// Sum over steps of the largest pack of any group.
  uint128 slowest = 0;
  /// Largest tokens and cost of a step over the mean, in parts per million.
  std::uint64_t tokens_ppm = 0;
  std::uint64_t cost_ppm = 0;
  /// Weight of a token of the dearest 1 % over the mean token.
  std::uint64_t weight_ppm = 0;
};

[[nodiscard]] inline staggered_steps evaluate(const window_profile& profile,
                                              const window_stagger& stagger, std::uint32_t lanes) {
  constexpr std::uint64_t million = 1'000'000;
  const std::size_t steps = profile.cost.size();
  uint128 all_cost = 0;
  uint128 all_tokens = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    all_cost += profile.cost[i];
    all_tokens += profile.tokens[i];
  }
  // Sums over lanes of a step, and the mean of those sums.
  const uint128 mean_cost = std::max<uint128>(1, all_cost * lanes / steps);
  const uint128 mean_tokens = std::max<uint128>(1, all_tokens * lanes / steps);
  staggered_steps result;
  uint128 long_tokens = 0;
  uint128 weight = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    uint128 cost = 0;
    uint128 tokens = 0;
    uint128 of_long = 0;
    std::uint64_t slowest = 0;
    for (std::uint32_t group = 0; group < stagger.groups; ++group) {
      const std::uint64_t members = (lanes - group - 1) / stagger.groups + 1;
      const std::size_t offset = stagger.offset(group, static_cast<std::uint32_t>(steps));
      const std::size_t pack = (step + steps - offset) % steps;
      cost += static_cast<uint128>(profile.cost[pack]) * members;
      tokens += static_cast<uint128>(profile.tokens[pack]) * members;
      of_long += static_cast<uint128>(profile.long_tokens[pack]) * members;
      slowest = std::max(slowest, profile.cost[pack]);
    }
    result.slowest += slowest;
    result.cost_ppm =
        std::max(result.cost_ppm, static_cast<std::uint64_t>(cost * million / mean_cost));
    result.tokens_ppm =
        std::max(result.tokens_ppm, static_cast<std::uint64_t>(tokens * million / mean_tokens));
    long_tokens += of_long;
    weight += of_long * (mean_tokens * million / std::max<uint128>(1, tokens));
  }
  result.weight_ppm = long_tokens == 0 ? million : static_cast<std::uint64_t>(weight / long_tokens);
  return result;
}

}  // namespace detail

/// The stagger that keeps the limits and loses the least time: windows are formed of records drawn
/// from the distribution, and every number of groups up to 64 is tried with shifts that are powers
/// of two (for windows of more than 1024 steps only some of them).
///
/// Where none keeps the limits (fewer lanes than groups needed), the one that exceeds them least.
/// With a limit on tokens, tokens of the dearest 1 % of records also weigh at least
/// `least_token_weight_ppm`.
/// @param lanes  L, at least 1.
/// @throws invalid_option if a limit is above 0 and at most 1'000'000.
/// @complexity   Up to 1024 windows of about 2^16 records in all are partitioned: 10 to 15 ms from
/// 64
///               records a window on, less below; none without a limit.
/// @determinism  Integers only: the same on every rank.
[[nodiscard]] inline window_stagger stagger_window(const cost_distribution& costs,
                                                   std::uint32_t records_per_pack,
                                                   std::uint32_t lookahead_steps,
                                                   std::uint32_t lanes, const step_limits& limits,
                                                   const partition_options& partition = {}) {
  constexpr std::uint32_t most_groups = 64;
  validate(limits);
  if (!limits.any() || lookahead_steps < 2 || lanes < 2) return {};
  const detail::window_profile profile =
      detail::profile_window(costs, records_per_pack, lookahead_steps, partition);
  const auto excess = [&](const detail::staggered_steps& steps) {
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t found, std::uint64_t most) {
      if (found > most) sum += found - most;
    };
    if (limits.max_cost_ppm != 0) add(steps.cost_ppm, limits.max_cost_ppm);
    if (limits.max_tokens_ppm != 0) {
      add(steps.tokens_ppm, limits.max_tokens_ppm);
      add(least_token_weight_ppm, steps.weight_ppm);
    }
    return sum;
  };
  window_stagger best;
  detail::staggered_steps found = detail::evaluate(profile, best, lanes);
  std::uint64_t least_excess = excess(found);
  if (least_excess == 0) return best;
  uint128 least_time = found.slowest;
  // Of long windows only some are tried, as trying all would take minutes.
  const bool coarse = lookahead_steps > 1024;
  const std::uint32_t largest = std::min({most_groups, lanes, lookahead_steps});
  for (std::uint32_t groups = 2; groups <= largest; groups = coarse ? 2 * groups : groups + 1) {
    for (std::uint64_t shift = 1; shift * groups <= lookahead_steps; shift *= coarse ? 32 : 2) {
      const window_stagger stagger{.groups = groups, .shift = static_cast<std::uint32_t>(shift)};
      found = detail::evaluate(profile, stagger, lanes);
      const std::uint64_t exceeded = excess(found);
      if (std::tie(exceeded, found.slowest) < std::tie(least_excess, least_time)) {
        best = stagger;
        least_excess = exceeded;
        least_time = found.slowest;
      }
    }
  }
  return best;
}

}  // namespace lanepack::inline LANEPACK_ABI
