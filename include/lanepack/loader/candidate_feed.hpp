#pragma once

/// @file
/// Arrivals with their shape and cost: what the sampler says comes next, as a policy wants to see
/// it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/sampler/lane_sampler.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Turns arrivals into candidates: looks up shapes, applies the truncation of infeasible records
/// and estimates costs, a batch at a time. It also knows what policies are made from: how the
/// records' costs are distributed.
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
  /// @param costs      What the stream's records cost; null where nobody knows.
  candidate_feed(any_source source, record_selection selection, lane_sampler sampler,
                 any_estimator estimator, std::shared_ptr<const cost_distribution> costs = nullptr)
      : source_(std::move(source)),
        selection_(std::move(selection)),
        sampler_(std::move(sampler)),
        estimator_(std::move(estimator)),
        costs_(std::move(costs)) {}

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
  /// What the stream's records cost; null where nobody knows.
  [[nodiscard]] const std::shared_ptr<const cost_distribution>& costs() const noexcept {
    return costs_;
  }

  /// Loss tokens that a step of `records` records over all ranks has on average, rounded to the
  /// nearest, at least 1; tokens where the corpus has no loss tokens.
  ///
  /// The mean over an epoch, so it is the same on every rank and in every step with as many
  /// records.
  [[nodiscard]] std::uint64_t expected_loss_tokens(std::uint64_t records) const noexcept {
    const std::uint64_t all =
        selection_.loss_tokens != 0 ? selection_.loss_tokens : selection_.tokens;
    const std::uint64_t n = std::max<std::uint64_t>(1, selection_.domain.size());
    const uint128 rounded = (static_cast<uint128>(all) * records + n / 2) / n;
    constexpr uint128 most = std::numeric_limits<std::uint64_t>::max();
    return static_cast<std::uint64_t>(std::clamp<uint128>(rounded, 1, most));
  }

 private:
  /// A record that the limits leave out is not in the domain, unless the source contradicts the
  /// summary that the domain was made from.
  [[noreturn]] LANEPACK_COLD void fail_not_selected(record_id id, std::uint64_t tokens) const {
    detail::throw_data_error(
        {.path = source_.describe(), .byte_offset = {}, .record = id, .line = {}},
        "found " + std::to_string(tokens) + " tokens, expected 1 to " +
            std::to_string(selection_.limits.largest_record()) + " as the summary says");
  }

  void complete(std::uint64_t first, std::span<candidate> out, scratch& memory) const {
    const std::size_t count = out.size();
    memory.ids.resize(count);
    memory.shapes.resize(count);
    memory.costs.resize(count);
    for (std::size_t i = 0; i < count; ++i) memory.ids[i] = memory.arrivals[i].record.id;
    source_.shapes(memory.ids, memory.shapes);
    for (std::size_t i = 0; i < count; ++i) {
      record_shape& shape = memory.shapes[i];
      if (!selection_.limits.keeps(shape.tokens)) fail_not_selected(memory.ids[i], shape.tokens);
      shape = selection_.delivered(shape);
    }
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
  std::shared_ptr<const cost_distribution> costs_;
};

}  // namespace lanepack::inline LANEPACK_ABI
