#pragma once

/// @file
/// The micro-batches of all ranks in one simulated step.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A micro-batch of a simulated step.
struct simulated_micro_batch {
  /// Of its records.
  std::uint64_t cost = 0;
  std::uint64_t tokens = 0;
  std::uint64_t records = 0;
  /// Of padding, where the backend pays for it.
  std::uint64_t padding_cost = 0;

  friend bool operator==(const simulated_micro_batch&, const simulated_micro_batch&) = default;
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

}  // namespace lanepack::inline LANEPACK_ABI
