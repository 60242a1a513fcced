#include <lanepack/corpus/segments.hpp>

#include <cstdint>
#include <vector>

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/memory.hpp>

#include "support/catch.hpp"
#include "support/segments.hpp"

using namespace lanepack;
using lanepack_test::segmented_corpus;

namespace {

std::vector<std::uint64_t> list(const segment_lists& of, std::size_t record) {
  return {of[record].begin(), of[record].end()};
}

}  // namespace

TEST_CASE("segment_lists: records are kept apart", "[corpus]") {
  segment_lists lists;
  REQUIRE(lists.size() == 0);
  const std::vector<std::uint64_t> three{4, 1, 7};
  lists.add(three);
  lists.add({});
  lists.add_first(three, 12);
  lists.add_first(three, 5);
  lists.add_first(three, 4);
  lists.add_first(three, 3);
  lists.add_first(three, 0);
  REQUIRE(lists.size() == 7);
  REQUIRE(list(lists, 0) == three);
  REQUIRE(list(lists, 1).empty());
  REQUIRE(list(lists, 2) == three);
  REQUIRE(list(lists, 3) == std::vector<std::uint64_t>{4, 1});
  REQUIRE(list(lists, 4) == std::vector<std::uint64_t>{4});
  REQUIRE(list(lists, 5) == std::vector<std::uint64_t>{3});
  REQUIRE(list(lists, 6).empty());
  REQUIRE(lists.segments() == 10);
  lists.clear();
  REQUIRE(lists.size() == 0);
  REQUIRE(lists.segments() == 0);
}

TEST_CASE("segments: any_source hands them on and knows whole records", "[corpus]") {
  const any_source several = segmented_corpus({{2, 3}, {4}});
  REQUIRE(several.most_segments() == 2);
  const any_source whole = memory_source(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {}});
  REQUIRE(whole.most_segments() == 1);
  segment_lists lists;
  const std::vector<record_id> ids{1, 0};
  several.segments(ids, lists);
  whole.segments(ids, lists);
  REQUIRE(lists.size() == 4);
  REQUIRE(list(lists, 0) == std::vector<std::uint64_t>{4});
  REQUIRE(list(lists, 1) == std::vector<std::uint64_t>{2, 3});
  REQUIRE(list(lists, 2).empty());
  REQUIRE(list(lists, 3) == std::vector<std::uint64_t>{3});
}

TEST_CASE("segments: a concatenated corpus asks its parts", "[corpus]") {
  const concatenated_source both(
      {{"whole", memory_source(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {4}})},
       {"pairs", segmented_corpus({{2, 3}, {4, 1, 1}})}});
  REQUIRE(both.most_segments() == 3);
  segment_lists lists;
  lists.add(std::vector<std::uint64_t>{9});
  const std::vector<record_id> ids{3, 0, 2, 1};
  both.segments(ids, lists);
  REQUIRE(lists.size() == 5);
  REQUIRE(list(lists, 1) == std::vector<std::uint64_t>{4, 1, 1});
  REQUIRE(list(lists, 2) == std::vector<std::uint64_t>{3});
  REQUIRE(list(lists, 3) == std::vector<std::uint64_t>{2, 3});
  REQUIRE(list(lists, 4) == std::vector<std::uint64_t>{1});
}
