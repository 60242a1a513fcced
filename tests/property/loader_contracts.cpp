// The design's contracts 1 to 4 on plans made from random options.

#include <lanepack/loader.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/summarize.hpp>

#include "support/calendars.hpp"
#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"
#include "support/plans.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::kept_pack;
using lanepack_test::make_plan;
using lanepack_test::random_plan;

TEST_CASE("contract 1: every pack has b records and every record its one place", "[contracts]") {
  lanepack_test::for_each_seed(150, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    random_plan made = make_plan(random);
    plan_options& options = made.options;
    CAPTURE(options.policy, to_string(options.rule), options.lanes, options.records_per_pack,
            options.lookahead_steps, made.records);
    options.skip_steps.clear();
    const auto feed =
        make_candidate_feed(made.feed->source(), summarize(made.feed->source(), {.threads = 1}),
                            default_cost(), options);
    const std::vector<kept_pack> packs =
        lanepack_test::packs_of(feed, *made.policy, lanepack_test::lanes_from(0, options.lanes));

    const std::uint64_t n = made.records;
    const std::uint64_t step_records =
        static_cast<std::uint64_t>(options.lanes) * options.records_per_pack;
    std::uint64_t steps = 0;
    switch (options.rule) {
      case epoch_end::drop_last:
        steps = *options.epochs * (n / step_records);
        break;
      case epoch_end::pad:
      case epoch_end::finite:
        steps = *options.epochs * ((n + step_records - 1) / step_records);
        break;
      case epoch_end::continue_epochs:
        steps = *options.steps;
        break;
    }
    REQUIRE(packs.size() == steps * options.lanes);

    std::map<record_ref, int> regular;
    std::map<epoch_index, std::uint64_t> filling;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      REQUIRE(packs[i].step == i / options.lanes);
      REQUIRE(packs[i].lane == i % options.lanes);
      REQUIRE(packs[i].records.size() == options.records_per_pack);
      std::uint64_t cost = 0;
      for (const candidate& record : packs[i].records) {
        cost += record.cost;
        if (record.role == record_role::regular) {
          ++regular[record.record];
          // The dealing rule of the contract, from the inverse of the epoch's order.
          const auto position =
              feed->sampler().order().epoch(record.record.epoch).position_of(record.record.id);
          REQUIRE(position.has_value());
          const std::uint64_t lane = (record.record.epoch * n + *position) % options.lanes;
          if (made.policy->scope() == policy_scope::lane) REQUIRE(lane == packs[i].lane);
        } else {
          ++filling[record.record.epoch];
        }
      }
      REQUIRE(packs[i].cost == cost);
    }
    for (const auto& [record, times] : regular) {
      CAPTURE(record.epoch, record.id);
      REQUIRE(times == 1);
      REQUIRE(record.id < n);
    }
    if (options.rule == epoch_end::continue_epochs) {
      REQUIRE(filling.empty());
      // Nothing is left out behind the lookahead: all positions that were due are out.
      const std::uint64_t whole =
          steps / options.lookahead_steps * options.lookahead_steps * step_records;
      std::uint64_t due = 0;
      for (std::uint64_t g = 0; g < whole; ++g) {
        std::uint64_t position = g % n;
        record_id id = 0;
        feed->sampler().order().epoch(g / n).records({&position, 1}, {&id, 1});
        due += regular.count({g / n, id});
      }
      if (made.policy->buffered_steps() == 0) REQUIRE(due == whole);
    } else {
      const std::uint64_t taken = steps / *options.epochs * step_records;
      for (epoch_index epoch = 0; epoch < *options.epochs; ++epoch) {
        std::uint64_t seen = 0;
        for (const auto& [record, times] : regular) seen += record.epoch == epoch ? 1 : 0;
        REQUIRE(seen == std::min(n, taken));
        REQUIRE(filling[epoch] == taken - std::min(n, taken));
      }
    }
  });
}

TEST_CASE("contracts 2 and 3: any world size plans the same packs", "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const random_plan made = make_plan(random);
    const plan_options& options = made.options;
    CAPTURE(options.policy, to_string(options.rule), options.lanes);
    const std::vector<kept_pack> all = lanepack_test::packs_of(
        made.feed, *made.policy, lanepack_test::lanes_from(0, options.lanes));
    for (rank_index size = 1; size <= options.lanes; ++size) {
      std::vector<kept_pack> joined;
      std::set<std::uint64_t> steps_of_ranks;
      for (rank_index rank = 0; rank < size; ++rank) {
        const lane_range range =
            lane_ownership(options.lanes, {rank, size}, uneven_lanes::allow).owned();
        const std::vector<kept_pack> own = lanepack_test::packs_of(
            made.feed, *made.policy, lanepack_test::lanes_from(range.first, range.last));
        steps_of_ranks.insert(own.size() / range.size());
        joined.insert(joined.end(), own.begin(), own.end());
      }
      REQUIRE(steps_of_ranks.size() == 1);
      std::sort(joined.begin(), joined.end(), [](const kept_pack& a, const kept_pack& b) {
        return std::pair(a.step, a.lane) < std::pair(b.step, b.lane);
      });
      CAPTURE(size);
      REQUIRE(lanepack_test::same_packs(all, joined));
    }
  });
}

TEST_CASE("contract 3: a plan can start at any step", "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const random_plan made = make_plan(random);
    const plan_options& options = made.options;
    CAPTURE(options.policy, to_string(options.rule), options.lanes);
    const auto lanes = lanepack_test::lanes_from(0, options.lanes);
    const std::vector<kept_pack> all = lanepack_test::packs_of(made.feed, *made.policy, lanes);
    const std::uint64_t steps = *made.feed->sampler().schedule().steps();
    // Every start of a short run, some of a long one.
    for (std::uint64_t start = 0; start <= steps; start += random.between(1, 1 + steps / 8)) {
      const std::vector<kept_pack> rest =
          lanepack_test::packs_of(made.feed, *made.policy, lanes, start);
      std::vector<kept_pack> expected;
      for (const kept_pack& pack : all) {
        if (pack.step >= start) expected.push_back(pack);
      }
      CAPTURE(start);
      REQUIRE(lanepack_test::same_packs(expected, rest));
    }
  });
}

TEST_CASE("contract 3: a longer run begins with the packs of a shorter one", "[contracts]") {
  lanepack_test::for_each_seed(40, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    random_plan made = make_plan(random);
    plan_options options = made.options;
    options.rule = epoch_end::continue_epochs;
    options.epochs.reset();
    const corpus_summary summary = summarize(made.feed->source(), {.threads = 1});
    const auto lanes = lanepack_test::lanes_from(0, options.lanes);
    options.steps = 30;
    const auto longer = make_candidate_feed(made.feed->source(), summary, default_cost(), options);
    const std::vector<kept_pack> all = lanepack_test::packs_of(longer, *made.policy, lanes);
    options.steps = random.between(1, 29);
    const auto shorter = make_candidate_feed(made.feed->source(), summary, default_cost(), options);
    const std::vector<kept_pack> some = lanepack_test::packs_of(shorter, *made.policy, lanes);
    REQUIRE(some.size() <= all.size());
    REQUIRE(lanepack_test::same_packs(
        some, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(some.size())}));
  });
}

TEST_CASE("contract 4: buffers and displacement are bounded", "[contracts]") {
  lanepack_test::for_each_seed(80, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const random_plan made = make_plan(random);
    const plan_options& options = made.options;
    CAPTURE(options.policy, to_string(options.rule));
    const any_policy& policy = *made.policy;
    planner plan(made.feed, policy, lanepack_test::lanes_from(0, options.lanes));
    while (plan.next()) {
    }
    const planner_statistics& seen = plan.statistics();
    REQUIRE(seen.peak_buffered_records <=
            static_cast<std::uint64_t>(options.lookahead_steps) * options.records_per_pack);
    REQUIRE(seen.max_displacement_steps <= std::uint64_t{32} * options.lookahead_steps);
    if (policy.buffered_steps() == 0) {
      REQUIRE(seen.max_displacement_steps < options.lookahead_steps);
      REQUIRE(seen.emitted_cost == seen.admitted_cost);
    }
  });
}

TEST_CASE("skipped steps use up their records and change no other step", "[contracts]") {
  lanepack_test::for_each_seed(40, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    random_plan made = make_plan(random);
    plan_options options = made.options;
    const corpus_summary summary = summarize(made.feed->source(), {.threads = 1});
    const auto lanes = lanepack_test::lanes_from(0, options.lanes);
    options.skip_steps.clear();
    const auto whole = make_candidate_feed(made.feed->source(), summary, default_cost(), options);
    std::vector<kept_pack> expected = lanepack_test::packs_of(whole, *made.policy, lanes);
    const std::uint64_t first = random.between(0, 6);
    const std::uint64_t last = first + random.between(1, 6);
    std::erase_if(expected,
                  [&](const kept_pack& pack) { return pack.step >= first && pack.step < last; });
    options.skip_steps.push_back({first, last});
    const auto skipping =
        make_candidate_feed(made.feed->source(), summary, default_cost(), options);
    REQUIRE(lanepack_test::same_packs(expected,
                                      lanepack_test::packs_of(skipping, *made.policy, lanes)));
  });
}
