#include <lanepack/core/arithmetic.hpp>

#include <cstdint>
#include <limits>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("core: sums stop at the largest value", "[core]") {
  STATIC_REQUIRE(saturating_add(0, 0) == 0);
  STATIC_REQUIRE(saturating_add(2, 3) == 5);
  STATIC_REQUIRE(saturating_add(largest, 0) == largest);
  STATIC_REQUIRE(saturating_add(largest - 1, 1) == largest);
  STATIC_REQUIRE(saturating_add(largest, 1) == largest);
  STATIC_REQUIRE(saturating_add(largest, largest) == largest);
}

TEST_CASE("core: products stop at the largest value", "[core]") {
  STATIC_REQUIRE(saturating_mul(0, largest) == 0);
  STATIC_REQUIRE(saturating_mul(6, 7) == 42);
  STATIC_REQUIRE(saturating_mul(1, largest) == largest);
  STATIC_REQUIRE(saturating_mul(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1) ==
                 0xffffffff00000000);
  STATIC_REQUIRE(saturating_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32) == largest);
  STATIC_REQUIRE(saturating_mul(largest, 2) == largest);
}

TEST_CASE("core: the upper half of a product is exact", "[core]") {
  STATIC_REQUIRE(multiply_high(largest, largest) == largest - 1);
  STATIC_REQUIRE(multiply_high(std::uint64_t{1} << 63, 2) == 1);
  STATIC_REQUIRE(multiply_high(3, 5) == 0);
  // 0x0123456789abcdef * 0xfedcba9876543210 = 0x0121fa00ad77d7422236d88fe5618cf0
  STATIC_REQUIRE(multiply_high(0x0123456789abcdef, 0xfedcba9876543210) == 0x0121fa00ad77d742);
}

TEST_CASE("core: division and multiples round up", "[core]") {
  STATIC_REQUIRE(ceil_div(0, 7) == 0);
  STATIC_REQUIRE(ceil_div(1, 7) == 1);
  STATIC_REQUIRE(ceil_div(7, 7) == 1);
  STATIC_REQUIRE(ceil_div(8, 7) == 2);
  STATIC_REQUIRE(ceil_div(largest, 1) == largest);
  STATIC_REQUIRE(ceil_div(largest, 2) == std::uint64_t{1} << 63);
  STATIC_REQUIRE(round_up(0, 64) == 0);
  STATIC_REQUIRE(round_up(1, 64) == 64);
  STATIC_REQUIRE(round_up(64, 64) == 64);
  STATIC_REQUIRE(round_up(65, 64) == 128);
  STATIC_REQUIRE(round_up(largest, 64) == largest);
}
