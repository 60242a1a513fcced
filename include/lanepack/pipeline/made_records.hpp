#pragma once

/// @file
/// Reads of records that stages make: what the sources of a pipeline have in common.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/input_runner.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/sample_cache.hpp>
#include <lanepack/pipeline/stage.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Makes the records of inputs, and keeps those made last.
/// @thread_safety  Any number of threads.
class made_records {
 public:
  made_records(const pipeline_input& input, const pipeline& stages, const any_executor& executor,
               std::size_t cache_bytes, std::uint64_t memory_bytes)
      : runner_(input, stages, executor, memory_bytes), cache_(cache_bytes) {
    if (stages.stateful() && !input.payload_names().empty()) {
      throw_invalid_option("stages", stages.describe(),
                           "stages that carry nothing over where inputs have payloads, as a record "
                           "of several inputs could not tell whose they are");
    }
  }
  made_records(const made_records&) = delete;
  made_records& operator=(const made_records&) = delete;
  virtual ~made_records() = default;

  /// As the source's `read`, for ids that were checked.
  void read(std::span<const record_read> reads);

  // Payloads of inputs, which go with the first record that each becomes; as `payload_source` says.
  [[nodiscard]] std::span<const std::string> payload_names() const {
    return runner_.input.payload_names();
  }
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const;
  void read_payloads(std::span<const payload_read> reads) const;
  /// With the number of an input.
  [[nodiscard]] record_payload_bytes largest_payload() const {
    return runner_.input.largest_payload();
  }
  /// Adds the patches of the inputs to the shapes of records.
  void add_patches(std::span<const record_id> ids, std::span<record_shape> out) const;

 protected:
  using visitor = std::function<void(std::size_t i, const std::vector<sample>& samples)>;

  /// Calls `visit(i, samples)` once for each input `inputs[i]` with what it became, in any order,
  /// on the calling thread.
  /// @param inputs  Ascending, each once.
  void visit(std::span<const record_id> inputs, const visitor& visit);

  [[nodiscard]] const input_runner& runner() const noexcept { return runner_; }

 private:
  /// The inputs of those records that are the first of theirs, and their places in `ids`.
  void first_records(std::span<const record_id> ids, std::vector<record_id>& inputs,
                     std::vector<std::size_t>& places) const;
  /// The input that a record comes of.
  [[nodiscard]] virtual record_id input_of(record_id record) const = 0;
  /// The number of the record among those of its input.
  [[nodiscard]] virtual std::uint64_t place_of(record_id record, record_id input) const = 0;
  /// The state of the stage with a memory before an input.
  [[nodiscard]] virtual stage_state state_before(record_id input) const = 0;
  /// Throws unless an input became what it should.
  virtual void check(record_id input, const std::vector<sample>& samples) const = 0;

  input_runner runner_;
  sample_cache cache_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/made_records.ipp>
#endif
