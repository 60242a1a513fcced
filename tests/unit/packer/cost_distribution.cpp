#include <cstdint>
#include <vector>

#include <lanepack/cost/quadratic.hpp>
#include <lanepack/cost/token.hpp>
#include <lanepack/packer/cost_distribution.hpp>

#include "support/catch.hpp"

using lanepack::cost_bucket;
using lanepack::cost_distribution;

TEST_CASE("packer: a cost distribution merges and sorts its buckets", "[packer]") {
  const cost_distribution costs({{.cost = 9, .tokens = 3, .records = 1},
                                 {.cost = 2, .tokens = 1, .records = 4},
                                 {.cost = 5, .tokens = 2, .records = 0},
                                 {.cost = 9, .tokens = 3, .records = 2},
                                 {.cost = 9, .tokens = 2, .records = 1}});
  REQUIRE(std::vector<cost_bucket>(costs.buckets().begin(), costs.buckets().end()) ==
          std::vector<cost_bucket>{{.cost = 2, .tokens = 1, .records = 4},
                                   {.cost = 9, .tokens = 2, .records = 1},
                                   {.cost = 9, .tokens = 3, .records = 3}});
  REQUIRE(costs.records() == 8);
  REQUIRE(costs.total_cost() == 4 * 2 + 4 * 9);
  REQUIRE(costs.total_tokens() == 4 + 2 + 9);
  REQUIRE(costs.max_cost() == 9);
  REQUIRE(costs.mean_cost(1) == 5);    // 44 / 8
  REQUIRE(costs.mean_cost(16) == 88);  // 44 x 16 / 8
  REQUIRE(costs.mean_tokens(16) == 30);
}

TEST_CASE("packer: ranks and sums of a cost distribution", "[packer]") {
  const cost_distribution costs({{.cost = 1, .tokens = 10, .records = 2},
                                 {.cost = 4, .tokens = 20, .records = 3},
                                 {.cost = 7, .tokens = 30, .records = 1}});
  const std::vector<std::uint64_t> by_rank = {1, 1, 4, 4, 4, 7};
  std::uint64_t sum = 0;
  for (std::uint64_t rank = 0; rank < by_rank.size(); ++rank) {
    REQUIRE(costs.at_rank(rank).cost == by_rank[rank]);
    REQUIRE(costs.cheapest_cost(rank) == sum);
    sum += by_rank[rank];
  }
  REQUIRE(costs.cheapest_cost(6) == 21);
  REQUIRE(costs.cheapest_tokens(4) == 60);
  REQUIRE(costs.records_up_to(0) == 0);
  REQUIRE(costs.records_up_to(1) == 2);
  REQUIRE(costs.records_up_to(6) == 5);
  REQUIRE(costs.records_up_to(100) == 6);
}

TEST_CASE("packer: sums of a cost distribution do not wrap", "[packer]") {
  const cost_distribution costs({{.cost = lanepack::max_record_cost,
                                  .tokens = lanepack::max_record_cost,
                                  .records = cost_distribution::max_records}});
  REQUIRE(static_cast<std::uint64_t>(costs.total_cost() >> 64) == std::uint64_t{1} << 32);
  REQUIRE(costs.mean_cost(1024) == std::uint64_t{1} << 50);
}

TEST_CASE("packer: a cost distribution of records, of shapes and of a histogram agree",
          "[packer]") {
  const std::vector<lanepack::record_shape> shapes = {
      {.tokens = 5, .loss_tokens = 4, .patches = 0},
      {.tokens = 2, .loss_tokens = 1, .patches = 0},
      {.tokens = 5, .loss_tokens = 4, .patches = 0}};
  const auto estimator = lanepack::default_cost();
  const cost_distribution of_shapes = cost_distribution::of_shapes(shapes, estimator);

  std::vector<lanepack::candidate> records(3);
  for (std::size_t i = 0; i < 3; ++i) {
    records[i].cost = 24576 * shapes[i].tokens + shapes[i].tokens * shapes[i].tokens;
    records[i].tokens = shapes[i].tokens;
  }
  const cost_distribution of_records = cost_distribution::of_records(records);

  const std::vector<lanepack::length_bucket> histogram = {
      {.first = 2, .last = 2, .records = 1, .tokens = 2},
      {.first = 5, .last = 5, .records = 2, .tokens = 10}};
  const cost_distribution of_lengths = cost_distribution::of_lengths(
      histogram, estimator, lanepack::feasibility(lanepack::feasibility_options{}));

  for (const cost_distribution* other : {&of_records, &of_lengths}) {
    REQUIRE(std::equal(of_shapes.buckets().begin(), of_shapes.buckets().end(),
                       other->buckets().begin(), other->buckets().end()));
  }
}

TEST_CASE("packer: a cost distribution refuses what it cannot hold", "[packer]") {
  REQUIRE_THROWS_AS(cost_distribution({}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(cost_distribution({{.cost = 1, .tokens = 1, .records = 0}}),
                    lanepack::invalid_option);
  REQUIRE_THROWS_AS(
      cost_distribution({{.cost = lanepack::max_record_cost + 1, .tokens = 1, .records = 1}}),
      lanepack::invalid_option);
  REQUIRE_THROWS_AS(
      cost_distribution({{.cost = 1, .tokens = 1, .records = cost_distribution::max_records},
                         {.cost = 2, .tokens = 1, .records = 1}}),
      lanepack::invalid_option);
}
