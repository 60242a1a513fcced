#pragma once

/// @file
/// What two runs must have in common to have the same packs, as names and values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/source_part.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/choose_policy.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/sampler/mixture.hpp>
#include <lanepack/sampler/schedule.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Rises whenever a policy or an order changes what it makes of the same options.
inline constexpr std::uint64_t plan_version = 1;

[[nodiscard]] inline std::string text_of(const std::vector<pack_size_change>& changes) {
  std::string text = "[";
  for (const pack_size_change& change : changes) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(change.records_per_pack) + " from step " + std::to_string(change.step);
  }
  return text + "]";
}

[[nodiscard]] inline std::string text_of(const cost_distribution* costs) {
  if (costs == nullptr) return "unknown";
  digest_builder builder;
  for (const cost_bucket& bucket : costs->buckets()) {
    builder.number(bucket.cost);
    builder.number(bucket.tokens);
    builder.number(bucket.records);
  }
  return builder.value().hex();
}

/// Sections of the mixture that matter before a step; the first always does, as policies plan by
/// it.
[[nodiscard]] inline std::size_t sections_until(const candidate_feed& feed, step_index step) {
  const step_schedule& schedule = feed.sampler().schedule();
  return std::max<std::size_t>(1, feed.sampler().mixture()->mixture().sections_before(
                                      schedule.lane_records_before(step) * schedule.lanes()));
}

/// Parts and weights of the first sections of a mixture: of every section the weights that are not
/// those of the section before, and the parts that have had one.
template <class Add>
void add_mixture(const candidate_feed& feed, std::size_t sections, Add&& add) {
  const mixture_order& mixture = feed.sampler().mixture()->mixture();
  const std::span<const source_part> parts = feed.source().parts();
  std::vector<bool> used(parts.size(), false);
  std::vector<std::uint64_t> before(parts.size(), 0);
  for (std::size_t section = 0; section < sections; ++section) {
    const std::uint64_t first = mixture.section_first(section);
    const std::span<const std::uint64_t> weights = mixture.section_weights(section);
    std::string changes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      used[i] = used[i] || weights[i] != 0;
      if (weights[i] == before[i]) continue;
      if (!changes.empty()) changes += ", ";
      changes += parts[i].name + " " + std::to_string(weights[i]);
      before[i] = weights[i];
    }
    if (!changes.empty()) add("weights from record " + std::to_string(first), std::move(changes));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!used[i]) continue;
    add("part " + parts[i].name,
        parts[i].fingerprint.hex() + ", " + std::to_string(parts[i].records) + " records from " +
            std::to_string(parts[i].first) + ", " +
            std::to_string(feed.selection().parts[i].domain.size()) + " selected");
  }
}

}  // namespace detail

/// Corpus, options and estimator of a run, as far as its packs depend on them.
///
/// `steps`, `epochs`, `skip_steps` and everything outside `plan_options` may change when a run is
/// resumed: the packs of a step do not depend on them. Of a mixture only what matters before
/// `planned_until` is among them: the weights of each section by part, however they came about, and
/// the parts that had one. So parts may be added behind the others, weights changed and ends of
/// parts set from that step on.
/// @param feed           Made with the same options.
/// @param planned_until  As in the state that has or gets these properties.
/// @throws        data_error where the corpus's fingerprint takes a look at the index and that
///                fails.
/// @complexity    O(buckets of the cost distribution), and for a mixture O(parts x sections).
/// @determinism   The same on every rank.
[[nodiscard]] inline std::vector<run_property> properties_of_run(const plan_options& options,
                                                                 const candidate_feed& feed,
                                                                 step_index planned_until = 0) {
  std::vector<run_property> run;
  const auto add = [&run](std::string name, std::string value) {
    run.push_back({std::move(name), std::move(value)});
  };
  const auto number = [&add](const char* name, std::uint64_t value) {
    add(name, std::to_string(value));
  };
  number("plan version", detail::plan_version);
  if (options.mixture) {
    detail::add_mixture(feed, detail::sections_until(feed, planned_until), add);
  } else {
    add("corpus", feed.source().fingerprint().hex());
    number("corpus records", feed.source().size());
    number("selected records", feed.selection().domain.size());
  }
  add("estimator", feed.estimator().describe());
  number("seed", options.seed);
  number("lanes", options.lanes);
  number("records_per_pack", options.records_per_pack);
  add("pack_size_changes", detail::text_of(options.pack_size_changes));
  add("rule", to_string(options.rule));
  add("shuffle", to_string(options.shuffle.kind));
  if (options.shuffle.kind == shuffle_kind::block) {
    number("block_records", options.shuffle.block_records);
    number("group_blocks", options.shuffle.group_blocks);
  }
  add("policy", choose_policy(options, feed).policy);
  number("lookahead_steps", options.lookahead_steps);
  number("max_displacement_steps", options.max_displacement_steps);
  number("max_step_tokens_ppm", options.max_step_tokens_ppm);
  number("max_step_cost_ppm", options.max_step_cost_ppm);
  add("costs", detail::text_of((options.costs != nullptr ? options.costs : feed.costs()).get()));
  add("capacity_tokens", options.limits.capacity_tokens
                             ? std::to_string(*options.limits.capacity_tokens)
                             : std::string("none"));
  number("record_multiple", options.limits.record_multiple);
  number("total_multiple", options.limits.total_multiple);
  add("infeasible", to_string(options.limits.infeasible));
  add("empty", to_string(options.limits.empty));
  return run;
}

}  // namespace lanepack::inline LANEPACK_ABI
