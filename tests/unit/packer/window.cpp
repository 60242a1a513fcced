#include <lanepack/packer/window.hpp>

#include <vector>

#include "support/catch.hpp"

namespace {

std::vector<lanepack::candidate> arrivals(const std::vector<std::uint64_t>& costs) {
  std::vector<lanepack::candidate> made(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    made[i].cost = costs[i];
    made[i].arrival = 100 + 2 * i;
  }
  return made;
}

std::vector<std::vector<std::uint64_t>> arrivals_of(const lanepack::pack_list& packs) {
  std::vector<std::vector<std::uint64_t>> found;
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    found.emplace_back();
    for (const lanepack::candidate& record : packs[pack]) found.back().push_back(record.arrival);
  }
  return found;
}

}  // namespace

TEST_CASE("packer: window balances its packs and emits the heaviest first", "[packer]") {
  lanepack::window_policy policy({.lookahead_steps = 3});
  REQUIRE(policy.name() == "window");
  REQUIRE(policy.scope() == lanepack::policy_scope::lane);
  REQUIRE(policy.window_steps() == 3);
  REQUIRE(policy.buffered_steps() == 0);
  REQUIRE(lanepack::window_policy().window_steps() == 16);

  // 30 with the smallest, then 9 + 5 and 8 + 6 at 14 each: the earlier first arrival leads.
  lanepack::pack_list packs;
  policy.form({.steps = 3, .records_per_pack = 2}, arrivals({8, 1, 5, 9, 30, 6}), packs);
  REQUIRE(arrivals_of(packs) ==
          std::vector<std::vector<std::uint64_t>>{{102, 108}, {100, 110}, {104, 106}});
}

TEST_CASE("packer: window gives a step of several packs neighbours in cost", "[packer]") {
  lanepack::window_policy policy({.lookahead_steps = 2});
  lanepack::pack_list packs;
  policy.form({.steps = 2, .records_per_pack = 1, .packs_per_step = 3},
              arrivals({3, 6, 1, 5, 2, 4}), packs);
  REQUIRE(arrivals_of(packs) ==
          std::vector<std::vector<std::uint64_t>>{{102}, {106}, {110}, {100}, {108}, {104}});
}

TEST_CASE("packer: a staggered window starts with another pack on other lanes", "[packer]") {
  lanepack::window_policy policy({.lookahead_steps = 3, .stagger = {.groups = 2, .shift = 1}});
  const std::vector<std::vector<std::uint64_t>> even{{102}, {104}, {100}};
  const std::vector<std::vector<std::uint64_t>> odd{{100}, {102}, {104}};
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    lanepack::pack_list packs;
    policy.form({.steps = 3, .records_per_pack = 1, .lane = lane}, arrivals({1, 3, 2}), packs);
    REQUIRE(arrivals_of(packs) == (lane % 2 == 0 ? even : odd));
  }
  // Several packs a step are those of all lanes.
  lanepack::pack_list packs;
  policy.form({.steps = 1, .records_per_pack = 1, .packs_per_step = 3, .lane = 1},
              arrivals({1, 3, 2}), packs);
  REQUIRE(arrivals_of(packs) == even);
  REQUIRE_THROWS_AS(lanepack::window_policy({.stagger = {.groups = 0, .shift = 1}}),
                    lanepack::invalid_option);
}

TEST_CASE("packer: window forms fewer steps at the end of the data", "[packer]") {
  lanepack::window_policy policy({.lookahead_steps = 16});
  lanepack::pack_list packs;
  policy.form({.steps = 1, .records_per_pack = 3}, arrivals({1, 2, 3}), packs);
  REQUIRE(arrivals_of(packs) == std::vector<std::vector<std::uint64_t>>{{100, 102, 104}});
  // Packs are appended to those that are there.
  policy.form({.steps = 2, .records_per_pack = 1}, arrivals({1, 2}), packs);
  REQUIRE(packs.size() == 3);
}

TEST_CASE("packer: window passes records on unchanged", "[packer]") {
  std::vector<lanepack::candidate> records = arrivals({1, 2});
  records[1].record = {3, 17};
  records[1].tokens = 5;
  records[1].loss_tokens = 4;
  records[1].admitted = 9;
  records[1].role = lanepack::record_role::masked;
  lanepack::window_policy policy;
  lanepack::pack_list packs;
  policy.form({.steps = 2, .records_per_pack = 1}, records, packs);
  const lanepack::candidate& found = packs[0][0];
  REQUIRE(found.record == lanepack::record_ref{3, 17});
  REQUIRE(found.cost == 2);
  REQUIRE(found.tokens == 5);
  REQUIRE(found.loss_tokens == 4);
  REQUIRE(found.arrival == 102);
  REQUIRE(found.admitted == 9);
  REQUIRE(found.role == lanepack::record_role::masked);
}

TEST_CASE("packer: window refuses what it cannot do", "[packer]") {
  REQUIRE_THROWS_MATCHES(lanepack::window_policy({.lookahead_steps = 0}), lanepack::invalid_option,
                         Catch::Matchers::Message("lookahead_steps: found 0, expected at least 1"));
  lanepack::window_policy policy;
  lanepack::pack_list packs;
  REQUIRE_THROWS_AS(policy.form({.steps = 2, .records_per_pack = 2}, arrivals({1, 2, 3}), packs),
                    lanepack::state_error);
  policy.restore(policy.save(), policy.held());
  REQUIRE_THROWS_AS(policy.restore({{0}}, {}), lanepack::state_error);
  REQUIRE_THROWS_AS(policy.restore({}, arrivals({1})), lanepack::state_error);
}
