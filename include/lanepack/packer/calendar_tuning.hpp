#pragma once

/// @file
/// `tune_calendar`: finds the numbers of a calendar by simulating a few virtual lanes.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/calendar_caps.hpp>
#include <lanepack/packer/calendar_filler.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/lookahead_buffer.hpp>
#include <lanepack/packer/step_limits.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of `calendar_policy`.
struct calendar_options {
  /// What the stream's records cost; the same on every rank. Required.
  std::shared_ptr<const cost_distribution> costs;
  /// Records of a pack (b), at least 1; steps with another number reuse the tuning found for this.
  std::uint32_t records_per_pack = 16;
  /// The fewest and the most records that a pack of the run has; nullopt: `records_per_pack`.
  std::optional<std::uint32_t> min_records_per_pack = std::nullopt;
  std::optional<std::uint32_t> max_records_per_pack = std::nullopt;
  /// All that a lane may buffer, in steps, at least 1.
  std::uint32_t lookahead_steps = 16;
  /// Hard bound on displacement, at least `lookahead_steps`; nullopt: 32 x `lookahead_steps`.
  std::optional<std::uint64_t> max_displacement_steps = std::nullopt;
  /// Ranks that meet in a step, at most: the more there are, the rarer a pack above the cap must
  /// be.
  std::uint32_t max_ranks = 512;
  /// Limits on the mean cost and the mean tokens of a step over the run's mean, in parts per
  /// million, above 1'000'000; nullopt: none.
  std::optional<std::uint32_t> max_step_cost_ppm = std::nullopt;
  std::optional<std::uint32_t> max_step_tokens_ppm = 1'500'000;
  /// Numbers found before; nullopt: found at construction.
  std::optional<calendar_tuning> tuning = std::nullopt;
};

/// Checks the numbers of a calendar that were given rather than found.
/// @throws invalid_option naming the field.
inline void validate(const calendar_tuning& tuning) {
  constexpr std::uint32_t million = 1'000'000;
  const auto require = [](bool holds, const char* name, std::uint32_t found, const char* expected) {
    if (!holds) detail::throw_invalid_option(name, std::to_string(found), expected);
  };
  require(tuning.light_ppm >= 1 && tuning.light_ppm <= million, "light_ppm", tuning.light_ppm,
          "1 to 1000000");
  require(tuning.dither_ppm <= 2 * million, "dither_ppm", tuning.dither_ppm, "at most 2000000");
  require(tuning.slot_delay_steps >= 1, "slot_delay_steps", 0, "at least 1");
  for (const auto& [name, limit] : {std::pair("step_cost_ppm", tuning.step_cost_ppm),
                                    std::pair("step_tokens_ppm", tuning.step_tokens_ppm)}) {
    require(limit == 0 || limit > million, name, limit, "0, or more than 1000000, the mean");
  }
}

namespace detail {

/// Checks the options; returns the displacement bound.
[[nodiscard]] inline std::uint64_t checked_displacement(const calendar_options& options) {
  if (!options.costs) {
    throw_invalid_option("costs", "none", "the distribution of record costs that `calendar` needs");
  }
  if (options.records_per_pack == 0) throw_invalid_option("records_per_pack", "0", "at least 1");
  if (options.lookahead_steps == 0) throw_invalid_option("lookahead_steps", "0", "at least 1");
  const std::uint32_t most = options.max_records_per_pack.value_or(options.records_per_pack);
  if (most < options.records_per_pack) {
    throw_invalid_option("max_records_per_pack", std::to_string(most),
                         "at least records_per_pack, " + std::to_string(options.records_per_pack));
  }
  const std::uint64_t held = std::uint64_t{options.lookahead_steps} * most;
  if (held > max_ordered_records) {
    throw_invalid_option("lookahead_steps", std::to_string(options.lookahead_steps),
                         "at most 2^23 buffered records, here " +
                             std::to_string(max_ordered_records / most) + " steps");
  }
  if (options.max_ranks == 0) throw_invalid_option("max_ranks", "0", "at least 1");
  const std::uint32_t least = options.min_records_per_pack.value_or(options.records_per_pack);
  if (least == 0 || least > options.records_per_pack) {
    throw_invalid_option("min_records_per_pack", std::to_string(least),
                         "1 to records_per_pack, " + std::to_string(options.records_per_pack));
  }
  const std::uint64_t displacement =
      options.max_displacement_steps.value_or(std::uint64_t{32} * options.lookahead_steps);
  const std::uint64_t needed =
      std::max<std::uint64_t>(options.lookahead_steps, ceil_div(held, least));
  if (least < most && needed > displacement && displacement >= options.lookahead_steps) {
    // Not the bound is what the user changed, but how many records leave in a step.
    throw_invalid_option("min_records_per_pack", std::to_string(least),
                         "at least " + std::to_string(ceil_div(held, displacement)) +
                             ": packs of up to " + std::to_string(most) +
                             " records make the lookahead hold " + std::to_string(held) +
                             ", which have to leave within " + std::to_string(displacement) +
                             " steps (max_displacement_steps)");
  }
  if (displacement < needed || displacement > std::numeric_limits<std::uint32_t>::max()) {
    throw_invalid_option("max_displacement_steps", std::to_string(displacement),
                         std::to_string(needed) + " (what the lookahead needs) to 4294967295");
  }
  for (const auto& [name, limit] :
       {std::pair("max_step_cost_ppm", options.max_step_cost_ppm),
        std::pair("max_step_tokens_ppm", options.max_step_tokens_ppm)}) {
    if (limit && *limit <= 1'000'000) {
      throw_invalid_option(name, std::to_string(*limit), "more than 1000000, which is the mean");
    }
  }
  if (options.tuning) validate(*options.tuning);
  return displacement;
}

/// Squared coefficient of variation of a record's cost in parts per million.
[[nodiscard]] inline std::uint64_t cost_variation_ppm(const cost_distribution& costs) {
  const auto bits = static_cast<unsigned>(std::bit_width(costs.max_cost()));
  const unsigned shift = bits > 24 ? bits - 24 : 0;
  uint128 squares = 0;
  for (const cost_bucket& bucket : costs.buckets()) {
    const std::uint64_t cost = bucket.cost >> shift;
    squares += static_cast<uint128>(bucket.records) * cost * cost;
  }
  const uint128 mean = ((costs.total_cost() >> shift) << 8) / costs.records();
  if (mean == 0) return 0;
  const uint128 ratio = ((squares / costs.records()) << 16) * 1'000'000 / (mean * mean);
  return ratio <= 1'000'000 ? 0
                            : static_cast<std::uint64_t>(std::min<uint128>(
                                  ratio - 1'000'000, std::numeric_limits<std::uint32_t>::max()));
}

/// Packs of work by which the fullest and the emptiest buffer differ (H), in parts per million.
[[nodiscard]] inline std::uint64_t backlog_range_ppm(const calendar_options& options,
                                                     std::uint64_t displacement) {
  const cost_distribution& costs = *options.costs;
  const std::uint64_t n = costs.records();
  const std::uint64_t carried = options.lookahead_steps - 1;
  // The dearest records that a buffer can be full of: an eighth of all, or more where they would be
  // too old.
  const std::uint64_t top = std::clamp<std::uint64_t>(
      std::max(n / 8, static_cast<std::uint64_t>(static_cast<uint128>(n) * carried / displacement)),
      1, n);
  const std::uint64_t bottom = std::max<std::uint64_t>(1, n / 8);
  const uint128 high = (costs.total_cost() - costs.cheapest_cost(n - top)) / top;
  const uint128 low = costs.cheapest_cost(bottom) / bottom;
  const uint128 mean = std::max<std::uint64_t>(1, costs.mean_cost(1));
  const uint128 range = high > low ? (high - low) * 1'000'000 * carried / mean : 0;
  return static_cast<std::uint64_t>(
      std::clamp<uint128>(range, 1'000'000, std::numeric_limits<std::uint32_t>::max()));
}

/// Packs of work that a buffer of light records is short of, in parts per million; at most 11/16 of
/// the lookahead, so that there is a choice of records.
[[nodiscard]] inline std::uint32_t reserve_ppm(const calendar_options& options) {
  const cost_distribution& costs = *options.costs;
  const std::uint64_t bottom = std::max<std::uint64_t>(1, costs.records() / 8);
  const uint128 low = costs.cheapest_cost(bottom) / bottom;
  const uint128 mean = std::max<std::uint64_t>(1, costs.mean_cost(1));
  const std::uint64_t carried = options.lookahead_steps - 1;
  const uint128 room = mean > low ? (mean - low) * 1'000'000 * carried / mean : 0;
  return static_cast<std::uint32_t>(
      std::min<uint128>(room, std::uint64_t{options.lookahead_steps} * 11'000'000 / 16));
}

/// Spare capacity that a queue of this variation needs, in parts per million.
///
/// A lane's backlog is a random walk with drift -d and variance cv^2 / b a step, in mean packs, in
/// a buffer with room for H packs of it. With u(d) = d / (e^(d B) - 1), B = 2 b H / cv^2, of work
/// pushed out above the cap by each of R ranks, d + R u(d) is least where d B is about 0.8 (1 +
/// log2 R).
[[nodiscard]] inline std::uint64_t spare_by_theory_ppm(const calendar_options& options,
                                                       std::uint64_t displacement) {
  const auto doublings = static_cast<std::uint64_t>(std::bit_width(options.max_ranks));
  const uint128 spare = static_cast<uint128>(cost_variation_ppm(*options.costs)) * 8 * doublings *
                        1'000'000 /
                        (static_cast<uint128>(20) * options.records_per_pack *
                         backlog_range_ppm(options, displacement));
  return static_cast<std::uint64_t>(std::clamp<uint128>(spare, 500, 1'000'000));
}

/// base^exponent with 32 fractional bits, for a base of at most 1.
[[nodiscard]] constexpr std::uint64_t power32(std::uint64_t base, std::uint32_t exponent) noexcept {
  std::uint64_t result = std::uint64_t{1} << 32;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      result = static_cast<std::uint64_t>((static_cast<uint128>(result) * base) >> 32);
    }
    base = static_cast<std::uint64_t>((static_cast<uint128>(base) * base) >> 32);
  }
  return result;
}

/// e^(-numerator / denominator) with 32 fractional bits.
[[nodiscard]] constexpr std::uint64_t exp_minus32(uint128 numerator, uint128 denominator) noexcept {
  constexpr std::uint32_t parts = 4096;
  constexpr std::uint64_t one = std::uint64_t{1} << 32;
  if (denominator == 0) return 0;
  const uint128 part = (numerator << 32) / denominator / parts;
  return part >= one ? 0 : power32(one - static_cast<std::uint64_t>(part), parts);
}

/// Largest integer whose square is at most `value`.
[[nodiscard]] constexpr std::uint64_t integer_root(uint128 value) noexcept {
  std::uint64_t root = 0;
  const auto high = static_cast<std::uint64_t>(value >> 64);
  const auto low = static_cast<std::uint64_t>(value);
  const auto width =
      static_cast<unsigned>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
  // The root has half the bits, rounded up.
  for (std::uint64_t bit = std::uint64_t{1} << (width == 0 ? 0 : (width - 1) / 2); bit != 0;
       bit >>= 1) {
    const std::uint64_t next = root | bit;
    if (static_cast<uint128>(next) * next <= value) root = next;
  }
  return root;
}

/// Options whose trials take seconds: packs and lookaheads of bounded size.
[[nodiscard]] inline calendar_options affordable(const calendar_options& given,
                                                 std::uint64_t displacement) {
  constexpr std::uint32_t most_records = 256;
  constexpr std::uint32_t most_held = 4096;
  calendar_options options = given;
  options.records_per_pack = std::min(given.records_per_pack, most_records);
  options.min_records_per_pack = std::nullopt;
  options.max_records_per_pack = std::nullopt;
  options.lookahead_steps = std::min(given.lookahead_steps, most_held / options.records_per_pack);
  options.max_displacement_steps = displacement;
  return options;
}

/// Virtual lanes that are fed with draws from the distribution.
class calendar_trial {
 public:
  /// What a trial shows.
  struct outcome {
    /// Expected maximum over ranks of a step's cost, over the mean pack cost, in parts per million.
    std::uint64_t step_ppm = 0;
    /// Weight of a token of the dearest 1 % of records over that of any token, where a step's loss
    /// is divided by its tokens, in parts per million.
    std::uint64_t token_weight_ppm = 0;
    /// Largest mean tokens and mean cost of a slot over the mean step, in parts per million.
    std::uint64_t step_tokens_ppm = 0;
    std::uint64_t step_cost_ppm = 0;
  };

  explicit calendar_trial(const calendar_options& options)
      : options_(options), displacement_(checked_displacement(options)) {
    // Large packs vary less, and each takes more time.
    if (options.records_per_pack > 64) {
      measured_steps_ = 512;
      lanes_ = 12;
    }
  }

  [[nodiscard]] outcome run(const calendar_tuning& tuning) {
    const cost_distribution& costs = *options_.costs;
    const std::uint32_t b = options_.records_per_pack;
    const calendar_caps caps(costs, b, tuning);
    const displacement_rule rule{.max_steps = displacement_, .min_records_per_pack = b};
    const std::uint64_t warm_up = std::min<std::uint64_t>(displacement_, 512);
    const std::uint64_t steps = warm_up + measured_steps_;

    excesses_.clear();
    slot_tokens_.assign(calendar_caps::period, 0);
    slot_cost_.assign(calendar_caps::period, 0);
    slot_long_tokens_.assign(calendar_caps::period, 0);
    const std::uint64_t long_cost = costs.at_rank(costs.records() - 1 - costs.records() / 100).cost;

    // What a lane is behind has the density e^(-2 b d w / cv^2) in the long run, far longer than a
    // trial. So lanes start evenly spread over the room for it and count with that weight.
    const std::int64_t reserve = caps.reserve(tuning);
    const std::uint64_t spacing_ppm = backlog_range_ppm(options_, displacement_) / lanes_;
    const std::uint64_t ratio =
        exp_minus32(static_cast<uint128>(2) * b * tuning.spare_ppm * spacing_ppm,
                    static_cast<uint128>(cost_variation_ppm(costs)) * million);
    std::vector<std::uint64_t> weights(lanes_);
    std::uint64_t weight = std::uint64_t{1} << 32;
    total_weight_ = 0;
    for (std::uint64_t& lane_weight : weights) {
      lane_weight = weight;
      total_weight_ += weight;
      weight = static_cast<std::uint64_t>((static_cast<uint128>(weight) * ratio) >> 32);
    }

    std::int64_t growth = 0;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      const auto ahead = static_cast<std::int64_t>(static_cast<uint128>(caps.pack_cost()) *
                                                   spacing_ppm * (2 * lane + 1) / (2 * million));
      lookahead_buffer buffer(std::size_t{options_.lookahead_steps} * b);
      std::uint64_t admitted = 0;
      std::uint64_t start = 0;
      for (std::uint64_t step = 0; step < steps; ++step) {
        const std::uint64_t until = (step + options_.lookahead_steps) * b;
        arrivals_.clear();
        for (; admitted < until; ++admitted) arrivals_.push_back(draw(lane, admitted, step));
        buffer.insert(arrivals_);
        if (step == warm_up) start = buffer.cheapest_sum(buffer.size());
        const calendar_slot& slot = caps.at(step);
        filler_.fill(buffer, slot, caps, tuning, rule, step, b,
                     step < warm_up / 2 ? reserve - ahead : reserve);
        if (step >= warm_up) account(buffer, slot, step, long_cost, weights[lane]);
        taken_.clear();
        buffer.take_picked(taken_);
      }
      const auto change = static_cast<std::int64_t>(buffer.cheapest_sum(buffer.size())) -
                          static_cast<std::int64_t>(start);
      growth += change / static_cast<std::int64_t>(measured_steps_) *
                static_cast<std::int64_t>(weights[lane] >> 16);
    }
    growth /= static_cast<std::int64_t>((total_weight_ >> 16) + 1);
    // What chance alone makes of a few lanes.
    const auto noise = static_cast<std::int64_t>(
        static_cast<uint128>(caps.pack_cost()) *
        integer_root(static_cast<uint128>(cost_variation_ppm(costs)) * million /
                     (static_cast<uint128>(b) * measured_steps_ * (lanes_ / 4))) /
        million);

    outcome result;
    uint128 cap_sum = 0;
    for (const calendar_slot& slot : caps.slots()) cap_sum += slot.cap;
    const auto mean_cap = static_cast<std::uint64_t>(cap_sum / calendar_caps::period);
    const std::uint64_t excess = expected_excess();
    const std::uint64_t unstable = growth > noise ? static_cast<std::uint64_t>(growth - noise) : 0;
    result.step_ppm = static_cast<std::uint64_t>(
        static_cast<uint128>(mean_cap + excess + unstable) * million / caps.pack_cost());
    weigh(caps, result);
    return result;
  }

 private:
  static constexpr std::uint64_t million = 1'000'000;

  [[nodiscard]] candidate draw(std::uint32_t lane, std::uint64_t index, step_index step) {
    // A block holds four numbers; draws of a lane come in order.
    if (index % 4 == 0 || index / 4 != block_index_) {
      block_ = counter_random_block(
          {.seed = 0, .epoch = 0, .stage = random_stage::virtual_lanes, .lane = lane}, index / 4);
      block_index_ = index / 4;
    }
    const cost_bucket& bucket =
        options_.costs->at_rank(random_below(block_[index % 4], options_.costs->records()));
    return {.record = {},
            .cost = bucket.cost,
            .tokens = bucket.tokens,
            .loss_tokens = 0,
            .arrival = index,
            .admitted = step,
            .role = record_role::regular};
  }

  struct excess_cost {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
  };

  void account(const lookahead_buffer& buffer, const calendar_slot& slot, step_index step,
               std::uint64_t long_cost, std::uint64_t weight) {
    const std::uint64_t cost = buffer.picked_cost();
    if (cost > slot.cap) excesses_.push_back({cost - slot.cap, weight});
    const auto index = static_cast<std::size_t>(step % calendar_caps::period);
    slot_cost_[index] += static_cast<uint128>(weight) * cost;
    std::uint64_t tokens = 0;
    std::uint64_t long_tokens = 0;
    buffer.for_each_picked([&](std::size_t place) {
      const candidate& record = buffer.at_place(place);
      tokens += record.tokens;
      if (record.cost >= long_cost) long_tokens += record.tokens;
    });
    slot_tokens_[index] += static_cast<uint128>(weight) * tokens;
    slot_long_tokens_[index] += static_cast<uint128>(weight) * long_tokens;
  }

  /// Expected maximum over ranks of what a step's packs exceed the cap by.
  [[nodiscard]] std::uint64_t expected_excess() {
    std::sort(excesses_.begin(), excesses_.end(), [](const excess_cost& a, const excess_cost& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.weight > b.weight;
    });
    constexpr std::uint64_t one = std::uint64_t{1} << 32;
    const uint128 packs = static_cast<uint128>(total_weight_) * measured_steps_;
    uint128 sum = 0;
    uint128 seen = 0;
    std::uint64_t none_before = one;
    for (const excess_cost& excess : excesses_) {
      // Probability that no rank has one of the largest excesses up to this.
      seen += excess.weight;
      const std::uint64_t none =
          power32(one - static_cast<std::uint64_t>((seen << 32) / packs), options_.max_ranks);
      sum += static_cast<uint128>(none_before - none) * excess.cost;
      none_before = none;
      if (none == 0) break;
    }
    return static_cast<std::uint64_t>(sum >> 32);
  }

  /// Slots by falling cap; those whose caps differ by less than a tenth by the steps since the last
  /// slot that was as good for what waits, the longest pause first: more lanes use such a slot.
  [[nodiscard]] static std::array<std::uint32_t, calendar_caps::period> slots_by_use(
      const calendar_caps& caps) {
    constexpr std::uint32_t period = calendar_caps::period;
    std::array<std::uint32_t, period> order{};
    std::array<std::uint32_t, period> pause{};
    for (std::uint32_t t = 0; t < period; ++t) {
      order[t] = t;
      const std::uint64_t cap = caps.at(t).cap;
      std::uint32_t steps = 1;
      while (steps < period && caps.at(t + period - steps).cap < cap - cap / 10) ++steps;
      pause[t] = steps;
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return caps.at(a).cap != caps.at(b).cap ? caps.at(a).cap > caps.at(b).cap : a < b;
    });
    for (auto first = order.begin(); first != order.end();) {
      const std::uint64_t least = caps.at(*first).cap - caps.at(*first).cap / 10;
      const auto last =
          std::find_if(first, order.end(), [&](std::uint32_t t) { return caps.at(t).cap < least; });
      std::sort(first, last, [&](std::uint32_t a, std::uint32_t b) {
        return pause[a] != pause[b] ? pause[a] > pause[b] : a < b;
      });
      first = last;
    }
    return order;
  }

  /// Slots that are used alike are taken together: few lanes visit a slot, and the largest of many
  /// noisy means would exceed a limit that the steps keep.
  void weigh(const calendar_caps& caps, outcome& result) const {
    constexpr std::size_t most_pooled = 16;
    const std::array<std::uint32_t, calendar_caps::period> order = slots_by_use(caps);
    // The mean of the trial itself: lanes that start behind emit more than arrives.
    uint128 all_tokens = 0;
    uint128 all_cost = 0;
    for (std::size_t t = 0; t < calendar_caps::period; ++t) {
      all_tokens += slot_tokens_[t];
      all_cost += slot_cost_[t];
    }
    const uint128 mean_tokens = std::max<uint128>(1, all_tokens / calendar_caps::period);
    const uint128 mean_cost = std::max<uint128>(1, all_cost / calendar_caps::period);
    uint128 weight = 0;
    uint128 all_long_tokens = 0;
    for (std::size_t first = 0; first < order.size();) {
      const std::uint64_t cap = caps.at(order[first]).cap;
      const auto differs = [cap](std::uint64_t other) {
        return other < cap - cap / 5 || other > cap + cap / 5;
      };
      uint128 tokens = 0;
      uint128 cost = 0;
      uint128 long_tokens = 0;
      std::size_t last = first;
      for (; last < order.size() && last - first < most_pooled; ++last) {
        const std::uint32_t t = order[last];
        if (differs(caps.at(t).cap)) break;
        tokens += slot_tokens_[t];
        cost += slot_cost_[t];
        long_tokens += slot_long_tokens_[t];
      }
      const std::size_t pooled = last - first;
      first = last;
      const auto tokens_ppm = static_cast<std::uint64_t>(tokens / pooled * million / mean_tokens);
      const auto cost_ppm = static_cast<std::uint64_t>(cost / pooled * million / mean_cost);
      result.step_tokens_ppm = std::max(result.step_tokens_ppm, tokens_ppm);
      result.step_cost_ppm = std::max(result.step_cost_ppm, cost_ppm);
      // Scaled to 16 bits of a weight, so that products stay in 128 bits.
      const uint128 scaled = long_tokens >> 16;
      weight += scaled * million / std::max<std::uint64_t>(1, tokens_ppm);
      all_long_tokens += scaled;
    }
    result.token_weight_ppm = all_long_tokens == 0
                                  ? million
                                  : static_cast<std::uint64_t>(weight * million / all_long_tokens);
  }

  calendar_options options_;
  std::uint64_t displacement_;
  /// Steps of a lane that count, a multiple of the period.
  std::uint64_t measured_steps_ = 1024;
  std::uint32_t lanes_ = 24;
  calendar_filler filler_;
  pack_list taken_;
  std::vector<candidate> arrivals_;
  std::vector<excess_cost> excesses_;
  std::uint64_t total_weight_ = 1;
  std::vector<uint128> slot_tokens_;
  std::vector<uint128> slot_cost_;
  std::vector<uint128> slot_long_tokens_;
  std::array<std::uint64_t, 4> block_{};
  std::uint64_t block_index_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace detail

/// Finds the numbers of a calendar: candidates are run on virtual lanes that are fed with
/// counter-based draws from the distribution; the one with the least expected step time for
/// `max_ranks` ranks wins.
///
/// Theory gives the first spare capacity, trials the rest: how light the records beside a heavy one
/// are, how long a heavy record may wait, how far ordinary caps are spread, and a factor on the
/// spare capacity. Where limits on a step are given, slots are laid out for ever lower ones until
/// the trial's steps keep the limits and its long records' tokens keep `least_token_weight_ppm`.
/// @throws invalid_option if an option is outside its range.
/// @complexity  Usually 6 to 10 trials, with limits on a step up to twice as many, at most 30, each
///              of 24 lanes and at most 1536 steps: 1 to 2.5 s at b = 16 and a lookahead of 16
///              steps. Packs above 256 records and lookaheads above 4096 records are tuned as if
///              they were so small, which leaves a little more spare capacity than they need.
/// @determinism Integers only: the same on every rank.
[[nodiscard]] inline calendar_tuning tune_calendar(const calendar_options& given) {
  const std::uint64_t displacement = detail::checked_displacement(given);
  const calendar_options options = detail::affordable(given, displacement);
  detail::calendar_trial trial(options);
  const std::uint64_t theory = detail::spare_by_theory_ppm(options, displacement);

  calendar_tuning best;
  best.spare_ppm = static_cast<std::uint32_t>(theory);
  best.reserve_ppm = detail::reserve_ppm(options);
  best.slot_delay_steps = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, displacement / 2));
  best.overdue_steps = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, displacement * 2 / 3));
  best.step_cost_ppm = options.max_step_cost_ppm.value_or(0);
  best.step_tokens_ppm = options.max_step_tokens_ppm.value_or(0);
  // Where a limit is wanted, a token of a long record shall weigh nearly as much as any.
  const auto kept = [&](const detail::calendar_trial::outcome& outcome) {
    if (options.max_step_cost_ppm && outcome.step_cost_ppm > *options.max_step_cost_ppm)
      return false;
    if (!options.max_step_tokens_ppm) return true;
    return outcome.step_tokens_ppm <= *options.max_step_tokens_ppm &&
           outcome.token_weight_ppm >= least_token_weight_ppm;
  };
  detail::calendar_trial::outcome least = trial.run(best);
  const auto limits_ppm = [&](std::uint64_t excess_ppm) {
    calendar_tuning other = best;
    const auto tightened = [&](std::optional<std::uint32_t> limit) {
      return limit ? static_cast<std::uint32_t>(
                         std::min<std::uint64_t>(*limit, 1'000'000 + excess_ppm))
                   : 0;
    };
    other.step_cost_ppm = tightened(options.max_step_cost_ppm);
    other.step_tokens_ppm = tightened(options.max_step_tokens_ppm);
    return other;
  };
  if (best.step_tokens_ppm != 0 || best.step_cost_ppm != 0) {
    // The largest limit to lay slots out for with which the trial's steps keep those given.
    std::uint64_t high = std::max(best.step_tokens_ppm, best.step_cost_ppm) - 1'000'000;
    std::uint64_t low = high;
    while (!kept(least) && low > 20'000) {
      high = low;
      low /= 2;
      best = limits_ppm(low);
      least = trial.run(best);
    }
    for (int halvings = 0; halvings < 3 && low < high; ++halvings) {
      const std::uint64_t middle = (low + high) / 2;
      const calendar_tuning other = limits_ppm(middle);
      const detail::calendar_trial::outcome outcome = trial.run(other);
      if (kept(outcome)) {
        low = middle;
        best = other;
        least = outcome;
      } else {
        high = middle;
      }
    }
  }
  const auto improves = [&](const calendar_tuning& other) {
    const detail::calendar_trial::outcome step = trial.run(other);
    if (step.step_ppm >= least.step_ppm || (kept(least) && !kept(step))) return false;
    least = step;
    best = other;
    return true;
  };

  for (const std::uint32_t light : {900'000U, 500'000U}) {
    calendar_tuning other = best;
    other.light_ppm = light;
    if (improves(other)) break;
  }
  {
    calendar_tuning other = best;
    other.slot_delay_steps = other.overdue_steps;
    static_cast<void>(improves(other));
  }
  for (const std::uint32_t dither : {40'000U, 300'000U}) {
    calendar_tuning other = best;
    other.dither_ppm = dither;
    if (improves(other)) break;
  }
  const auto scaled = [&](std::uint64_t numerator, std::uint64_t denominator) {
    calendar_tuning other = best;
    other.spare_ppm = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(best.spare_ppm * numerator / denominator, 300, 1'000'000));
    return other;
  };
  int rises = 0;
  while (rises < 10 && improves(scaled(8, 5))) ++rises;
  if (rises == 0) static_cast<void>(improves(scaled(4, 5)));
  return best;
}

}  // namespace lanepack::inline LANEPACK_ABI
