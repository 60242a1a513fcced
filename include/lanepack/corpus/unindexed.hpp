#pragma once

/// @file
/// `unindexed_records`: a corpus whose inputs become a number of records that is known only once
/// they are made.

#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a source without an index offers beside `record_source`, by a member `unindexed()` that
/// returns a pointer to it: the inputs that a run deals to its lanes, and what they become.
///
/// Record k of input i has the id i x 2^`record_bits` + k.
/// @thread_safety  Const members may be called by any number of threads.
class unindexed_records {
 public:
  /// Bits of an id that number the records of an input.
  static constexpr unsigned record_bits = 16;
  /// The most records that an input may become.
  static constexpr std::uint64_t most_records = std::uint64_t{1} << record_bits;
  /// The most inputs of a corpus.
  static constexpr std::uint64_t most_inputs = std::uint64_t{1} << (63 - record_bits);

  unindexed_records() = default;
  unindexed_records(const unindexed_records&) = delete;
  unindexed_records& operator=(const unindexed_records&) = delete;
  virtual ~unindexed_records() = default;

  [[nodiscard]] virtual std::uint64_t inputs() const = 0;
  /// Replaces `out[i]` by the shapes of what input `inputs[i]` becomes (same length): a pure
  /// function of the input. Inputs may be repeated and come in any order.
  /// @throws state_error  An input is not in the corpus.
  /// @throws data_error   naming the input, where it cannot be read, a stage fails, or it becomes
  ///                      more than `most_records` records.
  virtual void expand(std::span<const record_id> inputs,
                      std::span<std::vector<record_shape>> out) const = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
