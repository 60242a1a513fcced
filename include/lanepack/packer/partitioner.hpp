#pragma once

/// @file
/// The `partitioner` concept and `balanced_partitioner`: records into packs of a fixed count and
/// nearly equal cost.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/cost_order.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Packs of a partition, in descending order of cost.
///
/// A view into the partitioner that made it; valid until that is used again.
struct partition_view {
  /// Indices of the records, `records_per_pack` of them for each pack, ascending inside a pack.
  std::span<const std::uint32_t> members;
  /// Cost of every pack, in cost units.
  std::span<const std::uint64_t> costs;
  /// Records of every pack.
  std::uint32_t records_per_pack = 1;

  /// Number of packs.
  [[nodiscard]] std::size_t size() const noexcept { return costs.size(); }
  /// Indices of the records of pack `index`.
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t index) const noexcept {
    return members.subspan(index * records_per_pack, records_per_pack);
  }
};

/// Splits records into packs of a fixed count.
///
/// Semantic requirements on a model:
/// - `partition(costs, b)` returns `costs.size()` / b packs of exactly b records each; every index
///   is in exactly one of them;
/// - packs stand in descending order of cost, equal ones by their lowest index;
/// - the result depends on the arguments alone: integers only, every tie broken by index.
template <class Partitioner>
concept partitioner = requires(Partitioner& model, std::span<const std::uint64_t> costs,
                               std::uint32_t records_per_pack) {
  { model.partition(costs, records_per_pack) } -> std::same_as<partition_view>;
};

/// How far `balanced_partitioner` goes after the first assignment.
struct partition_options {
  /// Rounds of swaps, each with at most one swap for every two packs.
  std::uint32_t swap_rounds = 4;
  /// Packs whose costs differ by at most the mean / 2^tolerance_shift are left as they are; at most
  /// 63.
  std::uint32_t tolerance_shift = 10;
};

/// No split of `costs` into packs of `records_per_pack` records can have a largest pack below this:
/// the larger of the mean pack, rounded up, and the largest record with the smallest ones.
/// @pre  `costs.size()` is a multiple of `records_per_pack`, at most `max_ordered_records`.
/// @complexity  O(n) on average; allocates a copy.
[[nodiscard]] inline std::uint64_t largest_pack_lower_bound(std::span<const std::uint64_t> costs,
                                                            std::uint32_t records_per_pack) {
  if (costs.empty() || records_per_pack == 0) return 0;
  std::vector<std::uint64_t> sorted(costs.begin(), costs.end());
  const std::size_t others = records_per_pack - 1;
  const std::uint64_t largest = *std::max_element(sorted.begin(), sorted.end());
  if (others != 0 && others < sorted.size()) {
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(others),
                     sorted.end());
  }
  std::uint64_t total = 0;
  for (const std::uint64_t cost : sorted) total += cost;
  std::uint64_t outlier = largest;
  for (std::size_t i = 0; i < std::min(others, sorted.size() - 1); ++i) outlier += sorted[i];
  return std::max(ceil_div(total, sorted.size() / records_per_pack), outlier);
}

namespace detail {

/// Packs of records that were sorted before they were split.
struct sorted_packs {
  /// Keys of the records, as many a pack as it has records.
  std::span<const std::uint64_t> keys;
  /// Cost of every pack.
  std::span<const std::uint64_t> costs;
};

}  // namespace detail

/// Count-capped longest first, then pairwise swaps.
///
/// The longest record goes to the lightest pack that is not full, an empty one before all others
/// (ties: lower pack), until none is left. Then rounds of swaps: with packs in order of cost, the
/// heaviest meets the lightest, the next heaviest the next lightest, and each pair exchanges the
/// two records that bring it closest to equal; a heavy pack that no single exchange improves gives
/// way to the next heavy one.
///
/// Scratch memory grows to the largest call, about 40 bytes a record; after that nothing is
/// allocated.
///
/// @complexity  O(n log packs) and a radix sort; each round of swaps adds O(n + packs log packs).
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only; depends on the costs and their order alone.
class balanced_partitioner {
 public:
  /// @throws invalid_option if `tolerance_shift` is above 63.
  explicit balanced_partitioner(const partition_options& options = {}) : options_(options) {
    if (options.tolerance_shift > 63) {
      detail::throw_invalid_option("tolerance_shift", std::to_string(options.tolerance_shift),
                                   "0 to 63");
    }
  }

  /// Splits `costs` into packs of `records_per_pack` records.
  /// @param costs  At most `max_record_cost` each, at most `max_ordered_records` of them.
  /// @throws state_error if `costs.size()` is not a multiple of `records_per_pack` or too large.
  [[nodiscard]] partition_view partition(std::span<const std::uint64_t> costs,
                                         std::uint32_t records_per_pack) {
    const std::size_t n = costs.size();
    if (records_per_pack == 0 || n % records_per_pack != 0 || n > max_ordered_records) {
      detail::throw_state_error(
          "partition: found " + std::to_string(n) + " records, expected a multiple of " +
          std::to_string(records_per_pack) + " and at most " + std::to_string(max_ordered_records));
    }
    prepare(n, records_per_pack);
    if (packs_ == 0) return {{}, {}, records_per_pack};

    assign(order_of_records_.sort_descending(costs));
    swap_between_packs();
    rank_packs();
    emit(n);
    return {std::span(members_).first(n), std::span(sorted_costs_).first(packs_), records_per_pack};
  }

  /// Splits records whose keys are sorted already, as one of many groups that are split apart.
  ///
  /// Packs stand in no particular order, records of a pack in descending order of cost. The view is
  /// valid until the partitioner is used again.
  /// @pre  `keys` are distinct descending keys in ascending order, a multiple of
  ///       `records_per_pack` of them.
  [[nodiscard]] detail::sorted_packs partition_sorted(std::span<const std::uint64_t> keys,
                                                      std::uint32_t records_per_pack) {
    LANEPACK_ASSERT(records_per_pack != 0 && keys.size() % records_per_pack == 0);
    prepare(keys.size(), records_per_pack);
    if (packs_ == 0) return {};
    assign(keys);
    swap_between_packs();
    return {std::span(slots_).first(keys.size()), std::span(loads_).first(packs_)};
  }

 private:
  struct ranked_pack {
    std::uint64_t cost;
    std::uint32_t pack;
  };
  static constexpr std::uint64_t full = std::numeric_limits<std::uint64_t>::max();

  void prepare(std::size_t n, std::uint32_t records_per_pack) {
    capacity_ = records_per_pack;
    packs_ = n / records_per_pack;
    if (members_.size() < n) {
      members_.resize(n);
      slots_.resize(n);
    }
    if (sorted_costs_.size() < packs_) {
      sorted_costs_.resize(packs_);
      loads_.resize(packs_);
      cursors_.resize(packs_);
      order_.resize(packs_);
    }
  }

  /// Longest first into the lightest pack that is not full; keys of a pack stay in their order.
  void assign(std::span<const std::uint64_t> keys) {
    const std::size_t leaves = std::bit_ceil(packs_);
    if (tree_.size() < 2 * leaves) tree_.resize(2 * leaves);
    std::uint64_t* const tree = tree_.data();
    const std::size_t capacity = capacity_;
    // (load, pack) in one number, whose order is that of both: loads of at most 2^40 x records a
    // pack and the packs of at most 2^23 records fit.
    const auto pack_bits = static_cast<unsigned>(std::countr_zero(leaves));
    const std::uint64_t pack_mask = leaves - 1;

    // The first records find empty packs: one each.
    for (std::size_t pack = 0; pack < packs_; ++pack) {
      const std::uint64_t cost = detail::descending_key_cost(keys[pack]);
      tree[leaves + pack] = capacity > 1 ? (cost << pack_bits) | pack : full;
      slots_[pack * capacity] = keys[pack];
      cursors_[pack] = static_cast<std::uint32_t>(pack * capacity + 1);
      loads_[pack] = cost;
    }
    std::fill(tree + leaves + packs_, tree + 2 * leaves, full);
    for (std::size_t node = leaves - 1; node > 0; --node) {
      tree[node] = std::min(tree[2 * node], tree[2 * node + 1]);
    }

    std::uint64_t lightest = tree[1];
    for (std::size_t i = packs_; i < keys.size(); ++i) {
      const std::uint64_t key = keys[i];
      const auto pack = static_cast<std::size_t>(lightest & pack_mask);
      const std::uint32_t slot = cursors_[pack]++;
      slots_[slot] = key;
      const std::uint64_t load = (lightest >> pack_bits) + detail::descending_key_cost(key);
      loads_[pack] = load;

      lightest = slot + 1 == (pack + 1) * capacity ? full : (load << pack_bits) | pack;
      std::size_t node = leaves + pack;
      tree[node] = lightest;
      while (node > 1) {
        lightest = std::min(lightest, tree[node ^ 1]);
        node >>= 1;
        tree[node] = lightest;
      }
    }
  }

  void rank_packs() {
    for (std::size_t pack = 0; pack < packs_; ++pack) {
      order_[pack] = {loads_[pack], static_cast<std::uint32_t>(pack)};
    }
    const auto heavier = [](const ranked_pack& a, const ranked_pack& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.pack < b.pack;
    };
    std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(packs_), heavier);
  }

  void swap_between_packs() {
    const std::span<const std::uint64_t> loads = std::span(loads_).first(packs_);
    const std::uint64_t tolerance =
        (std::accumulate(loads.begin(), loads.end(), std::uint64_t{0}) / packs_) >>
        options_.tolerance_shift;

    for (std::uint32_t round = 0; round < options_.swap_rounds; ++round) {
      const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
      if (*most - *least <= tolerance) return;
      rank_packs();
      bool changed = false;
      std::size_t heavy = 0;
      std::size_t light = packs_ - 1;
      while (heavy < light && order_[heavy].cost - order_[light].cost > tolerance) {
        if (swap_once(order_[heavy].pack, order_[light].pack)) {
          changed = true;
          --light;
        }
        ++heavy;
      }
      if (!changed) return;
    }
  }

  /// Exchanges the two records that bring both packs closest to equal, if any do.
  bool swap_once(std::uint32_t heavy, std::uint32_t light) {
    const std::uint64_t difference = loads_[heavy] - loads_[light];
    const std::uint64_t target = difference / 2;
    const std::uint64_t* const from = slots_.data() + std::size_t{heavy} * capacity_;
    const std::uint64_t* const to = slots_.data() + std::size_t{light} * capacity_;

    // Both are in descending order, so the best partner moves only down.
    std::uint64_t best_distance = std::numeric_limits<std::uint64_t>::max();
    std::size_t best_from = 0;
    std::size_t best_to = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < capacity_ && j < capacity_) {
      const std::uint64_t out = detail::descending_key_cost(from[i]);
      const std::uint64_t in = detail::descending_key_cost(to[j]);
      const bool too_little = out < in + target;
      const std::uint64_t distance = too_little ? in + target - out : out - in - target;
      if (distance < best_distance && out > in && out - in < difference) {
        best_distance = distance;
        best_from = i;
        best_to = j;
      }
      if (too_little) {
        ++j;
      } else {
        ++i;
      }
    }
    if (best_distance == std::numeric_limits<std::uint64_t>::max()) return false;

    const std::uint64_t out = from[best_from];
    const std::uint64_t in = to[best_to];
    const std::uint64_t moved = detail::descending_key_cost(out) - detail::descending_key_cost(in);
    loads_[heavy] -= moved;
    loads_[light] += moved;
    replace(heavy, best_from, in);
    replace(light, best_to, out);
    return true;
  }

  /// Puts `key` in the place of a pack's key and restores the pack's order.
  void replace(std::uint32_t pack, std::size_t at, std::uint64_t key) {
    std::uint64_t* const keys = slots_.data() + std::size_t{pack} * capacity_;
    for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
    for (; at + 1 < capacity_ && keys[at + 1] < key; ++at) keys[at] = keys[at + 1];
    keys[at] = key;
  }

  /// Numbers the packs by descending cost and lists their records by index.
  void emit(std::size_t n) {
    // order_ is ranked by (cost, internal number); equal costs go by their lowest index instead.
    for (std::size_t first = 0; first < packs_;) {
      std::size_t last = first + 1;
      while (last < packs_ && order_[last].cost == order_[first].cost) ++last;
      if (last - first > 1) sort_ties(first, last);
      first = last;
    }
    pack_of_.resize(std::max(pack_of_.size(), n));
    for (std::size_t place = 0; place < packs_; ++place) {
      const std::size_t pack = order_[place].pack;
      sorted_costs_[place] = order_[place].cost;
      cursors_[place] = static_cast<std::uint32_t>(place * capacity_);
      for (std::size_t slot = pack * capacity_; slot < (pack + 1) * capacity_; ++slot) {
        pack_of_[detail::descending_key_index(slots_[slot])] = static_cast<std::uint32_t>(place);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      members_[cursors_[pack_of_[i]]++] = static_cast<std::uint32_t>(i);
    }
  }

  void sort_ties(std::size_t first, std::size_t last) {
    for (std::size_t place = first; place < last; ++place) {
      const std::size_t pack = order_[place].pack;
      std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();
      for (std::size_t slot = pack * capacity_; slot < (pack + 1) * capacity_; ++slot) {
        lowest = std::min(lowest, detail::descending_key_index(slots_[slot]));
      }
      cursors_[pack] = lowest;
    }
    std::sort(order_.begin() + static_cast<std::ptrdiff_t>(first),
              order_.begin() + static_cast<std::ptrdiff_t>(last),
              [this](const ranked_pack& a, const ranked_pack& b) {
                return cursors_[a.pack] < cursors_[b.pack];
              });
  }

  partition_options options_;
  std::size_t capacity_ = 1;
  std::size_t packs_ = 0;
  detail::cost_order order_of_records_;
  /// The lightest pack below every node of a tournament.
  std::vector<std::uint64_t> tree_;
  /// Keys of the records of every pack, `capacity_` a pack.
  std::vector<std::uint64_t> slots_;
  std::vector<std::uint64_t> loads_;
  std::vector<std::uint64_t> sorted_costs_;
  std::vector<std::uint32_t> cursors_;
  std::vector<ranked_pack> order_;
  std::vector<std::uint32_t> pack_of_;
  std::vector<std::uint32_t> members_;
};

static_assert(partitioner<balanced_partitioner>);

}  // namespace lanepack::inline LANEPACK_ABI
