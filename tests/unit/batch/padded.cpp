#include <lanepack/batch/padded.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

using namespace lanepack;
using namespace lanepack_test;
using ints = std::vector<int>;

TEST_CASE("batch: padded rows are as wide as the longest record", "[batch]") {
  const std::vector<std::uint64_t> lengths{3, 1, 4};
  layout_options options;
  options.pad_token = 9;
  const padded_layout layout(options, lengths);
  CHECK(layout.rows() == 3);
  CHECK(layout.width() == 4);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 3, 1);
  const padded_view batch = layout.complete(slab.bytes());
  CHECK(batch.rows() == 3);
  CHECK(batch.width() == 4);
  CHECK(numbers(batch.tokens()) == ints{1, 2, 3, 9, 4, 9, 9, 9, 5, 6, 7, 8});
  CHECK(numbers(batch.labels()) == ints{2, 3, -100, -100, -100, -100, -100, -100, 6, 7, 8, -100});
  CHECK(numbers(batch.position_ids()) == ints{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(numbers(batch.loss_mask()) == ints{1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0});
  CHECK(numbers(batch.lengths()) == ints{3, 1, 4});
  CHECK(batch.counts() ==
        batch_counts{.records = 3, .tokens = 8, .loss_tokens = 5, .padding_tokens = 4});
}

TEST_CASE("batch: padded widths meet both multiples", "[batch]") {
  layout_options options;
  options.record_multiple = 4;
  // 5 is rounded up to 8; 3 rows of 8 are 24, and 3 rows need a width that 16 divides.
  options.total_multiple = 16;
  CHECK(padded_layout::padded_width(options, 5, 3) == 16);
  // 2 rows need a width that 8 divides, 16 rows any.
  CHECK(padded_layout::padded_width(options, 5, 2) == 8);
  CHECK(padded_layout::padded_width(options, 3, 16) == 4);
  options.record_multiple = 6;
  CHECK(padded_layout::padded_width(options, 5, 4) == 12);
}

TEST_CASE("batch: padded rows carry masks and masked records", "[batch]") {
  const std::vector<std::uint64_t> lengths{3, 4};
  padded_layout layout({}, lengths);
  layout.mask_record(0);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 2, 1);
  layout.mask_span(slab.bytes(), 1)[2] = 0;
  const padded_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.labels()) == ints{-100, -100, -100, -100, 5, -100, 7, -100});
  CHECK(numbers(batch.loss_mask()) == ints{0, 0, 0, 0, 1, 0, 1, 0});
  CHECK(batch.counts().loss_tokens == 2);

  const test_slab copy(batch.slab_bytes());
  std::memcpy(copy.bytes().data(), slab.bytes().data(), batch.slab_bytes());
  CHECK(numbers(batch.over(copy.bytes().data()).lengths()) == ints{3, 4});
}

TEST_CASE("batch: padded refuses what does not fit", "[batch]") {
  const auto build = [](const std::vector<std::uint64_t>& lengths) {
    return padded_layout({}, lengths);
  };
  CHECK_THROWS_WITH(build({}), "record_tokens: found no record, expected at least 1 record");
  CHECK_THROWS_WITH(build({1, 0}),
                    "record_tokens: found 0 tokens for record 1, expected at least 1 token in "
                    "every record of a micro-batch");
  CHECK_THROWS_WITH(build({1, 1073741824}),
                    "record_tokens: found a micro-batch of 2 rows of 1073741824 tokens, expected "
                    "at most 2147483647 tokens with padding");
  CHECK_THROWS_AS(build({~std::uint64_t{0}, 5}), invalid_option);
  const padded_layout layout = build({3});
  const test_slab slab(layout.slab_bytes());
  CHECK_THROWS_AS(layout.complete(slab.bytes().first(8)), state_error);
}
