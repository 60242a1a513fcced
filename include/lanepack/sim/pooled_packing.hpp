#pragma once

/// @file
/// Coordinated baselines that pack a step's records into bins and deal the bins round robin:
/// `pooled_mffd`, `pooled_ffd` and `dp_balanced`.

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
#include <lanepack/sim/baseline_options.hpp>
#include <lanepack/sim/step_assigner.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a pooled step is packed.
enum class pooled_packer : std::uint8_t {
  /// NeMo-RL: its modified first fit decreasing, bins raised to a multiple of the ranks by
  /// `adjust_bin_count_nemo`.
  mffd_nemo,
  /// First fit decreasing, bins raised in the same way.
  first_fit_decreasing,
  /// Megatron-LM's `dp_balanced`: next fit in order, bins raised by `pop_to_bin_count`.
  next_fit,
};

/// What a micro-batch costs on a backend.
enum class pooled_backend : std::uint8_t {
  /// Real tokens only: records behind each other with their boundaries.
  thd,
  /// One row padded to the capacity: linear cost on all of it, attention on real segments.
  padded_to_capacity,
};

/// Records in order, a new bin wherever the next one does not fit.
/// @param tokens  Of every record, 1 to `capacity`.
/// @throws data_error if a record is empty or larger than a bin.
/// @complexity  O(n).
inline void next_fit(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                     micro_batch_list& out) {
  out.clear();
  std::uint64_t load = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == 0 || tokens[i] > capacity) {
      detail::throw_data_error({}, "record " + std::to_string(i) + " of the step: found " +
                                       std::to_string(tokens[i]) + " tokens, expected 1 to " +
                                       std::to_string(capacity) + " (the capacity of a bin)");
    }
    if (load + tokens[i] > capacity) {
      out.close();
      load = 0;
    }
    load += tokens[i];
    out.add(static_cast<std::uint32_t>(i));
  }
  if (load != 0) out.close();
}

/// Raises the number of bins as Megatron-LM's `dp_balanced` does: the last bin that has two records
/// gives its last one to each new bin, until it has one left, then the bin before it gives.
/// @param bins  Any packing without empty bins.
/// @throws data_error if there are fewer records than bins.
inline void pop_to_bin_count(micro_batch_list& bins, std::uint64_t minimum,
                             std::uint64_t multiple) {
  const std::size_t before = bins.size();
  const std::uint64_t target = detail::raised_bin_count(bins, minimum, multiple);
  std::vector<std::size_t> kept(before);
  for (std::size_t bin = 0; bin < before; ++bin) kept[bin] = bins[bin].size();
  std::vector<std::uint32_t> popped;
  for (std::size_t bin = before; before + popped.size() < target;) {
    if (kept[bin - 1] > 1) {
      popped.push_back(bins[bin - 1][--kept[bin - 1]]);
    } else {
      --bin;
    }
  }
  micro_batch_list out;
  for (std::size_t bin = 0; bin < before; ++bin) {
    for (const std::uint32_t record : bins[bin].first(kept[bin])) out.add(record);
    out.close();
  }
  for (const std::uint32_t record : popped) {
    out.add(record);
    out.close();
  }
  bins = out;
}

/// Packs all records of a step into bins, raises their number to a multiple of the ranks, and gives
/// rank r the bins r, r + W, r + 2 W, ...: blind to cost, with the same number of bins on every
/// rank and any number of records.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only.
class pooled_packing_assigner {
 public:
  /// @throws invalid_option
  pooled_packing_assigner(pooled_packer packer, const baseline_options& options,
                          pooled_backend backend = pooled_backend::thd)
      : kind_(packer), options_(options), backend_(backend) {
    detail::check_baseline_options(options);
  }

  /// @throws data_error if a record is larger than the capacity, or there are fewer records than
  ///         bins to make.
  /// @complexity  O(n log n).
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    records_.read(step, options_.record_multiple);
    pack(ranks);
    out.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t bin = rank; bin < bins_.size(); bin += ranks) {
        simulated_micro_batch micro_batch = records_.micro_batch(bins_[bin]);
        if (backend_ == pooled_backend::padded_to_capacity) {
          const std::uint64_t padding = options_.capacity_tokens - micro_batch.tokens;
          micro_batch.padding_cost = padding * options_.padding_cost_per_1024 / 1024;
        }
        out.add(micro_batch);
      }
      out.close_rank();
    }
  }

  /// Bins of the last step, in the packer's order; records are numbered pack by pack.
  [[nodiscard]] const micro_batch_list& bins() const noexcept { return bins_; }

 private:
  void pack(std::uint32_t ranks) {
    const std::uint64_t capacity = options_.capacity_tokens;
    const std::uint64_t fewest = std::uint64_t{ranks} * options_.micro_batches;
    if (kind_ == pooled_packer::next_fit) {
      next_fit(records_.rooms, capacity, bins_);
      pop_to_bin_count(bins_, fewest, ranks);
      return;
    }
    if (kind_ == pooled_packer::mffd_nemo) {
      packer_.mffd_nemo(records_.rooms, capacity, bins_);
    } else {
      packer_.first_fit_decreasing(records_.rooms, capacity, bins_);
    }
    adjust_bin_count_nemo(bins_, fewest, ranks);
  }

  pooled_packer kind_;
  baseline_options options_;
  pooled_backend backend_;
  bin_packer packer_;
  detail::record_columns records_;
  micro_batch_list bins_;
};

static_assert(step_assigner<pooled_packing_assigner>);

}  // namespace lanepack::inline LANEPACK_ABI
