#pragma once

/// @file
/// `unindexed_pipeline`: the records that a pipeline makes as they are needed, without an index.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/corpus/unindexed.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/pipeline.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

class unindexed_pipeline_state;

}  // namespace detail

/// What an `unindexed_pipeline` may take up.
struct unindexed_pipeline_options {
  /// What the stages run on. Records do not depend on it.
  any_executor executor = {};
  /// Bytes of records that were made when the run was planned and are kept until they are read;
  /// what does not fit is made again.
  std::size_t cache_bytes = std::size_t{256} << 20;
  /// Bytes of inputs and records in flight in a call, nearly; one input at least is.
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  /// Whether some record may have tokens that are not to be predicted.
  bool has_loss_mask = true;
  /// Whether some record may be several segments, as `group` makes them.
  bool has_segments = false;
};

/// The records that a pipeline makes of a corpus, as they are needed; a `record_source` whose
/// number of records nobody knows.
///
/// A run shuffles the inputs and deals them to lanes; a lane's records are what its inputs become,
/// one after the other. So it can only go on from epoch to epoch for a given number of steps, under
/// a lane-local policy; anything else is refused, and a `pipeline_source` can do it. Its state is
/// where each lane stands, and which records are held.
///
/// Record k of input i has the id i x 2^16 + k; `size()` is the end of these ids.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Records depend on input and stages alone.
class unindexed_pipeline {
 public:
  /// @throws invalid_option  A stage carries something over: `open_count_index` and
  ///                         `pipeline_source` can do that. Or there are more than 2^47 inputs.
  unindexed_pipeline(const pipeline_input& input, const pipeline& stages,
                     const unindexed_pipeline_options& options = {});

  [[nodiscard]] std::uint64_t size() const;
  /// Not all shapes are known.
  [[nodiscard]] source_traits traits() const;
  /// Runs the stages; see `read`.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const;
  /// @throws state_error  A range is not in the record.
  /// @throws data_error   An input cannot be read, a stage fails, or there is no such record;
  /// naming
  ///                      the input.
  void read(std::span<const record_read> reads) const;
  /// Of the input's and the pipeline's.
  [[nodiscard]] digest128 fingerprint() const;
  [[nodiscard]] std::string describe() const;
  /// 2^64 - 1 where the options say that there are some, else 1.
  [[nodiscard]] std::uint64_t most_segments() const;
  /// Runs the stages; as `segmented_source` says.
  /// @throws  as `shapes`.
  void segments(std::span<const record_id> ids, segment_lists& out) const;
  /// Those of the inputs, as `payload_source` says; they go with the first record that each
  /// becomes.
  [[nodiscard]] std::span<const std::string> payload_names() const;
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const;
  void read_payloads(std::span<const payload_read> reads) const;
  [[nodiscard]] record_payload_bytes largest_payload() const;
  [[nodiscard]] const unindexed_records* unindexed() const noexcept;

 private:
  std::shared_ptr<detail::unindexed_pipeline_state> state_;
};

static_assert(segmented_source<unindexed_pipeline> && payload_source<unindexed_pipeline>);

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/unindexed_pipeline.ipp>
#endif
