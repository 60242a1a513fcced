#include <lanepack/loader/stream_costs.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/token.hpp>
#include <lanepack/loader/compose.hpp>

#include "support/catch.hpp"

using lanepack::cost_bucket;

namespace {

std::vector<cost_bucket> buckets_of(const std::shared_ptr<const lanepack::cost_distribution>& of) {
  return {of->buckets().begin(), of->buckets().end()};
}

lanepack::plan_options cut_at_8() {
  lanepack::plan_options options;
  options.lanes = 1;
  options.records_per_pack = 1;
  options.shuffle.kind = lanepack::shuffle_kind::none;
  options.policy = "sequential";
  options.limits = {.capacity_tokens = 8,
                    .infeasible = lanepack::infeasible_policy::truncate,
                    .empty = lanepack::empty_policy::skip_and_count};
  return options;
}

/// A token costs 1.
std::shared_ptr<const lanepack::candidate_feed> feed_of(std::vector<std::uint32_t> lengths,
                                                        const lanepack::plan_options& options) {
  const lanepack::any_source source = lanepack::length_source(std::move(lengths));
  return lanepack::make_candidate_feed(source, lanepack::summarize(source, {.threads = 1}),
                                       lanepack::token_cost(), options);
}

}  // namespace

TEST_CASE("loader: the costs of a corpus are those of its records as they are delivered",
          "[loader]") {
  lanepack::plan_options options = cut_at_8();
  const std::vector<std::uint32_t> lengths = {3, 0, 10, 5, 0, 5, 8};
  REQUIRE(buckets_of(feed_of(lengths, options)->costs()) ==
          std::vector<cost_bucket>{{3, 3, 1}, {5, 5, 2}, {8, 8, 2}});
  options.limits.infeasible = lanepack::infeasible_policy::skip_and_count;
  REQUIRE(buckets_of(feed_of(lengths, options)->costs()) ==
          std::vector<cost_bucket>{{3, 3, 1}, {5, 5, 2}, {8, 8, 1}});
}

TEST_CASE("loader: the costs of a large corpus come from its summary", "[loader]") {
  const std::uint64_t n = (std::uint64_t{1} << 18) + 5;
  std::vector<std::uint32_t> lengths(n);
  std::uint64_t of[3] = {0, 0, 0};
  for (std::uint64_t i = 0; i < n; ++i) {
    lengths[i] = static_cast<std::uint32_t>(4 + i % 3 * 3);
    ++of[i % 3];
  }
  // 4 and 7, and 10 cut to 8.
  REQUIRE(buckets_of(feed_of(lengths, cut_at_8())->costs()) ==
          std::vector<cost_bucket>{{4, 4, of[0]}, {7, 7, of[1]}, {8, 8, of[2]}});
}

TEST_CASE("loader: the costs of a common prefix follow the first epoch's order", "[loader]") {
  const auto feed = feed_of({3, 0, 10, 5, 0, 5, 8}, cut_at_8());
  REQUIRE(buckets_of(lanepack::costs_of_prefix(*feed, 2)) ==
          std::vector<cost_bucket>{{3, 3, 1}, {8, 8, 1}});
  REQUIRE(buckets_of(lanepack::costs_of_prefix(*feed, 100)) == buckets_of(feed->costs()));
  REQUIRE_THROWS_AS(lanepack::costs_of_prefix(*feed, 0), lanepack::invalid_option);
}

TEST_CASE("loader: the costs of declared lengths keep the limits", "[loader]") {
  const std::vector<lanepack::length_bucket> lengths = {
      {.first = 9, .last = 9, .records = 4, .tokens = 36},
      {.first = 0, .last = 0, .records = 100, .tokens = 0},
      {.first = 2, .last = 2, .records = 1, .tokens = 2}};
  REQUIRE(
      buckets_of(lanepack::costs_of_lengths(lengths, lanepack::token_cost(), cut_at_8().limits)) ==
      std::vector<cost_bucket>{{2, 2, 1}, {8, 8, 4}});
  lanepack::feasibility_options strict;
  strict.capacity_tokens = 1;
  REQUIRE_THROWS_AS(lanepack::costs_of_lengths(lengths, lanepack::token_cost(), strict),
                    lanepack::invalid_option);
}

TEST_CASE("loader: declared costs go before those of the corpus", "[loader]") {
  lanepack::plan_options options = cut_at_8();
  options.costs = std::make_shared<const lanepack::cost_distribution>(
      std::vector<cost_bucket>{{.cost = 1, .tokens = 1, .records = 1}});
  REQUIRE(feed_of({3, 4}, options)->costs() == options.costs);
}

TEST_CASE("loader: expected loss tokens are the mean of an epoch as it is delivered", "[loader]") {
  lanepack::plan_options options = cut_at_8();
  // Delivered lengths 3, 8, 5, 5, 8: loss tokens 2, 7, 4, 4, 7 = 24 of 5 records.
  const auto feed = feed_of({3, 0, 10, 5, 0, 5, 8}, options);
  REQUIRE(feed->selection().tokens == 29);
  REQUIRE(feed->selection().loss_tokens == 24);
  REQUIRE(feed->expected_loss_tokens(5) == 24);
  REQUIRE(feed->expected_loss_tokens(1) == 5);
  REQUIRE(feed->expected_loss_tokens(2) == 10);
  REQUIRE(feed->expected_loss_tokens(0) == 1);
  options.limits.infeasible = lanepack::infeasible_policy::skip_and_count;
  const auto skipping = feed_of({3, 0, 10, 5, 0, 5, 8}, options);
  REQUIRE(skipping->selection().tokens == 21);
  REQUIRE(skipping->expected_loss_tokens(4) == 17);
  // Records of one token predict nothing: tokens take the place of loss tokens.
  REQUIRE(feed_of({1, 1, 1}, cut_at_8())->expected_loss_tokens(6) == 6);
}
