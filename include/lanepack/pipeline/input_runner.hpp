#pragma once

/// @file
/// Runs the stateless stages on many inputs, out of order, and hands over the results in order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// A corpus, the stages that its inputs go through, and what they run on.
struct input_runner {
  pipeline_input input;
  pipeline stages;
  any_executor executor;
  /// Bytes of inputs and results in flight, estimated from the inputs' sizes.
  std::uint64_t memory_bytes = 0;
  /// Describes the corpus in errors.
  std::string corpus;

  input_runner(pipeline_input from, pipeline through, any_executor on, std::uint64_t bytes);

  /// Calls `commit(i, samples)` for input `ids[i]` with what the stateless stages make of it, i
  /// ascending, on the calling thread.
  /// @throws  what the first input that fails throws, whatever the executor.
  void run(std::span<const record_id> ids,
           const std::function<void(std::size_t i, std::vector<sample>& samples)>& commit) const;

  /// What all stages make of input `id`, behind those that `from.replay` says; for `id` = size,
  /// what is left behind the last input.
  [[nodiscard]] std::vector<sample> run_one(record_id id, const stage_state& from) const;

 private:
  /// Reads inputs and runs the stateless stages on each in turn.
  void run_group(std::span<const record_id> ids, std::span<std::vector<sample>> out) const;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/input_runner.ipp>
#endif
