#pragma once

/// @file
/// How the records of a step become micro-batches of ranks, in a simulation.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/micro_batcher.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A micro-batch of a simulated step.
struct simulated_micro_batch {
  std::uint64_t cost = 0;
  std::uint64_t tokens = 0;
  std::uint64_t records = 0;
};

/// The micro-batches of all ranks in one step, stored flat, rank by rank.
class step_assignment {
 public:
  [[nodiscard]] std::size_t ranks() const noexcept { return ends_.size(); }
  /// Micro-batches of a rank in the order in which it runs them.
  [[nodiscard]] std::span<const simulated_micro_batch> operator[](std::size_t rank) const noexcept {
    const std::size_t first = rank == 0 ? 0 : ends_[rank - 1];
    return std::span(micro_batches_).subspan(first, ends_[rank] - first);
  }
  /// Micro-batches of all ranks.
  [[nodiscard]] std::span<const simulated_micro_batch> micro_batches() const noexcept {
    return micro_batches_;
  }

  /// Adds a micro-batch to the rank that is being filled.
  void add(const simulated_micro_batch& micro_batch) { micro_batches_.push_back(micro_batch); }
  /// Closes the rank that is being filled.
  void close_rank() { ends_.push_back(micro_batches_.size()); }
  void clear() noexcept {
    micro_batches_.clear();
    ends_.clear();
  }

 private:
  std::vector<simulated_micro_batch> micro_batches_;
  std::vector<std::size_t> ends_;
};

/// Splits the packs of a step, all L of them by lane, over `ranks` ranks.
template <class Assigner>
concept step_assigner = requires(Assigner& assigner, const step_plan& step, std::uint32_t ranks,
                                 step_assignment& out) {
  assigner.assign(step, ranks, out);
};

/// What lanepack does: a rank runs the packs of its own lanes, cut by a `micro_batcher`.
class own_lanes_assigner {
 public:
  /// @param record_multiple  Records are padded to a multiple of this, at least 1.
  explicit own_lanes_assigner(const micro_batch_options& options, std::uint32_t record_multiple = 1)
      : batcher_(options), record_multiple_(record_multiple) {}

  /// @pre  `ranks` divides the number of packs.
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    out.clear();
    const std::size_t packs = step.packs.size() / ranks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      rooms_.clear();
      costs_.clear();
      tokens_.clear();
      for (const pack_plan& pack : step.packs.subspan(rank * packs, packs)) {
        for (const candidate& record : pack.records) {
          rooms_.push_back(round_up(record.tokens, record_multiple_));
          costs_.push_back(record.cost);
          tokens_.push_back(record.tokens);
        }
      }
      batcher_.form(rooms_, bins_, costs_);
      for (std::size_t i = 0; i < bins_.size(); ++i) {
        simulated_micro_batch micro_batch;
        for (const std::uint32_t record : bins_[i]) {
          micro_batch.cost += costs_[record];
          micro_batch.tokens += tokens_[record];
        }
        micro_batch.records = bins_[i].size();
        out.add(micro_batch);
      }
      out.close_rank();
    }
  }

 private:
  micro_batcher batcher_;
  std::uint32_t record_multiple_;
  micro_batch_list bins_;
  std::vector<std::uint64_t> rooms_;
  std::vector<std::uint64_t> costs_;
  std::vector<std::uint64_t> tokens_;
};

static_assert(step_assigner<own_lanes_assigner>);

}  // namespace lanepack::inline LANEPACK_ABI
