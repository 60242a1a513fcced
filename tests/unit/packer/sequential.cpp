#include <lanepack/packer/sequential.hpp>

#include <vector>

#include <lanepack/core/digest.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

std::vector<lanepack::candidate> arrivals(std::size_t n, std::uint64_t seed) {
  lanepack_test::gen gen(seed);
  std::vector<lanepack::candidate> made(n);
  for (std::size_t i = 0; i < n; ++i) {
    made[i].cost = gen.heavy_tailed(30);
    made[i].arrival = i;
  }
  return made;
}

}  // namespace

TEST_CASE("packer: sequential keeps the arrival order", "[packer]") {
  lanepack::sequential_policy policy;
  REQUIRE(policy.name() == "sequential");
  REQUIRE(policy.scope() == lanepack::policy_scope::lane);
  REQUIRE(policy.window_steps() == 1);
  REQUIRE(policy.buffered_steps() == 0);

  const auto records = arrivals(12, 1);
  lanepack::pack_list packs;
  policy.form({.steps = 2, .records_per_pack = 2, .packs_per_step = 3}, records, packs);
  REQUIRE(packs.size() == 6);
  for (std::size_t i = 0; i < 12; ++i) REQUIRE(packs[i / 2][i % 2].arrival == i);
  REQUIRE(policy.held().empty());
}

TEST_CASE("packer: sequential wants exactly the records of its steps", "[packer]") {
  lanepack::sequential_policy policy;
  lanepack::pack_list packs;
  const auto records = arrivals(7, 1);
  REQUIRE_THROWS_MATCHES(
      policy.form({.steps = 2, .records_per_pack = 4}, records, packs), lanepack::state_error,
      Catch::Matchers::Message("sequential: found 7 arrivals, expected 2 steps x 1 packs x 4 "
                               "records, none of them 0"));
  REQUIRE_THROWS_AS(policy.form({.steps = 0}, {}, packs), lanepack::state_error);
  REQUIRE(packs.empty());
}

TEST_CASE("packer: sequential has an empty state", "[packer]") {
  lanepack::sequential_policy policy;
  REQUIRE(policy.save().words.empty());
  policy.restore(policy.save(), policy.held());
  REQUIRE_THROWS_AS(policy.restore({{1}}, {}), lanepack::state_error);
  REQUIRE_THROWS_AS(policy.restore({}, arrivals(1, 1)), lanepack::state_error);
}
