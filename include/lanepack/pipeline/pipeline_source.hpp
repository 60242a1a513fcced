#pragma once

/// @file
/// `pipeline_source`: the records that a pipeline makes, as a corpus with random access.

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
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/pipeline.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

class pipeline_source_state;

}  // namespace detail

/// What a `pipeline_source` may take up.
struct pipeline_source_options {
  /// What the stages run on. Records do not depend on it.
  any_executor executor = {};
  /// Bytes of records that were made and are kept, as an input's other records may be wanted next.
  std::size_t cache_bytes = std::size_t{64} << 20;
  /// Bytes of inputs and records in flight in a call, nearly; one input at least is.
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
};

/// The records that a pipeline makes of a corpus; a `segmented_source` and a `payload_source`.
/// Copies share everything.
///
/// Its ids number the records in the order of the inputs. All shapes are known from the index, so
/// every policy, rule and mixture works as over a corpus of tokens. A read runs the stages on the
/// inputs that its records come of, each once a call, and where a stage has a memory on those
/// before that `stage_state::replay` says.
///
/// What the inputs carry beside text or tokens, payloads and patches, goes with the first record
/// that each becomes; stages do not see it.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Records depend on input, stages and index alone.
class pipeline_source {
 public:
  /// @throws state_error     The index is of another input or pipeline, naming which.
  /// @throws invalid_option  Inputs have payloads, and a stage carries something over from one to
  ///                         the next.
  pipeline_source(const pipeline_input& input, const pipeline& stages, count_index index,
                  const pipeline_source_options& options = {});

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] source_traits traits() const;
  /// @throws state_error  An id is not in the corpus.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const;
  /// @throws state_error  An id or a range is not in the corpus.
  /// @throws data_error   An input cannot be read, a stage fails, or they make other records than
  ///                      the index says; naming the input.
  void read(std::span<const record_read> reads) const;
  /// Of the index, which has the fingerprints of input and pipeline in it.
  [[nodiscard]] digest128 fingerprint() const;
  [[nodiscard]] std::string describe() const;

  /// Of the input.
  [[nodiscard]] std::span<const std::string> payload_names() const;
  /// @throws state_error  An id or a payload is not in the corpus.
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const;
  /// @throws state_error  An id or a payload is not in the corpus, or memory is of another size.
  /// @throws data_error   As the input.
  void read_payloads(std::span<const payload_read> reads) const;
  [[nodiscard]] record_payload_bytes largest_payload() const;

  [[nodiscard]] const count_index& index() const noexcept;
  /// Of the index.
  [[nodiscard]] std::uint64_t most_segments() const;
  /// As `segmented_source` says.
  /// @throws state_error  An id is not in the corpus.
  void segments(std::span<const record_id> ids, segment_lists& out) const;

 private:
  std::shared_ptr<detail::pipeline_source_state> state_;
};

static_assert(segmented_source<pipeline_source> && payload_source<pipeline_source>);

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/pipeline_source.ipp>
#endif
