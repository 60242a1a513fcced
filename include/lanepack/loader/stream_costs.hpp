#pragma once

/// @file
/// What the records of a stream cost, from what every rank knows before the first of them arrives:
/// the index of the corpus, its summary, a declared length histogram, or a common prefix.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/packer/cost_distribution.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Costs of `count` records, the ids of which `ids_of(first, out)` writes for numbers from `first`
/// on, as they are delivered.
template <class IdsOf>
[[nodiscard]] std::shared_ptr<const cost_distribution> costs_of_ids(
    const any_source& source, const record_selection& selection, const any_estimator& estimator,
    std::uint64_t count, IdsOf&& ids_of) {
  constexpr std::uint64_t batch_records = 1024;
  std::vector<record_id> ids;
  std::vector<record_shape> shapes;
  std::vector<std::uint64_t> costs;
  std::vector<cost_bucket> buckets;
  buckets.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t first = 0; first < count; first += batch_records) {
    const auto batch = static_cast<std::size_t>(std::min(batch_records, count - first));
    ids.resize(batch);
    shapes.resize(batch);
    costs.resize(batch);
    ids_of(first, std::span<record_id>(ids));
    source.shapes(ids, shapes);
    for (record_shape& shape : shapes) shape = selection.delivered(shape);
    estimator.costs(shapes, costs);
    for (std::size_t i = 0; i < batch; ++i) {
      buckets.push_back({.cost = costs[i], .tokens = shapes[i].tokens, .records = 1});
    }
  }
  return std::make_shared<const cost_distribution>(std::move(buckets));
}

}  // namespace detail

/// What the selected records of a corpus cost: exactly, from the index, up to 2^18 records; of a
/// larger corpus from the summary's histogram, where lengths are exact below 4096 tokens and off by
/// at most 1/2048 above, and vision patches are spread in proportion to tokens.
/// @pre         The selection holds a record.
/// @throws      data_error where the index is corrupt.
/// @complexity  At most 2^18 shapes, whatever the size of the corpus.
/// @determinism The same on every rank.
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_corpus(
    const any_source& source, const corpus_summary& summary, const record_selection& selection,
    const any_estimator& estimator) {
  constexpr std::uint64_t most_looked_up = std::uint64_t{1} << 18;
  const std::uint64_t records = selection.domain.size();
  if (records > most_looked_up) {
    return std::make_shared<const cost_distribution>(cost_distribution::of_lengths(
        summary.histogram.buckets(), estimator, selection.limits, summary.patches));
  }
  return detail::costs_of_ids(source, selection, estimator, records,
                              [&](std::uint64_t first, std::span<record_id> out) {
                                for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + i;
                                selection.domain.to_ids(out);
                              });
}

/// What the first records of the stream cost: a common prefix of the order that all ranks share.
///
/// For `plan_options::costs` where the lengths of all records are not known beforehand, or where
/// the corpus is in an order of its own. Steps are planned as if all records were like these.
/// @param records  Records of the first epoch's order that are looked at, at most its length.
/// @throws      data_error where the index is corrupt, invalid_option where `records` is 0.
/// @complexity  O(records log records).
/// @determinism The same on every rank.
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_prefix(
    const candidate_feed& feed, std::uint64_t records) {
  const ordered_epoch order = feed.sampler().order().epoch(0);
  return detail::costs_of_ids(feed.source(), feed.selection(), feed.estimator(),
                              std::min(records, order.size()),
                              [&](std::uint64_t first, std::span<record_id> out) {
                                for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + i;
                                order.records(out, out);
                              });
}

/// What the records of a declared length histogram cost, as the limits deliver them.
/// @param histogram  Lengths with numbers of records; `first` and `last` are not looked at.
/// @throws      invalid_option where the limits keep none of them.
/// @complexity  O(buckets log buckets).
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_lengths(
    std::span<const length_bucket> histogram, const any_estimator& estimator,
    const feasibility_options& limits) {
  return std::make_shared<const cost_distribution>(
      cost_distribution::of_lengths(histogram, estimator, feasibility(limits)));
}

}  // namespace lanepack::inline LANEPACK_ABI
