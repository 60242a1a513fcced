#include <lanepack/packer/chunking.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::gen;

namespace {

struct formed {
  micro_batch_list records;
  std::vector<record_chunk> chunks;
};

formed form(const micro_batch_options& options, const std::vector<std::uint64_t>& tokens,
            std::uint64_t multiple = 1) {
  formed out;
  chunked_micro_batcher batcher(options, multiple);
  batcher.form(tokens, out.records, out.chunks);
  return out;
}

std::vector<std::uint32_t> bin(const formed& step, std::size_t index) {
  const auto records = step.records[index];
  return {records.begin(), records.end()};
}

}  // namespace

TEST_CASE("chunking: chunks are of nearly equal size and cover the record", "[packer]") {
  REQUIRE(chunk_of(10, 3, 0, 1) == record_chunk{0, 3, 0, 4});
  REQUIRE(chunk_of(10, 3, 1, 1) == record_chunk{1, 3, 4, 3});
  REQUIRE(chunk_of(10, 3, 2, 1) == record_chunk{2, 3, 7, 3});
  // 10 tokens are 3 units of 4: 2 in the first chunk, 1 in the last, which is not full.
  REQUIRE(chunk_of(10, 2, 0, 4) == record_chunk{0, 2, 0, 8});
  REQUIRE(chunk_of(10, 2, 1, 4) == record_chunk{1, 2, 8, 2});
  REQUIRE(chunk_of(7, 1, 0, 4) == record_chunk{0, 1, 0, 7});
}

TEST_CASE("chunking: a long record stands alone in consecutive micro-batches", "[packer]") {
  const formed step = form({.capacity_tokens = 10}, {4, 25, 6, 12, 9});
  REQUIRE(step.chunks ==
          std::vector<record_chunk>{
              {0, 3, 0, 9}, {1, 3, 9, 8}, {2, 3, 17, 8}, {0, 2, 0, 6}, {1, 2, 6, 6}});
  REQUIRE(step.records.size() == 7);
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(bin(step, i) == std::vector<std::uint32_t>{1});
  for (std::size_t i = 3; i < 5; ++i) REQUIRE(bin(step, i) == std::vector<std::uint32_t>{3});
  REQUIRE(bin(step, 5) == std::vector<std::uint32_t>{0, 2});
  REQUIRE(bin(step, 6) == std::vector<std::uint32_t>{4});
}

TEST_CASE("chunking: without long records it is the micro-batcher", "[packer]") {
  const std::vector<std::uint64_t> tokens = {4, 6, 3, 9, 10};
  micro_batch_list expected;
  micro_batcher({.capacity_tokens = 10}).form(tokens, expected);
  const formed step = form({.capacity_tokens = 10}, tokens);
  REQUIRE(step.records == expected);
  REQUIRE(step.chunks.empty());
}

TEST_CASE("chunking: a fixed number counts chunks", "[packer]") {
  const std::vector<std::uint64_t> tokens = {25, 4, 6};
  SECTION("whole records are spread first") {
    const formed step = form({.capacity_tokens = 10, .micro_batches = 5}, tokens);
    REQUIRE(step.records.size() == 5);
    REQUIRE(step.chunks.size() == 3);
  }
  SECTION("then records are cut further") {
    const formed step = form({.capacity_tokens = 10, .micro_batches = 7}, tokens);
    REQUIRE(step.records.size() == 7);
    REQUIRE(step.chunks.size() == 5);
    REQUIRE(step.chunks[0] == record_chunk{0, 5, 0, 5});
  }
  SECTION("a multiple is reached alike") {
    const formed step = form({.capacity_tokens = 10, .multiple_of = 3}, tokens);
    REQUIRE(step.records.size() == 6);
    REQUIRE(step.chunks.size() == 4);
  }
  SECTION("only long records") {
    REQUIRE(form({.capacity_tokens = 10, .micro_batches = 4}, {25}).chunks.size() == 4);
    REQUIRE_THROWS_WITH(form({.capacity_tokens = 10, .micro_batches = 2}, {25}),
                        ContainsSubstring("found a step that takes 3 micro-batches"));
  }
  SECTION("too few") {
    REQUIRE_THROWS_WITH(form({.capacity_tokens = 10, .micro_batches = 3}, tokens),
                        ContainsSubstring("expected 3"));
  }
  SECTION("more than there are tokens") {
    REQUIRE_THROWS_WITH(form({.capacity_tokens = 2, .micro_batches = 9}, {5, 1}),
                        ContainsSubstring("micro-batches"));
  }
}

TEST_CASE("chunking: refuses a multiple that does not divide the capacity", "[packer]") {
  REQUIRE_THROWS_WITH(chunked_micro_batcher({.capacity_tokens = 10}, 4),
                      "multiple: found 4, expected a divisor of capacity_tokens = 10");
  REQUIRE_THROWS_WITH(chunked_micro_batcher({.capacity_tokens = 10}, 0),
                      "multiple: found 0, expected a divisor of capacity_tokens = 10");
}

TEST_CASE("chunking: every token once, in order, within the capacity", "[packer]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const std::uint64_t multiple = random.between(1, 4);
    const std::uint64_t capacity = multiple * random.between(1, 20);
    std::vector<std::uint64_t> tokens(random.between(1, 30));
    for (std::uint64_t& length : tokens) {
      length = multiple * random.between(1, random.one_in(3) ? 90 : 20);
    }
    micro_batch_options options{.capacity_tokens = capacity};
    options.multiple_of = static_cast<std::uint32_t>(random.between(1, 3));
    formed step;
    try {
      step = form(options, tokens, multiple);
    } catch (const data_error&) {
      // Fewer parts than the multiple asks for.
      REQUIRE(options.multiple_of > 1);
      return;
    }
    REQUIRE(step.records.size() % options.multiple_of == 0);
    std::vector<std::uint64_t> covered(tokens.size());
    for (std::size_t i = 0; i < step.records.size(); ++i) {
      REQUIRE(!step.records[i].empty());
      std::uint64_t load = 0;
      for (const std::uint32_t record : step.records[i]) {
        if (i < step.chunks.size()) {
          const record_chunk& chunk = step.chunks[i];
          REQUIRE(step.records[i].size() == 1);
          REQUIRE(chunk.prefix_tokens == covered[record]);
          REQUIRE((chunk.index == 0 || step.records[i - 1].front() == record));
          REQUIRE(chunk.tokens % multiple == 0);
          covered[record] += chunk.tokens;
          load += chunk.tokens;
        } else {
          REQUIRE(covered[record] == 0);
          covered[record] = tokens[record];
          load += tokens[record];
        }
      }
      REQUIRE(load >= 1);
      REQUIRE(load <= capacity);
    }
    REQUIRE(covered == tokens);
  });
}

TEST_CASE("chunking: a fixed number that the worst step fits", "[packer]") {
  // 3 chunks of 1 record, and 3 records of 30 tokens, which share a micro-batch of 100.
  const lanepack::worst_case_chunks worst{
      .whole = {.records = 3, .total_tokens = 90, .largest_record = 30},
      .cut_records = 1,
      .chunks = 3,
      .uncut = {.records = 4, .total_tokens = 190, .largest_record = 100}};
  const auto fits = [&](std::uint32_t micro_batches) {
    return worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = micro_batches},
                                         worst);
  };
  CHECK_FALSE(fits(3));
  CHECK(fits(4));
  // A step of 4 whole records cannot be 5 micro-batches.
  CHECK_FALSE(fits(5));
}

TEST_CASE("chunking: a multiple that is accepted never fails", "[packer]") {
  // Of the corpus come steps with any number of long records, also with none.
  std::uint64_t accepted = 0;
  lanepack_test::for_each_seed(2000, [&](std::uint64_t seed, gen& random) {
    const std::uint64_t multiple = std::uint64_t{1} << random.between(0, 4);
    lanepack::micro_batch_options options{
        .capacity_tokens = multiple * random.between(1, 12),
        .multiple_of = static_cast<std::uint32_t>(random.between(2, 9))};
    const std::uint64_t records = random.between(1, 14);
    const std::uint64_t longest = options.capacity_tokens * random.between(2, 5);
    CAPTURE(seed, multiple, options.capacity_tokens, options.multiple_of, records, longest);
    const lanepack::worst_case_chunks worst{
        .whole = {},
        .cut_records = records,
        .chunks = records * (longest / options.capacity_tokens),
        .uncut = {.records = records,
                  .total_tokens = records * options.capacity_tokens,
                  .largest_record = options.capacity_tokens}};
    if (!worst_case_fits_micro_batches(options, worst, multiple)) return;
    ++accepted;
    lanepack::chunked_micro_batcher batcher(options, multiple);
    for (int step = 0; step < 20; ++step) {
      std::vector<std::uint64_t> tokens(records);
      const std::uint64_t long_ones = random.between(0, 3);
      for (std::uint64_t& each : tokens) {
        const bool cut = random.between(0, 3) < long_ones;
        const std::uint64_t most = cut ? longest : options.capacity_tokens;
        each = (cut ? options.capacity_tokens / multiple + 1
                    : random.between(1, options.capacity_tokens / multiple)) *
               multiple;
        if (random.one_in(2)) each = std::max(each, most);
      }
      lanepack::micro_batch_list out;
      std::vector<lanepack::record_chunk> chunks;
      batcher.form(tokens, out, chunks);
      REQUIRE(out.size() % options.multiple_of == 0);
    }
  });
  REQUIRE(accepted > 50);
}
