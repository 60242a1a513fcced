#pragma once

/// @file
/// Steps of a window that are made for its outliers: records that cost more than a pack's share.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/formed_packs.hpp>

namespace lanepack::inline LANEPACK_ABI::detail {

/// The most that a step may hold.
struct step_budget {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t tokens = none;
  std::uint64_t cost = none;

  [[nodiscard]] constexpr bool any() const noexcept { return tokens != none || cost != none; }
};

/// A window of steps and what its records sum up to.
struct window_totals {
  std::uint32_t steps = 1;
  /// Packs of every step, and records of every pack.
  std::uint32_t packs = 1;
  std::uint32_t records_per_pack = 1;
  std::uint64_t cost = 0;
  std::uint64_t tokens = 0;

  [[nodiscard]] constexpr std::uint64_t records_of_a_step() const noexcept {
    return static_cast<std::uint64_t>(packs) * records_per_pack;
  }
  /// Mean cost of a pack, rounded down.
  [[nodiscard]] constexpr std::uint64_t share() const noexcept {
    return cost / (static_cast<std::uint64_t>(steps) * packs);
  }
};

/// Takes the outliers of a window out of it, together with what fills their steps.
///
/// While the dearest record that is left costs more, together with the cheapest ones, than a pack's
/// share of what is left, it sets the level of a step: the next dearest ones of its kind head the
/// step's packs, one each, and every pack is filled up to the level, as far as possible with
/// records of the same size, so that no second outlier is spent. What such a step carries beyond
/// its share makes the shares of the others smaller. Where a step is limited, it takes the outliers
/// that fit beside the cheapest records and fills up to the limit; the rest of the outliers go to
/// further steps.
///
/// @thread_safety  None: one thread per object.
/// @determinism    Integers only; depends on the arguments alone.
class outlier_steps {
 public:
  /// Forms as many steps as the outliers need, the last step of the window excepted.
  /// @param keys      Of all records of the window, sorted; their costs sum below 2^63.
  /// @param tokens    Of every record, by the indices in the keys; may be empty where nothing is
  ///                  limited.
  /// @param limits    What a step may hold.
  /// @param weight_ppm  The mean weight that the tokens of the dearest 1 % of records shall keep
  ///                  where a token weighs one over its step's tokens, in parts per million of the
  ///                  mean token's; steps are limited further until it is reached, though not below
  ///                  the mean. 0: no such wish.
  /// @param out       Gets the packs of these steps, step by step.
  /// @return          Number of steps formed; `rest()` has what is left.
  /// @complexity      O(n), and O(log n) for every record of the steps formed.
  std::uint32_t form(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> tokens,
                     const window_totals& window, const step_budget& limits,
                     std::uint32_t weight_ppm, formed_packs& out) {
    limits_ = limits;
    if (weight_ppm != 0) {
      const std::uint32_t scale = scale_of_sample(window.packs);
      if (scale > 1) {
        use_sample(keys, tokens, window, scale);
        find_limit(weight_ppm, out);
        limits_.tokens = saturating_mul(limits_.tokens, scale);
        limits_.cost = limits.cost;
        weight_ppm = 0;
      }
    }
    use(keys, tokens, window);
    find_limit(weight_ppm, out);
    return window.steps - steps_left_;
  }

  /// Keys of the records that are left, sorted.
  [[nodiscard]] std::span<const std::uint64_t> rest() {
    rest_.resize(keys_.size());
    std::size_t left = 0;
    for (std::size_t at = 0; at < keys_.size(); ++at) {
      rest_[left] = keys_[at];
      left += after_[at] == at ? 1 : 0;
    }
    return std::span(rest_).first(left);
  }

 private:
  /// Places whose tokens are read together.
  static constexpr std::size_t block = 256;
  /// Attempts at reaching the wanted weight after the first.
  static constexpr int most_attempts = 3;

  /// How much smaller a window of the same kind may be from which a limit is found.
  [[nodiscard]] static std::uint32_t scale_of_sample(std::uint32_t packs) noexcept {
    constexpr std::uint32_t enough_packs = 32;
    std::uint32_t scale = std::max(1U, packs / enough_packs);
    while (packs % scale != 0) --scale;
    return scale;
  }

  void use(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> tokens,
           const window_totals& window) {
    keys_ = keys;
    tokens_by_index_ = tokens;
    window_ = window;
    if (!limits_.any()) return;
    tokens_.resize(keys.size());
    is_read_.assign(keys.size() / block + 1, 0);
  }

  /// Uses every `scale`-th record, in order of cost, as a window with fewer packs a step.
  void use_sample(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> tokens,
                  const window_totals& window, std::uint32_t scale) {
    sample_.clear();
    for (std::size_t at = scale / 2; at < keys.size(); at += scale) sample_.push_back(keys[at]);
    window_totals small = window;
    small.packs /= scale;
    small.cost = small.tokens = 0;
    for (const std::uint64_t key : sample_) {
      small.cost += descending_key_cost(key);
      small.tokens += tokens[descending_key_index(key)];
    }
    if (limits_.tokens != step_budget::none) limits_.tokens /= scale;
    if (limits_.cost != step_budget::none) limits_.cost /= scale;
    use(sample_, tokens, small);
  }

  /// Forms the steps, with lower limits until the wanted weight is reached.
  void find_limit(std::uint32_t weight_ppm, formed_packs& out) {
    for (int attempt = 0;; ++attempt) {
      out.clear();
      form_steps(out);
      if (weight_ppm == 0 || attempt == most_attempts || !limit_further(weight_ppm)) return;
    }
  }

  [[nodiscard]] std::uint64_t cost(std::size_t at) const noexcept {
    return descending_key_cost(keys_[at]);
  }
  [[nodiscard]] std::uint64_t tokens(std::size_t at) noexcept {
    if (is_read_[at / block] == 0) read_block(at / block);
    return tokens_[at];
  }
  /// Reads the tokens of neighbours in cost: together, because each is far from the others in
  /// memory, and only those that are asked for, because most records are in no step of outliers.
  void read_block(std::size_t number) noexcept {
    const std::size_t end = std::min(keys_.size(), (number + 1) * block);
    for (std::size_t at = number * block; at < end; ++at) {
      tokens_[at] = tokens_by_index_[descending_key_index(keys_[at])];
    }
    is_read_[number] = 1;
  }

  // Places are numbered as the keys are: 0 is the dearest. after_ and before_ are forests whose
  // roots are the places not taken; before_ is shifted by one, so that 0 says "none".

  /// The first place not taken that is not before `at`; n if there is none.
  [[nodiscard]] std::uint32_t at_or_after(std::uint32_t at) noexcept {
    while (after_[at] != at) at = after_[at] = after_[after_[at]];
    return at;
  }
  /// One more than the last place not taken before `end`; 0 if there is none.
  [[nodiscard]] std::uint32_t end_of_last_before(std::uint32_t end) noexcept {
    while (before_[end] != end) end = before_[end] = before_[before_[end]];
    return end;
  }
  void take(std::uint32_t at) noexcept {
    after_[at] = at + 1;
    before_[at + 1] = at;
    const std::uint64_t taken_cost = cost(at);
    pack_cost_ += taken_cost;
    cost_left_ -= taken_cost;
    if (!limits_.any()) return;
    const std::uint64_t taken_tokens = tokens(at);
    pack_tokens_ += taken_tokens;
    step_tokens_ += taken_tokens;
    step_cost_ += taken_cost;
    if (at < longest_) step_longest_tokens_ += taken_tokens;
    if (taken_tokens != 0) {
      last_cost_ = taken_cost;
      last_tokens_ = taken_tokens;
    }
  }

  void form_steps(formed_packs& out) {
    const std::size_t n = keys_.size();
    after_.resize(n + 1);
    before_.resize(n + 1);
    std::iota(after_.begin(), after_.end(), 0U);
    std::iota(before_.begin(), before_.end(), 0U);
    cost_left_ = window_.cost;
    tokens_left_ = window_.tokens;
    steps_left_ = window_.steps;
    found_ = 0;
    longest_ = ceil_div(n, 100);
    longest_tokens_ = 0;
    most_step_tokens_ = 0;
    weight_ = 0;
    while (steps_left_ > 1) {
      const std::uint64_t share =
          cost_left_ / (static_cast<std::uint64_t>(steps_left_) * window_.packs);
      const std::uint64_t cheapest = cost_of_cheapest(window_.records_per_pack - 1);
      const std::uint64_t level = cost(at_or_after(0)) + cheapest;
      if (level <= share) break;
      form_step(level, share, cheapest, out);
    }
  }

  [[nodiscard]] std::uint64_t cost_of_cheapest(std::uint32_t count) noexcept {
    std::uint64_t sum = 0;
    auto end = static_cast<std::uint32_t>(keys_.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      end = end_of_last_before(end) - 1;
      sum += cost(end);
    }
    return sum;
  }

  void form_step(std::uint64_t level, std::uint64_t share, std::uint64_t cheapest,
                 formed_packs& out) {
    const std::uint64_t slots = window_.records_of_a_step();
    step_tokens_ = step_cost_ = step_longest_tokens_ = 0;
    last_cost_ = window_.cost;
    last_tokens_ = window_.tokens;
    // What has to leave in the steps that are left cannot be limited away.
    step_budget limits = limits_;
    if (limits.tokens != step_budget::none) {
      limits.tokens = std::max(limits.tokens, ceil_div(tokens_left_, steps_left_));
    }
    if (limits.cost != step_budget::none) {
      limits.cost = std::max(limits.cost, ceil_div(cost_left_, steps_left_));
    }
    choose_heads(share, cheapest, limits);

    std::uint64_t open_slots = slots - heads_.size();
    for (std::uint32_t pack = 0; pack < window_.packs; ++pack) {
      std::uint32_t count = window_.records_per_pack;
      pack_cost_ = pack_tokens_ = 0;
      if (pack < heads_.size()) {
        out.keys.push_back(keys_[heads_[pack]]);
        pack_cost_ = cost(heads_[pack]);
        if (limits_.any()) pack_tokens_ = tokens(heads_[pack]);
        --count;
      }
      for (; count > 0; --count, --open_slots) {
        const std::uint64_t room = level > pack_cost_ ? level - pack_cost_ : 0;
        const std::uint32_t at =
            dearest_up_to(std::min(room / count, allowed_cost(limits, open_slots)));
        out.keys.push_back(keys_[at]);
        take(at);
      }
      out.costs.push_back(pack_cost_);
      if (limits_.any()) out.tokens.push_back(pack_tokens_);
    }
    --steps_left_;
    if (!limits_.any()) return;
    tokens_left_ -= step_tokens_;
    most_step_tokens_ = std::max(most_step_tokens_, step_tokens_);
    longest_tokens_ += step_longest_tokens_;
    weight_ += weight_of(step_longest_tokens_, step_tokens_);
  }

  /// The outliers of a step: the dearest records left, one a pack, as many as fit the limits beside
  /// the cheapest records; at least one.
  void choose_heads(std::uint64_t share, std::uint64_t cheapest, const step_budget& limits) {
    heads_.clear();
    if (limits.any()) sum_up_cheapest();
    const auto n = static_cast<std::uint32_t>(keys_.size());
    std::uint64_t head_tokens = 0;
    std::uint64_t head_costs = 0;
    for (std::uint32_t at = at_or_after(0); at < n && heads_.size() < window_.packs;
         at = at_or_after(at + 1)) {
      const std::uint64_t head = cost(at);
      if (head + cheapest <= share) break;
      if (limits.any()) {
        head_tokens += tokens(at);
        head_costs += head;
        const sums& others = cheapest_[cheapest_.size() - 2 - heads_.size()];
        const bool fits =
            head_tokens + others.tokens <= limits.tokens && head_costs + others.cost <= limits.cost;
        if (!fits && !heads_.empty()) break;
      }
      heads_.push_back(at);
    }
    for (const std::uint32_t at : heads_) take(at);
  }

  /// Sums over the cheapest records not taken, for every number of them up to a step's.
  void sum_up_cheapest() {
    const std::uint64_t slots = window_.records_of_a_step();
    cheapest_.clear();
    cheapest_.push_back({0, 0});
    auto end = static_cast<std::uint32_t>(keys_.size());
    for (std::uint64_t i = 0; i < slots; ++i) {
      end = end_of_last_before(end) - 1;
      const sums& before = cheapest_.back();
      cheapest_.push_back({before.tokens + tokens(end), before.cost + cost(end)});
    }
  }

  /// What the next record may cost so that the step's limits hold with more of its kind.
  [[nodiscard]] std::uint64_t allowed_cost(const step_budget& limits,
                                           std::uint64_t open_slots) const noexcept {
    std::uint64_t allowed = step_budget::none;
    if (limits.cost != step_budget::none) {
      allowed = limits.cost > step_cost_ ? (limits.cost - step_cost_) / open_slots : 0;
    }
    if (limits.tokens != step_budget::none && last_tokens_ != 0) {
      const std::uint64_t room = limits.tokens > step_tokens_ ? limits.tokens - step_tokens_ : 0;
      const uint128 by_tokens = static_cast<uint128>(room / open_slots) * last_cost_ / last_tokens_;
      allowed = static_cast<std::uint64_t>(std::min<uint128>(allowed, by_tokens));
    }
    return allowed;
  }

  /// The dearest record not taken that costs at most `wanted`, or else the cheapest.
  [[nodiscard]] std::uint32_t dearest_up_to(std::uint64_t wanted) noexcept {
    const auto n = static_cast<std::uint32_t>(keys_.size());
    const std::uint32_t from = first_up_to(wanted);
    const std::uint32_t at = at_or_after(from);
    return at < n ? at : end_of_last_before(n) - 1;
  }

  /// The first place of a record that costs at most `wanted`, or n.
  ///
  /// Searched from the place that was found last: the records of a pack are of a size.
  [[nodiscard]] std::uint32_t first_up_to(std::uint64_t wanted) noexcept {
    const std::uint64_t key = descending_key(std::min(wanted, order_cost_mask), 0);
    const std::size_t n = keys_.size();
    // keys_[low - 1] < key <= keys_[high], as far as these exist.
    std::size_t low = 0;
    std::size_t high = n;
    std::size_t jump = 1;
    if (found_ < n && keys_[found_] < key) {
      low = found_ + 1;
      while (low + jump < n && keys_[low + jump] < key) {
        low += jump + 1;
        jump *= 2;
      }
      high = std::min(n, low + jump);
    } else {
      high = found_;
      while (high >= jump && keys_[high - jump] >= key) {
        high -= jump;
        jump *= 2;
      }
      low = high >= jump ? high - jump + 1 : 0;
    }
    const auto at = [this](std::size_t place) {
      return keys_.begin() + static_cast<std::ptrdiff_t>(place);
    };
    found_ = static_cast<std::size_t>(std::lower_bound(at(low), at(high), key) - keys_.begin());
    return static_cast<std::uint32_t>(found_);
  }

  /// What `tokens` of a step with `step_tokens` weigh, in units of the window's mean token.
  [[nodiscard]] uint128 weight_of(std::uint64_t tokens, std::uint64_t step_tokens) const noexcept {
    if (step_tokens == 0) return 0;
    return static_cast<uint128>(tokens) * window_.tokens /
           (static_cast<uint128>(window_.steps) * step_tokens);
  }

  /// Lowers the limit on tokens if the tokens of the dearest records weigh less than wanted.
  /// @return  False where the weight is reached, or no lower limit is left to try.
  bool limit_further(std::uint32_t weight_ppm) {
    std::uint64_t all = longest_tokens_;
    std::uint64_t others = 0;
    for (std::uint32_t at = at_or_after(0); at < longest_; at = at_or_after(at + 1)) {
      others += tokens(at);
    }
    all += others;
    const uint128 weight = weight_ + weight_of(others, tokens_left_ / steps_left_);
    const uint128 wanted = static_cast<uint128>(all) * weight_ppm / 1'000'000;
    if (weight >= wanted - wanted / 100) return false;
    const std::uint64_t mean = ceil_div(window_.tokens, window_.steps);
    const std::uint64_t now = std::min(limits_.tokens, most_step_tokens_);
    if (now <= mean) return false;
    // What these steps have to weigh for the others to stay as they are.
    const uint128 missing = wanted - weight;
    const auto next =
        static_cast<std::uint64_t>(static_cast<uint128>(now) * weight_ / (weight_ + missing));
    limits_.tokens = std::max(mean, next);
    return true;
  }

  struct sums {
    std::uint64_t tokens;
    std::uint64_t cost;
  };

  // The window.
  std::span<const std::uint64_t> keys_;
  std::span<const std::uint64_t> tokens_by_index_;
  /// By place, in blocks that are read when they are needed.
  std::vector<std::uint64_t> tokens_;
  std::vector<std::uint8_t> is_read_;
  std::vector<std::uint64_t> sample_;
  window_totals window_;
  step_budget limits_;

  // What is left of it.
  std::vector<std::uint32_t> after_;
  std::vector<std::uint32_t> before_;
  std::uint32_t steps_left_ = 1;
  std::uint64_t cost_left_ = 0;
  std::uint64_t tokens_left_ = 0;
  std::vector<std::uint64_t> rest_;

  // The step and the pack that are being formed.
  std::vector<std::uint32_t> heads_;
  std::vector<sums> cheapest_;
  std::uint64_t pack_cost_ = 0;
  std::uint64_t pack_tokens_ = 0;
  std::uint64_t step_tokens_ = 0;
  std::uint64_t step_cost_ = 0;
  std::size_t found_ = 0;
  std::uint64_t last_cost_ = 0;
  std::uint64_t last_tokens_ = 0;

  // How much the tokens of the dearest records weigh.
  std::uint64_t longest_ = 0;
  std::uint64_t step_longest_tokens_ = 0;
  std::uint64_t longest_tokens_ = 0;
  std::uint64_t most_step_tokens_ = 0;
  uint128 weight_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI::detail
