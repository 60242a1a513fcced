// The design's contract 5: a run goes on from any step, with any number of ranks.

#include <lanepack/json/run_state.hpp>
#include <lanepack/loader.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"
#include "support/plans.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::kept_pack;
using lanepack_test::make_plan;
using lanepack_test::random_plan;

namespace {

/// The planners of `ranks` ranks, each with its lanes.
std::vector<planner> planners_of(const random_plan& made, std::uint32_t ranks) {
  std::vector<planner> planners;
  const std::uint32_t lanes = made.options.lanes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto from = static_cast<std::uint32_t>(std::uint64_t{lanes} * rank / ranks);
    const auto to = static_cast<std::uint32_t>(std::uint64_t{lanes} * (rank + 1) / ranks);
    planners.emplace_back(made.feed, *made.policy, lanepack_test::lanes_from(from, to));
  }
  return planners;
}

/// One step of all ranks, by lane; false at the end.
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

run_state state_of(std::vector<planner>& ranks, gen& random) {
  std::vector<run_state> parts;
  for (const planner& rank : ranks) parts.push_back(rank.state());
  // In any order, some of them twice.
  for (std::size_t i = parts.size(); i > 1; --i) {
    std::swap(parts[i - 1], parts[static_cast<std::size_t>(random.between(0, i - 1))]);
  }
  if (random.one_in(3)) parts.push_back(parts.front());
  return merge(parts);
}

/// What a file does to a state, in a random format.
run_state through_a_file(const run_state& state, gen& random) {
  const state_format format = random.one_in(2) ? state_format::cbor : state_format::json;
  const std::string bytes = run_state_bytes(state, format);
  const run_state read = parse_run_state(bytes);
  REQUIRE(read == state);
  REQUIRE(run_state_bytes(read, format) == bytes);
  return read;
}

}  // namespace

TEST_CASE("contract 5: a run that stops at every step and goes on with other ranks is the same run",
          "[contracts]") {
  lanepack_test::for_each_seed(120, [](std::uint64_t seed, gen& random) {
    const random_plan made = make_plan(random);
    const plan_options& options = made.options;
    CAPTURE(seed, options.policy, to_string(options.rule), options.lanes, options.records_per_pack,
            options.lookahead_steps, made.records);
    const std::vector<kept_pack> whole = lanepack_test::packs_of(
        made.feed, *made.policy, lanepack_test::lanes_from(0, options.lanes));

    std::vector<kept_pack> resumed;
    std::vector<planner> ranks = planners_of(made, 1);
    while (next_step(ranks, resumed)) {
      const run_state state = through_a_file(state_of(ranks, random), random);
      REQUIRE(state.whole());
      ranks = planners_of(
          made, static_cast<std::uint32_t>(random.between(1, std::min(6U, options.lanes))));
      for (planner& rank : ranks) rank.restore(state);
      // Nothing has happened in between.
      REQUIRE(state_of(ranks, random) == state);
    }
    REQUIRE(lanepack_test::same_packs(resumed, whole));
  });
}

TEST_CASE("contract 5: a state does not depend on the ranks that it came from, and is small",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const random_plan made = make_plan(random);
    const plan_options& options = made.options;
    CAPTURE(seed, options.policy, to_string(options.rule), options.lanes, options.records_per_pack,
            options.lookahead_steps, made.records);
    std::vector<planner> one = planners_of(made, 1);
    std::vector<planner> many = planners_of(made, options.lanes);
    std::vector<kept_pack> packs;
    for (std::uint64_t steps = random.between(1, 30); steps > 0; --steps) {
      if (!next_step(one, packs) || !next_step(many, packs)) break;
      const run_state state = state_of(one, random);
      REQUIRE(run_state_bytes(state) == run_state_bytes(state_of(many, random)));
      // 16 bytes a record held in memory; in CBOR numbers take as many bytes as they need.
      const std::uint64_t held = std::uint64_t{options.lookahead_steps} * options.records_per_pack;
      for (const lane_fragment& fragment : state.fragments) {
        REQUIRE(fragment.held.size() <= held);
        REQUIRE(fragment.policy.size() * 8 <= 200);
      }
    }
  });
}

TEST_CASE("contract 5: the runs of two loaders differ where their options do, and only there",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const random_plan made = make_plan(random);
    CAPTURE(seed, made.options.policy);
    const std::vector<run_property> run = properties_of_run(made.options, *made.feed);
    // The plan of a step does not depend on where the run ends or what is passed over.
    plan_options longer = made.options;
    longer.steps = 1;
    longer.skip_steps = {{3, 4}};
    if (longer.epochs) ++*longer.epochs;
    const any_source& source = made.feed->source();
    const auto longer_feed =
        make_candidate_feed(source, summarize(source, {.threads = 1}), default_cost(), longer);
    REQUIRE(detail::differences(properties_of_run(longer, *longer_feed), run).empty());
    plan_options other = made.options;
    other.seed ^= 1;
    const auto other_feed =
        make_candidate_feed(source, summarize(source, {.threads = 1}), default_cost(), other);
    REQUIRE(detail::differences(properties_of_run(other, *other_feed), run) ==
            "seed: found " + std::to_string(other.seed) + ", expected " +
                std::to_string(made.options.seed));
  });
}

TEST_CASE("contract 5: the steps of a longer run are those of a shorter one", "[contracts]") {
  lanepack_test::for_each_seed(80, [](std::uint64_t seed, gen& random) {
    const random_plan made = make_plan(random);
    CAPTURE(seed, made.options.policy, to_string(made.options.rule), made.records);
    plan_options options = made.options;
    options.skip_steps.clear();
    const any_source& source = made.feed->source();
    const corpus_summary summary = summarize(source, {.threads = 1});
    const auto plan = [&](std::uint64_t epochs, std::uint64_t steps) {
      options.epochs = epochs;
      options.steps = steps;
      const auto feed = make_candidate_feed(source, summary, default_cost(), options);
      return lanepack_test::packs_of(feed, *made.policy,
                                     lanepack_test::lanes_from(0, options.lanes));
    };
    const std::uint64_t least =
        std::uint64_t{options.lanes} * options.records_per_pack / made.records + 1;
    const std::uint64_t epochs = least + random.between(0, 2);
    const std::vector<kept_pack> shorter = plan(epochs, random.between(1, 40));
    std::vector<kept_pack> longer = plan(epochs + random.between(1, 2), 60);
    REQUIRE(longer.size() >= shorter.size());
    longer.resize(shorter.size());
    REQUIRE(lanepack_test::same_packs(shorter, longer));
  });
}
