#include <lanepack/packer/bin_packing.hpp>

#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lengths = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;
using packing = void (lanepack::bin_packer::*)(std::span<const std::uint64_t>, std::uint64_t,
                                               lanepack::micro_batch_list&);

constexpr packing first_fit = &lanepack::bin_packer::first_fit_decreasing;
constexpr packing best_fit = &lanepack::bin_packer::best_fit_decreasing;
constexpr packing johnson_garey = &lanepack::bin_packer::mffd_johnson_garey;
constexpr packing nemo = &lanepack::bin_packer::mffd_nemo;
constexpr packing padded = &lanepack::bin_packer::padded_rows;

groups to_groups(const lanepack::micro_batch_list& bins) {
  groups found;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    found.emplace_back(bins[bin].begin(), bins[bin].end());
  }
  return found;
}

groups pack(packing rule, const lengths& tokens, std::uint64_t capacity) {
  lanepack::bin_packer packer;
  lanepack::micro_batch_list bins;
  (packer.*rule)(tokens, capacity, bins);
  return to_groups(bins);
}

lanepack::micro_batch_list to_bins(const groups& from) {
  lanepack::micro_batch_list bins;
  for (const auto& group : from) {
    for (const std::uint32_t record : group) bins.add(record);
    bins.close();
  }
  return bins;
}

groups adjust(const groups& from, std::uint64_t minimum, std::uint64_t multiple) {
  lanepack::micro_batch_list bins = to_bins(from);
  lanepack::adjust_bin_count_nemo(bins, minimum, multiple);
  return to_groups(bins);
}

lengths loads(const groups& bins, const lengths& tokens) {
  lengths found;
  for (const auto& bin : bins) {
    found.push_back(0);
    for (const std::uint32_t record : bin) found.back() += tokens[record];
  }
  return found;
}

const lengths small_case{10, 20, 30, 40, 50, 60, 70, 80, 90};
const lengths medium_case{25, 35, 45, 55, 65, 75, 85, 95, 15, 25, 35, 45, 55, 65, 75, 85, 95};
const lengths edge_case{10, 50, 100, 20, 80, 30, 70, 40, 60, 90};
/// 100 draws of Python's random.randint(10, 90) after random.seed(42).
const lengths large_case{24, 13, 45, 41, 38, 27, 23, 79, 21, 85, 64, 14, 13, 21, 37, 39, 74,
                         87, 13, 81, 35, 79, 63, 38, 67, 85, 45, 10, 30, 64, 53, 45, 29, 37,
                         53, 23, 21, 58, 22, 55, 54, 87, 43, 15, 68, 78, 25, 58, 20, 80, 47,
                         90, 89, 56, 83, 34, 18, 15, 39, 47, 20, 39, 22, 58, 45, 68, 56, 30,
                         57, 55, 36, 44, 19, 87, 31, 78, 41, 30, 69, 58, 44, 81, 38, 51, 17,
                         39, 14, 50, 61, 44, 18, 37, 82, 50, 37, 73, 60, 68, 28, 43};

}  // namespace

// Expected bins of NeMo-RL come from running its own code (nemo_rl/data/packing/algorithms.py).

TEST_CASE("packer: MFFD in NeMo's form gives NeMo's bins", "[packer]") {
  REQUIRE(pack(nemo, small_case, 100) == groups{{8, 0}, {7, 1}, {6, 2}, {5, 3}, {4}});
  REQUIRE(pack(nemo, medium_case, 100) ==
          groups{{7}, {16}, {6, 8}, {15}, {5, 0}, {14, 9}, {4, 1}, {13, 10}, {3, 2}, {12, 11}});
  REQUIRE(pack(nemo, edge_case, 100) == groups{{2}, {9, 0}, {4, 3}, {6, 5}, {8, 7}, {1}});
  REQUIRE(pack(nemo, {46, 24, 55, 88, 11, 14, 73, 17}, 100) ==
          groups{{3, 4}, {6, 5}, {2, 7, 1}, {0}});
  REQUIRE(pack(nemo, {30, 30, 30, 30, 30}, 100) == groups{{3, 4}, {0, 1, 2}});
  REQUIRE(pack(nemo, {100, 100, 100}, 100) == groups{{0}, {1}, {2}});
  REQUIRE(pack(nemo, {50}, 100) == groups{{0}});
  REQUIRE(pack(nemo, {}, 100).empty());
  REQUIRE(pack(nemo, {900, 850, 1000, 950}, 1024) == groups{{2}, {3}, {0}, {1}});
  REQUIRE(pack(nemo, lengths(16, 256), 1024) ==
          groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}});

  REQUIRE(pack(nemo, large_case, 100) ==
          groups{{51, 27},    {52},     {17, 1},     {41, 12},    {73, 18},     {9, 43},
                 {25, 57},    {54, 84}, {92, 56},    {19, 72},    {81, 90},     {49, 48},
                 {7, 8},      {21, 13}, {45, 38},    {75, 62},    {16, 46},     {95, 5},
                 {78, 74},    {44, 28}, {65, 67},    {97, 77},    {24, 32},     {10, 70},
                 {29, 20},    {22, 14}, {88, 15},    {96, 58},    {37, 3},      {47, 76},
                 {63, 61},    {79, 85}, {68, 42},    {53, 71},    {66, 80},     {39, 2},
                 {69, 26},    {40, 31}, {30, 50},    {34, 59},    {83, 64},     {60, 11, 86},
                 {55, 98, 0}, {89, 99}, {91, 94, 6}, {4, 23, 36}, {82, 33, 35}, {87, 93}});
  // Every phase takes part: pairs of small records behind large ones, and worst fit at the end.
  REQUIRE(pack(nemo,
               {48, 4,  2,  79, 1,  23, 19, 36, 83, 76, 52, 81, 87, 70, 59, 7,  14, 58, 43, 37,
                17, 36, 17, 48, 39, 41, 75, 37, 30, 39, 36, 14, 18, 21, 59, 52, 32, 3,  18, 3},
               100) == groups{{12, 15, 1, 2},
                              {8, 20},
                              {11, 6},
                              {3, 33},
                              {9, 5, 4},
                              {26, 32, 37, 39},
                              {13, 28},
                              {14, 25},
                              {34, 24},
                              {17, 29},
                              {10, 0},
                              {35, 23},
                              {27, 7},
                              {18, 19},
                              {36, 38, 22, 16},
                              {21, 30, 31}});
  REQUIRE(pack(nemo, {12, 20, 17, 4, 5,  9,  8,  19, 32, 9,  3,  5,  22, 17, 7,  25,
                      8,  15, 62, 7, 21, 25, 10, 6,  38, 34, 31, 20, 14, 30, 10, 4,
                      9,  8,  5,  5, 29, 9,  3,  9,  8,  19, 5,  10, 17, 21, 12, 3},
               100) == groups{{18, 24},
                              {34, 35, 42, 3, 31, 10, 38, 47},
                              {25, 8, 26},
                              {13, 44, 17, 28, 0, 46, 30},
                              {5, 9, 32, 37, 39, 6, 16, 33, 40, 14, 19, 23},
                              {21, 12, 20, 45, 43},
                              {29, 36, 15, 22, 4},
                              {1, 27, 7, 41, 2, 11}});
}

TEST_CASE("packer: the published MFFD differs from NeMo's form only in its last phase",
          "[packer]") {
  REQUIRE(pack(johnson_garey, small_case, 100) == groups{{8, 0}, {7, 1}, {6, 2}, {5, 3}, {4}});
  REQUIRE(pack(johnson_garey, medium_case, 100) == pack(nemo, medium_case, 100));
  REQUIRE(pack(johnson_garey, large_case, 100).size() == 48);
  // First fit fills the first bin; bins stay in the order of their opening.
  REQUIRE(pack(johnson_garey, {30, 30, 30, 30, 30}, 100) == groups{{0, 1, 2}, {3, 4}});
  REQUIRE(pack(johnson_garey, {50, 45, 30, 30, 25, 20}, 100) == groups{{0, 1}, {2, 3, 4}, {5}});
  REQUIRE(pack(nemo, {50, 45, 30, 30, 25, 20}, 100) == groups{{5}, {2, 3, 4}, {0, 1}});
  // Of 31: 12 + 10 and 10 + 10, then 8 goes to 22 (first fit) or to 20 (worst fit), where 6 and 4
  // no longer have room together.
  REQUIRE(pack(johnson_garey, {12, 8, 6, 4, 10, 10, 10}, 31) == groups{{0, 4, 1}, {5, 6, 2, 3}});
  REQUIRE(pack(nemo, {12, 8, 6, 4, 10, 10, 10}, 31) == groups{{3}, {5, 6, 1}, {0, 4, 2}});
}

TEST_CASE("packer: first and best fit decreasing on the cases of NeMo", "[packer]") {
  for (const packing rule : {first_fit, best_fit}) {
    REQUIRE(pack(rule, small_case, 100) == groups{{8, 0}, {7, 1}, {6, 2}, {5, 3}, {4}});
    REQUIRE(pack(rule, medium_case, 100).size() == 10);
    REQUIRE(pack(rule, large_case, 100).size() == 48);
    REQUIRE(pack(rule, edge_case, 100).size() == 6);
    REQUIRE(pack(rule, {50}, 100) == groups{{0}});
    REQUIRE(pack(rule, {30, 30, 30, 30, 30}, 100) == groups{{0, 1, 2}, {3, 4}});
    REQUIRE(pack(rule, {100, 100, 100}, 100).size() == 3);
    REQUIRE(pack(rule, {}, 100).empty());
  }
  // 30 fits behind 50 and behind 60: the first bin with room against the one with the least.
  REQUIRE(pack(first_fit, {60, 50, 45, 30, 10, 5}, 100) == groups{{0, 3, 4}, {1, 2, 5}});
  REQUIRE(pack(best_fit, {60, 55, 42, 40}, 100) == groups{{0, 3}, {1, 2}});
  REQUIRE(pack(first_fit, {60, 70, 25}, 100) == groups{{1, 2}, {0}});
  REQUIRE(pack(best_fit, {55, 60, 70, 25}, 100) == groups{{2, 3}, {1}, {0}});
  REQUIRE(pack(first_fit, {60, 55, 38, 37, 6}, 100) == groups{{0, 2}, {1, 3, 4}});
  REQUIRE(pack(best_fit, {50, 49, 40, 8}, 100) == groups{{0, 1}, {2, 3}});
}

TEST_CASE("packer: padded rows count the longest row for every row", "[packer]") {
  // 40 x 2 = 80, 30 x 3 = 90; a sum would have put 40 + 40 + 20 together.
  REQUIRE(pack(padded, {40, 20, 30, 30, 40}, 100) == groups{{0, 4}, {2, 3, 1}});
  REQUIRE(pack(padded, {51, 50, 50, 1}, 100) == groups{{0}, {1, 2}, {3}});
  REQUIRE(pack(padded, lengths(10, 10), 100).size() == 1);
  REQUIRE(pack(padded, {}, 100).empty());
}

TEST_CASE("packer: a record that is empty or over the capacity is refused by every rule",
          "[packer]") {
  for (const packing rule : {first_fit, best_fit, johnson_garey, nemo, padded}) {
    REQUIRE_THROWS_MATCHES(
        pack(rule, {50, 150, 70}, 100), lanepack::data_error,
        Catch::Matchers::Message("record 1 of the step: found 150 tokens, expected 1 to 100 (the "
                                 "capacity of a bin)"));
    REQUIRE_THROWS_AS(pack(rule, {5}, 3), lanepack::data_error);
    REQUIRE_THROWS_AS(pack(rule, {9, 1, 1}, 8), lanepack::data_error);
    REQUIRE_THROWS_AS(pack(rule, {0, 1, 0, 1}, 8), lanepack::data_error);
  }
}

TEST_CASE("packer: lengths and capacities beyond 32 bits stay exact", "[packer]") {
  const std::uint64_t most = lanepack::max_bin_capacity;
  for (const packing rule : {first_fit, best_fit, johnson_garey, nemo, padded}) {
    REQUIRE(pack(rule, {most, most, 1}, most).size() == 3);
    REQUIRE(pack(rule, {most / 2, most / 2, most / 2 + 1}, most).size() == 2);
    REQUIRE(pack(rule, {2147483647, 2147483647}, 4294967294) == groups{{0, 1}});
    REQUIRE(pack(rule, {2147483647, 2147483647}, 4294967293).size() == 2);
  }
}

TEST_CASE("packer: the number of bins is raised as NeMo raises it", "[packer]") {
  const groups four = adjust(pack(nemo, medium_case, 100), 0, 4);
  REQUIRE(four.size() == 12);
  REQUIRE(loads(four, medium_case) == lengths{95, 95, 100, 85, 100, 100, 100, 100, 55, 55, 45, 45});

  const lengths equal(8, 10);
  REQUIRE(loads(adjust(pack(nemo, equal, 100), 0, 4), equal) == lengths{50, 10, 10, 10});
  const lengths heavy{90, 90, 5, 5, 5, 5};
  REQUIRE(adjust(pack(nemo, heavy, 100), 0, 4) == groups{{0, 2, 3}, {1}, {5}, {4}});
  REQUIRE(loads(adjust(pack(nemo, heavy, 100), 0, 2), heavy) == lengths{100, 100});

  REQUIRE(adjust({{0, 1}}, 2, 1) == groups{{0}, {1}});
  REQUIRE(adjust({{0, 1}}, 0, 1) == groups{{0, 1}});
  REQUIRE(adjust({}, 0, 4).empty());
  REQUIRE_THROWS_MATCHES(adjust({{0, 1}}, 3, 1), lanepack::data_error,
                         Catch::Matchers::Message("cannot make 3 bins of 2 records, expected at "
                                                  "least one record a bin"));
  REQUIRE_THROWS_AS(adjust({{0, 1}}, 0, 4), lanepack::data_error);
  REQUIRE_THROWS_AS(adjust({}, 1, 1), lanepack::data_error);
}

TEST_CASE("packer: round robin over adjusted bins gives NeMo's shards", "[packer]") {
  const lengths tokens{46, 24, 55, 88, 11, 14, 73, 17};
  const groups bins = adjust(pack(nemo, tokens, 100), 2, 2);
  const lengths all = loads(bins, tokens);
  REQUIRE(lengths{all[0], all[2]} == lengths{99, 96});
  REQUIRE(lengths{all[1], all[3]} == lengths{87, 46});
}

TEST_CASE("packer: padding costs efficiency as it does in NeMo's test of chunk boundaries",
          "[packer]") {
  struct expectation {
    std::uint64_t multiple;
    std::uint64_t least_per_mille;
    std::uint64_t most_per_mille;
  };
  for (const expectation& expected : {expectation{1, 955, 1000}, expectation{32, 910, 970},
                                      expectation{64, 850, 920}, expectation{256, 600, 800}}) {
    CAPTURE(expected.multiple);
    lanepack_test::gen gen(1);
    std::uint64_t tokens = 0;
    std::uint64_t bins = 0;
    // Four chunks of a batch, never packed together, each for four shards.
    for (int chunk = 0; chunk < 4; ++chunk) {
      lengths padded_lengths(256);
      for (std::uint64_t& length : padded_lengths) {
        const std::uint64_t real = gen.between(50, 799);
        tokens += real;
        length = lanepack::round_up(real, expected.multiple);
      }
      const groups packed = adjust(pack(nemo, padded_lengths, 1200), 4, 4);
      REQUIRE(packed.size() % 4 == 0);
      bins += packed.size();
    }
    const std::uint64_t per_mille = tokens * 1000 / (bins * 1200);
    REQUIRE(per_mille >= expected.least_per_mille);
    REQUIRE(per_mille <= expected.most_per_mille);
  }
}

TEST_CASE("packer: a micro-batch list compares, clears and shows its parts", "[packer]") {
  lanepack::micro_batch_list bins = to_bins({{3, 1}, {2}});
  REQUIRE(bins.size() == 2);
  REQUIRE(bins == to_bins({{3, 1}, {2}}));
  REQUIRE_FALSE(bins == to_bins({{3}, {1, 2}}));
  REQUIRE(bins.records().size() == 3);
  REQUIRE(bins.ends()[0] == 2);
  REQUIRE(bins.ends()[1] == 3);
  bins.clear();
  REQUIRE(bins.empty());
}
