#include <lanepack/sampler/permutation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::keyed_permutation;
using lanepack::random_key;

constexpr std::uint64_t two_to_63 = std::uint64_t{1} << 63;

std::vector<std::uint64_t> all_of(const keyed_permutation& order) {
  std::vector<std::uint64_t> records(order.size());
  std::iota(records.begin(), records.end(), std::uint64_t{0});
  order.apply(records, records);
  return records;
}

bool each_once(const std::vector<std::uint64_t>& records) {
  std::vector<bool> seen(records.size());
  for (const std::uint64_t record : records) {
    if (record >= records.size() || seen[record]) return false;
    seen[record] = true;
  }
  return true;
}

std::size_t number_of_permutation(const std::vector<std::uint64_t>& order) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t smaller = 0;
    for (std::size_t j = i + 1; j < order.size(); ++j) smaller += order[j] < order[i] ? 1 : 0;
    number = number * (order.size() - i) + smaller;
  }
  return number;
}

/// (chi^2 - degrees of freedom) / sqrt(2 x degrees of freedom): about a standard normal deviate.
double chi_square_deviate(const std::vector<std::uint64_t>& counts, double expected) {
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST_CASE("permutation: emits every record once for all sizes up to 4097", "[permutation]") {
  for (std::uint64_t n = 0; n <= 4097; ++n) {
    CAPTURE(n);
    const keyed_permutation order(n, {.seed = n, .epoch = 3});
    REQUIRE(order.size() == n);
    REQUIRE(each_once(all_of(order)));
  }
}

TEST_CASE("permutation: emits every record once around powers of two", "[permutation]") {
  for (unsigned k = 13; k <= 22; ++k) {
    for (const std::uint64_t n : {(1ull << k) - 1, 1ull << k, (1ull << k) + 1}) {
      CAPTURE(n);
      REQUIRE(each_once(all_of(keyed_permutation(n, {.seed = 17, .epoch = k}))));
    }
  }
}

TEST_CASE("permutation: the inverse leads back, also where all records are too many to visit",
          "[permutation]") {
  lanepack_test::gen gen(1);
  for (const std::uint64_t n :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{97}, std::uint64_t{256},
        std::uint64_t{65537}, (std::uint64_t{1} << 32) + 1, std::uint64_t{1000000007},
        std::uint64_t{1} << 40, (std::uint64_t{1} << 62) + 12345, two_to_63 - 1, two_to_63}) {
    CAPTURE(n);
    const keyed_permutation order(n, {.seed = 3, .epoch = 4, .stage = 5, .lane = 6});
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t position = i == 0 ? 0 : i == 1 ? n - 1 : gen.between(0, n - 1);
      const std::uint64_t record = order(position);
      REQUIRE(record < n);
      REQUIRE(order.position_of(record) == position);
      REQUIRE(order(order.position_of(position)) == position);
    }
  }
}

TEST_CASE("permutation: neighbouring positions at 2^40 and 2^63 do not meet", "[permutation]") {
  for (const std::uint64_t n : {std::uint64_t{1} << 40, two_to_63 - 1, two_to_63}) {
    const keyed_permutation order(n, {.seed = 8});
    std::vector<std::uint64_t> records(100000);
    std::iota(records.begin(), records.end(), n - records.size());
    order.apply(records, records);
    std::sort(records.begin(), records.end());
    CHECK(std::adjacent_find(records.begin(), records.end()) == records.end());
    CHECK(records.back() < n);
  }
}

TEST_CASE("permutation: has the values of a reference in another language", "[permutation]") {
  // Positions 0, 1 mod n, n / 3, n / 2 and n - 1 of the order with seed 42, epoch 7, stage 1,
  // computed with integers of unlimited size in Python from the description of the network.
  struct golden {
    std::uint64_t n;
    std::array<std::uint64_t, 5> records;
  };
  const golden values[] = {
      {1, {0, 0, 0, 0, 0}},
      {2, {1, 0, 1, 0, 0}},
      {3, {1, 0, 0, 0, 2}},
      {5, {0, 1, 1, 2, 3}},
      {10, {2, 8, 9, 3, 0}},
      {255, {107, 20, 42, 65, 33}},
      {256, {147, 103, 43, 229, 62}},
      {65535, {58617, 34185, 38033, 37855, 5829}},
      {65536, {60876, 11046, 13199, 17530, 29240}},
      {1048577, {940007, 12070, 870708, 593347, 317606}},
      {1000000007, {487976468, 285783747, 130381110, 256646703, 586462948}},
      {4294967297, {1486710664, 2871055863, 1169376457, 1219078037, 1028137719}},
      {1099511627776, {932876001798, 987162151117, 1089001362209, 278963113000, 40912779809}},
      {two_to_63 - 1,
       {7929491133939024611, 2665113580801391091, 1492359929054994468, 3211006508997152660,
        4523299371635259106}},
      {two_to_63,
       {7929491133939024611, 2665113580801391091, 1492359929054994468, 8785793875824924557,
        5093365735310791969}},
  };
  for (const golden& value : values) {
    CAPTURE(value.n);
    const keyed_permutation order(value.n, {.seed = 42, .epoch = 7, .stage = 1});
    const std::array<std::uint64_t, 5> positions = {0, 1 % value.n, value.n / 3, value.n / 2,
                                                    value.n - 1};
    std::array<std::uint64_t, 5> records;
    order.apply(positions, records);
    CHECK(records == value.records);
    for (std::size_t i = 0; i < 5; ++i) CHECK(order(positions[i]) == value.records[i]);
  }
  CHECK(all_of(keyed_permutation(10, {.seed = 42, .epoch = 7, .stage = 1})) ==
        std::vector<std::uint64_t>{2, 8, 7, 9, 1, 3, 5, 6, 4, 0});
}

TEST_CASE("permutation: needs no memory beyond itself", "[permutation]") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<keyed_permutation>);
  STATIC_REQUIRE(sizeof(keyed_permutation) <= 512);
}

TEST_CASE("permutation: refuses more than 2^63 records", "[permutation]") {
  CHECK_THROWS_AS(keyed_permutation(two_to_63 + 1, random_key{}), lanepack::invalid_option);
  CHECK_THROWS_WITH(keyed_permutation(two_to_63 + 1, random_key{}),
                    "records: found 9223372036854775809, expected at most 2^63");
  CHECK_NOTHROW(keyed_permutation(two_to_63, random_key{}));
}

TEST_CASE("permutation: takes no positions and no records", "[permutation]") {
  const keyed_permutation none(0, random_key{});
  none.apply({}, {});
  CHECK(none.size() == 0);
}

TEST_CASE("permutation: all orders of few records are equally likely over seeds", "[permutation]") {
  for (const std::uint64_t n : {2u, 3u, 4u, 5u, 6u}) {
    CAPTURE(n);
    std::size_t orders = 1;
    for (std::uint64_t i = 2; i <= n; ++i) orders *= i;
    std::vector<std::uint64_t> counts(orders);
    const std::uint64_t seeds = orders * 100;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      ++counts[number_of_permutation(all_of(keyed_permutation(n, {.seed = seed})))];
    }
    CHECK(std::abs(chi_square_deviate(counts, 100)) < 4);
  }
}

TEST_CASE("permutation: odd permutations are as likely as even ones where both sides are odd",
          "[permutation]") {
  // 9 records fill a grid of 3 x 3.
  int odd = 0;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    const std::vector<std::uint64_t> order = all_of(keyed_permutation(9, {.seed = seed}));
    int inversions = 0;
    for (std::size_t i = 0; i < 9; ++i) {
      for (std::size_t j = i + 1; j < 9; ++j) inversions += order[j] < order[i] ? 1 : 0;
    }
    odd += inversions % 2;
  }
  CHECK(std::abs(odd - 5000) < 250);
}

TEST_CASE("permutation: every record is equally likely at every position over seeds",
          "[permutation]") {
  for (const std::uint64_t n : {16u, 17u, 25u, 31u, 256u, 257u}) {
    CAPTURE(n);
    const std::uint64_t seeds = 100 * n;
    std::vector<std::vector<std::uint64_t>> counts(3, std::vector<std::uint64_t>(n));
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const keyed_permutation order(n, {.seed = 5, .epoch = seed});
      ++counts[0][order(0)];
      ++counts[1][order(n / 2)];
      ++counts[2][order(n - 1)];
    }
    for (const auto& count : counts) CHECK(std::abs(chi_square_deviate(count, 100)) < 4.5);
  }
}

TEST_CASE("permutation: neighbours of a position are unrelated over seeds", "[permutation]") {
  // Lags of one column, one row and both in the grid of the network.
  for (const std::uint64_t n : {64u, 65u, 1000u, 65536u, 65537u, 1048575u, 1048577u}) {
    const std::uint64_t columns = lanepack::detail::ceil_sqrt(n);
    for (const std::uint64_t lag : {std::uint64_t{1}, std::uint64_t{2}, columns, columns + 1}) {
      CAPTURE(n, lag);
      lanepack_test::gen gen(n * 1000 + lag);
      std::vector<std::uint64_t> counts(64);
      constexpr int pairs = 20000;
      double skipped = 0;
      for (int i = 0; i < pairs; ++i) {
        const keyed_permutation order(n, {.seed = gen.bits()});
        const std::uint64_t position = gen.between(0, n - 1);
        const std::uint64_t a = order(position);
        const std::uint64_t b = order((position + lag) % n);
        // The distance is uniform over 1 to n - 1.
        const std::uint64_t distance = (b + n - a) % n - 1;
        const std::uint64_t limit = (n - 1) / 8 * 8;
        if (distance >= limit) {
          skipped += 1;
          continue;
        }
        ++counts[distance * 8 / limit * 8 + a * 8 / n];
      }
      CHECK(skipped < pairs / 4);
      // Eighths of the records may differ in size by one where n is small.
      const double slack = n < 100 ? 12 : 4.5;
      CHECK(std::abs(chi_square_deviate(counts, (pairs - skipped) / 64)) < slack);
    }
  }
}

TEST_CASE("permutation: one order looks random", "[permutation]") {
  for (const std::uint64_t n : {4096u, 4097u, 65535u, 65537u, 262144u, 262145u}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(n, seed);
      const std::vector<std::uint64_t> order = all_of(keyed_permutation(n, {.seed = seed}));
      const auto size = static_cast<double>(n);
      double displacement = 0;
      double product = 0;
      std::uint64_t fixed = 0;
      std::uint64_t ascents = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const auto here = static_cast<double>(order[i]);
        const auto next = static_cast<double>(order[(i + 1) % n]);
        displacement += std::abs(here - static_cast<double>(i));
        product += (here - (size - 1) / 2) * (next - (size - 1) / 2);
        fixed += order[i] == i ? 1 : 0;
        ascents += order[(i + 1) % n] > order[i] ? 1 : 0;
      }
      // Mean displacement n/3 (standard deviation sqrt(2n^3/45)/n), serial correlation 0 (1/sqrt
      // n), ascents n/2 (sqrt(n/12)), fixed points Poisson with mean 1; five deviations each.
      CHECK(std::abs(displacement / size - size / 3) < 5 * std::sqrt(2 * size / 45));
      CHECK(std::abs(product / size / (size * size / 12)) < 5 / std::sqrt(size));
      CHECK(std::abs(static_cast<double>(ascents) - size / 2) < 5 * std::sqrt(size / 12));
      CHECK(fixed <= 8);
    }
  }
}

TEST_CASE("permutation: fixed points number one on average", "[permutation]") {
  for (const std::uint64_t n : {8u, 9u, 63u, 100u, 1000u}) {
    CAPTURE(n);
    constexpr int seeds = 2000;
    int fixed = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const std::vector<std::uint64_t> order = all_of(keyed_permutation(n, {.seed = seed}));
      for (std::size_t i = 0; i < n; ++i) fixed += order[i] == i ? 1 : 0;
    }
    // Variance 1 a permutation: standard deviation sqrt(2000) = 45; five of them.
    CHECK(std::abs(fixed - seeds) < 225);
  }
}

TEST_CASE("permutation: every part of the key changes the whole order", "[permutation]") {
  constexpr std::uint64_t n = 100000;
  const random_key key{.seed = 1, .epoch = 1, .stage = 1, .lane = 1};
  const std::vector<std::uint64_t> order = all_of(keyed_permutation(n, key));
  std::vector<random_key> others(6, key);
  others[0].seed = 2;
  others[1].seed = 1 + two_to_63;
  others[2].epoch = 2;
  others[3].epoch = 1 + two_to_63;
  others[4].stage = 2;
  others[5].lane = 2;
  for (const random_key& other : others) {
    const std::vector<std::uint64_t> changed = all_of(keyed_permutation(n, other));
    int same = 0;
    for (std::size_t i = 0; i < n; ++i) same += order[i] == changed[i] ? 1 : 0;
    // Poisson with mean 1.
    CHECK(same <= 8);
  }
}

TEST_CASE("permutation: the divider is exact at the edges", "[permutation]") {
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  lanepack_test::gen gen(2);
  std::vector<std::uint64_t> divisors = {1, 2, 3, 5, 7, 10, 1u << 31, 3037000500, ones - 1, ones};
  for (int i = 0; i < 200; ++i)
    divisors.push_back(std::max<std::uint64_t>(1, gen.heavy_tailed(64)));
  for (const std::uint64_t divisor : divisors) {
    const lanepack::detail::fixed_divider divide(divisor);
    std::vector<std::uint64_t> values = {0, 1, divisor - 1, divisor, ones, ones - 1, two_to_63};
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t multiple = gen.bits() / divisor * divisor;
      values.insert(values.end(), {multiple, multiple - 1, multiple + 1, gen.heavy_tailed(64)});
    }
    for (const std::uint64_t value : values) {
      CAPTURE(divisor, value);
      const auto [quotient, remainder] = divide(value);
      REQUIRE(quotient == value / divisor);
      REQUIRE(remainder == value % divisor);
    }
  }
}

TEST_CASE("permutation: ceil_sqrt is the smallest root that is large enough", "[permutation]") {
  using lanepack::detail::ceil_sqrt;
  CHECK(ceil_sqrt(0) == 1);
  CHECK(ceil_sqrt(two_to_63) == 3037000500);
  for (std::uint64_t root = 1; root < 3000; ++root) {
    CHECK(ceil_sqrt(root * root) == root);
    CHECK(ceil_sqrt(root * root + 1) == root + 1);
    CHECK(ceil_sqrt((root + 1) * (root + 1) - 1) == root + 1);
  }
}

}  // namespace
