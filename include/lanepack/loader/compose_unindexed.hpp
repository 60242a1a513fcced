#pragma once

/// @file
/// Composes the feed of a corpus without an index of records.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/unindexed.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/record_costs.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/sampler/domain.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/lane_sampler.hpp>
#include <lanepack/sampler/schedule.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Inputs of the first epoch's order that every rank looks at to know what records cost and how
/// many loss tokens they have.
inline constexpr std::uint64_t sampled_inputs = 256;

/// Throws where a plan needs to know how many records there are.
/// @param all_lanes  Whether the policy plans all lanes.
inline void validate_unindexed(const any_source& source, const plan_options& options,
                               bool all_lanes) {
  const std::string index =
      ", or a count index: open_count_index makes one, and "
      "pipeline_source reads with it; " +
      source.describe() + " has none";
  if (options.rule != epoch_end::continue_epochs) {
    throw_invalid_option("rule", to_string(options.rule),
                         "continue with a number of steps, as nobody knows how many records an "
                         "epoch will have" +
                             index);
  }
  if (options.epochs) {
    throw_invalid_option("epochs", std::to_string(*options.epochs), "a number of steps" + index);
  }
  if (!options.steps) throw_invalid_option("steps", "none", "a number of steps" + index);
  if (options.mixture) {
    throw_invalid_option("mixture", "a corpus without an index",
                         "parts with a count index" + index);
  }
  if (all_lanes) {
    throw_invalid_option("policy", options.policy, "a lane-local one such as calendar" + index);
  }
}

/// What a feed shares where inputs become records only as they are dealt: the inputs are shuffled
/// and dealt, and costs are those of `sampled_inputs` of them unless the options declare them.
/// @throws  invalid_option; data_error as `unindexed_records::expand`, or where the limits forbid a
///          sampled record.
[[nodiscard]] inline std::shared_ptr<const candidate_feed> make_unindexed_feed(
    const any_source& source, any_estimator estimator, const plan_options& options,
    schedule_options timing) {
  const unindexed_records& records = *source.unindexed();
  const std::uint64_t inputs = records.inputs();
  if (inputs == 0) {
    throw_data_error({.path = source.describe()}, "found no input, expected at least 1");
  }
  record_selection selection;
  selection.limits = feasibility(options.limits);
  selection.domain = record_domain(inputs);
  epoch_order order(selection.domain, options.shuffle, options.seed);

  std::vector<record_id> ids(static_cast<std::size_t>(std::min(sampled_inputs, inputs)));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  order.epoch(0).records(ids, ids);
  std::vector<std::vector<record_shape>> expanded(ids.size());
  records.expand(ids, expanded);
  std::vector<record_shape> shapes;
  std::vector<record_id> made;
  candidate_feed::loss_token_mean loss_tokens;
  candidate_feed::loss_token_mean tokens;
  for (std::size_t i = 0; i < expanded.size(); ++i) {
    for (std::size_t k = 0; k < expanded[i].size(); ++k) {
      const record_shape& shape = expanded[i][k];
      if (!selection.limits.keeps(shape.tokens)) continue;
      shapes.push_back(selection.delivered(shape));
      made.push_back(ids[i] << unindexed_records::record_bits | k);
      loss_tokens.tokens += shapes.back().loss_tokens;
      tokens.tokens += shapes.back().tokens;
    }
  }
  loss_tokens.records = tokens.records = shapes.size();
  std::shared_ptr<const cost_distribution> costs = options.costs;
  if (costs == nullptr && !shapes.empty()) {
    std::vector<std::uint64_t> cost(shapes.size());
    record_costs_scratch memory;
    record_costs(source, estimator, made, shapes, cost, memory);
    std::vector<cost_bucket> buckets(shapes.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      buckets[i] = {.cost = cost[i], .tokens = shapes[i].tokens, .records = 1};
    }
    costs = std::make_shared<const cost_distribution>(std::move(buckets));
  }
  lane_sampler sampler(std::move(order), step_schedule(inputs, std::move(timing)));
  return std::make_shared<const candidate_feed>(source, std::move(selection), std::move(sampler),
                                                std::move(estimator), std::move(costs),
                                                loss_tokens.tokens != 0 ? loss_tokens : tokens);
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
