#pragma once

/// @file
/// `mixture_order`: which part of a corpus stands at which position of a mixed stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/sampler/mixture_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The largest sum of the weights of a phase, after division by their common divisor.
inline constexpr std::uint64_t max_mixture_weights = std::uint64_t{1} << 20;

/// One period of a mixture: with weights w of sum D, D places of which part s has w_s, and of the
/// first g places of the endless repetition floor(g w_s / D) or ceil(g w_s / D).
///
/// That this can be had for all parts and all g at once is the theorem on the chairman assignment
/// problem (Tijdeman 1980, Discrete Mathematics 32). The places are found by earliest deadline
/// first. Copy j of part s, from 0, keeps the bound of its part where it stands at one of the
/// places floor(j D / w) to ceil((j + 1) D / w) - 1. Of part s, at most the larger of 0 and
/// floor(b w / D) - ceil(a w / D) copies have to stand in the places a to b - 1, which is at most
/// (b - a) w / D; over all parts that is at most b - a, so a schedule exists (Hall), and where one
/// exists, earliest deadline first finds one for jobs of one place with whole release times and
/// deadlines (Jackson 1955). All D copies fit D places, so none stays empty.
/// @complexity     Memory 8 bytes a place; construction O(D log parts).
/// @thread_safety  Immutable.
/// @determinism    Integers only: a function of the weights in their order. Parts of weight 0 do
///                 not matter.
class mixture_period {
 public:
  /// A place of the period.
  struct place {
    std::uint32_t part = 0;
    /// Places of the same part before this one.
    std::uint32_t before = 0;
  };

  /// @throws invalid_option  where all weights are 0, or their sum over their common divisor is
  ///                         above `max_mixture_weights`.
  explicit mixture_period(std::vector<std::uint64_t> weights) : weights_(std::move(weights)) {
    std::uint64_t divisor = 0;
    for (const std::uint64_t weight : weights_) divisor = std::gcd(divisor, weight);
    if (divisor == 0) detail::throw_invalid_option("weights", "all 0", "a part with a weight");
    std::uint64_t sum = 0;
    for (std::uint64_t& weight : weights_) sum = saturating_add(sum, weight /= divisor);
    if (sum > max_mixture_weights) {
      detail::throw_invalid_option("weights",
                                   "a sum of " + std::to_string(sum) +
                                       " after division by their common divisor " +
                                       std::to_string(divisor),
                                   "at most " + std::to_string(max_mixture_weights) +
                                       ": rounder weights, or the unit tokens, which rounds them");
    }
    lay_out(static_cast<std::size_t>(sum));
  }

  /// D, the number of places.
  [[nodiscard]] std::uint64_t size() const noexcept { return places_.size(); }
  /// By part, without a common divisor.
  [[nodiscard]] std::span<const std::uint64_t> weights() const noexcept { return weights_; }
  [[nodiscard]] std::span<const place> places() const noexcept { return places_; }

 private:
  void lay_out(std::size_t size) {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    // Parts whose next copy may stand at a place or later: a list for each place.
    std::vector<std::uint32_t> released(size, none);
    std::vector<std::uint32_t> after(weights_.size(), none);
    std::vector<std::uint32_t> copies(weights_.size(), 0);
    const auto release = [&](std::uint32_t part, std::size_t from) {
      after[part] = std::exchange(released[from], part);
    };
    for (std::uint32_t part = 0; part < weights_.size(); ++part) {
      if (weights_[part] != 0) release(part, 0);
    }
    // Deadline, then part.
    std::vector<std::uint64_t> ready;
    constexpr std::greater<std::uint64_t> later;
    places_.reserve(size);
    for (std::size_t at = 0; at < size; ++at) {
      for (std::uint32_t part = released[at]; part != none; part = after[part]) {
        const std::uint64_t deadline =
            ceil_div((std::uint64_t{copies[part]} + 1) * size, weights_[part]);
        ready.push_back(deadline << 32 | part);
        std::push_heap(ready.begin(), ready.end(), later);
      }
      std::pop_heap(ready.begin(), ready.end(), later);
      LANEPACK_ASSERT(!ready.empty() && ready.back() >> 32 > at);
      const auto part = static_cast<std::uint32_t>(ready.back());
      ready.pop_back();
      places_.push_back({.part = part, .before = copies[part]++});
      if (copies[part] == weights_[part]) continue;
      const auto next = static_cast<std::size_t>(copies[part] * size / weights_[part]);
      release(part, std::max(next, at + 1));
    }
  }

  std::vector<std::uint64_t> weights_;
  std::vector<place> places_;
};

/// A part as a mixture sees it.
struct mixed_part {
  /// Records of an epoch.
  std::uint64_t records = 0;
  part_end rule = part_end::repeat;
  /// Epochs after which `stop` or `drop` holds, at least 1.
  std::uint64_t epochs = 1;
};

/// Weights by part that hold from a position on.
struct mixture_weights {
  std::uint64_t first_position = 0;
  std::vector<std::uint64_t> weights;

  friend bool operator==(const mixture_weights&, const mixture_weights&) = default;
};

/// What stands at a position of a mixed stream.
struct mixed_place {
  std::uint32_t part = 0;
  /// Number of the record in the part's own endless stream: its epoch times the part's records plus
  /// its position in that epoch.
  std::uint64_t index = 0;

  friend bool operator==(const mixed_place&, const mixed_place&) = default;
};

/// The parts at all positions of a mixed stream, without state: any lane, rank and step starts
/// anywhere.
///
/// The stream is cut into sections: one begins where a phase of weights begins and after the last
/// record of a part that is dropped. In a section part s, of weight w of sum D, has had
/// floor(g w / D) or ceil(g w / D) of the first g positions, so it is never off by a record; over
/// several sections by less than a record for each. Every part goes on in a section where it stood
/// in the one before: nothing is repeated or skipped, whatever the other parts do.
/// @complexity     Memory 8 bytes a place of every period that differs, at most 128 MiB, and 8 a
///                 part and section. Construction O(sum of the periods x log parts). A position
///                 O(1), and O(log sections) a call.
/// @thread_safety  Immutable.
/// @determinism    Integers only: a function of parts and weights.
class mixture_order {
 public:
  /// Places of all periods that differ, at most.
  static constexpr std::uint64_t max_places = std::uint64_t{1} << 24;

  /// @param parts   At least one.
  /// @param phases  The first at position 0, ascending, with a weight for every part; one that
  ///                begins where the next does never holds.
  /// @throws invalid_option  where that does not hold, a part with a weight has no records, a
  ///                         number of epochs is 0, or weights are too many or not round enough.
  mixture_order(std::vector<mixed_part> parts, std::span<const mixture_weights> phases)
      : parts_(std::move(parts)) {
    check(phases);
    std::vector<bool> dropped(parts_.size(), false);
    std::vector<std::uint64_t> counts(parts_.size(), 0);
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::uint64_t end = i + 1 < phases.size() ? phases[i + 1].first_position : endless;
      lay_out(phases[i], end, dropped, counts);
    }
  }

  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }
  [[nodiscard]] const mixed_part& part(std::size_t index) const noexcept { return parts_[index]; }

  /// The first position that a rule `stop` or `drop` forbids; the stream goes on as if the parts
  /// were repeated. nullopt where there is none below 2^64.
  [[nodiscard]] std::optional<std::uint64_t> end_position() const noexcept { return end_; }

  /// Number of sections.
  [[nodiscard]] std::size_t sections() const noexcept { return sections_.size(); }
  /// Number of sections that begin before `position`.
  [[nodiscard]] std::size_t sections_before(std::uint64_t position) const noexcept {
    const auto after = std::lower_bound(
        sections_.begin(), sections_.end(), position,
        [](const section& each, std::uint64_t value) { return each.first < value; });
    return static_cast<std::size_t>(after - sections_.begin());
  }
  /// Where a section begins, and its weights without a common divisor.
  [[nodiscard]] std::uint64_t section_first(std::size_t index) const noexcept {
    return sections_[index].first;
  }
  [[nodiscard]] std::span<const std::uint64_t> section_weights(std::size_t index) const noexcept {
    return sections_[index].period->weights();
  }

  /// What stands at `position`.
  [[nodiscard]] mixed_place operator()(std::uint64_t position) const noexcept {
    mixed_place place;
    places(position, 1, {&place, 1});
    return place;
  }

  /// What stands at `first`, `first + stride`, ...
  /// @pre  No position is above 2^64 - 1.
  void places(std::uint64_t first, std::uint64_t stride,
              std::span<mixed_place> out) const noexcept {
    std::uint64_t position = first;
    for (std::size_t done = 0; done < out.size();) {
      const section& here = section_of(position);
      const std::span<const std::uint64_t> weights = here.period->weights();
      const std::span<const mixture_period::place> places = here.period->places();
      const std::uint64_t size = places.size();
      std::uint64_t round = (position - here.first) / size;
      std::uint64_t at = (position - here.first) % size;
      const std::uint64_t round_stride = stride / size;
      const std::uint64_t at_stride = stride % size;
      const std::uint64_t left = (here.last - position) / stride;
      const std::size_t count =
          left >= out.size() - done ? out.size() - done : static_cast<std::size_t>(left) + 1;
      for (const std::size_t end = done + count; done < end; ++done) {
        const mixture_period::place& place = places[static_cast<std::size_t>(at)];
        out[done] = {.part = place.part,
                     .index = here.before[place.part] + round * weights[place.part] + place.before};
        const bool wraps = at >= size - at_stride;
        round += round_stride + (wraps ? 1 : 0);
        at = wraps ? at - (size - at_stride) : at + at_stride;
      }
      position += count * stride;
    }
  }

  /// Records of every part before `position`.
  /// @complexity  O(the section's period).
  [[nodiscard]] std::vector<std::uint64_t> counts_before(std::uint64_t position) const {
    return counts_at(section_of(position), position);
  }

 private:
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  struct section {
    std::uint64_t first;
    std::uint64_t last;
    std::shared_ptr<const mixture_period> period;
    /// Records of every part before the section.
    std::vector<std::uint64_t> before;
  };

  struct known_period {
    /// As they were given.
    std::vector<std::uint64_t> weights;
    std::shared_ptr<const mixture_period> period;
  };

  /// The earliest end of a part in a section: a round of the period and a place in it.
  struct part_ending {
    std::uint64_t round;
    std::uint64_t place;
    std::uint32_t part;
  };

  void check(std::span<const mixture_weights> phases) const {
    if (parts_.empty()) detail::throw_invalid_option("parts", "none", "at least one");
    if (phases.empty()) detail::throw_invalid_option("phases", "none", "at least one");
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::string name = "phases[" + std::to_string(i) + "]";
      const std::uint64_t least = i == 0 ? 0 : phases[i - 1].first_position;
      if (phases[i].first_position < least || (i == 0 && phases[i].first_position != 0)) {
        detail::throw_invalid_option(name + ".first_position",
                                     std::to_string(phases[i].first_position),
                                     i == 0 ? "0" : "at least " + std::to_string(least));
      }
      if (phases[i].weights.size() != parts_.size()) {
        detail::throw_invalid_option(name + ".weights", std::to_string(phases[i].weights.size()),
                                     "one for each of " + std::to_string(parts_.size()) + " parts");
      }
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        if (phases[i].weights[part] != 0 && parts_[part].records == 0) {
          detail::throw_invalid_option("parts[" + std::to_string(part) + "].records", "0",
                                       "at least 1 of a part with a weight");
        }
      }
    }
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (parts_[part].epochs == 0) {
        detail::throw_invalid_option("parts[" + std::to_string(part) + "].epochs", "0",
                                     "at least 1");
      }
    }
  }

  [[nodiscard]] const section& section_of(std::uint64_t position) const noexcept {
    return *std::prev(std::upper_bound(
        sections_.begin(), sections_.end(), position,
        [](std::uint64_t value, const section& each) { return value < each.first; }));
  }

  [[nodiscard]] std::shared_ptr<const mixture_period> period_of(
      const std::vector<std::uint64_t>& weights) {
    const auto known =
        std::find_if(periods_.begin(), periods_.end(),
                     [&](const known_period& each) { return each.weights == weights; });
    if (known != periods_.end()) return known->period;
    auto period = std::make_shared<const mixture_period>(weights);
    places_ += period->size();
    if (places_ > max_places) {
      detail::throw_invalid_option("weights",
                                   std::to_string(places_) + " as the sum of the sums of " +
                                       std::to_string(periods_.size() + 1) + " sets of weights",
                                   "at most " + std::to_string(max_places) +
                                       ": fewer phases and dropped parts, or rounder weights");
    }
    periods_.push_back({weights, period});
    return period;
  }

  void lay_out(const mixture_weights& phase, std::uint64_t end, std::vector<bool>& dropped,
               std::vector<std::uint64_t>& counts) {
    std::uint64_t position = phase.first_position;
    while (position < end) {
      std::vector<std::uint64_t> weights = phase.weights;
      bool any = false;
      for (std::size_t part = 0; part < weights.size(); ++part) {
        if (!end_ && dropped[part]) weights[part] = 0;
        any = any || weights[part] != 0;
      }
      if (!any && !end_ &&
          std::any_of(phase.weights.begin(), phase.weights.end(), [](auto w) { return w != 0; })) {
        end_ = position;
        continue;
      }
      section next{.first = position, .last = end, .period = period_of(weights), .before = counts};
      position = end;
      if (const std::optional<part_ending> ending = first_ending(next)) {
        const bool drops = parts_[ending->part].rule == part_end::drop;
        const uint128 at = static_cast<uint128>(ending->round) * next.period->size() +
                           ending->place + next.first + (drops ? 1 : 0);
        if (drops && at <= end) {
          position = static_cast<std::uint64_t>(at);
          dropped[ending->part] = true;
        } else if (!drops && at < end) {
          // From here on nothing ends any more: the layout goes on as if all parts were repeated.
          end_ = static_cast<std::uint64_t>(at);
        }
      }
      counts = counts_at(next, position);
      next.last = position == endless ? endless : position - 1;
      sections_.push_back(std::move(next));
    }
  }

  /// Where the first part of a section ends: its last record where it is dropped, and the record
  /// after that where it stops the run.
  [[nodiscard]] std::optional<part_ending> first_ending(const section& in) const {
    if (end_) return std::nullopt;
    const std::span<const std::uint64_t> weights = in.period->weights();
    // Rounds before the one in which a part ends, and its number among the part's places in that.
    const auto ending_of = [&](std::size_t part) -> std::optional<std::pair<uint128, uint128>> {
      if (weights[part] == 0 || parts_[part].rule == part_end::repeat) return std::nullopt;
      const uint128 all = static_cast<uint128>(parts_[part].epochs) * parts_[part].records;
      const uint128 number = all - in.before[part] - (parts_[part].rule == part_end::drop ? 1 : 0);
      return std::pair(number / weights[part], number % weights[part]);
    };
    uint128 round = endless;
    for (std::size_t part = 0; part < weights.size(); ++part) {
      if (const auto ending = ending_of(part)) round = std::min(round, ending->first);
    }
    if (round == endless) return std::nullopt;
    std::vector<std::optional<std::uint32_t>> number(weights.size());
    for (std::size_t part = 0; part < weights.size(); ++part) {
      const auto ending = ending_of(part);
      if (ending && ending->first == round)
        number[part] = static_cast<std::uint32_t>(ending->second);
    }
    const std::span<const mixture_period::place> places = in.period->places();
    for (std::size_t at = 0; at < places.size(); ++at) {
      if (number[places[at].part] == places[at].before) {
        return part_ending{static_cast<std::uint64_t>(round), at, places[at].part};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] static std::vector<std::uint64_t> counts_at(const section& in,
                                                            std::uint64_t position) {
    std::vector<std::uint64_t> counts = in.before;
    const std::uint64_t rounds = (position - in.first) / in.period->size();
    const auto rest = static_cast<std::size_t>((position - in.first) % in.period->size());
    for (std::size_t part = 0; part < counts.size(); ++part) {
      counts[part] += rounds * in.period->weights()[part];
    }
    for (std::size_t at = 0; at < rest; ++at) ++counts[in.period->places()[at].part];
    return counts;
  }

  std::vector<mixed_part> parts_;
  std::vector<known_period> periods_;
  std::uint64_t places_ = 0;
  std::vector<section> sections_;
  std::optional<std::uint64_t> end_;
};

}  // namespace lanepack::inline LANEPACK_ABI
