#pragma once

/// @file
/// Coordinated baselines that deal a step's records to ranks in equal numbers and cut micro-batches
/// afterwards: `pooled_lpt` and `pooled_kk`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/sim/baseline_options.hpp>
#include <lanepack/sim/karmarkar_karp.hpp>
#include <lanepack/sim/step_assigner.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

[[nodiscard]] inline std::size_t records_of_rank(std::size_t records, std::uint32_t ranks) {
  if (ranks == 0 || records % ranks != 0) {
    throw_data_error({}, "found " + std::to_string(records) +
                             " records in the step, expected a multiple of " +
                             std::to_string(ranks) + " ranks");
  }
  return records / ranks;
}

/// Baselines cut no records: one that is empty or over the capacity is an error.
inline void check_record_sizes(const record_columns& records, std::uint64_t capacity) {
  for (const std::uint64_t tokens : records.rooms) {
    if (tokens != 0 && tokens <= capacity) continue;
    throw_data_error({}, "found a record of " + std::to_string(tokens) + " tokens, expected 1 to " +
                             std::to_string(capacity) + " (the capacity of a micro-batch)");
  }
}

}  // namespace detail

/// Count-capped longest first over all records of a step, as AReaL's `balanced_greedy_partition`
/// and TRL's planner: the same number of records to every rank, balanced by cost, no swaps. A
/// rank's records are then cut tightly where ranks meet once a step, and into equally many level
/// micro-batches where they meet in every one.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only.
class pooled_lpt_assigner {
 public:
  /// @throws invalid_option
  explicit pooled_lpt_assigner(const baseline_options& options)
      : options_(options), batcher_(detail::micro_batching_of(options), counts_for(options.sync)) {
    detail::check_baseline_options(options);
  }

  /// @throws data_error if the records are no multiple of the ranks, or one is over the capacity.
  /// @complexity  O(n log n).
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    records_.read(step, options_.record_multiple);
    const std::size_t count = detail::records_of_rank(records_.size(), ranks);
    detail::check_record_sizes(records_, options_.capacity_tokens);
    const partition_view shares =
        partitioner_.partition(records_.costs, static_cast<std::uint32_t>(count));
    dealt_.clear();
    ends_.clear();
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      for (const std::uint32_t record : shares[rank]) dealt_.add(records_, record);
      ends_.push_back(dealt_.size());
    }
    batcher_.form(dealt_, ends_, out);
  }

 private:
  baseline_options options_;
  detail::rank_micro_batcher batcher_;
  balanced_partitioner partitioner_{partition_options{.swap_rounds = 0}};
  detail::record_columns records_;
  detail::record_columns dealt_;
  std::vector<std::size_t> ends_;
};

static_assert(step_assigner<pooled_lpt_assigner>);

/// What verl does: the records of a step over ranks by Karmarkar-Karp on cost with equal counts,
/// then on every rank the same number of micro-batches by Karmarkar-Karp without; that number is
/// the largest of ceil(tokens of a rank / capacity), raised until no micro-batch of any rank is
/// over the capacity. A rank runs them from heavy to light.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only.
class pooled_kk_assigner {
 public:
  /// @throws invalid_option
  explicit pooled_kk_assigner(const baseline_options& options) : options_(options) {
    detail::check_baseline_options(options);
  }

  /// @throws data_error if the records are no multiple of the ranks or fewer than the forced
  ///         micro-batches, or one is over the capacity.
  /// @complexity  O(n log ranks), and for each number of micro-batches that is tried O(n M log M).
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    records_.read(step, options_.record_multiple);
    const std::size_t count = detail::records_of_rank(records_.size(), ranks);
    detail::check_record_sizes(records_, options_.capacity_tokens);
    if (options_.micro_batches > count) {
      detail::throw_data_error({}, "found " + std::to_string(count) +
                                       " records a rank, expected at least one for each of " +
                                       std::to_string(options_.micro_batches) + " micro-batches");
    }
    differencing_.partition_equal(records_.costs, ranks, shares_);
    std::size_t micro_batches = options_.micro_batches;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::uint64_t total = 0;
      for (const std::uint32_t record : shares_[rank]) total += records_.rooms[record];
      const auto needed = static_cast<std::size_t>(ceil_div(total, options_.capacity_tokens));
      micro_batches = std::max(micro_batches, std::min(needed, count));
    }
    while (!cut(ranks, micro_batches, out)) ++micro_batches;
  }

  /// Records of every rank in the last step, numbered pack by pack.
  [[nodiscard]] const micro_batch_list& shares() const noexcept { return shares_; }

 private:
  /// @return  False if a micro-batch is over the capacity or empty.
  bool cut(std::uint32_t ranks, std::size_t micro_batches, step_assignment& out) {
    out.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::span<const std::uint32_t> own = shares_[rank];
      if (micro_batches == 1) {
        const simulated_micro_batch all = records_.micro_batch(own);
        std::uint64_t room = 0;
        for (const std::uint32_t record : own) room += records_.rooms[record];
        if (room > options_.capacity_tokens) return false;
        out.add(all);
        out.close_rank();
        continue;
      }
      costs_.clear();
      for (const std::uint32_t record : own) costs_.push_back(records_.costs[record]);
      if (micro_batches == own.size()) {
        alone(own);
      } else {
        differencing_.partition(costs_, micro_batches, bins_);
      }
      for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
        members_.clear();
        std::uint64_t room = 0;
        for (const std::uint32_t index : bins_[bin]) {
          members_.push_back(own[index]);
          room += records_.rooms[own[index]];
        }
        if (members_.empty() || room > options_.capacity_tokens) return false;
        out.add(records_.micro_batch(members_));
      }
      out.close_rank();
    }
    return true;
  }

  /// Every record in a micro-batch of its own, heavy ones first.
  void alone(std::span<const std::uint32_t> own) {
    members_.resize(own.size());
    for (std::uint32_t i = 0; i < own.size(); ++i) members_[i] = i;
    std::sort(members_.begin(), members_.end(), detail::costlier{costs_});
    bins_.clear();
    for (const std::uint32_t index : members_) {
      bins_.add(index);
      bins_.close();
    }
  }

  baseline_options options_;
  karmarkar_karp differencing_;
  detail::record_columns records_;
  micro_batch_list shares_;
  micro_batch_list bins_;
  std::vector<std::uint64_t> costs_;
  std::vector<std::uint32_t> members_;
};

static_assert(step_assigner<pooled_kk_assigner>);

}  // namespace lanepack::inline LANEPACK_ABI
