#include <lanepack/loader/compose_mixture.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/loader/run_properties.hpp>
#include <lanepack/loader/statistics.hpp>
#include <lanepack/loader/stream_costs.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::corpus_of;
using lanepack_test::lanes_from;

namespace {

std::vector<std::uint64_t> repeated(std::uint64_t length, std::size_t records) {
  return std::vector<std::uint64_t>(records, length);
}

/// 40 records of 10 tokens, 12 of 30, one that is empty.
any_source three_parts() {
  return concatenated_source({{"short", corpus_of(repeated(10, 40))},
                              {"long", corpus_of(repeated(30, 12))},
                              {"nothing", corpus_of({0})}});
}

plan_options options_for(std::vector<part_weight> weights) {
  plan_options options;
  options.lanes = 2;
  options.records_per_pack = 2;
  options.policy = "sequential";
  options.rule = epoch_end::continue_epochs;
  options.limits.empty = empty_policy::skip_and_count;
  options.mixture = mixture_options{.phases = {{0, std::move(weights)}}, .ends = {}};
  return options;
}

std::shared_ptr<const candidate_feed> feed_of(const plan_options& options,
                                              const any_source& source = three_parts()) {
  return make_candidate_feed(source, summarize(source, {.threads = 1}), default_cost(), options);
}

}  // namespace

TEST_CASE("mixture: options that cannot be are refused by name", "[loader]") {
  const auto refused = [](auto&& change, const std::string& what) {
    plan_options options = options_for({{"short", 1}, {"long", 1}});
    change(options);
    REQUIRE_THROWS_WITH(feed_of(options), ContainsSubstring(what));
  };
  using options = plan_options;
  REQUIRE_NOTHROW(feed_of(options_for({{"short", 1}})));
  refused([](options& o) { o.rule = epoch_end::pad; }, "rule: found pad, expected continue");
  refused([](options& o) { o.epochs = 2; }, "epochs: found 2");
  refused([](options& o) { o.mixture->phases.clear(); }, "mixture.phases: found none");
  refused([](options& o) { o.mixture->phases[0].step = 1; }, "phases[0].step: found 1");
  refused(
      [](options& o) {
        o.mixture->phases.push_back({0, {{"long", 1}}});
      },
      "phases[1].step: found 0, expected a step after 0");
  refused([](options& o) { o.mixture->phases[0].weights[1].part = "lang"; },
          "phases[0].weights: found 'lang', expected one of long, nothing, short");
  refused([](options& o) { o.mixture->phases[0].weights[1].part = "short"; }, "'short' twice");
  refused(
      [](options& o) {
        o.mixture->phases[0].weights.push_back({"nothing", 1});
      },
      "0: no record of the part's 1");
  refused([](options& o) { o.mixture->phases[0].weights = {{"long", 0}}; }, "found all 0");
  refused([](options& o) { o.mixture->phases[0].weights[0].weight = std::uint64_t{1} << 32; },
          "at most 2^32 - 1");
  refused([](options& o) { o.mixture->phases[0].weights[0].weight = 1 << 20; },
          "found a sum of 1048577");
  refused(
      [](options& o) {
        o.mixture->ends = {{"lang", part_end::stop, 1}};
      },
      "ends[0].part: found 'lang'");
  refused(
      [](options& o) {
        o.mixture->ends = {{"long", part_end::stop, 0}};
      },
      "ends[0].epochs: found 0");
  refused(
      [](options& o) {
        o.mixture->ends = {{"long", part_end::stop, 1}, {"long", part_end::drop, 1}};
      },
      "'long' again");
  refused(
      [](options& o) {
        o.lanes = 100;
        o.mixture->ends = {{"long", part_end::stop, 1}};
      },
      "mixture.ends: found parts that end after 25 records");
  REQUIRE_THROWS_WITH(feed_of(options_for({{"short", 1}}), corpus_of({4, 5})),
                      ContainsSubstring("a concatenated_source"));
}

TEST_CASE("mixture: a run ends before the first step that a part has no records for", "[loader]") {
  plan_options options = options_for({{"short", 1}, {"long", 1}});
  options.mixture->ends = {{"long", part_end::stop, 2}};
  // 24 records of 'long' and as many of 'short' fill 12 steps of 4.
  REQUIRE(feed_of(options)->sampler().schedule().steps() == 12);
  options.steps = 20;
  REQUIRE(feed_of(options)->sampler().schedule().steps() == 12);
  options.steps = 7;
  REQUIRE(feed_of(options)->sampler().schedule().steps() == 7);
  options.steps.reset();
  // Both are dropped in the end: 24 and 80 records are 26 steps.
  options.mixture->ends = {{"long", part_end::drop, 2}, {"short", part_end::drop, 2}};
  const auto feed = feed_of(options);
  REQUIRE(feed->sampler().schedule().steps() == 26);
  planner all(feed, make_policy(options, *feed), lanes_from(0, 2));
  while (all.next()) {
  }
  REQUIRE(all.statistics().parts == std::vector<part_share>{{.records = 80, .tokens = 800},
                                                            {.records = 24, .tokens = 720},
                                                            {.records = 0, .tokens = 0}});
}

TEST_CASE("mixture: weights per token are weights per record over the parts' mean lengths",
          "[loader]") {
  plan_options options = options_for({{"short", 3}, {"long", 1}});
  options.mixture->unit = mixture_unit::tokens;
  options.steps = 100;
  const auto feed = feed_of(options);
  // 3 / 10 to 1 / 30 is 9 to 1: of 2^20, 943718.4 and 104857.6, halved as both are even.
  const auto weights = feed->sampler().mixture()->mixture().section_weights(0);
  REQUIRE(weights[0] == 471859);
  REQUIRE(weights[1] == 52429);
  planner all(feed, make_policy(options, *feed), lanes_from(0, 2));
  while (all.next()) {
  }
  REQUIRE(all.statistics().parts[0] == part_share{.records = 360, .tokens = 3600});
  REQUIRE(all.statistics().parts[1] == part_share{.records = 40, .tokens = 1200});

  // What is cut off does not count.
  options.limits.capacity_tokens = 10;
  options.limits.infeasible = infeasible_policy::truncate;
  REQUIRE(feed_of(options)->sampler().mixture()->mixture().section_weights(0)[0] == 3);
}

TEST_CASE("mixture: the smallest of weights per token is not rounded away", "[loader]") {
  std::vector<part_selection> parts(2);
  parts[0] = {.domain = record_domain(10), .tokens = 10, .loss_tokens = 0};
  parts[1] = {.domain = record_domain(1), .tokens = 1 << 30, .loss_tokens = 0};
  const std::uint64_t weights[] = {1, 1};
  REQUIRE(detail::record_weights(weights, parts) ==
          std::vector<std::uint64_t>{max_mixture_weights - 1, 1});
}

TEST_CASE("mixture: policies plan by the records of the mixture, not of the corpus", "[loader]") {
  const plan_options options = options_for({{"short", 1}, {"long", 3}});
  const auto feed = feed_of(options);
  // Three of four records have 30 tokens, though three of four in the corpus have 10.
  const cost_distribution& costs = *feed->costs();
  REQUIRE(costs.buckets().size() == 2);
  REQUIRE(costs.buckets()[0].tokens == 10);
  REQUIRE(costs.buckets()[0].records * 3 == costs.buckets()[1].records);
  REQUIRE(costs.mean_tokens(4) == 100);
  // Loss tokens of 9 and 29.
  REQUIRE(feed->expected_loss_tokens(4) == 9 + 3 * 29);
  REQUIRE(feed->expected_loss_tokens(2) == 48);
  const auto prefix = costs_of_prefix(*feed, 8);
  REQUIRE(prefix->records() == 8);
  REQUIRE(prefix->mean_tokens(8) == 200);

  // A change of weights, or a part that is added, moves nothing that came before it.
  plan_options changed = options;
  changed.mixture->phases.push_back({10, {{"short", 9}}});
  REQUIRE(detail::text_of(feed_of(changed)->costs().get()) == detail::text_of(feed->costs().get()));
  REQUIRE(feed_of(changed)->expected_loss_tokens(4) == 96);
}

TEST_CASE("mixture: large parts are planned from their histograms", "[loader]") {
  const any_source source =
      concatenated_source({{"a", length_source(std::vector<std::uint32_t>(200'000, 8))},
                           {"b", length_source(std::vector<std::uint32_t>(100'000, 4))}});
  const auto feed = feed_of(options_for({{"a", 1}, {"b", 1}}), source);
  REQUIRE(feed->costs()->buckets().size() == 2);
  REQUIRE(feed->costs()->buckets()[0].records == feed->costs()->buckets()[1].records);
  REQUIRE(feed->costs()->mean_tokens(10) == 60);
}

TEST_CASE("mixture: excluded records are those of their part", "[loader]") {
  const any_source source = concatenated_source(
      {{"a", corpus_of({4, 90, 4, 4, 80})}, {"b", corpus_of({70, 5, 5, 0, 5, 60})}});
  plan_options options = options_for({{"a", 1}, {"b", 1}});
  options.limits.capacity_tokens = 50;
  options.limits.infeasible = infeasible_policy::skip_and_count;
  const auto feed = feed_of(options, source);
  const record_selection& selection = feed->selection();
  REQUIRE(selection.parts[0].domain.size() == 3);
  REQUIRE(selection.parts[0].tokens == 12);
  REQUIRE(selection.parts[1].domain.size() == 3);
  REQUIRE(selection.parts[1].domain.id(0) == 1);
  REQUIRE(selection.parts[1].domain.id(2) == 4);
  REQUIRE(selection.parts[1].tokens == 15);
  std::vector<arrival> arrivals(60);
  feed->sampler().stream_arrivals(0, arrivals);
  for (const arrival& each : arrivals) REQUIRE(selection.domain.contains(each.record.id));
}

TEST_CASE("mixture: a loader goes on after a weight was changed and a part added", "[loader]") {
  const auto source_with = [](bool more) {
    std::vector<named_source> parts{{"short", corpus_of(repeated(10, 40))},
                                    {"long", corpus_of(repeated(30, 12))}};
    if (more) parts.push_back({"new", corpus_of(repeated(20, 9))});
    return any_source(concatenated_source(std::move(parts)));
  };
  for (const std::string policy : {"sequential", "window", "calendar", "replicated"}) {
    CAPTURE(policy);
    loader_options options;
    options.plan = options_for({{"short", 2}, {"long", 1}});
    options.plan.policy = policy;
    options.plan.lookahead_steps = 3;
    options.plan.tuning = calendar_tuning{};
    options.plan.steps = 30;
    options.staging_bytes = 1 << 20;
    options.digests = true;
    const auto run = [](const any_source& source, const loader_options& with, std::uint64_t steps,
                        std::vector<digest128>& out) {
      loader from(source, {0, 1}, with);
      run_state state = from.state();
      for (std::uint64_t i = 0; i < steps; ++i) {
        auto step = from.next();
        if (!step) break;
        for (auto&& micro_batch : *step) static_cast<void>(micro_batch);
        out.insert(out.end(), step->pack_digests().begin(), step->pack_digests().end());
        state = step->state();
      }
      std::uint64_t records = 0;
      for (const part_share& share : from.statistics().parts) records += share.records;
      REQUIRE(records == from.statistics().planned.records);
      return state;
    };
    std::vector<digest128> joined;
    const run_state state = run(source_with(false), options, 8, joined);
    REQUIRE(state.planned_until >= 8);
    REQUIRE(state.planned_until <= 8 + 5);

    loader_options changed = options;
    changed.plan.mixture->phases.push_back({state.planned_until, {{"new", 4}, {"long", 0}}});
    std::vector<digest128> whole;
    run(source_with(true), changed, 30, whole);
    changed.resume_from = state;
    run(source_with(true), changed, 30, joined);
    REQUIRE(joined == whole);

    // One step earlier is too early, and so is a change of the weights that were.
    const auto refused = [&](auto&& change, const std::string& what) {
      loader_options wrong = options;
      wrong.resume_from = state;
      change(wrong);
      REQUIRE_THROWS_WITH(loader(source_with(true), {0, 1}, wrong), ContainsSubstring(what));
    };
    refused(
        [&](loader_options& o) {
          o.plan.mixture->phases.push_back({state.planned_until - 1, {{"new", 4}}});
        },
        "part new: found nothing");
    refused([](loader_options& o) { o.plan.mixture->phases[0].weights[0].weight = 3; },
            "weights from record 0: found short 2, long 1, expected short 3, long 1");
    refused([](loader_options& o) { o.plan.mixture.reset(); }, "corpus: found nothing");
    refused([](loader_options& o) { ++o.resume_from->planned_until; }, "found planned_until");
  }
}
