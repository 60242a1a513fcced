#include <lanepack/sim/simulator.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/token.hpp>
#include <lanepack/loader/compose.hpp>

#include "support/catch.hpp"

namespace {

bool close(double found, double expected) {
  const double distance = found - expected;
  return distance < 1e-12 && distance > -1e-12;
}

/// Two lanes of packs of two records in the order of the corpus; a token costs 1.
///
/// Lane 0 gets 3 2 | 6 1, lane 1 gets 1 2 | 5 4.
lanepack::plan_options tiny_options() {
  lanepack::plan_options options;
  options.lanes = 2;
  options.records_per_pack = 2;
  options.shuffle.kind = lanepack::shuffle_kind::none;
  options.policy = "sequential";
  options.lookahead_steps = 1;
  options.limits.capacity_tokens = 6;
  return options;
}

std::shared_ptr<const lanepack::candidate_feed> tiny_feed(const lanepack::plan_options& options) {
  const lanepack::any_source source = lanepack::length_source({3, 1, 2, 2, 6, 5, 1, 4});
  return lanepack::make_candidate_feed(source, lanepack::summarize(source), lanepack::token_cost(),
                                       options);
}

lanepack::simulation_result simulate(const lanepack::plan_options& options,
                                     const lanepack::simulation_options& simulation) {
  const auto feed = tiny_feed(options);
  return lanepack::simulate(feed, lanepack::make_policy(options, *feed),
                            lanepack::own_lanes_assigner(simulation.micro_batching), simulation);
}

lanepack::simulation_options two_ranks() {
  lanepack::simulation_options options;
  options.ranks = 2;
  options.steps = 2;
  options.micro_batch_overhead = 10;
  options.micro_batching.capacity_tokens = 6;
  return options;
}

}  // namespace

TEST_CASE("sim: two ranks and two steps, worked by hand", "[sim]") {
  const lanepack::simulation_result result = simulate(tiny_options(), two_ranks());
  CHECK(result.steps == 2);
  CHECK(result.records_emitted == 8);
  // Rank costs 5 and 3, then 7 and 9; see the metrics.
  CHECK(close(result.rank_cost_cv, 0.37267799624996494));
  CHECK(close(result.within_step_cv, 1.0 / 6));
  CHECK(close(result.step_efficiency, 12.0 / 14));
  // Micro-batches {3 2} and {2 1}, then {6} {1} and {5} {4}: times 15 and 13, then 27 and 29.
  CHECK(close(result.total_time, 15 + 29));
  CHECK(close(result.total_cost, 24));
  CHECK(close(result.time_efficiency, (14.0 + 28) / (15 + 29)));
  CHECK(close(result.bin_fill, 24.0 / (6 * 6)));
  CHECK(close(result.micro_batches_per_step, 1.5));
  // 3 2 2 1 and 6 5 4 1 could be even on two ranks; both lanes have 12 in all.
  CHECK(close(result.step_bound, 1));
  CHECK(close(result.window_bound, 1));
  REQUIRE(result.lane_total_bound);
  CHECK(close(*result.lane_total_bound, 1));
  CHECK(result.max_displacement_steps == 0);
  CHECK(result.peak_buffered_records_per_rank == 2);
  CHECK(close(result.emitted_over_admitted_cost, 1));
  CHECK(close(result.step_tokens_max_ratio, 16.0 / 12));
  CHECK(close(result.token_weight_p99, 0.75));
  CHECK(close(result.lag1_correlation, 0));
}

TEST_CASE("sim: ranks that wait in every micro-batch", "[sim]") {
  lanepack::simulation_options options = two_ranks();
  options.sync = lanepack::sync_model::micro_batch;
  const lanepack::simulation_result result = simulate(tiny_options(), options);
  // Rounds: 5 against 3; 6 against 5; 1 against 4; each with an overhead of 10.
  CHECK(close(result.total_time, 15 + 16 + 14));
  CHECK(close(result.time_efficiency, 42.0 / 45));
  CHECK(close(result.step_efficiency, 12.0 / 14));

  // A rank that has no micro-batch left waits for those that have one.
  options.micro_batching.capacity_tokens = 7;
  const lanepack::simulation_result uneven = simulate(tiny_options(), options);
  // {6 1} in one; {5} {4} in two: rounds 5|3, 7|5, -|4.
  CHECK(close(uneven.total_time, 15 + 17 + 14));
  CHECK(close(uneven.bin_fill, 24.0 / (5 * 7)));
}

TEST_CASE("sim: one rank with both lanes is always even", "[sim]") {
  lanepack::simulation_options options = two_ranks();
  options.ranks = 1;
  const lanepack::simulation_result one = simulate(tiny_options(), options);
  CHECK(close(one.step_efficiency, 1));
  CHECK(close(one.within_step_cv, 0));
  // Costs 8 and 16.
  CHECK(close(one.rank_cost_cv, 1.0 / 3));
  CHECK(one.peak_buffered_records_per_rank == 4);
  // The packs do not know how many ranks there are.
  CHECK(one.digest == simulate(tiny_options(), two_ranks()).digest);
}

TEST_CASE("sim: steps of the warm-up are planned and not measured", "[sim]") {
  lanepack::simulation_options options = two_ranks();
  options.warmup_steps = 1;
  options.steps = 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  options.progress = [&told](std::uint64_t done, std::uint64_t total) {
    told.emplace_back(done, total);
  };
  const lanepack::simulation_result result = simulate(tiny_options(), options);
  CHECK(result.steps == 1);
  CHECK(result.records_emitted == 4);
  CHECK(close(result.step_efficiency, 8.0 / 9));
  CHECK(close(result.total_time, 29));
  CHECK(told == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 2}, {2, 2}});
}

TEST_CASE("sim: a run that ends early is measured as far as it goes", "[sim]") {
  lanepack::simulation_options options = two_ranks();
  options.steps = 1000;
  const lanepack::simulation_result result = simulate(tiny_options(), options);
  CHECK(result.steps == 2);
  CHECK(close(result.total_time, 44));
}

TEST_CASE("sim: a lookahead evens ranks out and shows what it holds", "[sim]") {
  lanepack::plan_options options = tiny_options();
  options.policy = "window";
  options.lookahead_steps = 2;
  const lanepack::simulation_result result = simulate(options, two_ranks());
  // Lane 0 has 6 3 2 1: {6, 1} and {3, 2}. Lane 1 has 5 4 2 1: {5, 1} and {4, 2}. The heavier
  // first: 7 against 6, then 5 against 6.
  CHECK(close(result.step_efficiency, (6.5 + 5.5) / (7 + 6)));
  CHECK(result.max_displacement_steps == 1);
  CHECK(result.peak_buffered_records_per_rank == 4);
  CHECK(close(result.emitted_over_admitted_cost, 1));
}

TEST_CASE("sim: ranks have to share the lanes evenly", "[sim]") {
  lanepack::simulation_options options = two_ranks();
  for (const std::uint32_t ranks : {0U, 3U, 4U}) {
    options.ranks = ranks;
    CHECK_THROWS_AS(simulate(tiny_options(), options), lanepack::invalid_option);
  }
}

TEST_CASE("sim: names of the synchronisation models", "[sim]") {
  for (const lanepack::sync_model sync :
       {lanepack::sync_model::step, lanepack::sync_model::micro_batch}) {
    CHECK(lanepack::parse_sync_model(lanepack::to_string(sync)) == sync);
  }
  CHECK_THROWS_MATCHES(lanepack::parse_sync_model("pack"), lanepack::invalid_option,
                       Catch::Matchers::Message("sync: found 'pack', expected step or microbatch"));
}
