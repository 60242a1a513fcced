#include <lanepack/sim/pooled_records.hpp>

#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

namespace {

using lanepack::baseline_options;
using lanepack_test::owned_step;
using lengths = std::vector<std::uint64_t>;
using loads = std::vector<std::vector<std::uint64_t>>;

baseline_options capacity(std::uint64_t tokens,
                          lanepack::sync_model sync = lanepack::sync_model::step) {
  baseline_options options;
  options.capacity_tokens = tokens;
  options.sync = sync;
  return options;
}

template <class Assigner>
loads assign(const lengths& tokens, std::uint32_t ranks, const baseline_options& options) {
  Assigner assigner(options);
  lanepack::step_assignment assignment;
  assigner.assign(owned_step(tokens).plan(), ranks, assignment);
  return lanepack_test::tokens_of(assignment);
}

constexpr auto lpt = assign<lanepack::pooled_lpt_assigner>;
constexpr auto kk = assign<lanepack::pooled_kk_assigner>;

}  // namespace

TEST_CASE("sim: count-capped longest first gives every rank the same number of records", "[sim]") {
  // 9 | 8 7, then 3 and 2 beside the 9, which is full, so that 1 has no choice.
  REQUIRE(lpt({9, 8, 7, 3, 2, 1}, 2, capacity(100)) == loads{{16}, {14}});
  // An outlier fills up with the lightest.
  REQUIRE(lpt({90, 5, 4, 3, 2, 1}, 2, capacity(100)) == loads{{93}, {12}});
  REQUIRE(lpt(lengths(8, 1), 8, capacity(1000)) == loads(8, {1}));
  // 10 records, 4 ranks.
  REQUIRE_THROWS_AS(lpt(lengths(10, 1), 4, capacity(100)), lanepack::data_error);
  REQUIRE_THROWS_AS(lpt({21}, 1, capacity(20)), lanepack::data_error);
}

TEST_CASE("sim: ranks that meet in every micro-batch get equally many, level ones", "[sim]") {
  // Longest first gives 60 30 20 10 and 50 30 20 10: 120 and 110 in bins of 100.
  const lengths tokens{60, 50, 30, 30, 20, 20, 10, 10};
  const loads often = lpt(tokens, 2, capacity(100, lanepack::sync_model::micro_batch));
  for (const auto& rank : often) {
    REQUIRE(rank.size() == 2);
    REQUIRE(rank[0] - rank[1] <= 10);
  }
  const loads once = lpt(tokens, 2, capacity(100));
  for (const auto& rank : once) REQUIRE(rank[0] >= 90);
}

TEST_CASE("sim: verl's equal-size Karmarkar-Karp and its micro-batches", "[sim]") {
  // Groups from a separate implementation: 90 10 13 16 | 12 14 17 20 | 11 15 18 19.
  REQUIRE(kk({90, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 3, capacity(1000)) ==
          loads{{129}, {63}, {63}});
  // The rank that needs most decides: 129 takes two micro-batches, so all have two.
  REQUIRE(kk({90, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 3, capacity(100)) ==
          loads{{90, 39}, {32, 31}, {33, 30}});
  REQUIRE_THROWS_AS(kk(lengths(10, 1), 4, capacity(100)), lanepack::data_error);
  REQUIRE_THROWS_AS(kk({21}, 1, capacity(20)), lanepack::data_error);
}

TEST_CASE("sim: Karmarkar-Karp never exceeds the capacity", "[sim]") {
  // The mean would allow 7 micro-batches, of which one would hold 14.
  REQUIRE(kk(lengths(8, 7), 1, capacity(8)) == loads{lengths(8, 7)});
  REQUIRE(kk({100, 200, 300, 400}, 1, capacity(500)) == loads{{500, 500}});
  // Three of 280 and one of 160 in 400: no three micro-batches hold them.
  REQUIRE(kk({280, 280, 280, 160}, 1, capacity(400)) == loads{{280, 280, 280, 160}});
  baseline_options forced = capacity(1000);
  forced.micro_batches = 2;
  REQUIRE(kk({1, 2, 3, 4}, 1, forced) == loads{{5, 5}});
  forced.micro_batches = 5;
  REQUIRE_THROWS_AS(kk({1, 2, 3, 4}, 1, forced), lanepack::data_error);
}
