#include <lanepack/packer/outlier_steps.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::detail::descending_key;
using lanepack::detail::descending_key_cost;
using lanepack::detail::formed_packs;
using lanepack::detail::outlier_steps;
using lanepack::detail::step_budget;
using lanepack::detail::window_totals;

using packs_of_costs = std::vector<std::vector<std::uint64_t>>;

struct formed {
  std::uint32_t steps = 0;
  packs_of_costs packs;
  std::vector<std::uint64_t> rest;
  formed_packs raw;
};

/// Records have as many tokens as they cost.
formed form(std::vector<std::uint64_t> costs, std::uint32_t steps, std::uint32_t packs,
            const step_budget& limits = {}, std::uint32_t weight_ppm = 0) {
  window_totals window{
      .steps = steps,
      .packs = packs,
      .records_per_pack = static_cast<std::uint32_t>(costs.size() / (std::size_t{steps} * packs))};
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    keys.push_back(descending_key(costs[i], i));
    window.cost += costs[i];
    window.tokens += costs[i];
  }
  std::sort(keys.begin(), keys.end());
  outlier_steps former;
  formed result;
  result.steps = former.form(keys, costs, window, limits, weight_ppm, result.raw);
  for (std::size_t pack = 0; pack < result.raw.costs.size(); ++pack) {
    result.packs.emplace_back();
    for (std::size_t i = pack * window.records_per_pack; i < (pack + 1) * window.records_per_pack;
         ++i) {
      result.packs.back().push_back(descending_key_cost(result.raw.keys[i]));
    }
  }
  for (const std::uint64_t key : former.rest()) result.rest.push_back(descending_key_cost(key));
  return result;
}

}  // namespace

TEST_CASE("packer: an outlier's step is filled up to its cost", "[packer]") {
  // A pack's share is 42 / 4; 20 and the cheapest record set the level 21.
  const formed found = form({1, 20, 6, 4, 5, 3, 2, 1}, 2, 2);
  REQUIRE(found.steps == 1);
  REQUIRE(found.packs == packs_of_costs{{20, 1}, {6, 5}});
  REQUIRE(found.raw.costs == std::vector<std::uint64_t>{21, 11});
  REQUIRE(found.raw.tokens.empty());
  REQUIRE(found.rest == std::vector<std::uint64_t>{4, 3, 2, 1});
}

TEST_CASE("packer: records of equal shares are no outliers", "[packer]") {
  const formed found = form({5, 5, 5, 5, 5, 5, 5, 5}, 2, 2);
  REQUIRE(found.steps == 0);
  REQUIRE(found.packs.empty());
  REQUIRE(found.rest.size() == 8);
}

TEST_CASE("packer: outliers that no step has room for set the level of another", "[packer]") {
  // 30, 29 head the first step, 28 the second; the last step takes what is left.
  const formed found = form({30, 29, 28, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 3, 2);
  REQUIRE(found.steps == 2);
  REQUIRE(found.packs == packs_of_costs{{30, 1}, {29, 1}, {28, 1}, {1, 1}});
  REQUIRE(found.rest == std::vector<std::uint64_t>{1, 1, 1, 1});
}

TEST_CASE("packer: a step with outliers is filled up to its limits only", "[packer]") {
  // 20 fits beside the three cheapest records, 1 + 1 + 2.
  const formed by_tokens =
      form({1, 20, 6, 4, 5, 3, 2, 1}, 2, 2, {.tokens = 24, .cost = step_budget::none});
  REQUIRE(by_tokens.packs == packs_of_costs{{20, 1}, {1, 2}});
  REQUIRE(by_tokens.raw.tokens == std::vector<std::uint64_t>{21, 3});
  const formed by_cost =
      form({1, 20, 6, 4, 5, 3, 2, 1}, 2, 2, {.tokens = step_budget::none, .cost = 24});
  REQUIRE(by_cost.packs == packs_of_costs{{20, 1}, {1, 2}});
}

TEST_CASE("packer: outliers are spread over steps where a limit forbids them together",
          "[packer]") {
  // Two of the three outliers exceed 40 tokens.
  const formed found = form({30, 29, 28, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 2,
                            {.tokens = 40, .cost = step_budget::none});
  REQUIRE(found.steps == 3);
  REQUIRE(found.packs == packs_of_costs{{30, 1}, {1, 1}, {29, 1}, {1, 1}, {28, 1}, {1, 1}});
}

TEST_CASE("packer: dear records keep the weight that is asked for", "[packer]") {
  // Windows of 8 steps, 8 packs of 8 records; one record in 64 is dear.
  std::vector<std::uint64_t> costs;
  for (std::uint64_t i = 0; i < 512; ++i) costs.push_back(i % 64 == 0 ? 100 + i / 64 : 1 + i % 3);
  const auto tokens_of_dearest_step = [&](std::uint32_t weight_ppm) {
    const formed found = form(costs, 8, 8, {.tokens = 3000, .cost = step_budget::none}, weight_ppm);
    std::uint64_t largest = 0;
    for (std::size_t step = 0; step < found.steps; ++step) {
      std::uint64_t tokens = 0;
      for (std::size_t pack = 0; pack < 8; ++pack) tokens += found.raw.tokens[step * 8 + pack];
      largest = std::max(largest, tokens);
    }
    return largest;
  };
  // 8 dear records of 828 tokens together and 56 of the cheapest fit one step; a step's mean is
  // 229.
  REQUIRE(tokens_of_dearest_step(0) > 828);
  REQUIRE(tokens_of_dearest_step(900'000) < 300);
}
