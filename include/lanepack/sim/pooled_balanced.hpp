#pragma once

/// @file
/// The coordinated baseline `pooled_ffd_balanced`: first fit decreasing, the heaviest bins split,
/// bins balanced over ranks by cost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/sim/baseline_options.hpp>
#include <lanepack/sim/karmarkar_karp.hpp>
#include <lanepack/sim/step_assigner.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Raises the number of bins by splitting, each time, the costliest bin of two records or more
/// (ties: lower number) into two halves: its costliest record first into the lighter half. The
/// second half becomes the last bin.
/// @param bins  Any packing without empty bins.
/// @throws data_error if there are fewer records than bins.
/// @complexity  O(splits x records of a bin).
inline void split_costliest_bins(micro_batch_list& bins, std::span<const std::uint64_t> costs,
                                 std::uint64_t minimum, std::uint64_t multiple) {
  struct weighted_bin {
    std::uint64_t cost;
    std::size_t bin;
  };
  const std::uint64_t target = detail::raised_bin_count(bins, minimum, multiple);
  if (target == bins.size()) return;
  std::vector<std::vector<std::uint32_t>> groups(bins.size());
  std::vector<weighted_bin> heap;
  const auto lighter = [](const weighted_bin& a, const weighted_bin& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.bin > b.bin;
  };
  const auto offer = [&](std::size_t bin) {
    if (groups[bin].size() < 2) return;
    std::uint64_t cost = 0;
    for (const std::uint32_t record : groups[bin]) cost += costs[record];
    heap.push_back({cost, bin});
    std::push_heap(heap.begin(), heap.end(), lighter);
  };
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    groups[bin].assign(bins[bin].begin(), bins[bin].end());
    offer(bin);
  }
  while (groups.size() < target) {
    std::pop_heap(heap.begin(), heap.end(), lighter);
    const std::size_t bin = heap.back().bin;
    heap.pop_back();
    std::vector<std::uint32_t> records = std::exchange(groups[bin], {});
    std::sort(records.begin(), records.end(), detail::costlier{costs});
    std::vector<std::uint32_t> other;
    std::uint64_t kept_cost = 0;
    std::uint64_t other_cost = 0;
    for (const std::uint32_t record : records) {
      const bool keep = groups[bin].empty() || (kept_cost <= other_cost && !other.empty());
      (keep ? groups[bin] : other).push_back(record);
      (keep ? kept_cost : other_cost) += costs[record];
    }
    groups.push_back(std::move(other));
    offer(bin);
    offer(groups.size() - 1);
  }
  bins.clear();
  for (const std::vector<std::uint32_t>& group : groups) {
    for (const std::uint32_t record : group) bins.add(record);
    bins.close();
  }
}

/// Swaps items between groups of equal counts, a heavy one with a light one, while the heavier of
/// the two gets lighter.
/// @param members  Items of every group, `count` next to each other.
/// @param rounds   In each, the heaviest group meets the lightest, the next heaviest the next
///                 lightest, and so on; a heavy group that no swap improves gives way to the next.
/// @complexity  O(rounds x (groups log groups + groups x count log count)).
inline void swap_between_groups(std::span<const std::uint64_t> costs,
                                std::span<std::uint32_t> members, std::size_t count,
                                std::uint32_t rounds = 16) {
  if (count == 0 || members.size() <= count) return;
  const std::size_t groups = members.size() / count;
  std::vector<std::uint64_t> loads(groups, 0);
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), 0U);
  const auto sort_group = [&](std::size_t group) {
    const std::span<std::uint32_t> items = members.subspan(group * count, count);
    std::sort(items.begin(), items.end(), detail::costlier{costs});
  };
  for (std::size_t group = 0; group < groups; ++group) {
    for (const std::uint32_t item : members.subspan(group * count, count)) {
      loads[group] += costs[item];
    }
    sort_group(group);
  }
  const auto swap_once = [&](std::uint32_t heavy, std::uint32_t light) {
    const std::uint64_t difference = loads[heavy] - loads[light];
    const std::span<std::uint32_t> from = members.subspan(heavy * count, count);
    const std::span<std::uint32_t> to = members.subspan(light * count, count);
    std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
    std::size_t best_out = 0;
    std::size_t best_in = 0;
    // Both descend, so the best partner moves only down.
    for (std::size_t out = 0, in = 0; out < count && in < count;) {
      const std::uint64_t leaves = costs[from[out]];
      const std::uint64_t comes = costs[to[in]];
      const std::uint64_t twice = leaves > comes ? 2 * (leaves - comes) : 0;
      const std::uint64_t distance = twice > difference ? twice - difference : difference - twice;
      if (leaves > comes && leaves - comes < difference && distance < best) {
        best = distance;
        best_out = out;
        best_in = in;
      }
      twice < difference ? ++in : ++out;
    }
    if (best == std::numeric_limits<std::uint64_t>::max()) return false;
    const std::uint64_t moved = costs[from[best_out]] - costs[to[best_in]];
    loads[heavy] -= moved;
    loads[light] += moved;
    std::swap(from[best_out], to[best_in]);
    sort_group(heavy);
    sort_group(light);
    return true;
  };
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::sort(order.begin(), order.end(), detail::costlier{loads});
    bool changed = false;
    std::size_t heavy = 0;
    std::size_t light = groups - 1;
    while (heavy < light) {
      if (swap_once(order[heavy], order[light])) {
        changed = true;
        --light;
      }
      ++heavy;
    }
    if (!changed) return;
  }
}

/// What slime and prime-rl do: first fit decreasing over all records of a step, the costliest bins
/// split until their number is a multiple of the ranks, then the same number of bins to every rank
/// by Karmarkar-Karp on cost and pairwise swaps. A rank runs its bins from heavy to light.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only.
class pooled_ffd_balanced_assigner {
 public:
  /// @throws invalid_option
  explicit pooled_ffd_balanced_assigner(const baseline_options& options) : options_(options) {
    detail::check_baseline_options(options);
  }

  /// @throws data_error if a record is larger than the capacity, or there are fewer records than
  ///         bins to make.
  /// @complexity  O(n log n).
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    records_.read(step, options_.record_multiple);
    packer_.first_fit_decreasing(records_.rooms, options_.capacity_tokens, bins_);
    split_costliest_bins(bins_, records_.costs, std::uint64_t{ranks} * options_.micro_batches,
                         ranks);
    costs_.clear();
    micro_batches_.clear();
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      micro_batches_.push_back(records_.micro_batch(bins_[bin]));
      costs_.push_back(micro_batches_.back().cost);
    }
    differencing_.partition_equal(costs_, ranks, shares_);
    members_.assign(shares_.records().begin(), shares_.records().end());
    const std::size_t count = bins_.size() / ranks;
    swap_between_groups(costs_, members_, count);
    out.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::span<std::uint32_t> own = std::span(members_).subspan(rank * count, count);
      std::sort(own.begin(), own.end(), detail::costlier{costs_});
      for (const std::uint32_t bin : own) out.add(micro_batches_[bin]);
      out.close_rank();
    }
  }

  /// Bins of the last step; records are numbered pack by pack.
  [[nodiscard]] const micro_batch_list& bins() const noexcept { return bins_; }

 private:
  baseline_options options_;
  bin_packer packer_;
  karmarkar_karp differencing_;
  detail::record_columns records_;
  micro_batch_list bins_;
  micro_batch_list shares_;
  std::vector<simulated_micro_batch> micro_batches_;
  std::vector<std::uint64_t> costs_;
  std::vector<std::uint32_t> members_;
};

static_assert(step_assigner<pooled_ffd_balanced_assigner>);

}  // namespace lanepack::inline LANEPACK_ABI
