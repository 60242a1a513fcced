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

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/record_costs.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/packer/cost_distribution.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Numbers `first`, `first` + 1, ... of `count` that lie evenly in [0, records).
/// @pre  `count` is at most `records` and below 2^32.
inline void spread_over(std::uint64_t records, std::uint64_t count, std::uint64_t first,
                        std::span<record_id> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<record_id>(static_cast<uint128>(records) * (first + i) / count);
  }
}

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
  record_costs_scratch segments;
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
    record_costs(source, estimator, ids, shapes, costs, segments);
    for (std::size_t i = 0; i < batch; ++i) {
      buckets.push_back({.cost = costs[i], .tokens = shapes[i].tokens, .records = 1});
    }
  }
  return std::make_shared<const cost_distribution>(std::move(buckets));
}

}  // namespace detail

/// What the selected records of a corpus cost: exactly, from the index, up to 2^18 records; of a
/// larger corpus from the summary's histogram, where lengths are exact below 4096 tokens and off by
/// at most 1/2048 above, and vision patches are spread in proportion to tokens. A histogram does
/// not tell segments: where records may have several, 2^18 of a larger corpus stand for all.
/// @pre         The selection holds a record.
/// @throws      data_error where the index is corrupt.
/// @complexity  At most 2^18 shapes, whatever the size of the corpus.
/// @determinism The same on every rank.
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_corpus(
    const any_source& source, const corpus_summary& summary, const record_selection& selection,
    const any_estimator& estimator) {
  constexpr std::uint64_t most_looked_up = std::uint64_t{1} << 18;
  const std::uint64_t records = selection.domain.size();
  if (records > most_looked_up && source.most_segments() == 1) {
    return std::make_shared<const cost_distribution>(cost_distribution::of_lengths(
        summary.histogram.buckets(), estimator, selection.limits, summary.patches));
  }
  const std::uint64_t looked_up = std::min(records, most_looked_up);
  return detail::costs_of_ids(source, selection, estimator, looked_up,
                              [&](std::uint64_t first, std::span<record_id> out) {
                                detail::spread_over(records, looked_up, first, out);
                                selection.domain.to_ids(out);
                              });
}

/// What the records of a mixture cost, each part by its weight.
///
/// As `costs_of_corpus` for the parts that have a weight: from the index where they have up to 2^18
/// records together, else from their histograms, or from 2^18 of them where records may have
/// several segments. 2^40 records are spread over the parts in proportion to their weights, and
/// those of a part over its costs; the remainders of a part's costs are carried upwards.
/// @param weights  By part, with a sum of at most 2^20; parts with a weight have records.
/// @throws      data_error where the index is corrupt.
/// @complexity  At most 2^18 shapes, or O(buckets of all histograms).
/// @determinism The same on every rank; parts without a weight do not matter.
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_mixture(
    const any_source& source, const corpus_summary& summary, const record_selection& selection,
    const any_estimator& estimator, std::span<const std::uint64_t> weights) {
  constexpr std::uint64_t most_looked_up = std::uint64_t{1} << 18;
  constexpr std::uint64_t all_records = std::uint64_t{1} << 40;
  std::uint64_t records = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    sum += weights[i];
    records = saturating_add(records, selection.parts[i].domain.size());
  }
  std::vector<cost_bucket> mixed;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const record_id first_id = source.parts()[i].first;
    const record_domain& domain = selection.parts[i].domain;
    const corpus_summary& of_part = summary.parts[i];
    const bool looks_up = records <= most_looked_up || source.most_segments() != 1;
    const std::uint64_t looked_up =
        records <= most_looked_up
            ? domain.size()
            : std::min(domain.size(), std::max<std::uint64_t>(1, most_looked_up / weights.size()));
    const auto ids_of = [&](std::uint64_t first, std::span<record_id> out) {
      detail::spread_over(domain.size(), looked_up, first, out);
      domain.to_ids(out);
      for (record_id& id : out) id += first_id;
    };
    const std::shared_ptr<const cost_distribution> costs =
        looks_up ? detail::costs_of_ids(source, selection, estimator, looked_up, ids_of)
                 : std::make_shared<const cost_distribution>(cost_distribution::of_lengths(
                       of_part.histogram.buckets(), estimator, selection.limits, of_part.patches));
    const uint128 share = static_cast<uint128>(weights[i]) * (all_records / sum);
    std::uint64_t seen = 0;
    std::uint64_t spread = 0;
    for (const cost_bucket& bucket : costs->buckets()) {
      seen += bucket.records;
      const auto end = static_cast<std::uint64_t>(share * seen / costs->records());
      mixed.push_back({.cost = bucket.cost, .tokens = bucket.tokens, .records = end - spread});
      spread = end;
    }
  }
  return std::make_shared<const cost_distribution>(std::move(mixed));
}

/// What the first records of the stream cost: a common prefix of the order that all ranks share.
///
/// For `plan_options::costs` where the lengths of all records are not known beforehand, or where
/// the corpus is in an order of its own. Steps are planned as if all records were like these.
/// @param records  Records of the first epoch's order that are looked at, at most its length; of a
///                 mixture, arrivals from its first on, at most as many as its parts have records.
/// @throws      data_error where the index is corrupt, invalid_option where `records` is 0.
/// @complexity  O(records log records).
/// @determinism The same on every rank.
[[nodiscard]] inline std::shared_ptr<const cost_distribution> costs_of_prefix(
    const candidate_feed& feed, std::uint64_t records) {
  if (const mixed_records* mixture = feed.sampler().mixture()) {
    return detail::costs_of_ids(feed.source(), feed.selection(), feed.estimator(),
                                std::min(records, mixture->records()),
                                [&](std::uint64_t first, std::span<record_id> out) {
                                  std::vector<record_ref> found(out.size());
                                  mixture->records(first, 1, found);
                                  for (std::size_t i = 0; i < out.size(); ++i) {
                                    out[i] = found[i].id;
                                  }
                                });
  }
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
