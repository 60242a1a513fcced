#include <lanepack/sampler/shuffle.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::block_permutation;
using lanepack::epoch_shuffle;
using lanepack::shuffle_kind;
using lanepack::shuffle_options;

constexpr std::uint64_t two_to_63 = std::uint64_t{1} << 63;

shuffle_options blocks(std::uint64_t block_records, std::uint64_t group_blocks) {
  return {shuffle_kind::block, block_records, group_blocks};
}

template <class Order>
std::vector<std::uint64_t> all_of(const Order& order) {
  std::vector<std::uint64_t> records(order.size());
  std::iota(records.begin(), records.end(), std::uint64_t{0});
  order.apply(records, records);
  return records;
}

TEST_CASE("shuffle: names are read and written", "[shuffle]") {
  for (const shuffle_kind kind : {shuffle_kind::none, shuffle_kind::full, shuffle_kind::block}) {
    CHECK(lanepack::parse_shuffle_kind(lanepack::to_string(kind)) == kind);
  }
  CHECK(lanepack::to_string(shuffle_kind::block) == "block");
  CHECK_THROWS_WITH(lanepack::parse_shuffle_kind("Full"),
                    "shuffle: found 'Full', expected none, full or block");
}

TEST_CASE("shuffle: blocks have the order of a reference in another language", "[shuffle]") {
  // Seed 42, epoch 7. The reference makes a list of the permuted blocks, cuts it into groups and
  // permutes the list of each group's records.
  CHECK(all_of(block_permutation(23, blocks(5, 2), {.seed = 42, .epoch = 7})) ==
        std::vector<std::uint64_t>{7, 21, 8, 20, 5,  22, 6,  9,  16, 1,  15, 18,
                                   4, 3,  2, 19, 17, 0,  13, 11, 14, 10, 12});
  CHECK(all_of(block_permutation(23, blocks(5, 100), {.seed = 42, .epoch = 7})) ==
        std::vector<std::uint64_t>{14, 1,  5, 8,  21, 7,  11, 10, 13, 18, 2, 20,
                                   15, 12, 9, 19, 0,  17, 16, 3,  6,  4,  22});
  const block_permutation order(1000, blocks(64, 4), {.seed = 42, .epoch = 7});
  const std::uint64_t positions[] = {0, 1, 255, 256, 500, 999};
  const std::uint64_t records[] = {255, 671, 684, 725, 860, 444};
  for (std::size_t i = 0; i < 6; ++i) CHECK(order(positions[i]) == records[i]);
}

TEST_CASE("shuffle: a group of blocks reads whole blocks and nothing else", "[shuffle]") {
  for (const std::uint64_t n : {1u, 2u, 63u, 64u, 65u, 640u, 641u, 700u, 5000u}) {
    for (const std::uint64_t block : {1u, 7u, 64u, 100000u}) {
      for (const std::uint64_t group : {1u, 3u, 1000u}) {
        CAPTURE(n, block, group);
        const block_permutation order(n, blocks(block, group), {.seed = 5, .epoch = n});
        const std::vector<std::uint64_t> records = all_of(order);
        std::size_t position = 0;
        std::vector<bool> seen(n);
        std::size_t groups = 0;
        while (position < n) {
          // The blocks of a group are those of its records; together they must fill it exactly.
          std::set<std::uint64_t> touched;
          std::size_t end = position;
          std::uint64_t size = 0;
          while (end < n && (end < position + size || touched.size() < group)) {
            const std::uint64_t number = records[end] / block;
            if (touched.insert(number).second) size += std::min(block, n - number * block);
            REQUIRE_FALSE(seen[records[end]]);
            seen[records[end]] = true;
            ++end;
          }
          REQUIRE(end - position == size);
          position = end;
          ++groups;
        }
        const std::uint64_t block_count = (n + block - 1) / block;
        CHECK(groups == (block_count + group - 1) / group);
      }
    }
  }
}

TEST_CASE("shuffle: blocks lead back, also where all records are too many to visit", "[shuffle]") {
  lanepack_test::gen gen(3);
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1000000007},
                                std::uint64_t{1} << 40, two_to_63 - 1, two_to_63}) {
    for (const shuffle_options& options :
         {blocks(1, 1), blocks(1000, 7), blocks(1024, 64), blocks(two_to_63 - 2, 1),
          blocks(~std::uint64_t{0}, ~std::uint64_t{0}), blocks(1, ~std::uint64_t{0})}) {
      CAPTURE(n, options.block_records, options.group_blocks);
      const block_permutation order(n, options, {.seed = 1, .epoch = 2});
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t position = i == 0 ? 0 : i == 1 ? n - 1 : gen.between(0, n - 1);
        const std::uint64_t record = order(position);
        REQUIRE(record < n);
        REQUIRE(order.position_of(record) == position);
        REQUIRE(order(order.position_of(position)) == position);
      }
    }
  }
}

TEST_CASE("shuffle: how positions are split over calls does not matter", "[shuffle]") {
  const block_permutation order(10000, blocks(16, 5), {.seed = 1, .epoch = 2});
  const std::vector<std::uint64_t> together = all_of(order);
  lanepack_test::gen gen(4);
  std::vector<std::uint64_t> positions(10000);
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  gen.shuffle(std::span(positions));
  std::vector<std::uint64_t> scattered(10000);
  order.apply(positions, scattered);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    REQUIRE(scattered[i] == together[positions[i]]);
    REQUIRE(order(positions[i]) == together[positions[i]]);
  }
}

TEST_CASE("shuffle: epochs and seeds order blocks and records anew", "[shuffle]") {
  const std::vector<std::uint64_t> first =
      all_of(block_permutation(4096, blocks(64, 4), {.seed = 1, .epoch = 1}));
  for (const lanepack::random_key& key :
       {lanepack::random_key{.seed = 1, .epoch = 2}, lanepack::random_key{.seed = 2, .epoch = 1}}) {
    const std::vector<std::uint64_t> other = all_of(block_permutation(4096, blocks(64, 4), key));
    int same_record = 0;
    int same_block = 0;
    for (std::size_t i = 0; i < 4096; ++i) {
      same_record += first[i] == other[i] ? 1 : 0;
      same_block += first[i] / 64 == other[i] / 64 ? 1 : 0;
    }
    CHECK(same_record <= 10);
    CHECK(same_block <= 400);
  }
}

TEST_CASE("shuffle: groups of one epoch are ordered differently", "[shuffle]") {
  // One block a group: the order inside a group is the record's place in its block.
  const std::vector<std::uint64_t> order =
      all_of(block_permutation(64 * 1000, blocks(1000, 1), {.seed = 1, .epoch = 1}));
  for (std::size_t group = 1; group < 64; ++group) {
    int same = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      same += order[i] % 1000 == order[group * 1000 + i] % 1000 ? 1 : 0;
    }
    CHECK(same <= 9);
  }
}

TEST_CASE("shuffle: empty blocks and groups are refused", "[shuffle]") {
  CHECK_THROWS_WITH(block_permutation(10, blocks(0, 1), {}),
                    "block_records: found 0, expected at least 1");
  CHECK_THROWS_WITH(block_permutation(10, blocks(1, 0), {}),
                    "group_blocks: found 0, expected at least 1");
  CHECK_THROWS_AS(block_permutation(two_to_63 + 1, blocks(1, 1), {}), lanepack::invalid_option);
  CHECK_THROWS_AS(epoch_shuffle(10, blocks(0, 1), 1, 1), lanepack::invalid_option);
}

TEST_CASE("shuffle: an epoch's shuffle is the one that the options name", "[shuffle]") {
  std::vector<std::uint64_t> ascending(500);
  std::iota(ascending.begin(), ascending.end(), std::uint64_t{0});
  CHECK(all_of(epoch_shuffle(500, {.kind = shuffle_kind::none}, 1, 2)) == ascending);
  CHECK(all_of(epoch_shuffle(500, {}, 1, 2)) ==
        all_of(lanepack::keyed_permutation(500, {.seed = 1, .epoch = 2, .stage = 1})));
  CHECK(all_of(epoch_shuffle(500, blocks(10, 3), 1, 2)) ==
        all_of(block_permutation(500, blocks(10, 3), {.seed = 1, .epoch = 2})));
  for (const shuffle_options& options :
       {shuffle_options{shuffle_kind::none}, shuffle_options{}, blocks(10, 3)}) {
    const epoch_shuffle order(500, options, 1, 2);
    const std::vector<std::uint64_t> records = all_of(order);
    for (std::uint64_t i = 0; i < 500; ++i) CHECK(order.position_of(records[i]) == i);
    std::vector<std::uint64_t> apart(500);
    order.apply(ascending, apart);
    CHECK(apart == records);
  }
}

TEST_CASE("shuffle: needs no memory beyond itself", "[shuffle]") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<block_permutation>);
  STATIC_REQUIRE(sizeof(epoch_shuffle) <= 1024);
  CHECK(all_of(block_permutation(0, blocks(4, 4), {})).empty());
}

}  // namespace
