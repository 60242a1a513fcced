#include <lanepack/batch/layout_options.hpp>

#include <cstdint>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("batch: alignments combine to their least common multiple", "[batch]") {
  CHECK(alignment_multiple({}) == 1);
  CHECK(alignment_multiple({1}) == 1);
  CHECK(alignment_multiple({4, 6}) == 12);
  // 2 x cp of 3, tp of 4, FP8: a rule that takes one of them would lose the others.
  CHECK(alignment_multiple({6, 4, 16}) == 48);
  CHECK(alignment_multiple({2 * 4, 8, 32}) == 32);
  CHECK(alignment_multiple({2147483647}) == 2147483647);
}

TEST_CASE("batch: alignments of 0 or beyond int32 are refused", "[batch]") {
  CHECK_THROWS_WITH(alignment_multiple({4, 0}), "alignment: found 0, expected at least 1");
  CHECK_THROWS_WITH(alignment_multiple({65536, 65535}),
                    "alignment: found a least common multiple of 4294901760, expected at most "
                    "2147483647");
  CHECK_THROWS_AS(alignment_multiple({2147483647, 4294967295, 4294967291}), invalid_option);
}

TEST_CASE("batch: layout options are checked", "[batch]") {
  CHECK_NOTHROW(validate(layout_options{}));
  layout_options options;
  options.record_multiple = 0;
  CHECK_THROWS_WITH(validate(options), "record_multiple: found 0, expected at least 1");
  options = {};
  options.total_multiple = 0;
  CHECK_THROWS_WITH(validate(options), "total_multiple: found 0, expected at least 1");
  options = {};
  options.pad_token = -1;
  CHECK_THROWS_WITH(validate(options), "pad_token: found -1, expected a token id, 0 to 2147483647");
  options = {};
  options.record_multiple = 65536;
  options.total_multiple = 65535;
  CHECK_THROWS_AS(validate(options), invalid_option);
}

TEST_CASE("batch: counts add up over a step", "[batch]") {
  batch_counts step;
  step += {.records = 2, .tokens = 10, .loss_tokens = 8, .padding_tokens = 6};
  step += {.records = 1, .tokens = 5, .loss_tokens = 4, .padding_tokens = 3};
  CHECK(step == batch_counts{.records = 3, .tokens = 15, .loss_tokens = 12, .padding_tokens = 9});
}
