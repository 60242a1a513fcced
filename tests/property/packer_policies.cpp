// What the loader relies on, for every policy that has a name.

#include <algorithm>
#include <memory>
#include <vector>

#include <lanepack/packer/make_policy.hpp>
#include <lanepack/packer/window.hpp>

#include "support/calendars.hpp"
#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::candidate;

/// Feeds a policy as its concept says and returns the packs of all steps.
lanepack::pack_list drive(lanepack::any_policy& policy, std::vector<candidate> records,
                          std::uint32_t b, std::uint32_t packs_per_step) {
  lanepack::pack_list packs;
  const std::size_t a_step = std::size_t{b} * packs_per_step;
  const std::size_t steps = records.size() / a_step;
  std::size_t handed = 0;
  for (std::size_t step = 0; step < steps;) {
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(policy.window_steps(), steps - step));
    const std::size_t until =
        std::min(records.size(), (step + count + policy.buffered_steps()) * a_step);
    for (std::size_t i = handed; i < until; ++i) records[i].admitted = step;
    policy.form({.first_step = step,
                 .steps = count,
                 .records_per_pack = b,
                 .packs_per_step = packs_per_step,
                 .steps_to_drain = steps - step,
                 .lane = 3},
                std::span(records).subspan(handed, until - handed), packs);
    REQUIRE(policy.held().size() == until - packs.records().size());
    handed = until;
    step += count;
  }
  return packs;
}

}  // namespace

TEST_CASE("packer: every policy forms exact packs of every arrival once", "[packer]") {
  for (const lanepack::named_policy& named : lanepack::policies()) {
    CAPTURE(named.name);
    lanepack_test::for_each_seed(60, [&](std::uint64_t seed, lanepack_test::gen& gen) {
      CAPTURE(seed);
      const auto b = static_cast<std::uint32_t>(gen.between(1, 20));
      lanepack::policy_options options;
      options.lookahead_steps = static_cast<std::uint32_t>(gen.between(1, 20));
      options.records_per_pack = b;
      options.costs = std::make_shared<const lanepack::cost_distribution>(
          std::vector<lanepack::cost_bucket>{{.cost = 10, .tokens = 1, .records = 9},
                                             {.cost = 2000, .tokens = 200, .records = 1}});
      options.tuning = lanepack_test::random_tuning(gen);
      if (gen.one_in(2)) options.limits = {};
      lanepack::any_policy policy = lanepack::make_policy(named.name, options);
      const auto packs_per_step = static_cast<std::uint32_t>(
          policy.scope() == lanepack::policy_scope::all_lanes ? gen.between(1, 5) : 1);
      const auto bits = static_cast<unsigned>(gen.between(0, 40));
      std::vector<candidate> records(gen.between(0, 50) * b * packs_per_step);
      for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].cost = gen.heavy_tailed(bits);
        records[i].arrival = i;
      }

      lanepack::any_policy fresh = policy;
      const lanepack::pack_list packs = drive(policy, records, b, packs_per_step);
      REQUIRE(packs.size() * b == records.size());
      std::vector<int> seen(records.size(), 0);
      const std::size_t lookahead_records =
          std::size_t{policy.window_steps() + policy.buffered_steps()} * b * packs_per_step;
      for (std::size_t pack = 0; pack < packs.size(); ++pack) {
        REQUIRE(packs[pack].size() == b);
        for (const candidate& record : packs[pack]) {
          ++seen[record.arrival];
          REQUIRE(record.cost == records[record.arrival].cost);
          if (policy.buffered_steps() != 0) continue;
          // A window's records stay in it.
          REQUIRE(record.arrival / lookahead_records ==
                  pack / (std::size_t{policy.window_steps()} * packs_per_step));
        }
      }
      REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
      REQUIRE(policy.held().empty());

      const lanepack::pack_list again = drive(fresh, records, b, packs_per_step);
      for (std::size_t i = 0; i < records.size(); ++i) {
        REQUIRE(again.records()[i].arrival == packs.records()[i].arrival);
      }
    });
  }
}

TEST_CASE("packer: a window's packs descend in cost and balance, records inside stay in order",
          "[packer]") {
  lanepack_test::for_each_seed(100, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const auto steps = static_cast<std::uint32_t>(gen.between(1, 16));
    const auto b = static_cast<std::uint32_t>(gen.between(1, 20));
    const auto packs_per_step = static_cast<std::uint32_t>(gen.between(1, 6));
    std::vector<candidate> records(std::size_t{steps} * b * packs_per_step);
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].cost = gen.heavy_tailed(30);
      records[i].arrival = 7 + 3 * i;
    }
    lanepack::window_policy policy({.lookahead_steps = 16});
    lanepack::pack_list packs;
    policy.form({.steps = steps, .records_per_pack = b, .packs_per_step = packs_per_step}, records,
                packs);
    REQUIRE(packs.size() == std::size_t{steps} * packs_per_step);
    std::uint64_t previous = ~std::uint64_t{0};
    for (std::size_t pack = 0; pack < packs.size(); ++pack) {
      std::uint64_t cost = 0;
      for (std::size_t i = 0; i < b; ++i) {
        cost += packs[pack][i].cost;
        if (i > 0) REQUIRE(packs[pack][i - 1].arrival < packs[pack][i].arrival);
      }
      REQUIRE(cost <= previous);
      previous = cost;
    }
  });
}
