#include <lanepack/loader/compose.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/planner.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

namespace {

lanepack::plan_options calendar_options(std::uint32_t lanes = 8) {
  lanepack::plan_options options;
  options.lanes = lanes;
  options.records_per_pack = 8;
  options.lookahead_steps = 8;
  options.policy = "calendar";
  options.rule = lanepack::epoch_end::continue_epochs;
  options.tuning = lanepack::calendar_tuning{};
  return options;
}

lanepack::any_source heavy_lengths() {
  lanepack_test::gen gen(7);
  std::vector<std::uint32_t> lengths(5000);
  for (std::uint32_t& length : lengths) {
    length = static_cast<std::uint32_t>(100 + gen.between(0, 400) + (gen.one_in(60) ? 9000 : 0));
  }
  return lanepack::length_source(std::move(lengths));
}

std::shared_ptr<const lanepack::candidate_feed> feed_of(const lanepack::plan_options& options) {
  const lanepack::any_source source = heavy_lengths();
  return lanepack::make_candidate_feed(source, lanepack::summarize(source, {.threads = 1}),
                                       lanepack::default_cost(), options);
}

}  // namespace

TEST_CASE("loader: plan options that cannot work are refused before anything is made", "[loader]") {
  const auto refused = [](auto change, const char* option) {
    lanepack::plan_options options = calendar_options();
    change(options);
    try {
      lanepack::validate(options);
      FAIL("no exception");
    } catch (const lanepack::invalid_option& error) {
      REQUIRE(error.option() == option);
    }
  };
  REQUIRE_NOTHROW(lanepack::validate(calendar_options()));
  using options = lanepack::plan_options;
  refused([](options& o) { o.policy = "callendar"; }, "policy");
  refused([](options& o) { o.max_step_tokens_ppm = 1'000'000; }, "max_step_tokens_ppm");
  refused([](options& o) { o.max_step_cost_ppm = 1; }, "max_step_cost_ppm");
  refused([](options& o) { o.lookahead_steps = 0; }, "lookahead_steps");
}

TEST_CASE("loader: a calendar needs to know what records cost", "[loader]") {
  const lanepack::plan_options options = calendar_options();
  REQUIRE(lanepack::make_policy(options, *feed_of(options)).name() == "calendar");
  REQUIRE_THROWS_AS(lanepack::make_policy(options, nullptr), lanepack::invalid_option);
}

TEST_CASE("loader: advice on small packs holds for the calendar too", "[loader]") {
  lanepack::plan_options options = calendar_options();
  REQUIRE(lanepack::advice(options).empty());
  options.records_per_pack = 4;
  REQUIRE(lanepack::advice(options).size() == 1);
  options.records_per_pack = 1;
  REQUIRE(lanepack::advice(options).size() == 1);
  options.policy = "sequential";
  REQUIRE(lanepack::advice(options).empty());
}

TEST_CASE("loader: a calendar's displacement bound is the user's", "[loader]") {
  lanepack::plan_options options = calendar_options();
  options.max_displacement_steps = 20;
  const auto feed = feed_of(options);
  const auto lanes = lanepack_test::lanes_from(0, 8);
  lanepack::planner planner(feed, lanepack::make_policy(options, *feed), lanes);
  for (int step = 0; step < 200; ++step) REQUIRE(planner.next());
  REQUIRE(planner.statistics().max_displacement_steps <= 20);
  options.max_displacement_steps = 7;
  REQUIRE_THROWS_AS(lanepack::make_policy(options, *feed), lanepack::invalid_option);
}

TEST_CASE("loader: lanes of a window are staggered by the step limits", "[loader]") {
  lanepack::plan_options options = calendar_options(32);
  options.policy = "window";
  const auto largest_ratio = [&] {
    const auto feed = feed_of(options);
    const auto lanes = lanepack_test::lanes_from(0, 32);
    lanepack::planner planner(feed, lanepack::make_policy(options, *feed), lanes);
    std::vector<double> tokens(8);
    double all = 0;
    for (std::size_t step = 0; step < 400; ++step) {
      const auto plan = planner.next();
      for (const lanepack::pack_plan& pack : plan->packs) {
        for (const lanepack::candidate& record : pack.records) {
          tokens[step % 8] += static_cast<double>(record.tokens);
          all += static_cast<double>(record.tokens);
        }
      }
    }
    return *std::max_element(tokens.begin(), tokens.end()) * 8 / all;
  };
  REQUIRE(largest_ratio() < 1.55);
  options.max_step_tokens_ppm = 0;
  REQUIRE(largest_ratio() > 2);
}

TEST_CASE("loader: a planner reports by how much declared costs missed the stream", "[loader]") {
  lanepack::plan_options options = calendar_options();
  const auto run = [&] {
    const auto feed = feed_of(options);
    const auto lanes = lanepack_test::lanes_from(0, 8);
    lanepack::planner planner(feed, lanepack::make_policy(options, *feed), lanes);
    for (int step = 0; step < 600; ++step) REQUIRE(planner.next());
    return planner.statistics();
  };
  const lanepack::planner_statistics right = run();
  REQUIRE(right.policy.packs == 600 * 8);
  const double ratio =
      static_cast<double>(right.admitted_cost) / static_cast<double>(right.policy.expected_cost);
  REQUIRE(ratio > 0.95);
  REQUIRE(ratio < 1.05);

  // Half of what the records cost is declared.
  std::vector<lanepack::cost_bucket> halves;
  const auto feed = feed_of(options);
  for (lanepack::cost_bucket bucket : feed->costs()->buckets()) {
    bucket.cost /= 2;
    halves.push_back(bucket);
  }
  options.costs = std::make_shared<const lanepack::cost_distribution>(halves);
  const lanepack::planner_statistics wrong = run();
  REQUIRE(wrong.admitted_cost == right.admitted_cost);
  REQUIRE(wrong.policy.packs_above_cap > right.policy.packs_above_cap + 1000);
  REQUIRE(static_cast<double>(wrong.admitted_cost) /
              static_cast<double>(wrong.policy.expected_cost) >
          1.9);
  REQUIRE(wrong.max_displacement_steps <= 256);
}
