#include <lanepack/core/random.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

#include "support/catch.hpp"

namespace {

using words4 = std::array<std::uint64_t, 4>;

TEST_CASE("random: philox4x64 gives the published known answers", "[random]") {
  // Random123, tests/kat_vectors, the lines "philox4x64 10".
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  CHECK(lanepack::philox4x64({0, 0, 0, 0}, {0, 0}) ==
        words4{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b});
  CHECK(lanepack::philox4x64({ones, ones, ones, ones}, {ones, ones}) ==
        words4{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0});
  CHECK(lanepack::philox4x64(
            {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
            {0x452821e638d01377, 0xbe5466cf34e90c6c}) ==
        words4{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6});
}

TEST_CASE("random: counter_random is usable at compile time", "[random]") {
  STATIC_REQUIRE(lanepack::counter_random({.seed = 1, .epoch = 2, .stage = 3, .lane = 4}, 5) ==
                 0xf23c5259c94ccb0a);
}

TEST_CASE("random: a key and an index have the words of a reference in another language",
          "[random]") {
  const lanepack::random_key key{.seed = 1, .epoch = 2, .stage = 3, .lane = 4};
  CHECK(lanepack::counter_random_block(key, 5) ==
        words4{0xf23c5259c94ccb0a, 0xe80db1480854e199, 0x2257cd702cd96e50, 0xcc87d4fdf0fd685f});
  CHECK(lanepack::counter_random(key, 5) == 0xf23c5259c94ccb0a);
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  const lanepack::random_key last{ones, ones, 0xffffffff, 0xffffffff};
  CHECK(lanepack::counter_random_block(last, ones, ones)[0] == 0x8dcb0d3b67d16e9c);
}

TEST_CASE("random: every part of a key changes the numbers", "[random]") {
  const lanepack::random_key key{.seed = 11, .epoch = 12, .stage = 13, .lane = 14};
  std::vector<lanepack::random_key> keys(5, key);
  keys[1].seed ^= std::uint64_t{1} << 63;
  keys[2].epoch ^= std::uint64_t{1} << 63;
  keys[3].stage ^= std::uint32_t{1} << 31;
  keys[4].lane ^= std::uint32_t{1} << 31;
  std::set<std::uint64_t> seen;
  for (const lanepack::random_key& k : keys) {
    for (std::uint64_t index = 0; index < 100; ++index) {
      for (std::uint64_t part = 0; part < 3; ++part) {
        for (const std::uint64_t word : lanepack::counter_random_block(k, index, part)) {
          seen.insert(word);
        }
      }
    }
  }
  CHECK(seen.size() == 5 * 100 * 3 * 4);
}

TEST_CASE("random: every bit of the numbers is set half of the time", "[random]") {
  constexpr int draws = 20000;
  std::array<int, 64> set{};
  for (std::uint64_t index = 0; index < draws; ++index) {
    const std::uint64_t word = lanepack::counter_random({.seed = 5}, index);
    for (unsigned bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>((word >> bit) & 1);
  }
  // Standard deviation sqrt(20000)/2 = 71; five of them.
  for (const int count : set) CHECK(std::abs(count - draws / 2) < 355);
}

TEST_CASE("random: random_below maps the whole range of bits onto [0, n)", "[random]") {
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  CHECK(lanepack::random_below(ones, 0) == 0);
  CHECK(lanepack::random_below(0, 7) == 0);
  CHECK(lanepack::random_below(ones, 1) == 0);
  CHECK(lanepack::random_below(ones, 7) == 6);
  CHECK(lanepack::random_below(ones, ones) == ones - 1);
  // 2^63 is half of the range, so it maps to half of n.
  CHECK(lanepack::random_below(std::uint64_t{1} << 63, 10) == 5);
  CHECK(lanepack::random_below((std::uint64_t{1} << 63) - 1, 10) == 4);

  std::array<int, 7> count{};
  for (std::uint64_t index = 0; index < 70000; ++index) {
    ++count[lanepack::random_below(lanepack::counter_random({.seed = 9}, index), 7)];
  }
  // Standard deviation sqrt(70000 * 6/49) = 93; five of them.
  for (const int value : count) CHECK(std::abs(value - 10000) < 465);
}

}  // namespace
