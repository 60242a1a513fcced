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
#include <lanepack/corpus/unindexed.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/record_costs.hpp>
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
/// @determinism    A pure function of corpus index (or inputs and stages, where there is none),
///                 selection, sampler and estimator.
class candidate_feed {
 public:
  /// Memory that calls reuse.
  struct scratch {
    std::vector<arrival> arrivals;
    std::vector<record_id> ids;
    std::vector<record_shape> shapes;
    std::vector<std::uint64_t> costs;
    record_costs_scratch segments;
    std::vector<std::vector<record_shape>> expanded;
    /// Of a corpus without an index: inputs looked at, what they became, and what the limits left
    /// out of that.
    std::uint64_t inputs = 0;
    std::uint64_t records = 0;
    std::uint64_t left_out = 0;
  };

  /// Loss tokens that so many records have.
  struct loss_token_mean {
    uint128 tokens = 0;
    uint128 records = 0;
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

  /// The feed of a corpus without an index: the sampler deals its inputs.
  /// @param selection  Its domain is all inputs.
  /// @param mean       Of some records of the corpus, the same on every rank.
  candidate_feed(any_source source, record_selection selection, lane_sampler sampler,
                 any_estimator estimator, std::shared_ptr<const cost_distribution> costs,
                 const loss_token_mean& mean)
      : source_(std::move(source)),
        selection_(std::move(selection)),
        sampler_(std::move(sampler)),
        estimator_(std::move(estimator)),
        costs_(std::move(costs)),
        mean_loss_tokens_(mean) {}

  /// Whether the corpus has no index, so that the arrivals of a lane are numbered with gaps: record
  /// k of the lane's input i is number i x 2^`unindexed_records::record_bits` + k.
  [[nodiscard]] bool unindexed() const noexcept { return source_.unindexed() != nullptr; }

  /// The arrivals of one lane from number `first` on.
  /// @throws      for a corpus without an index: data_error where an input cannot be read, a stage
  ///              fails, the limits forbid a record, or nothing is left of any input.
  /// @complexity  O(out.size()) with one virtual call each for shapes and costs; without an index
  ///              also the stages on the inputs that the arrivals come of.
  void lane(lane_index lane, std::uint64_t first, std::span<candidate> out, scratch& memory) const {
    if (unindexed()) {
      expand_lane(lane, first, out, memory);
      return;
    }
    memory.arrivals.resize(out.size());
    sampler_.lane_arrivals(lane, first, memory.arrivals);
    complete(first, out, memory);
  }

  /// Some arrivals of one lane, those with the numbers that `out` has.
  /// @throws      as `lane`; state_error where there is no arrival with such a number.
  /// @complexity  As `lane`.
  void lane_records(lane_index lane, std::span<candidate> out, scratch& memory) const {
    if (!unindexed()) {
      for (candidate& record : out) this->lane(lane, record.arrival, {&record, 1}, memory);
      return;
    }
    expand_records(lane, out, memory);
  }

  /// Arrivals `first`, `first + 1`, ... of all lanes in stream order.
  /// @pre         The corpus has an index.
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

  /// What the lane's inputs from number `first` on become, into `memory.expanded`.
  void expand(lane_index lane, std::uint64_t first, std::size_t count, scratch& memory) const {
    memory.arrivals.resize(count);
    sampler_.lane_arrivals(lane, first, memory.arrivals);
    expand_arrivals(memory);
  }

  void expand_arrivals(scratch& memory) const {
    memory.ids.resize(memory.arrivals.size());
    memory.expanded.resize(memory.arrivals.size());
    for (std::size_t i = 0; i < memory.ids.size(); ++i) {
      memory.ids[i] = memory.arrivals[i].record.id;
    }
    source_.unindexed()->expand(memory.ids, memory.expanded);
  }

  /// Record `k` of an input, without its cost.
  [[nodiscard]] candidate record_of(const arrival& from, std::uint64_t input, std::uint64_t k,
                                    const record_shape& shape) const {
    constexpr unsigned bits = unindexed_records::record_bits;
    const record_shape delivered = selection_.delivered(shape);
    return {.record = {from.record.epoch, from.record.id << bits | k},
            .cost = 0,
            .tokens = delivered.tokens,
            .loss_tokens = delivered.loss_tokens,
            .arrival = input << bits | k,
            .admitted = 0,
            .role = record_role::regular};
  }

  /// Whether the limits let a record through.
  /// @throws data_error  They say that it ends the run.
  [[nodiscard]] bool keeps(record_id input, const record_shape& shape) const {
    if (selection_.limits.keeps(shape.tokens) &&
        shape.tokens <= selection_.limits.largest_record()) {
      return true;
    }
    selection_.limits.check(shape.tokens, {.path = source_.describe(), .record = input});
    return selection_.limits.keeps(shape.tokens);
  }

  void expand_lane(lane_index lane, std::uint64_t first, std::span<candidate> out,
                   scratch& memory) const {
    constexpr unsigned bits = unindexed_records::record_bits;
    constexpr std::uint64_t most_together = 4096;
    std::uint64_t input = first >> bits;
    std::uint64_t passed = first & (unindexed_records::most_records - 1);
    std::size_t filled = 0;
    std::uint64_t barren = 0;
    memory.shapes.resize(out.size());
    while (filled < out.size()) {
      // As many inputs as the records wanted will probably need: more are looked at in vain.
      const std::uint64_t wanted = out.size() - filled;
      const std::uint64_t guess = (memory.inputs + 1) * wanted / (memory.records + 1);
      const auto count =
          static_cast<std::size_t>(std::clamp<std::uint64_t>(guess, 1, most_together));
      expand(lane, input, count, memory);
      for (std::size_t i = 0; i < count && filled < out.size(); ++i, ++input) {
        const std::vector<record_shape>& shapes = memory.expanded[i];
        ++barren;
        for (std::uint64_t k = passed; k < shapes.size() && filled < out.size(); ++k) {
          const record_shape& shape = shapes[static_cast<std::size_t>(k)];
          if (!keeps(memory.ids[i], shape)) {
            ++memory.left_out;
            continue;
          }
          barren = 0;
          memory.shapes[filled] = selection_.delivered(shape);
          out[filled++] = record_of(memory.arrivals[i], input, k, shape);
        }
        passed = 0;
        ++memory.inputs;
        memory.records += shapes.size();
      }
      // A lane that has seen as many inputs as there are has seen most of them.
      if (barren > source_.unindexed()->inputs() + most_together) fail_barren(lane, barren);
    }
    add_costs(out, memory);
  }

  void expand_records(lane_index lane, std::span<candidate> out, scratch& memory) const {
    constexpr unsigned bits = unindexed_records::record_bits;
    memory.arrivals.resize(out.size());
    memory.shapes.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      sampler_.lane_arrivals(lane, out[i].arrival >> bits, {&memory.arrivals[i], 1});
    }
    expand_arrivals(memory);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t k = out[i].arrival & (unindexed_records::most_records - 1);
      const std::vector<record_shape>& shapes = memory.expanded[i];
      if (k >= shapes.size() || !keeps(memory.ids[i], shapes[static_cast<std::size_t>(k)])) {
        detail::throw_state_error(source_.describe() + ": found a record held that is number " +
                                  std::to_string(k) + " of input " + std::to_string(memory.ids[i]) +
                                  ", which becomes " + std::to_string(shapes.size()) +
                                  " records; expected the state of this corpus");
      }
      const record_shape& shape = shapes[static_cast<std::size_t>(k)];
      memory.shapes[i] = selection_.delivered(shape);
      out[i] = record_of(memory.arrivals[i], out[i].arrival >> bits, k, shape);
    }
    add_costs(out, memory);
  }

  void add_costs(std::span<candidate> out, scratch& memory) const {
    memory.costs.resize(out.size());
    memory.ids.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) memory.ids[i] = out[i].record.id;
    record_costs(source_, estimator_, memory.ids, memory.shapes, memory.costs, memory.segments);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].cost = memory.costs[i];
  }

  [[noreturn]] LANEPACK_COLD void fail_barren(lane_index lane, std::uint64_t inputs) const {
    detail::throw_data_error({.path = source_.describe()},
                             "found no record in " + std::to_string(inputs) + " inputs that lane " +
                                 std::to_string(lane) +
                                 " had in a row, expected stages that leave some");
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
    record_costs(source_, estimator_, memory.ids, memory.shapes, memory.costs, memory.segments);
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
