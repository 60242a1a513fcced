#include <lanepack/batch/thd.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

using namespace lanepack;
using namespace lanepack_test;
using Catch::Matchers::ContainsSubstring;
using ints = std::vector<int>;

TEST_CASE("batch: thd keeps records of [5,1,1,7] apart", "[batch]") {
  const std::vector<std::uint64_t> lengths{5, 1, 1, 7};
  const thd_layout layout({}, lengths);
  CHECK(layout.records() == 4);
  CHECK(layout.total_tokens() == 14);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 4, 10);
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.tokens()) == ints{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(numbers(batch.labels()) ==
        ints{11, 12, 13, 14, -100, -100, -100, 18, 19, 20, 21, 22, 23, -100});
  CHECK(numbers(batch.position_ids()) == ints{0, 1, 2, 3, 4, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  CHECK(numbers(batch.loss_mask()) == ints{1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0});
  CHECK(numbers(batch.cu_seqlens()) == ints{0, 5, 6, 7, 14});
  CHECK(numbers(batch.cu_seqlens_padded()) == ints{0, 5, 6, 7, 14});
  CHECK(batch.max_seqlen() == 7);
  CHECK(batch.max_seqlen_padded() == 7);
  CHECK(batch.segments() == 4);
  CHECK_FALSE(batch.pad_between_segments());
  CHECK(batch.counts() ==
        batch_counts{.records = 4, .tokens = 14, .loss_tokens = 10, .padding_tokens = 0});
}

TEST_CASE("batch: thd gives real lengths and padded offsets", "[batch]") {
  // With records padded to 2, 1 2 1 2 tokens occupy 2 each; a row padded to 12 has 4 more.
  const std::vector<std::uint64_t> lengths{1, 2, 1, 2};
  layout_options options;
  options.record_multiple = 2;
  options.total_multiple = 12;
  options.pad_token = 99;
  const thd_layout layout(options, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 4, 1);
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.tokens()) == ints{1, 99, 2, 3, 4, 99, 5, 6, 99, 99, 99, 99});
  CHECK(numbers(batch.labels()) ==
        ints{-100, -100, 3, -100, -100, -100, 6, -100, -100, -100, -100, -100});
  CHECK(numbers(batch.position_ids()) == ints{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3});
  CHECK(numbers(batch.loss_mask()) == ints{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0});
  CHECK(numbers(batch.cu_seqlens()) == ints{0, 1, 3, 4, 6, 10});
  CHECK(numbers(batch.cu_seqlens_padded()) == ints{0, 2, 4, 6, 8, 12});
  CHECK(batch.max_seqlen() == 4);
  CHECK(batch.max_seqlen_padded() == 4);
  CHECK(batch.pad_between_segments());
  CHECK(batch.counts() ==
        batch_counts{.records = 4, .tokens = 6, .loss_tokens = 2, .padding_tokens = 6});
}

TEST_CASE("batch: thd turns [8] into one segment and [8] with padding into two", "[batch]") {
  const std::vector<std::uint64_t> lengths{8};
  const thd_layout plain({}, lengths);
  const test_slab plain_slab(plain.slab_bytes());
  write_records(plain, plain_slab.bytes(), 1, 1);
  const micro_batch_view alone = plain.complete(plain_slab.bytes());
  CHECK(numbers(alone.cu_seqlens()) == ints{0, 8});
  CHECK(alone.counts().loss_tokens == 7);

  layout_options options;
  options.total_multiple = 16;
  const thd_layout padded(options, lengths);
  const test_slab padded_slab(padded.slab_bytes());
  write_records(padded, padded_slab.bytes(), 1, 1);
  const micro_batch_view two = padded.complete(padded_slab.bytes());
  CHECK(numbers(two.cu_seqlens()) == ints{0, 8, 16});
  CHECK(numbers(two.cu_seqlens_padded()) == ints{0, 8, 16});
  CHECK_FALSE(two.pad_between_segments());
  CHECK(two.counts() ==
        batch_counts{.records = 1, .tokens = 8, .loss_tokens = 7, .padding_tokens = 8});
  CHECK(two.segments() == 2);
}

TEST_CASE("batch: the padding at the end keeps the records' multiple", "[batch]") {
  const std::vector<std::uint64_t> lengths{3};
  layout_options options;
  options.record_multiple = 4;
  options.total_multiple = 6;
  CHECK(thd_layout(options, lengths).total_tokens() == 12);
}

TEST_CASE("batch: the longest segment may be the padding", "[batch]") {
  const std::vector<std::uint64_t> lengths{1};
  layout_options options;
  options.total_multiple = 16;
  const thd_layout layout(options, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 1, 1);
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(batch.max_seqlen() == 15);
  CHECK(batch.max_seqlen_padded() == 15);
}

TEST_CASE("batch: thd shifts a record's loss mask with its labels", "[batch]") {
  const std::vector<std::uint64_t> lengths{4, 3};
  const thd_layout layout({}, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 2, 1);
  const std::array<std::uint8_t, 4> first{1, 0, 1, 0};
  const std::array<std::uint8_t, 3> second{1, 0, 1};
  std::memcpy(layout.mask_span(slab.bytes(), 0).data(), first.data(), first.size());
  std::memcpy(layout.mask_span(slab.bytes(), 1).data(), second.data(), second.size());
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.labels()) == ints{-100, 3, -100, -100, -100, 7, -100});
  CHECK(numbers(batch.loss_mask()) == ints{0, 1, 0, 0, 0, 1, 0});
  CHECK(batch.counts().loss_tokens == 2);
}

TEST_CASE("batch: a pad token that is also data masks no data", "[batch]") {
  // 0 ends every record and fills the padding.
  const std::vector<std::uint64_t> lengths{3, 2};
  layout_options options;
  options.total_multiple = 8;
  const thd_layout layout(options, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 2, 1);
  layout.token_span(slab.bytes(), 0)[2] = 0;
  layout.token_span(slab.bytes(), 1)[1] = 0;
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.tokens()) == ints{1, 2, 0, 4, 0, 0, 0, 0});
  CHECK(numbers(batch.labels()) == ints{2, 0, -100, 0, -100, -100, -100, -100});
  CHECK(numbers(batch.loss_mask()) == ints{1, 1, 0, 1, 0, 0, 0, 0});
  CHECK(batch.counts().loss_tokens == 3);
}

TEST_CASE("batch: megatron_compat predicts over the boundary", "[batch]") {
  const std::vector<std::uint64_t> lengths{2, 1, 3};
  layout_options options;
  options.boundary = boundary_labels::megatron_compat;
  options.total_multiple = 8;
  {
    const thd_layout layout(options, lengths);
    const test_slab slab(layout.slab_bytes());
    write_records(layout, slab.bytes(), 3, 1);
    const micro_batch_view batch = layout.complete(slab.bytes());
    CHECK(numbers(batch.labels()) == ints{2, 3, 4, 5, 6, -100, -100, -100});
    CHECK(numbers(batch.loss_mask()) == ints{1, 1, 1, 1, 1, 0, 0, 0});
    CHECK(numbers(batch.position_ids()) == ints{0, 1, 0, 0, 1, 2, 0, 1});
    CHECK(batch.counts().loss_tokens == 5);
  }
  {
    // The next record's first token is not to be predicted, or the next record counts no loss.
    thd_layout layout(options, lengths);
    const test_slab slab(layout.slab_bytes());
    write_records(layout, slab.bytes(), 3, 1);
    layout.mask_span(slab.bytes(), 1)[0] = 0;
    layout.mask_record(2);
    const micro_batch_view batch = layout.complete(slab.bytes());
    CHECK(numbers(batch.labels()) == ints{2, -100, -100, -100, -100, -100, -100, -100});
    CHECK(batch.counts().loss_tokens == 1);
  }
  {
    // Padding between records ends the shift.
    options.record_multiple = 2;
    options.reads_loss_mask = false;
    const thd_layout layout(options, lengths);
    const test_slab slab(layout.slab_bytes());
    write_records(layout, slab.bytes(), 3, 1);
    const micro_batch_view batch = layout.complete(slab.bytes());
    CHECK(numbers(batch.labels()) == ints{2, 3, -100, -100, 5, 6, -100, -100});
    CHECK(batch.counts().loss_tokens == 4);
  }
}

TEST_CASE("batch: a masked record counts no loss", "[batch]") {
  const std::vector<std::uint64_t> lengths{3, 3};
  for (const bool reads : {false, true}) {
    layout_options options;
    options.reads_loss_mask = reads;
    thd_layout layout(options, lengths);
    layout.mask_record(0);
    const test_slab slab(layout.slab_bytes());
    write_records(layout, slab.bytes(), 2, 1);
    const micro_batch_view batch = layout.complete(slab.bytes());
    CHECK(numbers(batch.tokens()) == ints{1, 2, 3, 4, 5, 6});
    CHECK(numbers(batch.labels()) == ints{-100, -100, -100, 5, 6, -100});
    CHECK(numbers(batch.loss_mask()) == ints{0, 0, 0, 1, 1, 0});
    CHECK(batch.counts() ==
          batch_counts{.records = 2, .tokens = 6, .loss_tokens = 2, .padding_tokens = 0});
  }
}

TEST_CASE("batch: thd produces the fields asked for alone", "[batch]") {
  const std::vector<std::uint64_t> lengths{100, 28};
  layout_options options;
  options.labels = false;
  options.position_ids = false;
  options.loss_mask = false;
  options.reads_loss_mask = false;
  const thd_layout layout(options, lengths);
  // 128 tokens of 4 bytes and two arrays of 3 numbers, each rounded up to 64 bytes.
  CHECK(layout.slab_bytes() == 512 + 64 + 64);
  const test_slab slab(layout.slab_bytes());
  CHECK(layout.mask_span(slab.bytes(), 0).empty());
  write_records(layout, slab.bytes(), 2, 1);
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(batch.tokens().size() == 128);
  CHECK(batch.labels().empty());
  CHECK(batch.position_ids().empty());
  CHECK(batch.loss_mask().empty());
  CHECK(batch.counts().loss_tokens == 126);

  // A mask that is read for the labels is not a field of the batch.
  options.labels = true;
  options.reads_loss_mask = true;
  const thd_layout labelled(options, lengths);
  const test_slab labelled_slab(labelled.slab_bytes());
  write_records(labelled, labelled_slab.bytes(), 2, 1);
  labelled.mask_span(labelled_slab.bytes(), 0)[1] = 0;
  const micro_batch_view with_labels = labelled.complete(labelled_slab.bytes());
  CHECK(with_labels.loss_mask().empty());
  CHECK(with_labels.labels()[0] == ignored_label);
  CHECK(with_labels.counts().loss_tokens == 125);
}

TEST_CASE("batch: fields of an aligned slab are aligned to 64 bytes", "[batch]") {
  const std::vector<std::uint64_t> lengths{3, 5};
  const thd_layout layout({}, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 2, 1);
  const micro_batch_view batch = layout.complete(slab.bytes());
  const auto aligned = [](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 64 == 0;
  };
  CHECK(aligned(batch.tokens().data()));
  CHECK(aligned(batch.labels().data()));
  CHECK(aligned(batch.position_ids().data()));
  CHECK(aligned(batch.loss_mask().data()));
  CHECK(aligned(batch.cu_seqlens().data()));
  CHECK(aligned(batch.cu_seqlens_padded().data()));
}

TEST_CASE("batch: a view moves to a copy of its slab", "[batch]") {
  const std::vector<std::uint64_t> lengths{3, 5};
  const thd_layout layout({}, lengths);
  const test_slab slab(layout.slab_bytes());
  write_records(layout, slab.bytes(), 2, 1);
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(batch.slab_bytes() == layout.slab_bytes());
  const test_slab copy(batch.slab_bytes());
  std::memcpy(copy.bytes().data(), slab.bytes().data(), batch.slab_bytes());
  std::memset(slab.bytes().data(), 0, slab.bytes().size());
  const micro_batch_view moved = batch.over(copy.bytes().data());
  CHECK(numbers(moved.tokens()) == ints{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(numbers(moved.cu_seqlens()) == ints{0, 3, 8});
  CHECK(moved.counts() == batch.counts());
}

TEST_CASE("batch: an empty view has nothing", "[batch]") {
  const micro_batch_view none;
  CHECK(none.tokens().empty());
  CHECK(none.cu_seqlens().empty());
  CHECK(none.segments() == 0);
  CHECK(none.counts() == batch_counts{});
}

TEST_CASE("batch: thd refuses records that cannot be segments", "[batch]") {
  const auto build = [](const std::vector<std::uint64_t>& lengths,
                        std::uint32_t record_multiple = 1, std::uint32_t total_multiple = 1) {
    layout_options options;
    options.record_multiple = record_multiple;
    options.total_multiple = total_multiple;
    return thd_layout(options, lengths);
  };
  CHECK_THROWS_WITH(build({}), "record_tokens: found no record, expected at least 1 record");
  CHECK_THROWS_WITH(build({3, 0, 1}),
                    "record_tokens: found 0 tokens for record 1, expected at least 1 token in "
                    "every record of a micro-batch");
  CHECK(build({2147483646, 1}).total_tokens() == 2147483647);
  CHECK_THROWS_WITH(build({2147483647, 1}),
                    "record_tokens: found a micro-batch of at least 2147483648 tokens, expected "
                    "at most 2147483647, the range of cu_seqlens");
  CHECK_THROWS_WITH(build({2147483647}, 2), ContainsSubstring("2147483648"));
  CHECK_THROWS_WITH(build({2147483647}, 1, 16), ContainsSubstring("2147483648"));
  CHECK_THROWS_AS(build({~std::uint64_t{0}, ~std::uint64_t{0}}, 7), invalid_option);
  CHECK_THROWS_AS(build({1}, 0), invalid_option);
}

TEST_CASE("batch: thd refuses a slab that is too small or crooked", "[batch]") {
  const std::vector<std::uint64_t> lengths{3};
  const thd_layout layout({}, lengths);
  const test_slab slab(layout.slab_bytes() + 4);
  const auto small = slab.bytes().first(layout.slab_bytes() - 1);
  CHECK_THROWS_AS(layout.token_span(small, 0), state_error);
  CHECK_THROWS_AS(layout.mask_span(small, 0), state_error);
  CHECK_THROWS_WITH(layout.complete(small),
                    "slab: found 383 bytes, expected at least 384, aligned to 4 bytes");
  CHECK_THROWS_AS(layout.complete(slab.bytes().subspan(1)), state_error);
  const auto shifted = slab.bytes().subspan(4);
  write_records(layout, shifted, 1, 1);
  CHECK(numbers(layout.complete(shifted).labels()) == ints{2, 3, -100});
}

TEST_CASE("batch: lengths stay exact beyond 2^24 tokens", "[batch]") {
  layout_options options;
  options.labels = false;
  options.loss_mask = false;
  options.reads_loss_mask = false;
  const std::vector<std::uint64_t> lengths{16777215, 1, 1};
  const thd_layout layout(options, lengths);
  const test_slab slab(layout.slab_bytes());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto tokens = layout.token_span(slab.bytes(), i);
    std::fill(tokens.begin(), tokens.end(), 5);
  }
  const micro_batch_view batch = layout.complete(slab.bytes());
  CHECK(numbers(batch.cu_seqlens()) == ints{0, 16777215, 16777216, 16777217});
  CHECK(batch.counts().tokens == 16777217);
  CHECK(batch.counts().loss_tokens == 16777214);
  CHECK(batch.position_ids()[16777214] == 16777214);
  CHECK(batch.position_ids()[16777215] == 0);
  CHECK(batch.position_ids()[16777216] == 0);
}
