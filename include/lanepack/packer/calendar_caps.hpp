#pragma once

/// @file
/// `calendar_caps`: the periodic sequence of caps that every rank computes from one distribution.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/calendar_parameters.hpp>
#include <lanepack/packer/cost_distribution.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A slot of the calendar, in cost units.
struct calendar_slot {
  /// What no rank exceeds in the slot, unless a record cannot leave otherwise.
  std::uint64_t cap = 0;
  /// What a lane emits here that is neither ahead nor behind: cap / (1 + d).
  std::uint64_t share = 0;
  /// What a slot is filled with at most where no heavy record uses it.
  std::uint64_t light_fill = 0;
  /// Heavy records below this cost leave the slot to heavier ones: where a limit lets few ranks use
  /// a slot, it is not for records that have slots of their own.
  std::uint64_t least_heavy = 0;
  /// Records up to this cost count as work for such a slot; their mean cost in the distribution.
  std::uint64_t counted_cost = 0;
  std::uint64_t counted_mean = 0;
};

/// The caps of a calendar.
///
/// Heavy slots are nested: with x records heavier than some cost arriving within the delay D of a
/// lane, s(x) = (x + sqrt(x^2 + 2 g x)) / 2 slots that fit them are needed if waiting longer than D
/// shall have a probability of about e^-g (a Poisson queue with one server a slot). The k-th
/// heaviest of P slots therefore fits the cost that x(j) = j^2 / (j + g/2) arrivals exceed, j = (k
/// + 1/2) D / P, beside b - 1 light records. Ordinary slots share what is left of the mean cap, a
/// little apart from each other so that sizes of which no number adds up to one cap find another.
/// Slots of every size are spread evenly in time by reversing the bits of k.
///
/// @thread_safety  Immutable.
/// @determinism    Integers only.
class calendar_caps {
 public:
  /// Slots of a period (P).
  static constexpr std::uint32_t period = 256;

  /// @param records_per_pack  b, at least 1.
  /// @complexity  O(buckets + period log(cost)).
  calendar_caps(const cost_distribution& costs, std::uint32_t records_per_pack,
                const calendar_tuning& tuning)
      : pack_cost_(std::max<std::uint64_t>(1, costs.mean_cost(records_per_pack))) {
    std::array<heavy_slot, period> heavy{};
    const std::uint64_t light_cost = lay_out_heavy(costs, records_per_pack, tuning, heavy);
    const uint128 budget =
        static_cast<uint128>(pack_cost_) * (million + tuning.spare_ppm) * period / million;
    // Where heavy slots alone exceed the budget, which shows in the mean cap, lanes still need
    // ordinary ones to live on.
    base_ = std::max({base_level(heavy, budget), pack_cost_ / 2, std::uint64_t{1}});

    const uint128 unlimited = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t common = static_cast<std::uint64_t>(
        std::min(unlimited, static_cast<uint128>(pack_cost_) * common_ppm(tuning) / million));
    std::array<std::uint64_t, period> caps{};
    std::array<bool, period> ordinary{};
    for (std::uint32_t k = 0; k < period; ++k) {
      caps[reversed(k)] = std::max(base_, heavy[k].cost);
      ordinary[reversed(k)] = heavy[k].cost <= base_;
    }
    spread(caps, ordinary, tuning.dither_ppm);

    slots_.resize(period);
    for (std::uint32_t t = 0; t < period; ++t) {
      calendar_slot& slot = slots_[t];
      slot.cap = caps[t];
      slot.share = static_cast<std::uint64_t>(static_cast<uint128>(caps[t]) * million /
                                              (million + tuning.spare_ppm));
      const std::uint64_t fill = caps[t] > common ? base_ : 3 * base_;
      slot.light_fill = std::min(caps[t], std::max<std::uint64_t>(fill, 1));
      if (caps[t] > common && caps[t] > base_) {
        const std::uint64_t least = caps[t] / 4 * 3;
        slot.least_heavy = least > light_cost ? least - light_cost : 0;
      }
      slot.counted_cost = caps[t] - caps[t] / 20;
      const std::uint64_t counted = costs.records_up_to(slot.counted_cost);
      slot.counted_mean =
          counted == 0 ? 0 : static_cast<std::uint64_t>(costs.cheapest_cost(counted) / counted);
    }
  }

  /// The slot of a step.
  [[nodiscard]] const calendar_slot& at(step_index step) const noexcept {
    return slots_[static_cast<std::size_t>(step % period)];
  }
  /// All slots of a period in the order of steps.
  [[nodiscard]] std::span<const calendar_slot> slots() const noexcept { return slots_; }
  /// Cost of a mean pack, at least 1.
  [[nodiscard]] std::uint64_t pack_cost() const noexcept { return pack_cost_; }
  /// Work that a lane may be short of before it emits less than its share.
  [[nodiscard]] std::int64_t reserve(const calendar_tuning& tuning) const noexcept {
    return static_cast<std::int64_t>(static_cast<uint128>(pack_cost_) * tuning.reserve_ppm /
                                     million);
  }
  /// Cap of an ordinary slot, before it is spread.
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }

 private:
  /// What a slot has to fit, and the share of ranks that use it at the same time.
  struct heavy_slot {
    std::uint64_t cost = 0;
    std::uint64_t usage_ppm = 0;
  };

  static constexpr std::uint64_t million = 1'000'000;
  /// g: a record waits longer than the delay with a probability of about e^-8.
  static constexpr std::uint64_t log_odds = 8;

  [[nodiscard]] static constexpr std::uint32_t reversed(std::uint32_t k) noexcept {
    std::uint32_t bits = 0;
    for (std::uint32_t bit = 1; bit < period; bit <<= 1) {
      bits = (bits << 1) | ((k & bit) != 0 ? 1U : 0U);
    }
    return bits;
  }

  /// Cap up to which every rank may fill a slot at the same time, over the mean pack cost.
  [[nodiscard]] static std::uint64_t common_ppm(const calendar_tuning& tuning) noexcept {
    std::uint64_t ppm = std::numeric_limits<std::uint32_t>::max();
    if (tuning.step_cost_ppm != 0) ppm = std::min<std::uint64_t>(ppm, tuning.step_cost_ppm);
    if (tuning.step_tokens_ppm != 0) ppm = std::min<std::uint64_t>(ppm, tuning.step_tokens_ppm);
    return ppm;
  }

  /// Caps that heavy records need, heaviest slot first; those of the light end mean nothing.
  /// Returns the cost of the b - 1 light records beside one.
  std::uint64_t lay_out_heavy(const cost_distribution& costs, std::uint32_t b,
                              const calendar_tuning& tuning,
                              std::array<heavy_slot, period>& heavy) const {
    const std::uint64_t n = costs.records();
    const std::uint64_t light = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(static_cast<uint128>(n) * tuning.light_ppm / million), 1, n);
    const auto beside = [&](uint128 total) {
      return static_cast<std::uint64_t>(total / light * (b - 1) + total % light * (b - 1) / light);
    };
    const std::uint64_t light_cost = beside(costs.cheapest_cost(light));
    const std::uint64_t light_tokens = beside(costs.cheapest_tokens(light));
    const std::uint64_t pack_tokens = std::max<std::uint64_t>(1, costs.mean_tokens(b));
    const std::uint64_t delay = tuning.slot_delay_steps;

    // Share of ranks that may use a slot of a record's size, in parts per million, so that the mean
    // over ranks stays within a limit.
    const auto usage_ppm = [&](const cost_bucket& record) {
      std::uint64_t usage = million;
      const auto limit = [&](std::uint64_t level, std::uint64_t mean, std::uint32_t limit_ppm) {
        if (limit_ppm == 0 || level <= mean) return;
        const uint128 allowed =
            static_cast<uint128>(mean) * (limit_ppm > million ? limit_ppm - million : 0);
        usage = std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(std::min<uint128>(usage, allowed / (level - mean))));
      };
      limit(record.cost + light_cost, pack_cost_, tuning.step_cost_ppm);
      limit(record.tokens + light_tokens, pack_tokens, tuning.step_tokens_ppm);
      return usage;
    };

    const std::span<const cost_bucket> buckets = costs.buckets();
    std::size_t bucket = buckets.size();
    std::uint64_t above = 0;
    uint128 limited_need = 0;
    for (std::uint32_t k = 0; k < period; ++k) {
      // j = slot / (2 P)
      const uint128 slot = static_cast<uint128>(2 * k + 1) * delay;
      const uint128 served = static_cast<uint128>(n) * slot * slot /
                             (static_cast<uint128>(2 * period) * b * delay *
                              (slot + static_cast<uint128>(period) * log_odds));
      // Buckets that earlier and this slot serve are behind `bucket`; the next one sets the cap.
      while (bucket > 1 && above + buckets[bucket - 1].records <= served) {
        const std::uint64_t with = above + buckets[bucket - 1].records;
        // Slots that this share of arrivals needs in the same units as `slot`.
        const uint128 arrivals = static_cast<uint128>(with) * b * delay * 2 * period / n;
        const std::uint64_t usage = usage_ppm(buckets[bucket - 1]);
        if (usage < million) limited_need = std::max(limited_need, arrivals * million / usage);
        if (limited_need > slot) break;
        above = with;
        --bucket;
      }
      heavy[k] = {.cost = buckets[bucket - 1].cost + light_cost,
                  .usage_ppm = usage_ppm(buckets[bucket - 1])};
    }
    return light_cost;
  }

  /// The level of ordinary slots with which what lanes emit in a period adds up to the budget.
  [[nodiscard]] static std::uint64_t base_level(const std::array<heavy_slot, period>& heavy,
                                                uint128 budget) noexcept {
    std::uint64_t low = 1;
    std::uint64_t high = std::numeric_limits<std::uint64_t>::max() >> 4;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      uint128 sum = 0;
      for (const heavy_slot& slot : heavy) {
        sum += middle;
        if (slot.cost > middle) {
          sum += static_cast<uint128>(slot.cost - middle) * slot.usage_ppm / million;
        }
      }
      if (sum < budget) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// Spreads the caps of ordinary slots over a band around their mean, which is kept.
  static void spread(std::array<std::uint64_t, period>& caps,
                     const std::array<bool, period>& ordinary, std::uint32_t width_ppm) noexcept {
    uint128 before = 0;
    uint128 after = 0;
    for (std::uint32_t t = 0; t < period; ++t) {
      if (!ordinary[t]) continue;
      before += caps[t];
      // Multiples of the golden ratio fill the unit interval evenly at every length.
      const std::uint64_t place = (std::uint64_t{t} * 0x9e3779b9U) & 0xffffffffU;
      const uint128 factor = (static_cast<uint128>(million) << 32) +
                             static_cast<uint128>(place) * width_ppm -
                             (static_cast<uint128>(width_ppm) << 31);
      caps[t] = static_cast<std::uint64_t>(static_cast<uint128>(caps[t]) * (factor >> 16) /
                                           (static_cast<uint128>(million) << 16));
      after += caps[t];
    }
    if (after == 0) return;
    for (std::uint32_t t = 0; t < period; ++t) {
      if (ordinary[t]) caps[t] = static_cast<std::uint64_t>(caps[t] * before / after);
    }
  }

  std::vector<calendar_slot> slots_;
  std::uint64_t pack_cost_ = 1;
  std::uint64_t base_ = 1;
};

}  // namespace lanepack::inline LANEPACK_ABI
