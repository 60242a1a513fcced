#pragma once

// What the two examples of several ranks share: an order-independent digest of records, so that
// ranks can be compared with the corpus without collecting every id.

#include <lanepack/core/digest.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/topology/world.hpp>

#include <cstdint>

/// Sum of the digests of records, which is the same in whatever order they come.
struct record_set {
  std::uint64_t records = 0;
  lanepack::digest128 sum;

  void add(const lanepack::record_ref& record) {
    lanepack::digest_builder builder;
    builder.number(record.epoch);
    builder.number(record.id);
    add(record_set{1, builder.value()});
  }
  void add(const record_set& other) {
    records += other.records;
    sum.low += other.sum.low;
    sum.high += other.sum.high + (sum.low < other.sum.low ? 1 : 0);
  }
  friend bool operator==(const record_set&, const record_set&) = default;
};

/// Every record of epoch 0.
inline record_set whole_epoch(std::uint64_t records) {
  record_set all;
  for (lanepack::record_id id = 0; id < records; ++id) all.add(lanepack::record_ref{0, id});
  return all;
}

/// Options of a finite epoch: its last step is filled with records of loss mask 0.
inline lanepack::loader_options epoch_options() {
  lanepack::loader_options options;
  options.plan.seed = 1;
  options.plan.lanes = 24;
  options.plan.records_per_pack = 4;
  options.plan.rule = lanepack::epoch_end::finite;
  options.plan.limits.capacity_tokens = 8192;
  options.plan.limits.infeasible = lanepack::infeasible_policy::truncate;
  return options;
}

/// Runs this rank's part of the epoch.
/// @param steps  Receives the number of steps.
inline record_set run_rank(const lanepack::opened_corpus& corpus, const lanepack::world& where,
                           std::uint64_t& steps) {
  lanepack::loader loader(corpus.source, where, epoch_options(), lanepack::default_cost(),
                          corpus.summary);
  record_set seen;
  steps = 0;
  for (auto&& step : loader) {
    for (std::size_t i = 0; i < step.records().size(); ++i) {
      if (step.roles()[i] == lanepack::record_role::regular) seen.add(step.records()[i]);
    }
    for (auto&& micro_batch : step) static_cast<void>(micro_batch);
    ++steps;
  }
  return seen;
}
