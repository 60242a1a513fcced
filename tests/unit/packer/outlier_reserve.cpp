#include <lanepack/packer/outlier_reserve.hpp>

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::candidate;
using lanepack::cost_distribution;
using lanepack::detail::outlier_reserve;

std::vector<candidate> pool_of(const std::vector<std::uint64_t>& costs) {
  std::vector<candidate> made(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    made[i].cost = made[i].tokens = costs[i];
    made[i].arrival = i;
    made[i].admitted = 10 + i;
  }
  return made;
}

/// The costs of the records that are held, in arrival order.
std::vector<std::uint64_t> held(const std::vector<candidate>& pool, std::size_t count,
                                const outlier_reserve::situation& now) {
  outlier_reserve reserve;
  std::vector<std::uint8_t> marks;
  reserve.choose(pool, count, now, marks);
  std::vector<std::uint64_t> costs;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (marks[i] != 0) costs.push_back(pool[i].cost);
  }
  return costs;
}

using costs = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("packer: the reserve holds outliers until they fill a step", "[packer]") {
  outlier_reserve::situation now{.share = 20, .filled = 30, .packs = 3};
  // One outlier of 100 and two packs of 30 are far from a step of 3 x 100.
  REQUIRE(held(pool_of({100, 1, 2, 3, 4, 5, 6, 7}), 3, now) == costs{100, 6, 7});
  // Two of them still are, three fill it.
  REQUIRE(held(pool_of({100, 1, 2, 90, 4, 5, 6, 7}), 3, now) == costs{100, 90, 7});
  REQUIRE(held(pool_of({100, 1, 2, 90, 4, 80, 6, 7}), 3, now) == costs{4, 6, 7});
  // A level that packs without outliers reach is not worth waiting for.
  REQUIRE(held(pool_of({30, 1, 2, 3, 4, 5, 6, 7}), 3, now) == costs{5, 6, 7});
  // 200 waits; 100, 90 and 80 fill a step below it.
  REQUIRE(held(pool_of({100, 1, 200, 90, 4, 80, 6, 7}), 3, now) == costs{200, 6, 7});
  // No more than asked for.
  REQUIRE(held(pool_of({100, 1, 2, 90, 4, 5, 6, 7}), 1, now) == costs{100});
}

TEST_CASE("packer: the reserve lets go what has waited long, with what it has room for",
          "[packer]") {
  // Records before place 2 were admitted too long ago.
  const outlier_reserve::situation now{
      .share = 20, .filled = 30, .packs = 3, .oldest_admitted = 12};
  REQUIRE(held(pool_of({1, 100, 2, 90, 4, 5, 6, 7}), 3, now) == costs{5, 6, 7});
  // 140 is little dearer than 100, 200 much.
  REQUIRE(held(pool_of({1, 100, 2, 140, 4, 200, 6, 7}), 3, now) == costs{200, 6, 7});
}

TEST_CASE("packer: the reserve does not wait for more than a limited step takes", "[packer]") {
  outlier_reserve::situation now{.share = 20, .filled = 30, .packs = 30, .step_tokens = 200};
  REQUIRE(held(pool_of({100, 1, 2, 3, 4, 5, 6, 7}), 3, now) == costs{100, 6, 7});
  REQUIRE(held(pool_of({100, 1, 2, 90, 4, 5, 6, 7}), 3, now) == costs{5, 6, 7});
}

TEST_CASE("packer: outliers are expected to cost what no window can fill", "[packer]") {
  using lanepack::detail::filled_pack_cost;
  using lanepack::detail::loss_to_outliers_ppm;
  // 1000 records of 10 and of 30, one of 10000: a pack of 4 costs 100 on average.
  const cost_distribution rare({{.cost = 10, .tokens = 1, .records = 500},
                                {.cost = 30, .tokens = 1, .records = 500},
                                {.cost = 10000, .tokens = 1, .records = 1}});
  REQUIRE(rare.mean_cost(4) == 119);
  REQUIRE(filled_pack_cost(rare, 4, 4) == 120);
  // The dearest 251 of 1001 records cost 10000 + 250 x 30, 69 a record, 276 a pack. A step of 2 x 4
  // records has an excess of 9724 once in 1001 / 8 steps: 77.7 of 119.
  REQUIRE(loss_to_outliers_ppm(rare, 2, 4, 4) == 77 * 1'000'000 / 119);

  // Where one record in 5 is dear, steps are filled.
  const cost_distribution frequent(
      {{.cost = 10, .tokens = 1, .records = 800}, {.cost = 500, .tokens = 1, .records = 200}});
  REQUIRE(loss_to_outliers_ppm(frequent, 2, 4, 6) == 0);
}
