#include <lanepack/corpus/length_histogram.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;

namespace {

std::vector<std::uint32_t> random_lengths(lanepack_test::gen& random, std::size_t count,
                                          unsigned bits) {
  std::vector<std::uint32_t> lengths(count);
  for (auto& length : lengths) length = static_cast<std::uint32_t>(random.heavy_tailed(bits));
  return lengths;
}

}  // namespace

TEST_CASE("corpus: a histogram counts short lengths apart", "[corpus]") {
  length_histogram histogram;
  for (const std::uint64_t length : {0U, 5U, 5U, 4095U, 2048U}) histogram.add(length);
  histogram.add(7, 3);
  histogram.add(9, 0);
  REQUIRE(histogram.records() == 8);
  REQUIRE(histogram.tokens() == 5 + 5 + 4095 + 2048 + 21);
  REQUIRE(histogram.buckets() == std::vector<length_bucket>{{0, 0, 1, 0},
                                                            {5, 5, 2, 10},
                                                            {7, 7, 3, 21},
                                                            {2048, 2048, 1, 2048},
                                                            {4095, 4095, 1, 4095}});
}

TEST_CASE("corpus: buckets of long lengths are narrow and cover every length", "[corpus]") {
  REQUIRE(length_histogram::bounds_of(4096) == std::pair<std::uint64_t, std::uint64_t>{4096, 4097});
  REQUIRE(length_histogram::bounds_of(8191) == std::pair<std::uint64_t, std::uint64_t>{8190, 8191});
  REQUIRE(length_histogram::bounds_of(8192) == std::pair<std::uint64_t, std::uint64_t>{8192, 8195});
  REQUIRE(length_histogram::bounds_of(~std::uint64_t{0}).second == ~std::uint64_t{0});
  std::uint64_t next = 0;
  while (next < (std::uint64_t{1} << 20)) {
    const auto [first, last] = length_histogram::bounds_of(next);
    REQUIRE(first == next);
    REQUIRE(last >= first);
    REQUIRE((last - first + 1) * 2048 <= std::max<std::uint64_t>(first, 2048));
    REQUIRE(length_histogram::bounds_of(last).first == first);
    next = last + 1;
  }
  for (unsigned bit = 20; bit < 64; ++bit) {
    const std::uint64_t length = (std::uint64_t{1} << bit) + 12345;
    const auto [first, last] = length_histogram::bounds_of(length);
    REQUIRE(first <= length);
    REQUIRE(length <= last);
    REQUIRE(last - first < (std::uint64_t{1} << bit) / 2048);
  }
}

TEST_CASE("corpus: ranks and quantiles of a histogram agree with sorted lengths", "[corpus]") {
  lanepack_test::for_each_seed(40, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    auto lengths = random_lengths(random, random.between(1, 300), 20);
    length_histogram histogram;
    for (const std::uint32_t length : lengths) histogram.add(length);
    std::sort(lengths.begin(), lengths.end());
    for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
      const std::uint64_t found = histogram.length_at_rank(rank);
      const auto [first, last] = length_histogram::bounds_of(lengths[rank]);
      REQUIRE(found >= first);
      REQUIRE(found <= last);
    }
    REQUIRE(histogram.quantile(0, 1) == histogram.length_at_rank(0));
    REQUIRE(histogram.quantile(1, 1) == histogram.length_at_rank(lengths.size() - 1));
    REQUIRE(histogram.quantile(1, 2) == histogram.length_at_rank((lengths.size() - 1) / 2));
  });
  REQUIRE(length_histogram().quantile(1, 2) == 0);
}

TEST_CASE("corpus: the mean stands for a bucket with several lengths", "[corpus]") {
  length_histogram histogram;
  histogram.add(8192, 2);
  histogram.add(8195);
  REQUIRE(histogram.buckets() == std::vector<length_bucket>{{8192, 8195, 3, 24579}});
  for (std::uint64_t rank = 0; rank < 3; ++rank) REQUIRE(histogram.length_at_rank(rank) == 8193);
}

TEST_CASE("corpus: merged histograms count what both counted", "[corpus]") {
  lanepack_test::for_each_seed(20, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    length_histogram all;
    length_histogram parts[2];
    for (const std::uint32_t length : random_lengths(random, 200, 24)) {
      all.add(length);
      parts[random.between(0, 1)].add(length);
    }
    parts[0].merge(parts[1]);
    REQUIRE(parts[0] == all);
    length_histogram restored;
    for (const length_bucket& bucket : all.buckets()) REQUIRE(restored.add_bucket(bucket));
    REQUIRE(restored == all);
  });
}

TEST_CASE("corpus: a bucket that cannot be is not restored", "[corpus]") {
  length_histogram histogram;
  REQUIRE_FALSE(histogram.add_bucket({8193, 8195, 1, 8193}));
  REQUIRE_FALSE(histogram.add_bucket({8192, 8194, 1, 8193}));
  REQUIRE_FALSE(histogram.add_bucket({8192, 8195, 2, 16383}));
  REQUIRE_FALSE(histogram.add_bucket({8192, 8195, 2, 16391}));
  REQUIRE(histogram.records() == 0);
  REQUIRE(histogram.add_bucket({8192, 8195, 2, 16390}));
}
