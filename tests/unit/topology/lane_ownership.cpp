#include <string>

#include <lanepack/topology/lane_ownership.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::invalid_option;
using lanepack::lane_ownership;
using lanepack::lane_range;
using lanepack::uneven_lanes;
using lanepack::world;

std::string refusal(std::uint32_t lanes, const world& where,
                    uneven_lanes uneven = uneven_lanes::refuse) {
  try {
    const lane_ownership ownership(lanes, where, uneven);
    return "accepted";
  } catch (const invalid_option& refused) {
    return refused.what();
  }
}

}  // namespace

TEST_CASE("topology: lanes are shared out evenly", "[topology]") {
  const lane_ownership ownership(12, {2, 4});
  CHECK(ownership.owned() == lane_range{6, 9});
  CHECK(ownership.owned().size() == 3);
  CHECK(ownership.owned().contains(8));
  CHECK_FALSE(ownership.owned().contains(9));
  CHECK(ownership.owned_by(0) == lane_range{0, 3});
  CHECK(ownership.owned_by(3) == lane_range{9, 12});
  CHECK(ownership.owner(5) == 1);
  CHECK(ownership.even());
  CHECK(ownership.lanes() == 12);
  CHECK(ownership.world() == world{2, 4});
  CHECK(lane_ownership(1, {}).owned() == lane_range{0, 1});
}

TEST_CASE("topology: uneven ownership differs by one lane", "[topology]") {
  // 7 lanes, 3 ranks: 3, 2, 2.
  const lane_ownership ownership(7, {1, 3}, uneven_lanes::allow);
  CHECK(ownership.owned_by(0) == lane_range{0, 3});
  CHECK(ownership.owned_by(1) == lane_range{3, 5});
  CHECK(ownership.owned_by(2) == lane_range{5, 7});
  CHECK(ownership.owner(2) == 0);
  CHECK(ownership.owner(3) == 1);
  CHECK(ownership.owner(6) == 2);
  CHECK_FALSE(ownership.even());
}

TEST_CASE("topology: world sizes that do not fit are refused with those that do", "[topology]") {
  CHECK(refusal(12, {0, 5}) ==
        "world size: found 5, expected a divisor of the 12 lanes, unless uneven ownership is "
        "allowed; world sizes that fit: 1, 2, 3, 4, 6, 12; nearest 4 and 6");
  CHECK(refusal(12, {0, 5}, uneven_lanes::allow) == "accepted");
  CHECK(refusal(12, {0, 16}) ==
        "world size: found 16, expected at most one rank a lane, and there are 12 lanes; world "
        "sizes that fit: 1, 2, 3, 4, 6, 12; nearest 12");
  CHECK(refusal(12, {0, 16}, uneven_lanes::allow) == refusal(12, {0, 16}));
  CHECK(refusal(7, {0, 3}) ==
        "world size: found 3, expected a divisor of the 7 lanes, unless uneven ownership is "
        "allowed; world sizes that fit: 1, 7; nearest 1 and 7");
  // 720 has 30 divisors.
  CHECK(refusal(720, {0, 7}) ==
        "world size: found 7, expected a divisor of the 720 lanes, unless uneven ownership is "
        "allowed; world sizes that fit: 1, 2, 3, 4, 5, 6, ..., 120, 144, 180, 240, 360, 720; "
        "nearest 6 and 8");
  CHECK(refusal(4294967295, {0, 4}) ==
        "world size: found 4, expected a divisor of the 4294967295 lanes, unless uneven ownership "
        "is allowed; world sizes that fit: 1, 3, 5, 15, 17, 51, ..., 84215045, 252645135, "
        "286331153, 858993459, 1431655765, 4294967295; nearest 3 and 5");
  CHECK(refusal(0, {}) == "lanes: found 0, expected at least 1");
  CHECK(refusal(8, {2, 2}) == "world.rank: found 2, expected a rank below world.size = 2");
  CHECK(refusal(8, {0, 0}) == "world.size: found 0, expected at least 1");
}

TEST_CASE("topology: lanes and ranks outside are refused", "[topology]") {
  const lane_ownership ownership(12, {0, 4});
  CHECK_THROWS_MATCHES(ownership.owner(12), invalid_option,
                       Catch::Matchers::Message("lane: found 12, expected below 12"));
  CHECK_THROWS_MATCHES(ownership.owned_by(4), invalid_option,
                       Catch::Matchers::Message("rank: found 4, expected below 4"));
}
