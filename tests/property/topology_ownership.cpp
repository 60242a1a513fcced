#include <algorithm>
#include <cstdint>

#include <lanepack/topology/lane_ownership.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

TEST_CASE("topology: every lane has one owner and ranks differ by one lane", "[topology]") {
  lanepack_test::for_each_seed(300, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const auto lanes = static_cast<std::uint32_t>(random.between(1, 500));
    const auto ranks = static_cast<std::uint32_t>(random.between(1, lanes));
    CAPTURE(lanes, ranks);
    const auto rank = static_cast<std::uint32_t>(random.between(0, ranks - 1));
    const lanepack::lane_ownership ownership(lanes, {rank, ranks}, lanepack::uneven_lanes::allow);
    REQUIRE(ownership.owned() == ownership.owned_by(rank));
    std::uint32_t next = 0;
    std::uint32_t fewest = lanes;
    std::uint32_t most = 0;
    bool owners_agree = true;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const lanepack::lane_range range = ownership.owned_by(r);
      REQUIRE(range.first == next);
      for (std::uint32_t lane = range.first; lane < range.last; ++lane) {
        owners_agree = owners_agree && ownership.owner(lane) == r && range.contains(lane);
      }
      fewest = std::min(fewest, range.size());
      most = std::max(most, range.size());
      next = range.last;
    }
    CHECK(next == lanes);
    CHECK(owners_agree);
    CHECK(fewest >= 1);
    CHECK(most - fewest <= 1);
    CHECK(ownership.even() == (most == fewest));
  });
}

TEST_CASE("topology: sizes near the largest integer do not wrap", "[topology]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const auto lanes = static_cast<std::uint32_t>(random.between(0xffff0000, 0xffffffff));
    const auto ranks = static_cast<std::uint32_t>(
        random.one_in(2) ? random.between(lanes - 100, lanes) : random.between(1, lanes));
    CAPTURE(lanes, ranks);
    const lanepack::lane_ownership ownership(lanes, {0, ranks}, lanepack::uneven_lanes::allow);
    const auto lane = static_cast<std::uint32_t>(random.between(0, lanes - 1));
    CHECK(ownership.owned_by(ownership.owner(lane)).contains(lane));
    CHECK(ownership.owned_by(ranks - 1).last == lanes);
    CHECK(ownership.owned().first == 0);
  });
}
