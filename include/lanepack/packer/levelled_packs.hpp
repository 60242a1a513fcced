#pragma once

/// @file
/// Balanced packs of many records: dealt into groups of equal cost, each of which is split apart.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/formed_packs.hpp>
#include <lanepack/packer/partitioner.hpp>

namespace lanepack::inline LANEPACK_ABI::detail {

/// Splits sorted records into packs of a fixed count and nearly equal cost, in time that grows with
/// n and hardly with the number of packs.
///
/// Levelled dealing: each run of as many neighbours as there are groups gives one record to every
/// group, the dearest to the group that is lightest so far. A group then holds an even sample of
/// the records and is small enough for a processor's nearest cache.
///
/// @thread_safety  None: one thread per object.
/// @determinism    Integers only; depends on the arguments alone.
class levelled_packs {
 public:
  explicit levelled_packs(const partition_options& options) : partitioner_(options) {}

  /// @param keys  Sorted and distinct, a multiple of `records_per_pack` of them.
  /// @param out   Gets the packs added, in no particular order; records of a pack in descending
  ///              order of cost.
  /// @complexity  O(n log packs-of-a-group); allocates scratch of 8 bytes a record.
  void form(std::span<const std::uint64_t> keys, std::uint32_t records_per_pack,
            formed_packs& out) {
    const std::size_t packs = keys.size() / records_per_pack;
    if (packs == 0) return;
    const std::size_t group_packs = packs_of_a_group(packs);
    const std::size_t groups = packs / group_packs;
    const std::size_t group_records = group_packs * records_per_pack;
    // Groups that begin a power of two apart would share the same few lines of a cache.
    const std::size_t stride = group_records + 8;
    if (groups > 1) keys = deal(keys, groups, stride);
    for (std::size_t group = 0; group < groups; ++group) {
      const sorted_packs split = partitioner_.partition_sorted(
          keys.subspan(group * stride, group_records), records_per_pack);
      out.keys.insert(out.keys.end(), split.keys.begin(), split.keys.end());
      out.costs.insert(out.costs.end(), split.costs.begin(), split.costs.end());
    }
  }

 private:
  struct load {
    std::uint64_t cost;
    std::uint32_t group;
  };

  /// The smallest divisor of the number of packs that is large enough to balance well.
  [[nodiscard]] static std::size_t packs_of_a_group(std::size_t packs) noexcept {
    constexpr std::size_t fewest = 128;
    for (std::size_t size = fewest; size <= packs / 2; ++size) {
      if (packs % size == 0) return size;
    }
    return packs;
  }

  /// Deals the records into groups that begin `stride` keys apart; the keys of a group stay sorted.
  std::span<const std::uint64_t> deal(std::span<const std::uint64_t> keys, std::size_t groups,
                                      std::size_t stride) {
    const std::size_t runs = keys.size() / groups;
    if (dealt_.size() < groups * stride) dealt_.resize(groups * stride);
    loads_.resize(groups);
    for (std::size_t i = 0; i < groups; ++i) loads_[i] = {0, static_cast<std::uint32_t>(i)};
    // Where neighbours differ little, turning the order around levels as well as sorting does.
    constexpr std::size_t sorted_runs = 16;
    constexpr std::size_t sorted_every = 8;
    for (std::size_t run = 0; run < runs; ++run) {
      if (run < sorted_runs || run % sorted_every == 0) {
        std::sort(loads_.begin(), loads_.end(), [](const load& a, const load& b) {
          return a.cost != b.cost ? a.cost < b.cost : a.group < b.group;
        });
      } else {
        std::reverse(loads_.begin(), loads_.end());
      }
      const std::uint64_t* const from = keys.data() + run * groups;
      for (std::size_t i = 0; i < groups; ++i) {
        loads_[i].cost += descending_key_cost(from[i]);
        dealt_[loads_[i].group * stride + run] = from[i];
      }
    }
    return dealt_;
  }

  balanced_partitioner partitioner_;
  std::vector<load> loads_;
  std::vector<std::uint64_t> dealt_;
};

}  // namespace lanepack::inline LANEPACK_ABI::detail
