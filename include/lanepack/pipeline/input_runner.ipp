#pragma once

/// @file
/// The bodies of the functions in input_runner.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/input_runner.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Bytes that an input of that size takes while the stages run: text, a token of four bytes and a
/// mask of one for each of its bytes, and the samples around them.
[[nodiscard]] inline std::uint64_t bytes_in_flight(std::uint64_t size) noexcept {
  return saturating_add(saturating_mul(size, 6), 4 * sizeof(sample));
}

LANEPACK_FUNCTION input_runner::input_runner(pipeline_input from, pipeline through, any_executor on,
                                             std::uint64_t bytes)
    : input(std::move(from)),
      stages(std::move(through)),
      executor(std::move(on)),
      memory_bytes(bytes),
      corpus(input.describe()) {}

LANEPACK_FUNCTION void input_runner::run_group(std::span<const record_id> ids,
                                               std::span<std::vector<sample>> out) const {
  std::vector<sample> read(ids.size());
  bool together = ids.size() > 1;
  try {
    if (together) input.read(ids, read);
  } catch (const file_changed&) {
    throw;
  } catch (const data_error&) {
    // Whether inputs are read together depends on the threads; what is reported shall not.
    together = false;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!together) input.read(ids.subspan(i, 1), std::span(read).subspan(i, 1));
    out[i].clear();
    out[i].push_back(std::move(read[i]));
    stages.run_stateless(out[i], corpus, ids[i]);
  }
}

LANEPACK_FUNCTION void input_runner::run(
    std::span<const record_id> ids,
    const std::function<void(std::size_t i, std::vector<sample>& samples)>& commit) const {
  constexpr std::size_t most_looked_at = 1024;
  constexpr std::size_t most_in_group = 64;
  any_executor on = executor;
  const std::size_t threads = std::max(1U, on.threads());
  std::vector<std::uint64_t> sizes;
  std::vector<std::vector<sample>> results;
  for (std::size_t first = 0; first < ids.size();) {
    sizes.resize(std::min(ids.size() - first, most_looked_at * threads));
    input.sizes(ids.subspan(first, sizes.size()), sizes);
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    for (; count < sizes.size(); ++count) {
      bytes = saturating_add(bytes, bytes_in_flight(sizes[count]));
      if (count != 0 && bytes > memory_bytes) break;
    }
    const std::size_t in_group = std::clamp<std::size_t>(count / (4 * threads), 1, most_in_group);
    results.assign(count, {});
    run_tasks(on, ceil_div(count, in_group), [&](std::uint64_t task) {
      const std::size_t begin = static_cast<std::size_t>(task) * in_group;
      const std::size_t size = std::min(in_group, count - begin);
      run_group(ids.subspan(first + begin, size), std::span(results).subspan(begin, size));
    });
    for (std::size_t i = 0; i < count; ++i) {
      commit(first + i, results[i]);
      results[i] = {};
    }
    first += count;
  }
}

LANEPACK_FUNCTION std::vector<sample> input_runner::run_one(record_id id,
                                                            const stage_state& from) const {
  std::vector<std::vector<sample>> results(1);
  std::optional<any_stage> memory = stages.new_memory();
  if (!memory) {
    run_group({&id, 1}, results);
    return std::move(results.front());
  }
  memory->restore(from.words);
  const record_id first = id - std::min(id, from.replay);
  const record_id last = std::min(id + 1, input.size());
  for (record_id at = first; at < last; ++at) {
    run_group({&at, 1}, results);
    stages.run_carrying(*memory, results.front(), corpus, at);
  }
  if (id == input.size()) {
    results.front().clear();
    stages.run_finish(*memory, results.front(), corpus, id);
  }
  return std::move(results.front());
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
