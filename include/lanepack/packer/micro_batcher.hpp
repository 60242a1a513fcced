#pragma once

/// @file
/// Micro-batches: a rank's records of a step in bins of bounded tokens.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/micro_batch_rule.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of `micro_batcher`.
struct micro_batch_options {
  /// Tokens of a micro-batch after padding, a hard limit: 1 to `max_bin_capacity`.
  std::uint64_t capacity_tokens = 32768;
  micro_batch_rule rule = micro_batch_rule::best_fit_decreasing;
  /// Exactly so many micro-batches a step, at least 1; nullopt for as many as the rule makes.
  std::optional<std::uint32_t> micro_batches = std::nullopt;
  /// The number of micro-batches is rounded up to a multiple of this, at least 1.
  std::uint32_t multiple_of = 1;
};

/// What the records of a rank's step can come to at worst.
struct worst_case_step {
  /// Records of a step, the same in every step.
  std::uint64_t records = 0;
  /// The largest sum of padded tokens that so many records can have.
  std::uint64_t total_tokens = 0;
  /// Padded tokens of the largest record.
  std::uint64_t largest_record = 0;
};

namespace detail {

inline void check_micro_batch_options(const micro_batch_options& options) {
  if (options.capacity_tokens == 0 || options.capacity_tokens > max_bin_capacity) {
    throw_invalid_option("capacity_tokens", std::to_string(options.capacity_tokens),
                         "1 to " + std::to_string(max_bin_capacity));
  }
  if (to_string(options.rule) == "unknown") {
    throw_invalid_option("rule", std::to_string(static_cast<unsigned>(options.rule)),
                         "one of its named values");
  }
  if (options.multiple_of == 0) throw_invalid_option("multiple_of", "0", "at least 1");
  if (!options.micro_batches) return;
  if (*options.micro_batches == 0) throw_invalid_option("micro_batches", "0", "at least 1");
  if (*options.micro_batches % options.multiple_of != 0) {
    throw_invalid_option("micro_batches", std::to_string(*options.micro_batches),
                         "a multiple of multiple_of = " + std::to_string(options.multiple_of));
  }
}

/// The least total with which a record of at most `largest` tokens may find no room in `bins` bins
/// that were filled largest first. When one of s tokens finds none, every bin holds at least
/// capacity - s + 1 and, since no smaller record came before, at least s. So the total is at least
/// bins x max(s, capacity - s + 1) + s, which falls up to s = (capacity + 1) / 2 and rises after.
[[nodiscard]] constexpr std::uint64_t least_total_without_room(std::uint64_t bins,
                                                               std::uint64_t capacity,
                                                               std::uint64_t largest) noexcept {
  const std::uint64_t s = std::min(largest, (capacity + 1) / 2);
  return saturating_add(saturating_mul(bins, std::max(s, capacity - s + 1)), s);
}

}  // namespace detail

/// The most micro-batches that any rule makes of a step before `micro_batches` and `multiple_of`
/// are applied.
/// @return  nullopt if the largest record is 0 or over the capacity.
/// @complexity  O(log records).
[[nodiscard]] inline std::optional<std::uint64_t> largest_micro_batch_count(
    const micro_batch_options& options, const worst_case_step& step) {
  const std::uint64_t capacity = options.capacity_tokens;
  if (step.records == 0) return 0;
  if (step.largest_record == 0 || step.largest_record > capacity) return std::nullopt;
  if (options.rule == micro_batch_rule::padded_rows) {
    // Every micro-batch but the last has capacity / longest rows.
    return ceil_div(step.records, capacity / step.largest_record);
  }
  std::uint64_t low = 1;
  std::uint64_t high = step.records;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (step.total_tokens <
        detail::least_total_without_room(middle, capacity, step.largest_record)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// True if `micro_batcher` with these options cannot fail on any step that stays within the worst
/// case; lane-local policies require it, so that no rank stops alone.
///
/// Sufficient, and for steps that are only bounded in total and largest record nearly necessary.
/// @throws invalid_option as the constructor of `micro_batcher` does.
[[nodiscard]] inline bool worst_case_fits_micro_batches(const micro_batch_options& options,
                                                        const worst_case_step& step) {
  detail::check_micro_batch_options(options);
  const std::optional<std::uint64_t> most = largest_micro_batch_count(options, step);
  if (!most) return false;
  if (options.micro_batches) {
    return *most <= *options.micro_batches && *options.micro_batches <= step.records;
  }
  return round_up(*most, options.multiple_of) <= step.records;
}

/// Splits a rank's records of a step into micro-batches of at most `capacity_tokens`.
///
/// Micro-batches stand from heavy to light (by padded tokens, or by the costs given), equal ones by
/// their lowest index, so that those of different ranks line up; inside one, indices ascend. None
/// is ever empty. Where `micro_batches` or `multiple_of` ask for more than the rule makes, records
/// are spread instead: largest first into the emptiest. Where a fixed number is too small for the
/// rule, the other rules are tried, then moves and swaps between micro-batches, then, for few
/// records, a bounded search.
///
/// Rule `level` spreads the costs: longest first into the lightest micro-batch that has room, then
/// moves and swaps between heavy and light ones, all within the capacity. What it cannot place so
/// it takes from the tight rules and levels from there. Costs that are level in all ranks, in the
/// same order, leave no rank waiting in any micro-batch.
///
/// @thread_safety  None: one thread per object; scratch memory is reused from call to call.
/// @determinism  Integers only; depends on the options and the arguments alone.
class micro_batcher {
 public:
  /// @throws invalid_option if the capacity, `micro_batches` or `multiple_of` are 0, the capacity
  ///         is above `max_bin_capacity`, or `micro_batches` is no multiple of `multiple_of`.
  explicit micro_batcher(const micro_batch_options& options = {}) : options_(options) {
    detail::check_micro_batch_options(options_);
  }

  [[nodiscard]] const micro_batch_options& options() const noexcept { return options_; }

  /// Replaces `out` by the micro-batches of a step.
  /// @param tokens  Padded tokens of every record, 1 to `capacity_tokens`.
  /// @param costs   Costs that order the micro-batches, one a record; empty to order by tokens.
  /// @throws data_error if a record is empty or over the capacity, if there are fewer records than
  ///         micro-batches, or if no way was found to fit them into `micro_batches`.
  /// @complexity  O(n log n); more where a fixed number of micro-batches has to be repaired.
  void form(std::span<const std::uint64_t> tokens, micro_batch_list& out,
            std::span<const std::uint64_t> costs = {}) {
    form(options_.micro_batches, tokens, out, costs);
  }

  /// As `form`, with a number of micro-batches for this step alone.
  /// @throws data_error as `form` does with a fixed number.
  void form_exactly(std::uint32_t micro_batches, std::span<const std::uint64_t> tokens,
                    micro_batch_list& out, std::span<const std::uint64_t> costs = {}) {
    form(std::optional(micro_batches), tokens, out, costs);
  }

 private:
  void form(std::optional<std::uint32_t> fixed, std::span<const std::uint64_t> tokens,
            micro_batch_list& out, std::span<const std::uint64_t> costs) {
    LANEPACK_ASSERT(costs.empty() || costs.size() == tokens.size());
    tokens_ = tokens;
    pack(options_.rule, bins_);
    const std::size_t wanted =
        fixed ? *fixed : static_cast<std::size_t>(round_up(bins_.size(), options_.multiple_of));
    if (wanted > tokens.size()) too_few_records(wanted, fixed.has_value());
    const bool levelled = options_.rule == micro_batch_rule::level && wanted > 1;
    const std::span<const std::uint64_t> weights = costs.empty() ? tokens : costs;
    if (!levelled || !spread_costs(wanted, weights)) {
      if (bins_.size() > wanted) reduce(wanted);
      if (bins_.size() < wanted) spread(wanted);
    }
    if (levelled) level(weights);
    emit(costs, out);
  }

  struct weighted_bin {
    std::uint64_t weight;
    std::uint32_t lowest;
    std::uint32_t bin;
  };
  /// Records of a bin, largest first, while bins are repaired.
  struct open_bin {
    std::uint64_t load = 0;
    std::vector<std::uint32_t> records;
    /// Cost of the records, while costs are levelled.
    std::uint64_t cost = 0;
  };
  /// Records that two bins exchange to level their costs.
  struct exchange {
    std::uint64_t distance = std::numeric_limits<std::uint64_t>::max();
    std::size_t out = 0;
    /// One past the last record of the light bin if nothing comes back.
    std::size_t in = 0;
  };

  static constexpr std::size_t search_records = 64;
  static constexpr std::uint32_t search_nodes = 1U << 16;
  /// Micro-batches that are asked for room, lightest first, before costs are spread another way.
  static constexpr std::size_t light_bins = 32;
  static constexpr std::uint32_t level_rounds = 16;
  /// Pairs of records up to which every exchange between two bins is looked at.
  static constexpr std::size_t exchange_pairs = 1024;
  /// Pairs of records that are looked at in all, for every record and beside it.
  static constexpr std::size_t looks_a_record = 32;
  static constexpr std::size_t looks_at_least = 1U << 14;

  void pack(micro_batch_rule rule, micro_batch_list& bins) {
    const std::uint64_t capacity = options_.capacity_tokens;
    switch (rule) {
      case micro_batch_rule::best_fit_decreasing:
        return packer_.best_fit_decreasing(tokens_, capacity, bins);
      case micro_batch_rule::first_fit_decreasing:
        return packer_.first_fit_decreasing(tokens_, capacity, bins);
      case micro_batch_rule::mffd_johnson_garey:
        return packer_.mffd_johnson_garey(tokens_, capacity, bins);
      case micro_batch_rule::mffd_nemo:
        return packer_.mffd_nemo(tokens_, capacity, bins);
      case micro_batch_rule::padded_rows:
        return packer_.padded_rows(tokens_, capacity, bins);
      case micro_batch_rule::level:
        return pack_tightly(bins);
    }
  }

  /// The fewest bins that any of the tight rules makes.
  void pack_tightly(micro_batch_list& bins) {
    const std::uint64_t capacity = options_.capacity_tokens;
    packer_.best_fit_decreasing(tokens_, capacity, bins);
    std::uint64_t total = 0;
    for (const std::uint64_t count : tokens_) total += count;
    if (bins.size() <= ceil_div(total, capacity)) return;
    packer_.mffd_johnson_garey(tokens_, capacity, other_bins_);
    if (other_bins_.size() < bins.size()) bins = other_bins_;
  }

  [[nodiscard]] bool padded() const noexcept {
    return options_.rule == micro_batch_rule::padded_rows;
  }

  [[noreturn]] LANEPACK_COLD void too_few_records(std::size_t wanted, bool fixed) const {
    detail::throw_data_error({}, "found " + std::to_string(tokens_.size()) +
                                     " records in the step, expected at least one for each of " +
                                     std::to_string(wanted) + " micro-batches (" +
                                     (fixed ? "micro_batches" : "multiple_of") + ")");
  }

  [[noreturn]] LANEPACK_COLD void do_not_fit(std::size_t wanted) const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : tokens_) total += count;
    detail::throw_data_error(
        {}, "found " + std::to_string(tokens_.size()) + " records of " + std::to_string(total) +
                " tokens in the step and no way to fit them into micro_batches = " +
                std::to_string(wanted) + " of capacity_tokens = " +
                std::to_string(options_.capacity_tokens) + (padded() ? " as padded rows" : ""));
  }

  /// Fits the records into `wanted` bins or fewer although the rule made more.
  void reduce(std::size_t wanted) {
    // Runs of descending records need the fewest bins for padded rows.
    if (padded()) do_not_fit(wanted);
    std::uint64_t total = 0;
    for (const std::uint64_t count : tokens_) total += count;
    if (ceil_div(total, options_.capacity_tokens) > wanted) do_not_fit(wanted);

    for (const micro_batch_rule rule :
         {micro_batch_rule::best_fit_decreasing, micro_batch_rule::first_fit_decreasing,
          micro_batch_rule::mffd_johnson_garey}) {
      if (rule == options_.rule) continue;
      pack(rule, bins_);
      if (bins_.size() <= wanted) return;
    }
    if (balance_below_capacity(wanted) || search(wanted)) return;
    do_not_fit(wanted);
  }

  /// Largest first into the emptiest of `wanted` bins; the bins of all records are in `bin_of_`.
  /// @return  True if none is over the capacity.
  bool spread_evenly(std::size_t wanted) {
    const std::span<const std::uint64_t> keys = order_.sort_descending(tokens_);
    bin_of_.resize(tokens_.size());
    heap_.clear();
    // On top of the heap: the emptiest bin, ties by number.
    const auto fuller = [](const weighted_bin& a, const weighted_bin& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.bin > b.bin;
    };
    bool fits = true;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      weighted_bin bin{0, 0, static_cast<std::uint32_t>(i)};
      if (i >= wanted) {
        std::pop_heap(heap_.begin(), heap_.end(), fuller);
        bin = heap_.back();
        heap_.pop_back();
      }
      bin.weight += detail::descending_key_cost(keys[i]);
      fits = fits && bin.weight <= options_.capacity_tokens;
      bin_of_[detail::descending_key_index(keys[i])] = bin.bin;
      heap_.push_back(bin);
      std::push_heap(heap_.begin(), heap_.end(), fuller);
    }
    return fits;
  }

  /// Spreads the records evenly, then moves and swaps them out of the fullest bin while it is over
  /// the capacity.
  bool balance_below_capacity(std::size_t wanted) {
    spread_evenly(wanted);
    std::vector<open_bin>& bins = repaired_;
    bins.assign(wanted, {});
    for (std::uint32_t record = 0; record < tokens_.size(); ++record) {
      bins[bin_of_[record]].records.push_back(record);
      bins[bin_of_[record]].load += tokens_[record];
    }
    for (open_bin& bin : bins) sort_records(bin);
    for (std::size_t steps = 8 * wanted + 64; steps > 0; --steps) {
      std::sort(bins.begin(), bins.end(), [](const open_bin& a, const open_bin& b) {
        return a.load != b.load ? a.load > b.load : a.records.front() < b.records.front();
      });
      if (bins.front().load <= options_.capacity_tokens) {
        store(bins);
        return true;
      }
      bool lighter = false;
      for (std::size_t other = wanted - 1; other > 0 && !lighter; --other) {
        lighter = relieve(bins.front(), bins[other]);
      }
      if (!lighter) return false;
    }
    return false;
  }

  void sort_records(open_bin& bin) const {
    std::sort(bin.records.begin(), bin.records.end(), [this](std::uint32_t a, std::uint32_t b) {
      return tokens_[a] != tokens_[b] ? tokens_[a] > tokens_[b] : a < b;
    });
  }

  /// Moves a record, or swaps two, so that both bins end below the load of the heavy one, as close
  /// to each other as possible.
  bool relieve(open_bin& heavy, open_bin& light) const {
    const std::uint64_t difference = heavy.load - light.load;
    std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
    std::size_t best_out = 0;
    std::size_t best_in = 0;
    // Both descend, so the best partner moves only down; the last partner is nothing: a move.
    const std::size_t partners = light.records.size() + (heavy.records.size() > 1 ? 1 : 0);
    std::size_t out = 0;
    std::size_t in = 0;
    while (out < heavy.records.size() && in < partners) {
      const std::uint64_t leaves = tokens_[heavy.records[out]];
      const std::uint64_t comes = in < light.records.size() ? tokens_[light.records[in]] : 0;
      const std::uint64_t twice = leaves > comes ? 2 * (leaves - comes) : 0;
      const std::uint64_t distance = twice > difference ? twice - difference : difference - twice;
      if (distance < best && leaves > comes && leaves - comes < difference) {
        best = distance;
        best_out = out;
        best_in = in;
      }
      if (twice < difference) {
        ++in;
      } else {
        ++out;
      }
    }
    if (best == std::numeric_limits<std::uint64_t>::max()) return false;
    const std::uint32_t moved = heavy.records[best_out];
    heavy.load -= tokens_[moved];
    light.load += tokens_[moved];
    if (best_in < light.records.size()) {
      const std::uint32_t back = light.records[best_in];
      heavy.load += tokens_[back];
      light.load -= tokens_[back];
      std::swap(heavy.records[best_out], light.records[best_in]);
    } else {
      heavy.records.erase(heavy.records.begin() + static_cast<std::ptrdiff_t>(best_out));
      light.records.push_back(moved);
    }
    sort_records(heavy);
    sort_records(light);
    return true;
  }

  /// Longest first, by cost, into the lightest of `wanted` bins that has room for the tokens.
  /// @return  False, with `bins_` as it was, if a record finds room in none of the lightest.
  bool spread_costs(std::size_t wanted, std::span<const std::uint64_t> costs) {
    const std::span<const std::uint64_t> keys = order_.sort_descending(costs);
    std::vector<open_bin>& bins = repaired_;
    bins.assign(wanted, {});
    heap_.clear();
    const auto heavier = [](const weighted_bin& a, const weighted_bin& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.bin > b.bin;
    };
    std::array<weighted_bin, light_bins> passed;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::uint32_t record = detail::descending_key_index(keys[i]);
      weighted_bin chosen{0, 0, static_cast<std::uint32_t>(i)};
      std::size_t full = 0;
      if (i >= wanted) {
        for (;; ++full) {
          if (full == light_bins || heap_.empty()) return false;
          std::pop_heap(heap_.begin(), heap_.end(), heavier);
          chosen = heap_.back();
          heap_.pop_back();
          if (bins[chosen.bin].load + tokens_[record] <= options_.capacity_tokens) break;
          passed[full] = chosen;
        }
      }
      bins[chosen.bin].load += tokens_[record];
      bins[chosen.bin].records.push_back(record);
      chosen.weight += costs[record];
      passed[full++] = chosen;
      for (std::size_t k = 0; k < full; ++k) {
        heap_.push_back(passed[k]);
        std::push_heap(heap_.begin(), heap_.end(), heavier);
      }
    }
    store(bins);
    return true;
  }

  /// Levels the costs of `bins_` by moves and swaps within the capacity: with bins in order of
  /// cost, the heaviest meets the lightest, the next heaviest the next lightest.
  void level(std::span<const std::uint64_t> costs) {
    std::vector<open_bin>& bins = repaired_;
    bins.assign(bins_.size(), {});
    for (std::size_t i = 0; i < bins.size(); ++i) {
      bins[i].records.assign(bins_[i].begin(), bins_[i].end());
      for (const std::uint32_t record : bins_[i]) {
        bins[i].load += tokens_[record];
        bins[i].cost += costs[record];
      }
      std::sort(bins[i].records.begin(), bins[i].records.end(), detail::costlier{costs});
    }
    looks_left_ = looks_a_record * tokens_.size() + looks_at_least;
    for (std::uint32_t round = 0; round < level_rounds && looks_left_ != 0; ++round) {
      std::sort(bins.begin(), bins.end(), [](const open_bin& a, const open_bin& b) {
        return a.cost != b.cost ? a.cost > b.cost : a.records.front() < b.records.front();
      });
      bool changed = false;
      std::size_t heavy = 0;
      std::size_t light = bins.size() - 1;
      while (heavy < light && looks_left_ != 0) {
        if (level_pair(costs, bins[heavy], bins[light])) {
          changed = true;
          --light;
        }
        ++heavy;
      }
      // The heaviest decides: it may have another partner than the lightest.
      for (std::size_t other = std::min(bins.size(), light_bins) - 1; other > 0 && !changed;
           --other) {
        changed = level_pair(costs, bins.front(), bins[bins.size() - other]);
      }
      if (!changed) break;
    }
    store(bins);
  }

  static void insert_by(std::span<const std::uint64_t> costs, open_bin& bin, std::uint32_t record) {
    bin.records.insert(
        std::lower_bound(bin.records.begin(), bin.records.end(), record, detail::costlier{costs}),
        record);
  }

  /// The exchange that brings the costs of two bins closest to each other within the capacity.
  [[nodiscard]] exchange best_exchange(std::span<const std::uint64_t> costs, const open_bin& heavy,
                                       const open_bin& light) {
    const std::uint64_t difference = heavy.cost - light.cost;
    const std::uint64_t capacity = options_.capacity_tokens;
    const std::size_t partners = light.records.size() + (heavy.records.size() > 1 ? 1 : 0);
    exchange best;
    // Both descend, so that twice the cost moved grows with `in` and falls with `out`.
    const auto look_at = [&](std::size_t out, std::size_t in) {
      const std::uint32_t leaves = heavy.records[out];
      const bool swaps = in < light.records.size();
      const std::uint64_t comes_cost = swaps ? costs[light.records[in]] : 0;
      const std::uint64_t comes_tokens = swaps ? tokens_[light.records[in]] : 0;
      const std::uint64_t moved = costs[leaves] > comes_cost ? costs[leaves] - comes_cost : 0;
      const std::uint64_t distance =
          2 * moved > difference ? 2 * moved - difference : difference - 2 * moved;
      if (moved != 0 && moved < difference && distance < best.distance &&
          heavy.load - tokens_[leaves] + comes_tokens <= capacity &&
          light.load - comes_tokens + tokens_[leaves] <= capacity) {
        best = {distance, out, in};
      }
      return 2 * moved < difference;
    };
    const std::size_t pairs = heavy.records.size() * partners;
    const bool every_pair = pairs <= exchange_pairs;
    looks_left_ -= std::min(looks_left_, every_pair ? pairs : heavy.records.size() + partners);
    if (every_pair) {
      for (std::size_t out = 0; out < heavy.records.size(); ++out) {
        for (std::size_t in = 0; in < partners; ++in) look_at(out, in);
      }
      return best;
    }
    for (std::size_t out = 0, in = 0; out < heavy.records.size() && in < partners;) {
      if (look_at(out, in)) {
        ++in;
      } else {
        ++out;
      }
    }
    return best;
  }

  bool level_pair(std::span<const std::uint64_t> costs, open_bin& heavy, open_bin& light) {
    const exchange best = best_exchange(costs, heavy, light);
    if (best.distance == std::numeric_limits<std::uint64_t>::max()) return false;
    const std::uint32_t moved = heavy.records[best.out];
    heavy.load -= tokens_[moved];
    heavy.cost -= costs[moved];
    light.load += tokens_[moved];
    light.cost += costs[moved];
    heavy.records.erase(heavy.records.begin() + static_cast<std::ptrdiff_t>(best.out));
    if (best.in < light.records.size()) {
      const std::uint32_t back = light.records[best.in];
      heavy.load += tokens_[back];
      heavy.cost += costs[back];
      light.load -= tokens_[back];
      light.cost -= costs[back];
      light.records.erase(light.records.begin() + static_cast<std::ptrdiff_t>(best.in));
      insert_by(costs, heavy, back);
    }
    insert_by(costs, light, moved);
    return true;
  }

  /// Depth-first search over the bins of every record, largest first, for a limited number of
  /// nodes.
  bool search(std::size_t wanted) {
    if (tokens_.size() > search_records) return false;
    const std::span<const std::uint64_t> keys = order_.sort_descending(tokens_);
    const std::size_t n = keys.size();
    std::vector<std::uint64_t> loads(wanted, 0);
    // chosen[i] is one more than the bin that holds record i, 0 while none was tried.
    std::vector<std::size_t> chosen(n, 0);
    std::uint32_t nodes = 0;
    std::size_t depth = 0;
    while (nodes++ < search_nodes) {
      const std::uint64_t size = detail::descending_key_cost(keys[depth]);
      std::size_t& bin = chosen[depth];
      if (bin != 0) loads[bin - 1] -= size;
      // A bin with the load of one that was tried leads to the same states.
      for (++bin; bin <= wanted; ++bin) {
        const auto same = loads.begin() + static_cast<std::ptrdiff_t>(bin - 1);
        if (*same + size <= options_.capacity_tokens &&
            std::find(loads.begin(), same, *same) == same)
          break;
      }
      if (bin > wanted) {
        if (depth == 0) return false;
        bin = 0;
        --depth;
        continue;
      }
      loads[bin - 1] += size;
      if (++depth < n) continue;
      repaired_.assign(wanted, {});
      for (std::size_t i = 0; i < n; ++i) {
        repaired_[chosen[i] - 1].records.push_back(detail::descending_key_index(keys[i]));
      }
      store(repaired_);
      return true;
    }
    return false;
  }

  void store(const std::vector<open_bin>& bins) {
    bins_.clear();
    for (const open_bin& bin : bins) {
      if (bin.records.empty()) continue;
      for (const std::uint32_t record : bin.records) bins_.add(record);
      bins_.close();
    }
  }

  /// Splits the records over `wanted` bins, more than the rule made.
  void spread(std::size_t wanted) {
    if (!padded() && spread_evenly(wanted)) {
      regroup(wanted);
    } else {
      split_heaviest(wanted);
    }
  }

  /// Rebuilds `bins_` from `bin_of_`.
  void regroup(std::size_t count) {
    starts_.assign(count + 1, 0);
    for (const std::uint32_t bin : bin_of_) ++starts_[bin + 1];
    for (std::size_t bin = 0; bin < count; ++bin) starts_[bin + 1] += starts_[bin];
    grouped_.resize(bin_of_.size());
    for (std::size_t i = 0; i < bin_of_.size(); ++i) {
      grouped_[starts_[bin_of_[i]]++] = static_cast<std::uint32_t>(i);
    }
    bins_.clear();
    for (std::size_t bin = 0, i = 0; bin < count; ++bin) {
      for (; i < starts_[bin]; ++i) bins_.add(grouped_[i]);
      bins_.close();
    }
  }

  /// Halves the heaviest bin that has two records or more until there are `wanted` bins.
  void split_heaviest(std::size_t wanted) {
    // Halves of a run of descending records are such runs, so padded rows stay within capacity.
    const std::span<const std::uint64_t> keys = order_.sort_descending(tokens_);
    place_of_.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      place_of_[detail::descending_key_index(keys[i])] = static_cast<std::uint32_t>(i);
    }
    const auto by_place = [this](std::uint32_t a, std::uint32_t b) {
      return place_of_[a] < place_of_[b];
    };
    std::vector<open_bin>& bins = repaired_;
    bins.assign(bins_.size(), {});
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      bins[bin].records.assign(bins_[bin].begin(), bins_[bin].end());
      std::sort(bins[bin].records.begin(), bins[bin].records.end(), by_place);
    }
    heap_.clear();
    const auto lighter = [](const weighted_bin& a, const weighted_bin& b) {
      return a.weight != b.weight ? a.weight < b.weight : a.bin > b.bin;
    };
    const auto offer = [&](std::size_t bin) {
      if (bins[bin].records.size() < 2) return;
      heap_.push_back({weight(bins[bin].records), 0, static_cast<std::uint32_t>(bin)});
      std::push_heap(heap_.begin(), heap_.end(), lighter);
    };
    for (std::size_t bin = 0; bin < bins.size(); ++bin) offer(bin);
    while (bins.size() < wanted) {
      std::pop_heap(heap_.begin(), heap_.end(), lighter);
      const std::size_t bin = heap_.back().bin;
      heap_.pop_back();
      open_bin half;
      std::vector<std::uint32_t>& records = bins[bin].records;
      if (padded()) {
        const auto middle = records.begin() + static_cast<std::ptrdiff_t>(records.size() / 2);
        half.records.assign(middle, records.end());
        records.erase(middle, records.end());
      } else {
        halve(records, half.records);
      }
      bins.push_back(half);
      offer(bin);
      offer(bins.size() - 1);
    }
    store(bins);
  }

  /// Largest first into the lighter half.
  void halve(std::vector<std::uint32_t>& records, std::vector<std::uint32_t>& other) const {
    std::vector<std::uint32_t> kept;
    std::uint64_t kept_tokens = 0;
    std::uint64_t other_tokens = 0;
    for (const std::uint32_t record : records) {
      const bool keep = kept_tokens <= other_tokens;
      (keep ? kept : other).push_back(record);
      (keep ? kept_tokens : other_tokens) += tokens_[record];
    }
    records.swap(kept);
  }

  /// Padded tokens of a bin.
  [[nodiscard]] std::uint64_t weight(std::span<const std::uint32_t> records) const {
    std::uint64_t sum = 0;
    std::uint64_t longest = 0;
    for (const std::uint32_t record : records) {
      sum += tokens_[record];
      longest = std::max(longest, tokens_[record]);
    }
    return padded() ? longest * records.size() : sum;
  }

  void emit(std::span<const std::uint64_t> costs, micro_batch_list& out) {
    heap_.clear();
    bin_of_.resize(tokens_.size());
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      const std::span<const std::uint32_t> records = bins_[bin];
      std::uint64_t heaviness = 0;
      if (costs.empty()) {
        heaviness = weight(records);
      } else {
        for (const std::uint32_t record : records) heaviness += costs[record];
      }
      heap_.push_back({heaviness, *std::min_element(records.begin(), records.end()),
                       static_cast<std::uint32_t>(bin)});
    }
    std::sort(heap_.begin(), heap_.end(), [](const weighted_bin& a, const weighted_bin& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.lowest < b.lowest;
    });
    for (std::size_t place = 0; place < heap_.size(); ++place) {
      for (const std::uint32_t record : bins_[heap_[place].bin]) {
        bin_of_[record] = static_cast<std::uint32_t>(place);
      }
    }
    regroup(bins_.size());
    out = bins_;
  }

  micro_batch_options options_;
  std::span<const std::uint64_t> tokens_;
  bin_packer packer_;
  detail::cost_order order_;
  micro_batch_list bins_;
  micro_batch_list other_bins_;
  std::size_t looks_left_ = 0;
  std::vector<open_bin> repaired_;
  std::vector<weighted_bin> heap_;
  std::vector<std::uint32_t> bin_of_;
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> grouped_;
};

}  // namespace lanepack::inline LANEPACK_ABI
