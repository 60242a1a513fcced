#pragma once

/// @file
/// The policy `replicated`: every rank plans the packs of all lanes.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/formed_packs.hpp>
#include <lanepack/packer/levelled_packs.hpp>
#include <lanepack/packer/outlier_reserve.hpp>
#include <lanepack/packer/outlier_steps.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/step_limits.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of `replicated_policy`.
struct replicated_options {
  /// Steps that are formed together (K), at least 1; also all that the policy buffers.
  std::uint32_t lookahead_steps = 16;
  /// What the run's records cost, whose means the limits refer to; null: the means of each window,
  /// and no outliers are held from one window to another.
  std::shared_ptr<const cost_distribution> costs = nullptr;
  /// Records of every pack (b) and packs of every step (L), from which follows whether holding
  /// outliers helps. b of 0: it is not the same in all steps, so that none are held.
  std::uint32_t records_per_pack = 0;
  std::uint32_t lanes = 512;
  /// Hard bound on the steps between a record's admission and its pack's step; 0: 32 x
  /// `lookahead_steps`. Below 2 x `lookahead_steps` no outliers are held.
  std::uint64_t max_displacement_steps = 0;
  /// Limits on the tokens and the cost of every step over the run's mean.
  step_limits limits = {.max_tokens_ppm = 1'500'000, .max_cost_ppm = 0};
  /// Mean weight that the tokens of a window's dearest 1 % of records keep where a loss is divided
  /// by its step's tokens, in parts per million of the mean token's weight, below 1'000'000: steps
  /// with outliers are limited further for it, though not below the mean. 0: no such wish; it is
  /// also ignored where tokens are not limited.
  std::uint32_t min_token_weight_ppm = least_token_weight_ppm;
  /// How packs without outliers are balanced. Steps get packs that are neighbours in cost, so
  /// little is gained by more.
  partition_options partition = {.swap_rounds = 2, .tolerance_shift = 8};
};

/// What a `replicated_policy` has done so far.
struct replicated_statistics {
  /// Steps formed, and those of them made for outliers.
  std::uint64_t steps = 0;
  std::uint64_t outlier_steps = 0;
  /// Steps above a limit, which one record or the mean of a window exceeds alone.
  std::uint64_t steps_above_limits = 0;

  friend bool operator==(const replicated_statistics&, const replicated_statistics&) = default;
};

/// Forms the K x L packs of a window together and gives each step packs of nearly equal cost.
///
/// Outliers, records that cost more than a pack's share, get steps of their own, in which every
/// pack costs as much as the dearest (see `detail::outlier_steps`); all other records are split
/// into balanced packs, and each step gets L neighbours in the order of cost. Steps of a window
/// stand in keyed order. In a step, packs are dealt so that any power of two of neighbouring lanes
/// holds an even sample of them; inside a pack records stand in arrival order.
///
/// As a rule it holds nothing between windows: any step can be planned without the ones before, and
/// a record waits K - 1 steps at most. Where the distribution of costs says that outliers are so
/// rare and so dear that no window could fill their steps, one of the K steps is a reserve:
/// outliers wait in it, at most `max_displacement_steps`, until there are enough for a step. Either
/// way every rank plans the same bytes and knows all packs of a step, hence its global counts.
///
/// The limits are kept by every step unless the window's mean or a single record beside the
/// cheapest others exceeds them; such steps are counted.
///
/// @thread_safety  None: one thread per object.
/// @determinism    Integers only; a window depends on its own arrivals and first step alone.
class replicated_policy {
 public:
  /// @throws invalid_option if an option is outside its range.
  explicit replicated_policy(const replicated_options& options = {})
      : options_(options),
        max_displacement_(options.max_displacement_steps != 0
                              ? options.max_displacement_steps
                              : std::uint64_t{32} * options.lookahead_steps),
        regular_(options.partition) {
    if (options.lookahead_steps == 0) {
      detail::throw_invalid_option("lookahead_steps", "0", "at least 1");
    }
    validate(options.limits);
    if (options.min_token_weight_ppm >= million) {
      detail::throw_invalid_option("min_token_weight_ppm",
                                   std::to_string(options.min_token_weight_ppm),
                                   "below 1000000, which is the mean token's weight");
    }
    if (max_displacement_ + 1 < options.lookahead_steps) {
      detail::throw_invalid_option("max_displacement_steps",
                                   std::to_string(options.max_displacement_steps),
                                   "at least lookahead_steps - 1, " +
                                       std::to_string(options.lookahead_steps - 1) + ", or 0");
    }
    constexpr std::uint32_t shortest_lookahead = 4;
    // Less is not worth the memory of a policy.
    constexpr std::uint64_t least_loss_ppm = 2000;
    if (options.costs != nullptr && options.records_per_pack != 0 &&
        options.lookahead_steps >= shortest_lookahead &&
        max_displacement_ >= std::uint64_t{2} * options.lookahead_steps &&
        saturating_mul(saturating_mul(options.lanes, options.records_per_pack),
                       options.lookahead_steps) <= max_ordered_records &&
        detail::loss_to_outliers_ppm(*options.costs, options.lanes, options.records_per_pack,
                                     options.lookahead_steps) > least_loss_ppm) {
      reserve_steps_ = 1;
      filled_ = detail::filled_pack_cost(*options.costs, options.records_per_pack,
                                         options.lookahead_steps);
    }
  }

  [[nodiscard]] std::string name() const { return "replicated"; }
  [[nodiscard]] policy_scope scope() const noexcept { return policy_scope::all_lanes; }
  [[nodiscard]] std::uint32_t window_steps() const noexcept {
    return options_.lookahead_steps - reserve_steps_;
  }
  /// 1 where outliers are held, else 0.
  [[nodiscard]] std::uint32_t buffered_steps() const noexcept { return reserve_steps_; }

  /// Appends the packs of the window's steps. A window of more than `max_ordered_records` is
  /// planned in parts.
  /// @param arrivals  In arrival order, with their `admitted` steps where outliers are held.
  /// @throws state_error if `arrivals` are not exactly the records of these steps, or with outliers
  ///         held fewer than are missing for them; if a step alone has more than
  ///         `max_ordered_records`; or if the number of records a pack is not that of the options
  ///         although outliers are held.
  /// @complexity  O(n log packs-of-a-group) and a radix sort; no allocation once the scratch, about
  ///              50 bytes a record, has grown, `out` aside.
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    const std::size_t a_step =
        static_cast<std::size_t>(window.packs_per_step) * window.records_per_pack;
    if (a_step > max_ordered_records) {
      detail::throw_state_error("replicated: found a step of " + std::to_string(a_step) +
                                " records, expected at most " +
                                std::to_string(max_ordered_records));
    }
    if (reserve_steps_ != 0) {
      hold_back(window, arrivals);
      arrivals = leaving_;
    }
    detail::check_arrivals("replicated", window, arrivals);
    const std::size_t most_steps = max_ordered_records / a_step;
    for (std::uint32_t first = 0; first < window.steps;) {
      const auto steps =
          static_cast<std::uint32_t>(std::min<std::size_t>(most_steps, window.steps - first));
      form_part(window.first_step + first,
                {.steps = steps,
                 .packs = window.packs_per_step,
                 .records_per_pack = window.records_per_pack},
                arrivals.subspan(first * a_step, steps * a_step), out);
      first += steps;
    }
  }

  [[nodiscard]] std::span<const candidate> held() const noexcept { return held_; }
  [[nodiscard]] policy_state save() const { return {}; }
  /// @param held  What `held()` was, with the `admitted` steps of then.
  /// @throws state_error if the state is not empty, or records are held although this policy holds
  ///         none.
  void restore(const policy_state& state, std::span<const candidate> held) {
    if (reserve_steps_ == 0) {
      detail::check_no_memory("replicated", state, held);
    } else {
      detail::check_no_memory("replicated", state, {});
    }
    held_.assign(held.begin(), held.end());
  }

  /// What this object has done so far.
  [[nodiscard]] const replicated_statistics& statistics() const noexcept { return statistics_; }

 private:
  static constexpr std::uint32_t million = 1'000'000;

  struct ranked_pack {
    std::uint64_t amount;
    std::uint32_t pack;
  };
  [[nodiscard]] static bool larger(const ranked_pack& a, const ranked_pack& b) noexcept {
    return a.amount != b.amount ? a.amount > b.amount : a.pack < b.pack;
  }

  void form_part(step_index first_step, detail::window_totals window,
                 std::span<const candidate> arrivals, pack_list& out) {
    read(arrivals, window);
    const detail::step_budget limits = limits_of(window);
    const std::uint32_t weight =
        limits.tokens == detail::step_budget::none ? 0 : options_.min_token_weight_ppm;
    packs_.clear();
    std::uint32_t special = 0;
    if (dearest_ + cheapest_ > window.share() && window.steps > 1) {
      const std::span<const std::uint64_t> keys = order_.sort_descending(costs_);
      special = outliers_.form(keys, tokens_, window, limits, weight, packs_);
      split_sorted(outliers_.rest(), window.records_per_pack, limits);
    } else {
      split(window.records_per_pack, limits);
    }
    order_packs(window, special);
    if (limits.any()) keep_limits(window, special, limits);
    emit(first_step, window, arrivals, out);
    statistics_.steps += window.steps;
    statistics_.outlier_steps += special;
  }

  /// Splits what is held and what arrives into what leaves in these steps and what is held.
  ///
  /// What is held is at most the records of one step, so all of it can leave in any window; and a
  /// record is held only if it may still leave in the last step of the next one. Hence the bound on
  /// displacement.
  void hold_back(const step_window& window, std::span<const candidate> arrivals) {
    const std::size_t leaving =
        static_cast<std::size_t>(window.steps) * window.packs_per_step * window.records_per_pack;
    pool_.assign(held_.begin(), held_.end());
    pool_.insert(pool_.end(), arrivals.begin(), arrivals.end());
    const std::size_t most_held =
        static_cast<std::size_t>(window.packs_per_step) * window.records_per_pack;
    if (window.records_per_pack != options_.records_per_pack || pool_.size() < leaving ||
        pool_.size() - leaving > most_held || pool_.size() > max_ordered_records) {
      detail::throw_state_error("replicated: found " + std::to_string(pool_.size()) +
                                " records for " + std::to_string(window.steps) + " steps of " +
                                std::to_string(most_held) +
                                ", expected one step more at most, packs of " +
                                std::to_string(options_.records_per_pack) +
                                " records, and at most " + std::to_string(max_ordered_records));
    }
    std::uint64_t cost = 0;
    for (const candidate& record : pool_) cost += record.cost;
    const step_index next_end = window.first_step + window.steps + window_steps();
    detail::outlier_reserve::situation now{
        .share = cost / (pool_.size() / window.records_per_pack),
        .filled = filled_,
        .packs = window.packs_per_step,
        .step_tokens = detail::step_budget::none,
        .oldest_admitted = next_end > max_displacement_ ? next_end - 1 - max_displacement_ : 0};
    if (options_.limits.max_tokens_ppm != 0) {
      now.step_tokens =
          limit_of(options_.costs->mean_tokens(most_held), options_.limits.max_tokens_ppm);
    }
    // Nothing is worth waiting for where the next window is the last and shorter than this one.
    if (window.steps_to_drain && *window.steps_to_drain < window.steps + window_steps()) {
      now.share = max_record_cost;
    }
    reserve_.choose(pool_, pool_.size() - leaving, now, is_held_);
    held_.clear();
    leaving_.clear();
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      (is_held_[i] != 0 ? held_ : leaving_).push_back(pool_[i]);
    }
  }

  [[nodiscard]] static std::uint64_t limit_of(std::uint64_t mean, std::uint32_t ppm) noexcept {
    return static_cast<std::uint64_t>(static_cast<uint128>(mean) * ppm / million);
  }

  void read(std::span<const candidate> arrivals, detail::window_totals& window) {
    costs_.resize(arrivals.size());
    tokens_.resize(arrivals.size());
    dearest_ = 0;
    // A heap of the cheapest records that a pack could hold beside the dearest.
    const std::size_t others = window.records_per_pack - 1;
    small_.clear();
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      LANEPACK_ASSERT(i == 0 || arrivals[i - 1].arrival < arrivals[i].arrival);
      const std::uint64_t cost = arrivals[i].cost;
      costs_[i] = cost;
      tokens_[i] = arrivals[i].tokens;
      window.cost += cost;
      window.tokens += tokens_[i];
      dearest_ = std::max(dearest_, cost);
      if (small_.size() < others) {
        small_.push_back(cost);
        std::push_heap(small_.begin(), small_.end());
      } else if (others != 0 && cost < small_.front()) {
        std::pop_heap(small_.begin(), small_.end());
        small_.back() = cost;
        std::push_heap(small_.begin(), small_.end());
      }
    }
    cheapest_ = std::accumulate(small_.begin(), small_.end(), std::uint64_t{0});
  }

  // Packs without outliers are formed out of stretches of arrivals, so that what is read and
  // written together stays in a processor's near caches. Stretches are long enough to have nearly
  // the same mean, and steps get packs of the same cost in any case.

  /// Packs in the stretches up to and with number `stretch`.
  [[nodiscard]] static std::size_t packs_before(std::size_t stretch, std::size_t stretches,
                                                std::size_t packs) noexcept {
    return packs * stretch / stretches;
  }
  static constexpr std::size_t records_of_a_stretch = 16384;
  /// At most one stretch begins within so many arrivals: cut to whole packs, at least one, more
  /// than half of a stretch is left.
  static constexpr std::size_t block = records_of_a_stretch / 2;

  [[nodiscard]] static std::size_t stretches_of(std::size_t records) noexcept {
    return std::max<std::size_t>(1, records / records_of_a_stretch);
  }

  void form_stretch(std::span<const std::uint64_t> keys, std::uint32_t b,
                    const detail::step_budget& limits) {
    regular_.form(keys, b, packs_);
    if (!limits.any()) return;
    for (std::size_t pack = packs_.tokens.size(); pack < packs_.costs.size(); ++pack) {
      std::uint64_t tokens = 0;
      for (std::size_t i = pack * b; i < (pack + 1) * b; ++i) {
        tokens += tokens_[detail::descending_key_index(packs_.keys[i])];
      }
      packs_.tokens.push_back(tokens);
    }
  }

  /// Forms balanced packs of all records.
  void split(std::uint32_t b, const detail::step_budget& limits) {
    const std::size_t packs = costs_.size() / b;
    const std::size_t stretches = std::min(packs, stretches_of(costs_.size()));
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      const std::size_t first = packs_before(stretch, stretches, packs) * b;
      const std::size_t last = packs_before(stretch + 1, stretches, packs) * b;
      const std::span<std::uint64_t> keys =
          order_.sort_descending(std::span(costs_).subspan(first, last - first));
      for (std::uint64_t& key : keys) key += first;
      form_stretch(keys, b, limits);
    }
  }

  /// Forms balanced packs of the records that outlier steps leave, as `split` would.
  /// @param keys  Sorted.
  void split_sorted(std::span<const std::uint64_t> keys, std::uint32_t b,
                    const detail::step_budget& limits) {
    const std::size_t packs = keys.size() / b;
    const std::size_t stretches = std::min(packs, stretches_of(keys.size()));
    if (stretches < 2) {
      form_stretch(keys, b, limits);
      return;
    }
    find_stretches(packs, stretches, b);
    ends_.clear();
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      ends_.push_back(packs_before(stretch, stretches, packs) * b);
    }
    keys_.resize(keys.size());
    for (const std::uint64_t key : keys) {
      const std::uint32_t index = detail::descending_key_index(key);
      std::size_t stretch = stretch_of_block_[index / block];
      stretch += index >= stretch_begins_[stretch + 1] ? 1U : 0U;
      keys_[ends_[stretch]++] = key;
    }
    std::size_t first = 0;
    for (const std::size_t last : ends_) {
      form_stretch(std::span(keys_).subspan(first, last - first), b, limits);
      first = last;
    }
  }

  /// Finds the arrivals with which stretches of those that outlier steps leave begin.
  void find_stretches(std::size_t packs, std::size_t stretches, std::uint32_t b) {
    constexpr std::size_t word_bits = 64;
    taken_.assign(costs_.size() / word_bits + 1, 0);
    for (const std::uint64_t key : packs_.keys) {
      const std::uint32_t index = detail::descending_key_index(key);
      taken_[index / word_bits] |= std::uint64_t{1} << (index % word_bits);
    }
    stretch_begins_.clear();
    std::size_t seen = 0;
    for (std::size_t word = 0; stretch_begins_.size() < stretches; ++word) {
      const std::size_t left = word_bits - static_cast<std::size_t>(std::popcount(taken_[word]));
      for (;;) {
        const std::size_t before = packs_before(stretch_begins_.size(), stretches, packs) * b;
        if (stretch_begins_.size() == stretches || seen + left <= before) break;
        std::uint64_t bits = ~taken_[word];
        for (std::size_t skipped = seen; skipped < before; ++skipped) bits &= bits - 1;
        stretch_begins_.push_back(word * word_bits +
                                  static_cast<std::size_t>(std::countr_zero(bits)));
      }
      seen += left;
    }
    stretch_begins_.push_back(costs_.size());
    stretch_of_block_.clear();
    std::uint32_t stretch = 0;
    for (std::size_t first = 0; first < costs_.size(); first += block) {
      while (stretch_begins_[stretch + 1] <= first) ++stretch;
      stretch_of_block_.push_back(stretch);
    }
  }

  [[nodiscard]] detail::step_budget limits_of(const detail::window_totals& window) const {
    detail::step_budget limits;
    const std::uint64_t records = window.records_of_a_step();
    if (options_.limits.max_tokens_ppm != 0) {
      limits.tokens = limit_of(options_.costs ? options_.costs->mean_tokens(records)
                                              : ceil_div(window.tokens, window.steps),
                               options_.limits.max_tokens_ppm);
    }
    if (options_.limits.max_cost_ppm != 0) {
      limits.cost = limit_of(
          options_.costs ? options_.costs->mean_cost(records) : ceil_div(window.cost, window.steps),
          options_.limits.max_cost_ppm);
    }
    return limits;
  }

  [[nodiscard]] std::vector<ranked_pack>::iterator at_pack(std::size_t pack) noexcept {
    return sequence_.begin() + static_cast<std::ptrdiff_t>(pack);
  }

  /// Sets the order in which packs go to steps, L to each, those of outlier steps first and dearer
  /// packs of a step before cheaper ones.
  void order_packs(const detail::window_totals& window, std::uint32_t special) {
    const std::size_t first = std::size_t{special} * window.packs;
    sequence_.resize(packs_.costs.size());
    for (std::size_t pack = 0; pack < sequence_.size(); ++pack) {
      sequence_[pack] = {packs_.costs[pack], static_cast<std::uint32_t>(pack)};
    }
    for (std::size_t pack = 0; pack < first; pack += window.packs) {
      std::sort(at_pack(pack), at_pack(pack + window.packs), larger);
    }
    std::sort(at_pack(first), sequence_.end(), larger);
  }

  /// Where a step exceeds a limit, tries what helps at the expense of balance: steps with an even
  /// sample of the packs, then packs that are balanced by what is limited.
  void keep_limits(const detail::window_totals& window, std::uint32_t& special,
                   const detail::step_budget& limits) {
    const bool by_tokens = limits.tokens != detail::step_budget::none;
    std::uint32_t above = steps_above(window, limits);
    if (above != 0) {
      spread(window, special, by_tokens);
      above = steps_above(window, limits);
    }
    // Nothing helps where the window as a whole is above.
    if (above != 0 && window.steps > 1 && window.tokens / window.steps <= limits.tokens &&
        window.cost / window.steps <= limits.cost) {
      const detail::formed_packs balanced = packs_;
      const std::vector<ranked_pack> sequence = sequence_;
      form_by(by_tokens ? tokens_ : costs_, window.records_per_pack);
      spread(window, 0, by_tokens);
      const std::uint32_t above_now = steps_above(window, limits);
      if (above_now < above) {
        above = above_now;
        special = 0;
      } else {
        packs_ = balanced;
        sequence_ = sequence;
      }
    }
    statistics_.steps_above_limits += above;
  }

  /// Steps whose tokens or cost exceed their limit.
  [[nodiscard]] std::uint32_t steps_above(const detail::window_totals& window,
                                          const detail::step_budget& limits) const {
    std::uint32_t above = 0;
    for (std::size_t first = 0; first < sequence_.size(); first += window.packs) {
      std::uint64_t tokens = 0;
      std::uint64_t cost = 0;
      for (std::size_t i = first; i < first + window.packs; ++i) {
        tokens += packs_.tokens[sequence_[i].pack];
        cost += packs_.costs[sequence_[i].pack];
      }
      above += tokens > limits.tokens || cost > limits.cost ? 1 : 0;
    }
    return above;
  }

  /// Gives every step without outliers packs of the same amount together.
  void spread(const detail::window_totals& window, std::uint32_t special, bool by_tokens) {
    const std::size_t first = std::size_t{special} * window.packs;
    const std::vector<ranked_pack> ranked(at_pack(first), sequence_.end());
    amounts_.clear();
    for (const ranked_pack& each : ranked) {
      const std::uint64_t amount = by_tokens ? packs_.tokens[each.pack] : packs_.costs[each.pack];
      amounts_.push_back(std::min(amount, max_record_cost));
    }
    const partition_view steps = spreader_.partition(amounts_, window.packs);
    for (std::size_t i = 0; i < ranked.size(); ++i) sequence_[first + i] = ranked[steps.members[i]];
  }

  /// Forms packs of all records that are balanced by `amounts`.
  void form_by(std::span<const std::uint64_t> amounts, std::uint32_t b) {
    packs_.clear();
    regular_.form(order_.sort_descending(amounts), b, packs_);
    packs_.tokens.resize(packs_.costs.size());
    for (std::size_t pack = 0; pack < packs_.costs.size(); ++pack) {
      packs_.costs[pack] = packs_.tokens[pack] = 0;
      for (std::size_t i = pack * b; i < (pack + 1) * b; ++i) {
        const std::uint32_t index = detail::descending_key_index(packs_.keys[i]);
        packs_.costs[pack] += costs_[index];
        packs_.tokens[pack] += tokens_[index];
      }
    }
  }

  void emit(step_index first_step, const detail::window_totals& window,
            std::span<const candidate> arrivals, pack_list& out) {
    const random_key key{.stage = random_stage::step_order};
    steps_.resize(window.steps);
    std::iota(steps_.begin(), steps_.end(), 0U);
    for (std::uint32_t i = window.steps; i > 1; --i) {
      std::swap(steps_[i - 1], steps_[random_below(counter_random(key, first_step + i - 1), i)]);
    }
    order_lanes(window.packs);
    // Records are read in order and written to their packs, which keeps them in arrival order.
    const std::size_t b = window.records_per_pack;
    const std::span<candidate> records = out.add_packs(packs_.costs.size(), b);
    cursors_.resize(packs_.costs.size());
    place_of_pack_.resize(packs_.costs.size());
    std::uint32_t to = 0;
    for (std::uint32_t step = 0; step < window.steps; ++step) {
      const ranked_pack* const packs = sequence_.data() + std::size_t{steps_[step]} * window.packs;
      const std::uint64_t bits = counter_random_block(key, first_step + step)[1];
      const auto turn = static_cast<std::uint32_t>(random_below(bits, window.packs));
      for (const std::uint32_t rank : rank_of_lane_) {
        const std::uint32_t turned =
            rank < window.packs - turn ? rank + turn : rank - (window.packs - turn);
        place_of_pack_[packs[turned].pack] = to;
        cursors_[to] = static_cast<std::uint32_t>(to * b);
        ++to;
      }
    }
    // In the order in which packs were formed, records of neighbours are close to each other.
    pack_of_.resize(arrivals.size());
    const std::uint64_t* keys = packs_.keys.data();
    for (const std::uint32_t place : place_of_pack_) {
      for (std::size_t i = 0; i < b; ++i) pack_of_[detail::descending_key_index(*keys++)] = place;
    }
    // A processor waits for lines that it writes to in no order, unless it knows of them early.
    constexpr std::size_t ahead = 16;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (i + ahead < arrivals.size()) {
        __builtin_prefetch(&records[cursors_[pack_of_[i + ahead]]], 1);
      }
      records[cursors_[pack_of_[i]]++] = arrivals[i];
    }
  }

  /// Says which of a step's packs, in order of cost, each lane gets: the lanes' numbers with their
  /// bits reversed, ranked.
  void order_lanes(std::uint32_t lanes) {
    if (rank_of_lane_.size() == lanes) return;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> reversed(lanes);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      std::uint32_t bits = 0;
      for (unsigned bit = 0; bit < 32; ++bit) bits |= ((lane >> bit) & 1U) << (31 - bit);
      reversed[lane] = {bits, lane};
    }
    std::sort(reversed.begin(), reversed.end());
    rank_of_lane_.resize(lanes);
    for (std::uint32_t rank = 0; rank < lanes; ++rank) rank_of_lane_[reversed[rank].second] = rank;
  }

  replicated_options options_;
  std::uint64_t max_displacement_;
  /// Steps of the lookahead that records may be held for, and what fills a pack without outliers.
  std::uint32_t reserve_steps_ = 0;
  std::uint64_t filled_ = 0;
  replicated_statistics statistics_;

  // Of the reserve.
  std::vector<candidate> held_;
  detail::outlier_reserve reserve_;
  std::vector<candidate> pool_;
  std::vector<candidate> leaving_;
  std::vector<std::uint8_t> is_held_;

  detail::cost_order order_;
  detail::outlier_steps outliers_;
  detail::levelled_packs regular_;
  balanced_partitioner spreader_;

  // Of the window that is being formed.
  std::vector<std::uint64_t> costs_;
  std::vector<std::uint64_t> tokens_;
  std::vector<std::uint64_t> amounts_;
  std::vector<std::uint64_t> small_;
  std::uint64_t dearest_ = 0;
  std::uint64_t cheapest_ = 0;
  std::vector<std::uint64_t> taken_;
  std::vector<std::size_t> stretch_begins_;
  std::vector<std::uint32_t> stretch_of_block_;
  std::vector<std::size_t> ends_;
  std::vector<std::uint64_t> keys_;
  detail::formed_packs packs_;
  std::vector<ranked_pack> sequence_;
  std::vector<std::uint32_t> steps_;
  std::vector<std::uint32_t> rank_of_lane_;
  std::vector<std::uint32_t> place_of_pack_;
  std::vector<std::uint32_t> pack_of_;
  std::vector<std::uint32_t> cursors_;
};

static_assert(lookahead_policy<replicated_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
