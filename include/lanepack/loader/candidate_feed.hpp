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
  ///                   over its domain, a mixture over its parts.
  /// @param costs      What the stream's records cost; null where nobody knows.
  candidate_feed(any_source source, record_selection selection, lane_sampler sampler,
                 any_estimator estimator, std::shared_ptr<const cost_distribution> costs = nullptr)
      : source_(std::move(source)),
        selection_(std::move(selection)),
        sampler_(std::move(sampler)),
        estimator_(std::move(estimator)),
        costs_(std::move(costs)) {
    mean_loss_tokens_ = mean_of(selection_, sampler_.mixture());
  }

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
  /// The mean over an epoch, of a mixture that over the epochs of its parts by the weights of its
  /// first phase: so it is the same on every rank and in every step with as many records, and a
  /// token weighs the same before and after weights change.
  [[nodiscard]] std::uint64_t expected_loss_tokens(std::uint64_t records) const noexcept {
    const uint128 n = std::max<uint128>(1, mean_loss_tokens_.records);
    const uint128 rounded = (mean_loss_tokens_.tokens * records + n / 2) / n;
    constexpr uint128 most = std::numeric_limits<std::uint64_t>::max();
    return static_cast<std::uint64_t>(std::clamp<uint128>(rounded, 1, most));
  }

 private:
  /// Loss tokens that so many records have.
  struct loss_token_mean {
    uint128 tokens = 0;
    uint128 records = 0;
  };

  [[nodiscard]] static loss_token_mean mean_of(const record_selection& selection,
                                               const mixed_records* mixture) noexcept {
    if (mixture == nullptr) {
      return {selection.loss_tokens != 0 ? selection.loss_tokens : selection.tokens,
              selection.domain.size()};
    }
    // A mean in fixed point is below 2^60, and weights have a sum of at most 2^20.
    constexpr std::uint64_t one = std::uint64_t{1} << 20;
    const std::span<const std::uint64_t> weights = mixture->mixture().section_weights(0);
    uint128 loss_tokens = 0;
    uint128 tokens = 0;
    uint128 records = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const part_selection& part = selection.parts[i];
      const uint128 n = part.domain.size();
      loss_tokens += static_cast<uint128>(part.loss_tokens) * one / n * weights[i];
      tokens += static_cast<uint128>(part.tokens) * one / n * weights[i];
      records += static_cast<uint128>(weights[i]) * one;
    }
    return {loss_tokens != 0 ? loss_tokens : tokens, records};
  }

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
  loss_token_mean mean_loss_tokens_;
};

}  // namespace lanepack::inline LANEPACK_ABI
