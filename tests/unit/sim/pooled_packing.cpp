#include <lanepack/sim/pooled_packing.hpp>

#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

namespace {

using lanepack::baseline_options;
using lanepack::pooled_packer;
using lanepack_test::owned_step;
using lengths = std::vector<std::uint64_t>;
using loads = std::vector<std::vector<std::uint64_t>>;
using groups = std::vector<std::vector<std::uint32_t>>;

baseline_options capacity(std::uint64_t tokens) {
  baseline_options options;
  options.capacity_tokens = tokens;
  return options;
}

/// Tokens of every rank's micro-batches.
loads assign(pooled_packer packer, const lengths& tokens, std::uint32_t ranks,
             const baseline_options& options) {
  lanepack::pooled_packing_assigner assigner(packer, options);
  lanepack::step_assignment assignment;
  assigner.assign(owned_step(tokens).plan(), ranks, assignment);
  return lanepack_test::tokens_of(assignment);
}

groups in_order(const lengths& tokens, std::uint64_t most, std::uint64_t multiple) {
  lanepack::micro_batch_list bins;
  lanepack::next_fit(tokens, most, bins);
  lanepack::pop_to_bin_count(bins, multiple, multiple);
  return lanepack_test::groups_of(bins);
}

}  // namespace

// Expected loads of NeMo-RL come from running its own packer and its sharding of a global batch.

TEST_CASE("sim: pooled MFFD deals bins in the packer's order, as NeMo-RL does", "[sim]") {
  // Bins 88 11 | 73 14 | 55 17 24 | 46.
  REQUIRE(assign(pooled_packer::mffd_nemo, {46, 24, 55, 88, 11, 14, 73, 17}, 2, capacity(100)) ==
          loads{{99, 96}, {87, 46}});
  REQUIRE(assign(pooled_packer::mffd_nemo, lengths(16, 256), 2, capacity(1024)) ==
          loads{{1024, 1024}, {1024, 1024}});
  REQUIRE(assign(pooled_packer::mffd_nemo, {900, 850, 1000, 950}, 2, capacity(1024)) ==
          loads{{1000, 900}, {950, 850}});
}

TEST_CASE("sim: the number of bins is raised by records and not by tokens", "[sim]") {
  REQUIRE(assign(pooled_packer::mffd_nemo, lengths(8, 10), 4, capacity(100)) ==
          loads{{50}, {10}, {10}, {10}});
  REQUIRE(assign(pooled_packer::mffd_nemo, {90, 90, 5, 5, 5, 5}, 4, capacity(100)) ==
          loads{{100}, {90}, {5}, {5}});
  REQUIRE(assign(pooled_packer::first_fit_decreasing, lengths(8, 10), 4, capacity(100)) ==
          loads{{50}, {10}, {10}, {10}});
  // Packed too well for the ranks: one record each.
  REQUIRE(assign(pooled_packer::mffd_nemo, lengths(8, 1), 8, capacity(1000)) == loads(8, {1}));
  // A forced number of bins a rank.
  baseline_options forced = capacity(100);
  forced.micro_batches = 2;
  REQUIRE(assign(pooled_packer::mffd_nemo, lengths(8, 10), 2, forced) == loads{{50, 10}, {10, 10}});
  // 5 bins round up to 8, and 5 records cannot fill 8.
  REQUIRE_THROWS_AS(assign(pooled_packer::mffd_nemo, lengths(5, 5), 4, capacity(9)),
                    lanepack::data_error);
  REQUIRE_THROWS_AS(assign(pooled_packer::mffd_nemo, {50, 50}, 4, capacity(100)),
                    lanepack::data_error);
}

TEST_CASE("sim: first fit decreasing over the step", "[sim]") {
  // 80 20 | 70 30 | 60 40 | 50: round robin gives rank 0 the first and third.
  REQUIRE(assign(pooled_packer::first_fit_decreasing, {20, 30, 40, 50, 60, 70, 80}, 2,
                 capacity(100)) == loads{{100, 100}, {100, 50}});
}

TEST_CASE("sim: Megatron-LM's dp_balanced packs in order and pops records", "[sim]") {
  REQUIRE(in_order({3, 4, 5, 2, 6}, 8, 1) == groups{{0, 1}, {2, 3}, {4}});
  // From the back: the last bin with two records gives its last one.
  REQUIRE(in_order({3, 4, 5, 2, 6}, 8, 5) == groups{{0}, {2}, {4}, {3}, {1}});
  REQUIRE(in_order({3, 4, 5, 2, 6}, 8, 4) == groups{{0, 1}, {2}, {4}, {3}});
  REQUIRE(in_order({1, 1, 1, 1}, 8, 3) == groups{{0, 1}, {3}, {2}});
  REQUIRE_THROWS_AS(in_order({1, 1}, 8, 3), lanepack::data_error);
  REQUIRE_THROWS_AS(in_order({9, 1, 1}, 8, 1), lanepack::data_error);
  REQUIRE_THROWS_AS(in_order({}, 8, 1), lanepack::data_error);

  // Tokens are even and costs are not: 8^2 against 8 x 1^2.
  lanepack::pooled_packing_assigner assigner(pooled_packer::next_fit, capacity(8));
  lanepack::step_assignment assignment;
  assigner.assign(owned_step({8, 1, 1, 1, 1, 1, 1, 1, 1}, true).plan(), 2, assignment);
  REQUIRE(lanepack_test::rows_of(assignment, 0) == lanepack_test::rows{{64, 8, 1}});
  REQUIRE(lanepack_test::rows_of(assignment, 1) == lanepack_test::rows{{8, 8, 8}});
}

TEST_CASE("sim: a backend that pads to the capacity pays the linear cost of padding", "[sim]") {
  baseline_options options = capacity(100);
  // 3 cost units a token.
  options.padding_cost_per_1024 = 3 * 1024;
  lanepack::pooled_packing_assigner assigner(pooled_packer::mffd_nemo, options,
                                             lanepack::pooled_backend::padded_to_capacity);
  lanepack::step_assignment assignment;
  assigner.assign(owned_step({90, 60, 30}).plan(), 2, assignment);
  REQUIRE(assignment[0][0].cost == 90);
  REQUIRE(assignment[0][0].padding_cost == 30);
  REQUIRE(assignment[1][0].tokens == 90);
  REQUIRE(assignment[1][0].padding_cost == 30);
}

TEST_CASE("sim: pooled packing tests the capacity on padded lengths", "[sim]") {
  baseline_options options = capacity(1000);
  options.record_multiple = 64;
  for (const pooled_packer packer :
       {pooled_packer::mffd_nemo, pooled_packer::first_fit_decreasing, pooled_packer::next_fit}) {
    // 990 is padded to 1024.
    REQUIRE_THROWS_AS(assign(packer, {990}, 1, options), lanepack::data_error);
    REQUIRE_THROWS_AS(assign(packer, {0}, 1, options), lanepack::data_error);
    // 450 takes 512: two do not fit, and only real tokens are counted.
    REQUIRE(assign(packer, {450, 450}, 1, options) == loads{{450, 450}});
  }
  REQUIRE_THROWS_AS(lanepack::pooled_packing_assigner(pooled_packer::mffd_nemo, capacity(0)),
                    lanepack::invalid_option);
}
