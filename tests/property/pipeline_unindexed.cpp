// Runs over pipelines without an index: what lanes get, and going on from any step.

#include <lanepack/json/run_state.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/planner.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <lanepack/loader/run_properties.hpp>
#include <lanepack/pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/calendars.hpp"
#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/documents.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::kept_pack;
using lanepack_test::lanes_from;

namespace {

const tokenize bytes{byte_level_tokenizer()};

/// A run over documents with random options.
struct online_run {
  pipeline_input input;
  pipeline stages;
  plan_options options;
  std::shared_ptr<const candidate_feed> feed;
  std::optional<any_policy> policy;
};

online_run make_run(gen& random) {
  std::vector<any_stage> stages{bytes};
  if (random.one_in(2)) {
    const std::uint64_t remainder = random.between(0, 2);
    stages.emplace_back(
        filter("remainder " + std::to_string(remainder),
               [remainder](const sample& each) { return each.tokens.size() % 3 != remainder; }));
  }
  if (random.one_in(2)) stages.emplace_back(split({.tokens = random.between(1, 30)}));
  if (random.one_in(4)) stages.emplace_back(group());
  online_run run{.input = lanepack_test::memory_documents(
                     lanepack_test::random_texts(random, random.between(1, 300), 6)),
                 .stages = pipeline(std::move(stages)),
                 .options = {},
                 .feed = nullptr,
                 .policy = std::nullopt};
  plan_options& options = run.options;
  options.seed = random.bits();
  options.lanes = static_cast<std::uint32_t>(random.between(1, 9));
  options.records_per_pack = static_cast<std::uint32_t>(random.between(1, 5));
  options.lookahead_steps = static_cast<std::uint32_t>(random.between(1, 5));
  const std::vector<std::string> names{"sequential", "window", "calendar"};
  options.policy = random.pick(names);
  options.tuning = lanepack_test::random_tuning(random);
  options.rule = epoch_end::continue_epochs;
  options.steps = random.between(1, 25);
  options.shuffle.kind = random.one_in(2) ? shuffle_kind::full : shuffle_kind::none;
  options.limits.empty = empty_policy::skip_and_count;
  if (random.one_in(3)) options.pack_size_changes.push_back({random.between(1, 9), 3});
  if (random.one_in(4)) options.skip_steps.push_back({random.between(0, 5), random.between(6, 9)});
  const std::vector<any_executor> executors{any_executor(), thread_pool(2)};
  const any_source source =
      unindexed_pipeline(run.input, run.stages,
                         {.executor = random.pick(executors),
                          .cache_bytes = static_cast<std::size_t>(random.between(0, 50'000)),
                          .memory_bytes = random.between(1, 50'000)});
  try {
    run.feed = make_candidate_feed(source, {}, default_cost(), options);
    run.policy = make_policy(options, *run.feed);
    static_cast<void>(planner(run.feed, *run.policy, lanes_from(0, options.lanes)).next());
  } catch (const error&) {  // Nothing is left of a few short documents.
    return make_run(random);
  }
  return run;
}

/// What the lane's inputs become, one after the other, without empty records.
std::vector<record_ref> records_of_lane(const online_run& run, lane_index lane,
                                        std::size_t wanted) {
  std::vector<record_ref> records;
  for (std::uint64_t number = 0; records.size() < wanted; ++number) {
    arrival from;
    run.feed->sampler().lane_arrivals(lane, number, {&from, 1});
    std::vector<sample> samples(1);
    run.input.read({&from.record.id, 1}, samples);
    run.stages.run_stateless(samples, "", from.record.id);
    for (std::size_t k = 0; k < samples.size(); ++k) {
      if (samples[k].tokens.empty()) continue;
      records.push_back({from.record.epoch, from.record.id << 16 | k});
    }
  }
  records.resize(wanted);
  return records;
}

std::vector<planner> planners_of(const online_run& run, std::uint32_t ranks) {
  std::vector<planner> planners;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto lane = [&](std::uint64_t at) {
      return static_cast<std::uint32_t>(at * run.options.lanes / ranks);
    };
    planners.emplace_back(run.feed, *run.policy, lanes_from(lane(rank), lane(rank + 1)));
  }
  return planners;
}

bool next_step(std::vector<planner>& ranks, std::vector<kept_pack>& out) {
  for (planner& rank : ranks) {
    const std::optional<step_plan> step = rank.next();
    if (!step) return false;
    for (const pack_plan& pack : step->packs) {
      out.push_back({step->step, pack.lane, pack.cost, {pack.records.begin(), pack.records.end()}});
    }
  }
  return true;
}

run_state state_of(const std::vector<planner>& ranks) {
  std::vector<run_state> parts;
  for (const planner& rank : ranks) parts.push_back(rank.state());
  return merge(parts);
}

}  // namespace

TEST_CASE("contract 1: without an index lanes get what their inputs become, each record once",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const online_run run = make_run(random);
    const bool skips = !run.options.skip_steps.empty();
    CAPTURE(seed, run.options.policy, run.stages.describe());
    const std::vector<kept_pack> packs =
        lanepack_test::packs_of(run.feed, *run.policy, lanes_from(0, run.options.lanes));
    std::set<record_ref> seen;
    for (lane_index lane = 0; lane < run.options.lanes; ++lane) {
      std::vector<record_ref> emitted;
      for (const kept_pack& pack : packs) {
        if (pack.lane != lane) continue;
        for (const candidate& record : pack.records) emitted.push_back(record.record);
      }
      for (const record_ref& record : emitted) REQUIRE(seen.insert(record).second);
      // What may be held, and what was passed over.
      const std::size_t held = std::size_t{run.options.lookahead_steps} * 5 + (skips ? 45 : 0);
      const std::vector<record_ref> arrived = records_of_lane(run, lane, emitted.size() + held);
      if (run.options.policy == "sequential" && !skips) {
        REQUIRE(std::equal(emitted.begin(), emitted.end(), arrived.begin()));
      }
      const std::set<record_ref> known(arrived.begin(), arrived.end());
      for (const record_ref& record : emitted) REQUIRE(known.contains(record));
    }
  });
}

TEST_CASE("contract 5: without an index a run that stops at every step is the same run",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const online_run run = make_run(random);
    const plan_options& options = run.options;
    CAPTURE(seed, options.policy, options.lanes, options.records_per_pack, run.stages.describe());
    const std::vector<kept_pack> whole =
        lanepack_test::packs_of(run.feed, *run.policy, lanes_from(0, options.lanes));
    std::vector<kept_pack> resumed;
    std::vector<planner> ranks = planners_of(run, 1);
    while (next_step(ranks, resumed)) {
      const run_state state = state_of(ranks);
      REQUIRE(state.whole());
      REQUIRE(parse_run_state(run_state_bytes(state)) == state);
      for (const lane_fragment& fragment : state.fragments) {
        // Cursors and references: 16 bytes a record that is held.
        REQUIRE(fragment.held.size() <= std::size_t{options.lookahead_steps} * 5);
      }
      ranks = planners_of(
          run, static_cast<std::uint32_t>(random.between(1, std::min(6U, options.lanes))));
      for (planner& rank : ranks) rank.restore(state);
      REQUIRE(state_of(ranks) == state);
    }
    REQUIRE(lanepack_test::same_packs(resumed, whole));
  });
}

TEST_CASE("contract 5: a state of another pipeline or one that contradicts itself is refused",
          "[contracts]") {
  gen random(5);
  const lanepack_test::memory_documents input(lanepack_test::random_texts(random, 50, 6));
  plan_options options;
  options.lanes = 2;
  options.records_per_pack = 2;
  options.rule = epoch_end::continue_epochs;
  options.steps = 9;
  options.policy = "calendar";
  options.tuning = calendar_tuning{};
  options.limits.empty = empty_policy::skip_and_count;
  const auto feed_of = [&](const pipeline& stages) {
    return make_candidate_feed(unindexed_pipeline(input, stages), {}, default_cost(), options);
  };
  const auto feed = feed_of(pipeline({bytes, split({.tokens = 8})}));
  const auto other = feed_of(pipeline({bytes, split({.tokens = 9})}));
  REQUIRE_FALSE(
      detail::differences(properties_of_run(options, *feed), properties_of_run(options, *other))
          .empty());
  const any_policy policy = make_policy(options, *feed);
  planner plan(feed, policy, lanes_from(0, 2));
  static_cast<void>(plan.next());
  const run_state good = plan.state();
  plan.restore(good);
  run_state bad = good;
  bad.fragments[0].held.pop_back();
  REQUIRE_THROWS_AS(plan.restore(bad), state_error);
  bad = good;
  // Nothing becomes so many records.
  bad.fragments[0].held.back().arrival |= 0x7fff;
  bad.fragments[0].admitted |= 0xffff;
  REQUIRE_THROWS_AS(plan.restore(bad), state_error);
  bad = good;
  bad.fragments.pop_back();
  REQUIRE_THROWS_AS(plan.restore(bad), state_error);
}
