#pragma once

/// @file
/// What records cost as they are delivered, those of several segments segment by segment.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/cost/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Memory that calls of `record_costs` reuse.
struct record_costs_scratch {
  segment_lists whole;
  segment_lists delivered;
  std::vector<record_shape> shapes;
  std::vector<std::uint64_t> costs;
};

/// Estimates what each of some records costs; a record of several segments costs what they cost
/// together, as attention does not cross their borders. Loss tokens and patches count with the
/// first.
/// @param delivered  Shapes of the records, cut to what is delivered.
/// @pre          All spans are as long as `ids`.
/// @throws       as the source's `segments`.
/// @complexity   One virtual call, two more where records may have several segments.
/// @determinism  Integers only.
inline void record_costs(const any_source& source, const any_estimator& estimator,
                         std::span<const record_id> ids, std::span<const record_shape> delivered,
                         std::span<std::uint64_t> out, record_costs_scratch& memory) {
  if (source.most_segments() == 1) {
    estimator.costs(delivered, out);
    return;
  }
  memory.whole.clear();
  memory.delivered.clear();
  memory.shapes.clear();
  source.segments(ids, memory.whole);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    memory.delivered.add_first(memory.whole[i], delivered[i].tokens);
    record_shape shape = delivered[i];
    for (const std::uint64_t tokens : memory.delivered[i]) {
      shape.tokens = tokens;
      memory.shapes.push_back(shape);
      shape.loss_tokens = 0;
      shape.patches = 0;
    }
  }
  memory.costs.resize(memory.shapes.size());
  estimator.costs(memory.shapes, memory.costs);
  std::size_t at = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < memory.delivered[i].size(); ++k, ++at) {
      sum = saturating_add(sum, memory.costs[at]);
    }
    out[i] = sum;
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
