#include <lanepack/packer/replicated.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::candidate;
using lanepack::pack_list;
using lanepack::replicated_options;
using lanepack::replicated_policy;

/// Records with as many tokens as they cost.
std::vector<candidate> arrivals(const std::vector<std::uint64_t>& costs) {
  std::vector<candidate> made(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    made[i].cost = made[i].tokens = costs[i];
    made[i].arrival = 100 + 2 * i;
  }
  return made;
}

using step_costs = std::multiset<std::multiset<std::uint64_t>>;

/// The costs of the packs of a step, whatever their order.
step_costs packs_of_step(const pack_list& packs, std::size_t step, std::size_t packs_per_step) {
  step_costs found;
  for (std::size_t i = step * packs_per_step; i < (step + 1) * packs_per_step; ++i) {
    std::multiset<std::uint64_t> costs;
    for (const candidate& record : packs[i]) costs.insert(record.cost);
    found.insert(std::move(costs));
  }
  return found;
}

std::uint64_t tokens_of_step(const pack_list& packs, std::size_t step, std::size_t packs_per_step) {
  std::uint64_t tokens = 0;
  for (std::size_t i = step * packs_per_step; i < (step + 1) * packs_per_step; ++i) {
    for (const candidate& record : packs[i]) tokens += record.tokens;
  }
  return tokens;
}

}  // namespace

TEST_CASE("packer: replicated gives outliers a step of their own", "[packer]") {
  replicated_policy policy({.lookahead_steps = 2, .limits = {}});
  REQUIRE(policy.name() == "replicated");
  REQUIRE(policy.scope() == lanepack::policy_scope::all_lanes);
  REQUIRE(policy.window_steps() == 2);
  REQUIRE(policy.buffered_steps() == 0);

  // As in the test of outlier_steps; the rest, 4, 3, 2, 1, balances to 5 and 5.
  pack_list packs;
  policy.form({.steps = 2, .records_per_pack = 2, .packs_per_step = 2},
              arrivals({1, 20, 6, 4, 5, 3, 2, 1}), packs);
  REQUIRE(packs.size() == 4);
  std::multiset<step_costs> steps{packs_of_step(packs, 0, 2), packs_of_step(packs, 1, 2)};
  REQUIRE(steps == std::multiset<step_costs>{{{20, 1}, {6, 5}}, {{4, 1}, {3, 2}}});
  for (std::size_t i = 0; i < packs.size(); ++i) {
    REQUIRE(packs[i][0].arrival < packs[i][1].arrival);
  }
  REQUIRE(policy.statistics() ==
          lanepack::replicated_statistics{.steps = 2, .outlier_steps = 1, .steps_above_limits = 0});
}

TEST_CASE("packer: replicated keeps a limit on tokens at the expense of balance", "[packer]") {
  // Two outliers of 100; a step's mean is 112 tokens, its limit 168.
  std::vector<std::uint64_t> costs(64, 4);
  costs[5] = costs[20] = 100;
  const std::vector<candidate> records = arrivals(costs);
  const lanepack::step_window window{.steps = 4, .records_per_pack = 4, .packs_per_step = 4};
  pack_list packs;
  replicated_policy unlimited({.lookahead_steps = 4, .limits = {}});
  unlimited.form(window, records, packs);
  std::uint64_t most = 0;
  for (std::size_t step = 0; step < 4; ++step) {
    most = std::max(most, tokens_of_step(packs, step, 4));
  }
  REQUIRE(most == 2 * 100 + 14 * 4);

  packs.clear();
  replicated_policy limited({.lookahead_steps = 4});
  limited.form(window, records, packs);
  for (std::size_t step = 0; step < 4; ++step) REQUIRE(tokens_of_step(packs, step, 4) <= 168);
  REQUIRE(limited.statistics().steps_above_limits == 0);
}

TEST_CASE("packer: replicated counts the steps that no plan can keep within a limit", "[packer]") {
  // One record has more tokens than 1.5 steps on average.
  std::vector<std::uint64_t> costs(32, 1);
  costs[7] = 1000;
  pack_list packs;
  replicated_policy policy({.lookahead_steps = 4});
  policy.form({.steps = 4, .records_per_pack = 2, .packs_per_step = 4}, arrivals(costs), packs);
  REQUIRE(policy.statistics().steps_above_limits == 1);

  // The run's mean is far below that of this window.
  const auto costs_of_run = std::make_shared<const lanepack::cost_distribution>(
      std::vector<lanepack::cost_bucket>{{.cost = 1, .tokens = 1, .records = 10}});
  replicated_policy above({.lookahead_steps = 4, .costs = costs_of_run});
  above.form({.steps = 4, .records_per_pack = 2, .packs_per_step = 4},
             arrivals(std::vector<std::uint64_t>(32, 2)), packs);
  REQUIRE(above.statistics().steps_above_limits == 4);
}

TEST_CASE("packer: replicated deals a step's packs evenly over neighbouring lanes", "[packer]") {
  // With one record a pack every step has sorted neighbours, here 64 different costs.
  lanepack_test::gen gen(3);
  std::vector<std::uint64_t> costs(64);
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = 1000 + 10 * i;
  for (std::size_t i = costs.size(); i > 1; --i) {
    std::swap(costs[i - 1], costs[gen.between(0, i - 1)]);
  }
  for (const std::uint32_t first_step : {0U, 1U, 77U}) {
    replicated_policy policy({.lookahead_steps = 1});
    pack_list packs;
    policy.form({.first_step = first_step, .records_per_pack = 1, .packs_per_step = 64},
                arrivals(costs), packs);
    for (const std::size_t lanes : {2, 4, 8, 16, 32}) {
      for (std::size_t first = 0; first < 64; first += lanes) {
        std::set<std::uint64_t> classes;
        for (std::size_t lane = first; lane < first + lanes; ++lane) {
          classes.insert(packs[lane][0].cost);
        }
        std::uint64_t sum = 0;
        for (const std::uint64_t cost : classes) sum += cost;
        CAPTURE(first_step, lanes, first, sum);
        // The mean of all is 1315; places p and p + 32 of two lanes average at least 16.
        REQUIRE(classes.size() == lanes);
        REQUIRE(sum / lanes >= 1315 - 160);
        REQUIRE(sum / lanes <= 1315 + 160);
      }
    }
  }
}

TEST_CASE("packer: a window of replicated depends on its first step and its arrivals alone",
          "[packer]") {
  lanepack_test::gen gen(5);
  std::vector<std::uint64_t> costs(4 * 6 * 3);
  for (std::uint64_t& cost : costs) cost = 1 + gen.heavy_tailed(20);
  const lanepack::step_window window{
      .first_step = 40, .steps = 4, .records_per_pack = 3, .packs_per_step = 6};
  pack_list once;
  pack_list twice;
  replicated_policy policy({.lookahead_steps = 4});
  policy.form(window, arrivals(costs), once);
  std::vector<std::uint64_t> others = costs;
  std::reverse(others.begin(), others.end());
  pack_list ignored;
  policy.form({.first_step = 8, .steps = 2, .records_per_pack = 9, .packs_per_step = 4},
              arrivals(others), ignored);
  policy.form(window, arrivals(costs), twice);
  for (std::size_t i = 0; i < once.records().size(); ++i) {
    REQUIRE(once.records()[i].arrival == twice.records()[i].arrival);
  }
}

TEST_CASE("packer: replicated refuses what it cannot do", "[packer]") {
  REQUIRE_THROWS_AS(replicated_policy({.lookahead_steps = 0}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(replicated_policy({.limits = {.max_tokens_ppm = 1'000'000}}),
                    lanepack::invalid_option);
  REQUIRE_THROWS_AS(replicated_policy({.limits = {.max_cost_ppm = 5}}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(replicated_policy({.min_token_weight_ppm = 1'000'000}),
                    lanepack::invalid_option);
  replicated_policy policy;
  pack_list packs;
  REQUIRE_THROWS_AS(policy.form({.steps = 2, .records_per_pack = 2}, arrivals({1, 2, 3}), packs),
                    lanepack::state_error);
  policy.restore(policy.save(), policy.held());
  REQUIRE_THROWS_AS(policy.restore({{0}}, {}), lanepack::state_error);
}
