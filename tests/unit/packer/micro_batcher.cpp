#include <lanepack/packer/micro_batcher.hpp>

#include <optional>
#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::micro_batch_options;
using lanepack::micro_batch_rule;
using lengths = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;

groups form(const micro_batch_options& options, const lengths& tokens, const lengths& costs = {}) {
  lanepack::micro_batcher batcher(options);
  lanepack::micro_batch_list out;
  batcher.form(tokens, out, costs);
  groups found;
  for (std::size_t bin = 0; bin < out.size(); ++bin) {
    found.emplace_back(out[bin].begin(), out[bin].end());
  }
  return found;
}

micro_batch_options with(micro_batch_rule rule, std::uint64_t capacity) {
  return {.capacity_tokens = capacity, .rule = rule};
}

}  // namespace

TEST_CASE("packer: rules of micro-batches have names", "[packer]") {
  REQUIRE(lanepack::micro_batch_rules().size() == 6);
  for (const lanepack::named_micro_batch_rule& entry : lanepack::micro_batch_rules()) {
    REQUIRE(lanepack::to_string(entry.rule) == entry.name);
    REQUIRE(lanepack::micro_batch_rule_named(entry.name) == entry.rule);
  }
  REQUIRE(lanepack::to_string(micro_batch_rule::mffd_nemo) == "mffd_nemo");
  REQUIRE_THROWS_MATCHES(
      lanepack::micro_batch_rule_named("ffd"), lanepack::invalid_option,
      Catch::Matchers::Message("micro_batch_rule: found 'ffd', expected one of "
                               "best_fit_decreasing, first_fit_decreasing, mffd_johnson_garey, "
                               "mffd_nemo, padded_rows, level"));
}

TEST_CASE("packer: micro-batches stand from heavy to light with ascending records", "[packer]") {
  for (const lanepack::named_micro_batch_rule& entry : lanepack::micro_batch_rules()) {
    if (entry.rule == micro_batch_rule::padded_rows || entry.rule == micro_batch_rule::level)
      continue;
    CAPTURE(entry.name);
    // Bins of 100, 100, 100, 100 and 50: the equal ones by their lowest index.
    REQUIRE(form(with(entry.rule, 100), {10, 20, 30, 40, 50, 60, 70, 80, 90}) ==
            groups{{0, 8}, {1, 7}, {2, 6}, {3, 5}, {4}});
  }
  // By cost: long records of little cost go last.
  REQUIRE(form({.capacity_tokens = 100}, {90, 50, 50, 60}, {1, 9, 9, 4}) ==
          groups{{1, 2}, {3}, {0}});
  // As padded rows: 40 x 2 = 80 against 30 x 3 = 90.
  REQUIRE(form(with(micro_batch_rule::padded_rows, 100), {40, 20, 30, 30, 40}) ==
          groups{{1, 2, 3}, {0, 4}});
  REQUIRE(form({}, {}).empty());
  REQUIRE(form({}, {32768, 1}) == groups{{0}, {1}});
}

TEST_CASE("packer: the capacity is hard", "[packer]") {
  // verl's overflow: the mean would allow 7 bins of which one held 14.
  REQUIRE(form({.capacity_tokens = 8}, lengths(8, 7)).size() == 8);
  // Padded lengths count: 990 padded to 1024 is over 1000.
  REQUIRE_THROWS_AS(form({.capacity_tokens = 1000}, {1024}), lanepack::data_error);
  REQUIRE_THROWS_AS(form({.capacity_tokens = 20}, {21}), lanepack::data_error);
  REQUIRE_THROWS_AS(form({.capacity_tokens = 8}, {9, 1, 1}), lanepack::data_error);
  REQUIRE_THROWS_AS(form({.capacity_tokens = 3}, {5}), lanepack::data_error);
  REQUIRE_THROWS_AS(form({}, {0, 1, 0, 1}), lanepack::data_error);
  REQUIRE(form({.capacity_tokens = 20}, {15, 3, 3, 3, 3, 3, 3, 3}).size() == 2);
  REQUIRE(form({.capacity_tokens = 10}, {9, 9, 9}).size() == 3);
}

TEST_CASE("packer: a multiple rounds the number of micro-batches up, never with an empty one",
          "[packer]") {
  // One bin would do; 8 records over 4 bins, the largest apart.
  REQUIRE(form({.capacity_tokens = 1000, .multiple_of = 4}, {1, 2, 3, 4, 5, 6, 7, 8}) ==
          groups{{0, 7}, {1, 6}, {2, 5}, {3, 4}});
  // 5 rounds up to 8 (not down to 4), and 5 records cannot fill 8.
  REQUIRE(form({.capacity_tokens = 9, .multiple_of = 4}, lengths{5, 5, 5, 5, 5, 1, 1, 1}).size() ==
          8);
  REQUIRE_THROWS_MATCHES(
      form({.capacity_tokens = 9, .multiple_of = 4}, lengths(5, 5)), lanepack::data_error,
      Catch::Matchers::Message("found 5 records in the step, expected at least one for each of 8 "
                               "micro-batches (multiple_of)"));
  // Packed too well for the number of micro-batches that is wanted.
  REQUIRE(form({.capacity_tokens = 1000, .micro_batches = 8}, lengths(8, 1)).size() == 8);
  REQUIRE_THROWS_AS(form({.capacity_tokens = 1000, .micro_batches = 5}, lengths(3, 1)),
                    lanepack::data_error);
  REQUIRE_THROWS_AS(form({.micro_batches = 1}, {}), lanepack::data_error);
  // What the rule makes is kept where it is a multiple already.
  REQUIRE(form({.capacity_tokens = 100, .multiple_of = 2}, {100, 60, 30, 5}) ==
          groups{{0}, {1, 2, 3}});
}

TEST_CASE("packer: a fixed number of micro-batches is kept by every rank", "[packer]") {
  // Ranks with full and with light records make the same number.
  REQUIRE(form({.capacity_tokens = 100, .micro_batches = 5}, lengths(5, 95)).size() == 5);
  REQUIRE(form({.capacity_tokens = 100, .micro_batches = 5}, lengths(5, 20)).size() == 5);
  for (const lanepack::named_micro_batch_rule& entry : lanepack::micro_batch_rules()) {
    CAPTURE(entry.name);
    const groups bins =
        form({.capacity_tokens = 60, .rule = entry.rule, .micro_batches = 4}, {30, 20, 10, 9, 5});
    REQUIRE(bins.size() == 4);
    for (const auto& bin : bins) REQUIRE_FALSE(bin.empty());
  }
}

TEST_CASE("packer: bins are halved where an even spread would overflow", "[packer]") {
  // Best fit fills 7 bins of 100; the largest first into the emptiest of 8 leaves no room for 22.
  const lengths tokens{48, 52, 55, 45, 39, 39, 22, 36, 36, 28, 55, 45, 34, 33, 33, 57, 43};
  REQUIRE(form({.capacity_tokens = 100}, tokens).size() == 7);
  const groups bins = form({.capacity_tokens = 100, .micro_batches = 8}, tokens);
  REQUIRE(bins.size() == 8);
  for (const auto& bin : bins) {
    std::uint64_t load = 0;
    for (const std::uint32_t record : bin) load += tokens[record];
    REQUIRE(load <= 100);
    REQUIRE(load > 0);
  }
  // Padded rows: the heaviest run, 3 rows of 30, is halved.
  REQUIRE(form({.capacity_tokens = 100, .rule = micro_batch_rule::padded_rows, .micro_batches = 3},
               {40, 20, 30, 30, 40}) == groups{{0, 4}, {1, 3}, {2}});
}

TEST_CASE("packer: a fixed number is repaired where greedy rules need more", "[packer]") {
  // Two bins of 21 take 9 + 9 and 8 + 5 + 5 by size, and 4 fits neither: 9 + 8 + 4 does.
  const lengths two{4, 5, 8, 9, 5, 9};
  REQUIRE(form({.capacity_tokens = 21}, two).size() == 3);
  REQUIRE(form({.capacity_tokens = 21, .micro_batches = 2}, two).size() == 2);
  // No move or swap out of an even spread leads to 20 + 7 + 4, 19 + 12 and 15 + 10 + 3 + 3.
  const lengths three{3, 20, 12, 10, 4, 19, 15, 7, 3};
  REQUIRE(form({.capacity_tokens = 31}, three).size() == 4);
  REQUIRE(form({.capacity_tokens = 31, .micro_batches = 3}, three) ==
          groups{{0, 3, 6, 8}, {1, 4, 7}, {2, 5}});

  REQUIRE_THROWS_MATCHES(
      form({.capacity_tokens = 10, .micro_batches = 2}, {6, 6, 6}), lanepack::data_error,
      Catch::Matchers::Message("found 3 records of 18 tokens in the step and no way to fit them "
                               "into micro_batches = 2 of capacity_tokens = 10"));
  REQUIRE_THROWS_AS(form({.capacity_tokens = 10, .micro_batches = 2}, {10, 10, 1}),
                    lanepack::data_error);
  REQUIRE_THROWS_MATCHES(
      form({.capacity_tokens = 10, .rule = micro_batch_rule::padded_rows, .micro_batches = 1},
           {6, 2}),
      lanepack::data_error,
      Catch::Matchers::Message(
          "found 2 records of 8 tokens in the step and no way to fit them into "
          "micro_batches = 1 of capacity_tokens = 10 as padded rows"));
}

TEST_CASE("packer: level micro-batches are as few as tight ones and alike in cost", "[packer]") {
  const auto level = [](std::uint64_t capacity, const lengths& tokens, const lengths& costs = {},
                        std::optional<std::uint32_t> micro_batches = std::nullopt) {
    return form({.capacity_tokens = capacity,
                 .rule = micro_batch_rule::level,
                 .micro_batches = micro_batches},
                tokens, costs);
  };
  // Best fit fills 100 and leaves 20; level is 60 and 60.
  REQUIRE(form({.capacity_tokens = 100}, {60, 30, 20, 10}) == groups{{0, 1, 3}, {2}});
  REQUIRE(level(100, {60, 30, 20, 10}) == groups{{0}, {1, 2, 3}});
  // By cost: 9 against 4 + 3 + 2, whatever the tokens.
  REQUIRE(level(100, {30, 30, 30, 30}, {4, 9, 3, 2}) == groups{{0, 2, 3}, {1}});
  // The costs ask for 0 2 3 together, and their 120 tokens do not fit: 9 + 2 and 4 + 3 do.
  REQUIRE(level(80, {40, 40, 40, 40}, {4, 9, 3, 2}) == groups{{1, 3}, {0, 2}});
  // A number that is given.
  REQUIRE(level(100, {60, 30, 20, 10}, {}, 3) == groups{{0}, {1}, {2, 3}});
  REQUIRE(level(100, {60, 30, 20, 10}, {}, 4) == groups{{0}, {1}, {2}, {3}});
  REQUIRE_THROWS_AS(level(100, {60, 30, 20, 10}, {}, 5), lanepack::data_error);
  REQUIRE_THROWS_AS(level(100, {60, 60}, {}, 1), lanepack::data_error);
  REQUIRE_THROWS_AS(level(100, {101}), lanepack::data_error);
  // One is enough, none is needed.
  REQUIRE(level(120, {60, 30, 20, 10}) == groups{{0, 1, 2, 3}});
  REQUIRE(level(120, {}).empty());
  // Longest first makes 6 4 | 6 4 and has no room for the last 4; the tight bins do.
  REQUIRE(level(12, {6, 6, 4, 4, 4}) == groups{{0, 1}, {2, 3, 4}});
  // Without a cost of their own, records still go one to each micro-batch.
  REQUIRE(level(100, {10, 10, 10}, {0, 0, 0}, 3) == groups{{0}, {1}, {2}});
}

TEST_CASE("packer: a number of micro-batches can be given for one step", "[packer]") {
  lanepack::micro_batcher batcher({.capacity_tokens = 100, .rule = micro_batch_rule::level});
  lanepack::micro_batch_list out;
  const lengths tokens{60, 30, 20, 10};
  batcher.form_exactly(3, tokens, out);
  REQUIRE(out.size() == 3);
  batcher.form(tokens, out);
  REQUIRE(out.size() == 2);
  REQUIRE_THROWS_MATCHES(
      batcher.form_exactly(5, tokens, out), lanepack::data_error,
      Catch::Matchers::Message("found 4 records in the step, expected at least one for each of 5 "
                               "micro-batches (micro_batches)"));
  REQUIRE_THROWS_AS(batcher.form_exactly(1, tokens, out), lanepack::data_error);
}

TEST_CASE("packer: options of the micro-batcher are checked", "[packer]") {
  using lanepack::micro_batcher;
  REQUIRE(micro_batcher().options().capacity_tokens == 32768);
  REQUIRE_THROWS_AS(micro_batcher({.capacity_tokens = 0}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(micro_batcher({.capacity_tokens = lanepack::max_bin_capacity + 1}),
                    lanepack::invalid_option);
  REQUIRE_THROWS_AS(micro_batcher({.multiple_of = 0}), lanepack::invalid_option);
  REQUIRE_THROWS_AS(micro_batcher({.micro_batches = 0}), lanepack::invalid_option);
  REQUIRE_THROWS_MATCHES(
      micro_batcher({.micro_batches = 6, .multiple_of = 4}), lanepack::invalid_option,
      Catch::Matchers::Message("micro_batches: found 6, expected a multiple of multiple_of = 4"));
  micro_batcher({.micro_batches = 8, .multiple_of = 4});
}

TEST_CASE("packer: the worst case that a fixed number of micro-batches must hold", "[packer]") {
  using lanepack::worst_case_fits_micro_batches;
  // One bin holds whatever sums to its capacity.
  REQUIRE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 1}, {4, 100, 30}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 1}, {4, 101, 30}));
  // A record of 30 finds no room once both bins hold 71: at 172 in all.
  REQUIRE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 2}, {9, 171, 30}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 2}, {9, 172, 30}));
  // Records up to the capacity: three of 51, or 50 behind 51 and 51, are the least that fails.
  REQUIRE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 2}, {9, 151, 100}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 2}, {9, 152, 100}));
  // Fewer records than micro-batches, a record over the capacity, no records.
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 3}, {2, 20, 10}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 3}, {9, 200, 101}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .micro_batches = 1}, {0, 0, 1}));
  // Without a fixed number only the multiple can fail: 3 at most, rounded up to 4 or 8.
  REQUIRE(worst_case_fits_micro_batches({.capacity_tokens = 100}, {9, 172, 30}));
  REQUIRE(worst_case_fits_micro_batches({.capacity_tokens = 100, .multiple_of = 4}, {7, 172, 30}));
  REQUIRE_FALSE(
      worst_case_fits_micro_batches({.capacity_tokens = 100, .multiple_of = 8}, {7, 172, 30}));
  // Padded rows: 3 rows of 30 at least, so 9 records need 3.
  const micro_batch_options rows{
      .capacity_tokens = 100, .rule = micro_batch_rule::padded_rows, .micro_batches = 3};
  REQUIRE(worst_case_fits_micro_batches(rows, {9, 270, 30}));
  REQUIRE_FALSE(worst_case_fits_micro_batches(rows, {10, 270, 30}));
  REQUIRE_THROWS_AS(worst_case_fits_micro_batches({.micro_batches = 0}, {9, 1, 1}),
                    lanepack::invalid_option);
}
