#include <lanepack/sim/metrics.hpp>

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

using lanepack::step_cost_metrics;
using lanepack::token_weight_metrics;

namespace {

using costs = std::vector<std::uint64_t>;

bool close(double found, double expected) {
  const double distance = found - expected;
  return distance < 1e-12 && distance > -1e-12;
}

}  // namespace

TEST_CASE("sim: variability and efficiency of two steps, worked by hand", "[sim]") {
  step_cost_metrics metrics;
  metrics.add(costs{5, 3});
  metrics.add(costs{7, 9});
  // Costs 5 3 7 9: mean 6, squares of deviations 1 + 9 + 1 + 9, so sqrt(20 / 4) / 6.
  CHECK(close(metrics.rank_cost_cv(), 0.37267799624996494));
  // From the means 4 and 8 every rank is off by 1.
  CHECK(close(metrics.within_step_cv(), 1.0 / 6));
  CHECK(close(metrics.sum_of_means(), 12));
  CHECK(close(metrics.sum_of_maxima(), 14));
  CHECK(close(metrics.step_efficiency(), 12.0 / 14));
}

TEST_CASE("sim: steps that differ while ranks agree cost no time", "[sim]") {
  step_cost_metrics metrics;
  metrics.add(costs{10, 10, 10});
  metrics.add(costs{30, 30, 30});
  CHECK(close(metrics.rank_cost_cv(), 0.5));
  CHECK(close(metrics.within_step_cv(), 0));
  CHECK(close(metrics.step_efficiency(), 1));
}

TEST_CASE("sim: large costs that differ little keep their variability", "[sim]") {
  step_cost_metrics metrics;
  constexpr std::uint64_t large = std::uint64_t{1} << 46;
  for (int i = 0; i < 1000; ++i) metrics.add(costs{large, large + 2});
  const double expected = 1.0 / static_cast<double>(large + 1);
  CHECK(metrics.rank_cost_cv() > 0.999 * expected);
  CHECK(metrics.rank_cost_cv() < 1.001 * expected);
  CHECK(metrics.within_step_cv() > 0.999 * expected);
  CHECK(metrics.within_step_cv() < 1.001 * expected);
}

TEST_CASE("sim: correlation of a step's mean with the one before", "[sim]") {
  const auto correlation = [](const costs& means) {
    step_cost_metrics metrics;
    for (const std::uint64_t mean : means) metrics.add(costs{mean - 1, mean + 1});
    return metrics.lag1_correlation();
  };
  CHECK(close(correlation({1, 2, 3, 4, 5}), 1));
  CHECK(close(correlation({1, 3, 1, 3, 1, 3}), -1));
  // Rounding does not lead out of [-1, 1].
  for (std::uint64_t large = 1'000'003; large < std::uint64_t{1} << 50; large = large * 7 / 3) {
    const std::uint64_t small = large / 3 + 1;
    CHECK(correlation({large, small, large, small, large, small, large}) >= -1);
    CHECK(correlation({small, large, large + small, large + 2 * small}) <= 1);
  }
  // Pairs (1,2) (2,4) (4,1): means 7/3 and 7/3, sum of products of deviations 14 - 49/3 = -7/3,
  // sums of squares 21 - 49/3 = 14/3 both.
  CHECK(close(correlation({1, 2, 4, 1}), -0.5));
  CHECK(close(correlation({7, 7, 7, 7}), 0));
  CHECK(close(correlation({1, 2}), 0));
}

TEST_CASE("sim: nothing measured is even and has no variability", "[sim]") {
  step_cost_metrics metrics;
  metrics.add(costs{});
  CHECK(close(metrics.rank_cost_cv(), 0));
  CHECK(close(metrics.within_step_cv(), 0));
  CHECK(close(metrics.step_efficiency(), 1));
  metrics.add(costs{0, 0});
  CHECK(close(metrics.rank_cost_cv(), 0));
  CHECK(close(metrics.step_efficiency(), 1));
  const token_weight_metrics weights;
  CHECK(close(weights.step_tokens_max_ratio(), 1));
  CHECK(close(weights.token_weight_p99(), 1));
}

TEST_CASE("sim: largest step against the mean step, in tokens", "[sim]") {
  token_weight_metrics weights;
  weights.add(costs{3, 1, 2, 2});
  weights.add(costs{6, 5, 1, 4});
  // Steps of 8 and 16 tokens.
  CHECK(close(weights.step_tokens_max_ratio(), 16.0 / 12));
  weights.add(costs{});
  weights.add(costs{0, 0});
  CHECK(close(weights.step_tokens_max_ratio(), 16.0 / 12));
}

TEST_CASE("sim: weight of tokens in the longest records", "[sim]") {
  SECTION("the longest record stands in the longer step") {
    token_weight_metrics weights;
    weights.add(costs{3, 1, 2, 2});
    weights.add(costs{6, 5, 1, 4});
    // A token of the record of 6 weighs 1/16, a mean token 2/24.
    CHECK(close(weights.token_weight_p99(), 0.75));
  }
  SECTION("the longest records fill one percent together") {
    token_weight_metrics weights;
    costs first(70, 1);
    first.push_back(30);
    costs second(126, 1);
    second.insert(second.end(), 3, 8);
    weights.add(first);
    weights.add(second);
    // 200 records, so two count: the one of 30, at 30/100, and a third of those of 8, at 8/150
    // each; together 38 tokens. All 250 tokens weigh 2.
    CHECK(close(weights.token_weight_p99(), (30.0 / 100 + 8.0 / 150) / 38 / (2.0 / 250)));
  }
  SECTION("steps of one length weigh all tokens alike") {
    token_weight_metrics weights;
    for (int step = 0; step < 5; ++step) weights.add(costs{9, 1, 1, 1});
    CHECK(close(weights.token_weight_p99(), 1));
  }
}
