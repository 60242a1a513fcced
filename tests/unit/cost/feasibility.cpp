#include <lanepack/cost/feasibility.hpp>

#include <cstdint>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

feasibility limits(std::uint64_t capacity, std::uint32_t record_multiple = 1,
                   std::uint32_t total_multiple = 1,
                   infeasible_policy infeasible = infeasible_policy::fail,
                   empty_policy empty = empty_policy::fail) {
  feasibility_options options;
  options.capacity_tokens = capacity;
  options.record_multiple = record_multiple;
  options.total_multiple = total_multiple;
  options.infeasible = infeasible;
  options.empty = empty;
  return feasibility(options);
}

}  // namespace

TEST_CASE("cost: policies have names", "[cost]") {
  for (const auto policy :
       {infeasible_policy::fail, infeasible_policy::skip_and_count, infeasible_policy::truncate}) {
    CHECK(parse_infeasible_policy(to_string(policy)) == policy);
  }
  for (const auto policy : {empty_policy::fail, empty_policy::skip_and_count}) {
    CHECK(parse_empty_policy(to_string(policy)) == policy);
  }
  CHECK_THROWS_WITH(parse_infeasible_policy("drop", "--infeasible"),
                    "--infeasible: found 'drop', expected fail, skip_and_count, truncate or chunk");
  CHECK_THROWS_WITH(parse_empty_policy("truncate"),
                    "empty: found 'truncate', expected fail or skip_and_count");
}

TEST_CASE("cost: the padded length decides what fits", "[cost]") {
  CHECK(largest_feasible_record(32768, 1) == 32768);
  // 990 tokens are padded to 1024.
  CHECK(largest_feasible_record(1000, 64) == 960);
  CHECK(largest_feasible_record(1000, 1, 64) == 960);
  CHECK(largest_feasible_record(1000, 6, 4) == 996);
  CHECK(largest_feasible_record(3, 4) == 0);

  const feasibility padded = limits(1000, 64);
  CHECK(padded.largest_record() == 960);
  CHECK(padded.fit(960) == record_fit::feasible);
  CHECK(padded.fit(961) == record_fit::infeasible);
  CHECK(padded.fit(990) == record_fit::infeasible);
  CHECK(padded.fit(0) == record_fit::empty);
}

TEST_CASE("cost: without a capacity the limit is that of int32 offsets", "[cost]") {
  const feasibility open{feasibility_options{}};
  CHECK(open.largest_record() == 2147483647);
  CHECK(limits(std::uint64_t{1} << 40, 16).largest_record() == 2147483632);
}

TEST_CASE("cost: truncation keeps the first tokens and bounds the loss tokens", "[cost]") {
  const feasibility cut = limits(10, 4, 1, infeasible_policy::truncate);
  CHECK(cut.truncate_at() == 8);
  CHECK(cut.keeps(9));
  CHECK_FALSE(cut.keeps(0));
  // Without a mask: 7 labels of 8 tokens, exact.
  CHECK(cut.delivered({.tokens = 20, .loss_tokens = 19}) ==
        record_shape{.tokens = 8, .loss_tokens = 7});
  // With a mask that predicts 3 tokens, 3 is the most that can be left.
  CHECK(cut.delivered({.tokens = 20, .loss_tokens = 3, .patches = 4}) ==
        record_shape{.tokens = 8, .loss_tokens = 3, .patches = 4});
  CHECK(cut.delivered({.tokens = 8, .loss_tokens = 7}) ==
        record_shape{.tokens = 8, .loss_tokens = 7});
  CHECK(truncate_shape({.tokens = 5, .loss_tokens = 4}, 1) ==
        record_shape{.tokens = 1, .loss_tokens = 0});

  const feasibility skip = limits(10, 1, 1, infeasible_policy::skip_and_count);
  CHECK_FALSE(skip.truncate_at().has_value());
  CHECK_FALSE(skip.keeps(11));
  CHECK(skip.keeps(10));
}

TEST_CASE("cost: the policy fail names record, length and limit", "[cost]") {
  data_location where;
  where.path = "corpus.bin";
  where.record = 7;
  CHECK_NOTHROW(limits(20).check(20, where));
  CHECK_THROWS_WITH(limits(20).check(21, where),
                    "corpus.bin, record 7: infeasible record: found 21 tokens, expected at most "
                    "20, or the policy infeasible = skip_and_count, truncate or chunk");
  CHECK_THROWS_WITH(limits(1000, 64).check(990, where),
                    "corpus.bin, record 7: infeasible record: found 990 tokens, expected at most "
                    "960 (capacity_tokens 1000 after padding), or the policy infeasible = "
                    "skip_and_count, truncate or chunk");
  CHECK_THROWS_WITH(limits(20).check(0, where),
                    "corpus.bin, record 7: empty record: found 0 tokens, expected at least 1, or "
                    "the policy empty = skip_and_count");
  CHECK_NOTHROW(limits(20, 1, 1, infeasible_policy::truncate).check(21, where));
  CHECK_NOTHROW(limits(20, 1, 1, infeasible_policy::skip_and_count).check(21, where));
  CHECK_NOTHROW(
      limits(20, 1, 1, infeasible_policy::fail, empty_policy::skip_and_count).check(0, where));
}

TEST_CASE("cost: limits that no record can meet are refused", "[cost]") {
  CHECK_THROWS_WITH(limits(7, 8),
                    "capacity_tokens: found 7, expected at least 8, the smallest "
                    "padded micro-batch");
  CHECK_THROWS_WITH(limits(7, 0), "record_multiple: found 0, expected at least 1");
  CHECK_THROWS_WITH(limits(7, 1, 0), "total_multiple: found 0, expected at least 1");
}

TEST_CASE("cost: unbalanceable is dearer than a mean pack", "[cost]") {
  CHECK_FALSE(unbalanceable(100, 100));
  CHECK(unbalanceable(101, 100));
}
