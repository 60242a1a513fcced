#include <lanepack/cost/profile.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/cost/token.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;

namespace {

feasibility limits(std::uint64_t capacity, infeasible_policy policy) {
  feasibility_options options;
  options.capacity_tokens = capacity;
  options.infeasible = policy;
  options.empty = empty_policy::skip_and_count;
  return feasibility(options);
}

}  // namespace

TEST_CASE("cost: a profile counts what is kept, as it is delivered", "[cost]") {
  const any_source source = length_source({1, 2, 0, 3, 30, 100});
  const corpus_summary summary = summarize(source);
  const token_cost tokens;
  // 1, 2, 3, 30 and 100 cut to 50: 86 in all, 17.2 in the mean.
  const feasibility cut = limits(50, infeasible_policy::truncate);
  for (const cost_profile& profile :
       {profile_costs(source, tokens, cut, 2), estimate_costs(summary, tokens, cut, 2)}) {
    CHECK(profile.records == 5);
    CHECK(profile.total_cost == 86);
    CHECK(profile.max_cost == 50);
    CHECK(profile.target_cost(1) == 17);
    CHECK(profile.target_cost(2) == 34);
    CHECK(profile.target_cost(3) == 51);
    CHECK(profile.unbalanceable_records == 1);
  }
  CHECK(profile_costs(source, tokens, cut, 1).unbalanceable_records == 2);
  CHECK(profile_costs(source, tokens, cut, 3).unbalanceable_records == 0);

  const feasibility skip = limits(50, infeasible_policy::skip_and_count);
  const cost_profile skipped = profile_costs(source, tokens, skip, 2);
  CHECK(skipped.records == 4);
  CHECK(skipped.total_cost == 36);
  CHECK(skipped.max_cost == 30);
}

TEST_CASE("cost: the profile of nothing is empty", "[cost]") {
  const any_source source = length_source(std::vector<std::uint32_t>{0, 0});
  const feasibility cut = limits(50, infeasible_policy::truncate);
  const cost_profile profile = profile_costs(source, token_cost(), cut, 4);
  CHECK(profile.records == 0);
  CHECK(profile.target_cost(4) == 0);
  CHECK(profile.unbalanceable_records == 0);
  CHECK(estimate_costs(summarize(source), token_cost(), cut, 4).records == 0);
}

TEST_CASE("cost: a pack's target does not wrap", "[cost]") {
  cost_profile profile;
  profile.records = std::uint64_t{1} << 62;
  profile.total_cost = static_cast<uint128>(max_record_cost) << 62;
  CHECK(profile.target_cost(1) == max_record_cost);
  CHECK(profile.target_cost(1 << 20) == max_record_cost << 20);
  CHECK(profile.target_cost(1 << 24) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("cost: profiles from shapes are exact and from a summary close", "[cost]") {
  lanepack_test::for_each_seed(20, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    std::vector<std::uint32_t> lengths(random.between(1, 3000));
    const auto bits = static_cast<unsigned>(random.between(1, 17));
    for (std::uint32_t& length : lengths) {
      length = static_cast<std::uint32_t>(random.heavy_tailed(bits));
    }
    const std::uint64_t capacity = random.between(1, 100000);
    const auto policy =
        random.one_in(2) ? infeasible_policy::truncate : infeasible_policy::skip_and_count;
    const std::uint64_t records_per_pack = random.between(1, 40);

    const quadratic_cost estimator;
    std::vector<std::uint64_t> costs;
    for (const std::uint64_t length : lengths) {
      if (length == 0 || (length > capacity && policy == infeasible_policy::skip_and_count)) {
        continue;
      }
      const std::uint64_t kept = std::min(length, capacity);
      costs.push_back(24576 * kept + kept * kept);
    }
    std::uint64_t total = 0;
    for (const std::uint64_t cost : costs) total += cost;
    std::uint64_t heavy = 0;
    for (const std::uint64_t cost : costs) {
      heavy += cost > total * records_per_pack / costs.size() ? 1 : 0;
    }

    const any_source source = length_source(lengths);
    const feasibility rule = limits(capacity, policy);
    const cost_profile exact =
        profile_costs(source, estimator, rule, records_per_pack, {.threads = 2});
    CHECK(exact.records == costs.size());
    CHECK(exact.total_cost == total);
    CHECK(exact.unbalanceable_records == heavy);
    CHECK(exact.max_cost == (costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end())));

    const cost_profile close =
        estimate_costs(summarize(source, {.threads = 1}), estimator, rule, records_per_pack);
    if (bits <= 12) {
      CHECK(close.total_cost == exact.total_cost);
      CHECK(close.unbalanceable_records == exact.unbalanceable_records);
    } else if (policy == infeasible_policy::truncate) {
      CHECK(close.records == exact.records);
      CHECK(close.total_cost <= exact.total_cost + exact.total_cost / 500);
      CHECK(close.total_cost + close.total_cost / 500 >= exact.total_cost);
      CHECK(close.max_cost == exact.max_cost);
    }
  });
}
