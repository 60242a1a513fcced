#pragma once

/// @file
/// Arrivals with their shape and cost: what the sampler says comes next, as a policy wants to see
/// it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/sampler/lane_sampler.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Turns arrivals into candidates: looks up shapes, applies the truncation of infeasible records
/// and estimates costs, a batch at a time.
///
/// @thread_safety  Const members may be called by any number of threads, each with its own scratch.
/// @determinism    A pure function of corpus index, selection, sampler and estimator.
class candidate_feed {
 public:
  /// Memory that calls reuse.
  struct scratch {
    std::vector<arrival> arrivals;
    std::vector<record_id> ids;
    std::vector<record_shape> shapes;
    std::vector<std::uint64_t> costs;
  };

  /// @param source     Where shapes come from.
  /// @param selection  Which records take part and how long they may be; the sampler's order runs
  ///                   over its domain.
  candidate_feed(any_source source, record_selection selection, lane_sampler sampler,
                 any_estimator estimator)
      : source_(std::move(source)),
        selection_(std::move(selection)),
        sampler_(std::move(sampler)),
        estimator_(std::move(estimator)) {}

  /// Arrivals `first`, `first + 1`, ... of one lane.
  /// @complexity  O(out.size()) with one virtual call each for shapes and costs.
  void lane(lane_index lane, std::uint64_t first, std::span<candidate> out, scratch& memory) const {
    memory.arrivals.resize(out.size());
    sampler_.lane_arrivals(lane, first, memory.arrivals);
    complete(first, out, memory);
  }

  /// Arrivals `first`, `first + 1`, ... of all lanes in stream order.
  /// @complexity  O(out.size()) with one virtual call each for shapes and costs.
  void stream(std::uint64_t first, std::span<candidate> out, scratch& memory) const {
    memory.arrivals.resize(out.size());
    sampler_.stream_arrivals(first, memory.arrivals);
    complete(first, out, memory);
  }

  [[nodiscard]] const any_source& source() const noexcept { return source_; }
  [[nodiscard]] const record_selection& selection() const noexcept { return selection_; }
  [[nodiscard]] const lane_sampler& sampler() const noexcept { return sampler_; }
  [[nodiscard]] const any_estimator& estimator() const noexcept { return estimator_; }

 private:
  void complete(std::uint64_t first, std::span<candidate> out, scratch& memory) const {
    const std::size_t count = out.size();
    memory.ids.resize(count);
    memory.shapes.resize(count);
    memory.costs.resize(count);
    for (std::size_t i = 0; i < count; ++i) memory.ids[i] = memory.arrivals[i].record.id;
    source_.shapes(memory.ids, memory.shapes);
    for (record_shape& shape : memory.shapes) shape = selection_.delivered(shape);
    estimator_.costs(memory.shapes, memory.costs);
    for (std::size_t i = 0; i < count; ++i) {
      const arrival& from = memory.arrivals[i];
      const bool masked = from.role == record_role::masked;
      out[i] = {.record = from.record,
                .cost = memory.costs[i],
                .tokens = memory.shapes[i].tokens,
                .loss_tokens = masked ? 0 : memory.shapes[i].loss_tokens,
                .arrival = first + i,
                .admitted = 0,
                .role = from.role};
    }
  }

  any_source source_;
  record_selection selection_;
  lane_sampler sampler_;
  any_estimator estimator_;
};

}  // namespace lanepack::inline LANEPACK_ABI
