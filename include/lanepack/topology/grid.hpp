#pragma once

/// @file
/// `parallel_grid`: how tensor, context, data and pipeline parallelism share out the ranks.

#include <cstdint>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/topology/world.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Which dimension of the grid varies fastest with the rank, in Megatron-LM's words for it.
enum class grid_order : std::uint8_t {
  /// Tensor, context, data, pipeline: the default of Megatron-LM.
  tp_cp_ep_dp_pp,
  /// Tensor, context, pipeline, data: `--use-tp-pp-dp-mapping`.
  tp_cp_ep_pp_dp,
};

/// Sizes of the dimensions that do not read data of their own.
struct grid_options {
  /// Ranks that share every layer (TP), at least 1.
  rank_index tensor = 1;
  /// Ranks that share every sequence (CP), at least 1.
  rank_index context = 1;
  /// Ranks that hold consecutive layers (PP), at least 1.
  rank_index pipeline = 1;
  grid_order order = grid_order::tp_cp_ep_dp_pp;
};

/// A rank's place along every dimension.
struct grid_coordinates {
  /// In [0, TP).
  rank_index tensor = 0;
  /// In [0, CP).
  rank_index context = 0;
  /// In [0, DP).
  rank_index data = 0;
  /// In [0, PP).
  rank_index pipeline = 0;

  friend bool operator==(const grid_coordinates&, const grid_coordinates&) = default;
};

/// Whether the ranks of a context-parallel group count as one reader of data or as CP of them.
enum class context_ranks : std::uint8_t {
  /// They read the same records and slice them: DP readers.
  together,
  /// Each is a reader of its own: DP x CP readers, context fastest.
  apart,
};

/// The dense grid of Megatron-LM (`core/parallel_state.py`): every rank has one place along tensor,
/// context, data and pipeline, and ranks that differ only in the first two or the last read the
/// same data. Expert parallelism regroups ranks but does not change what a rank reads.
/// @thread_safety  Immutable: any number of threads.
class parallel_grid {
 public:
  /// @param world_size  Number of ranks, a multiple of TP x CP x PP; the quotient is DP.
  /// @throws            invalid_option naming the size that is 0 or does not divide.
  explicit parallel_grid(rank_index world_size, const grid_options& options = {})
      : options_(options), size_(world_size) {
    at_least_one("world_size", world_size);
    at_least_one("tensor", options.tensor);
    at_least_one("context", options.context);
    at_least_one("pipeline", options.pipeline);
    const std::uint64_t model =
        saturating_mul(std::uint64_t{options.tensor} * options.context, options.pipeline);
    if (world_size % model != 0) {
      detail::throw_invalid_option(
          "world_size", std::to_string(world_size),
          "a multiple of tensor x context x pipeline = " + std::to_string(options.tensor) + " x " +
              std::to_string(options.context) + " x " + std::to_string(options.pipeline));
    }
    data_ = world_size / static_cast<rank_index>(model);
  }

  /// Number of ranks.
  [[nodiscard]] rank_index size() const noexcept { return size_; }
  [[nodiscard]] rank_index tensor_size() const noexcept { return options_.tensor; }
  [[nodiscard]] rank_index context_size() const noexcept { return options_.context; }
  [[nodiscard]] rank_index data_size() const noexcept { return data_; }
  [[nodiscard]] rank_index pipeline_size() const noexcept { return options_.pipeline; }
  [[nodiscard]] grid_order order() const noexcept { return options_.order; }

  /// Place of a rank.
  /// @throws  invalid_option if `rank` is not below `size()`.
  [[nodiscard]] grid_coordinates coordinates(rank_index rank) const {
    below("rank", rank, size_);
    grid_coordinates at;
    at.tensor = rank % options_.tensor;
    rank /= options_.tensor;
    at.context = rank % options_.context;
    rank /= options_.context;
    if (options_.order == grid_order::tp_cp_ep_dp_pp) {
      at.data = rank % data_;
      at.pipeline = rank / data_;
    } else {
      at.pipeline = rank % options_.pipeline;
      at.data = rank / options_.pipeline;
    }
    return at;
  }

  /// The rank at a place.
  /// @throws  invalid_option naming the coordinate that is outside the grid.
  [[nodiscard]] rank_index rank(const grid_coordinates& at) const {
    below("tensor", at.tensor, options_.tensor);
    below("context", at.context, options_.context);
    below("data", at.data, data_);
    below("pipeline", at.pipeline, options_.pipeline);
    const rank_index outer = options_.order == grid_order::tp_cp_ep_dp_pp
                                 ? at.data + data_ * at.pipeline
                                 : at.pipeline + options_.pipeline * at.data;
    return at.tensor + options_.tensor * (at.context + options_.context * outer);
  }

  /// The rank and size that a loader on `rank` takes: equal for all ranks that read the same data.
  /// @throws  invalid_option if `rank` is not below `size()`.
  [[nodiscard]] world data_world(rank_index rank,
                                 context_ranks context = context_ranks::together) const {
    const grid_coordinates at = coordinates(rank);
    if (context == context_ranks::together) return {at.data, data_};
    return {at.context + options_.context * at.data, options_.context * data_};
  }

 private:
  static void at_least_one(const char* name, rank_index value) {
    if (value == 0) detail::throw_invalid_option(name, "0", "at least 1");
  }

  static void below(const char* name, rank_index value, rank_index limit) {
    if (value < limit) return;
    detail::throw_invalid_option(name, std::to_string(value), "below " + std::to_string(limit));
  }

  grid_options options_;
  rank_index size_;
  rank_index data_ = 1;
};

}  // namespace lanepack::inline LANEPACK_ABI
