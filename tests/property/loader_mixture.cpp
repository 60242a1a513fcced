// Mixtures in whole runs: shares, epochs of parts, policies, ranks, changes of a running mixture.

#include <lanepack/loader.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/summarize.hpp>

#include "support/calendars.hpp"
#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::gen;
using lanepack_test::kept_pack;
using lanepack_test::lanes_from;

namespace {

std::string name_of(std::size_t part) {
  return "p" + std::to_string(part);
}

/// A run over parts that can be added to.
struct mixed_run {
  plan_options options;
  std::vector<named_source> parts;

  [[nodiscard]] std::shared_ptr<const candidate_feed> feed() const {
    const any_source source = concatenated_source(parts);
    return make_candidate_feed(source, summarize(source, {.threads = 1}), default_cost(), options);
  }
};

mixed_run random_run(gen& random, const std::string& policy) {
  mixed_run run;
  plan_options& options = run.options;
  options.seed = random.bits();
  options.lanes = static_cast<std::uint32_t>(random.between(1, 8));
  options.records_per_pack = static_cast<std::uint32_t>(random.between(1, 5));
  options.lookahead_steps = static_cast<std::uint32_t>(random.between(1, 6));
  options.policy = policy;
  options.tuning = lanepack_test::random_tuning(random);
  options.rule = epoch_end::continue_epochs;
  options.steps = random.between(20, 40);
  options.shuffle.kind = random.one_in(2) ? shuffle_kind::full : shuffle_kind::block;
  options.shuffle.block_records = random.between(1, 9);
  options.shuffle.group_blocks = random.between(1, 3);
  options.mixture.emplace();
  options.mixture->phases.emplace_back();
  const std::size_t parts = random.between(1, 4);
  for (std::size_t i = 0; i < parts; ++i) {
    run.parts.push_back({name_of(i), lanepack_test::corpus_of(lanepack_test::random_lengths(
                                         random, random.between(1, 200), 7))});
    options.mixture->phases[0].weights.push_back({name_of(i), random.between(1, 9)});
  }
  if (random.one_in(2)) {
    options.mixture->phases.push_back(
        {random.between(1, 15), {{name_of(0), random.between(1, 9)}}});
  }
  if (random.one_in(3)) options.mixture->unit = mixture_unit::tokens;
  if (random.one_in(3)) options.pack_size_changes.push_back({random.between(1, 20), 3});
  return run;
}

/// The records of every part in the order of arrival.
std::map<std::size_t, std::vector<record_ref>> by_part(const candidate_feed& feed,
                                                       std::uint64_t arrivals) {
  std::vector<arrival> all(arrivals);
  feed.sampler().stream_arrivals(0, all);
  std::map<std::size_t, std::vector<record_ref>> parts;
  for (const arrival& each : all) {
    parts[feed.sampler().mixture()->part_of(each.record.id)].push_back(each.record);
  }
  return parts;
}

template <class Vector>
bool begins_with(const Vector& longer, const Vector& shorter) {
  return longer.size() >= shorter.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const named_policy& policy : policies()) names.emplace_back(policy.name);
  return names;
}

}  // namespace

TEST_CASE("mixture: every record of every epoch of a part comes once, under every policy",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const mixed_run run = random_run(random, random.pick(policy_names()));
    CAPTURE(seed, run.options.policy, run.options.lanes);
    const auto feed = run.feed();
    const any_policy policy = make_policy(run.options, *feed);
    const std::uint32_t lanes = run.options.lanes;
    const step_schedule& schedule = feed->sampler().schedule();
    const std::uint64_t arrivals = schedule.lane_records_before(*run.options.steps) * lanes;

    // In order of arrival, part by part, an epoch is finished before the next begins.
    for (const auto& [part, records] : by_part(*feed, arrivals)) {
      const source_part& from = feed->source().parts()[part];
      std::vector<record_id> seen;
      for (std::size_t i = 0; i < records.size(); ++i) {
        REQUIRE(records[i].epoch == i / from.records);
        seen.push_back(records[i].id);
        if (seen.size() == from.records || i + 1 == records.size()) {
          std::sort(seen.begin(), seen.end());
          REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
          REQUIRE(seen.front() >= from.first);
          REQUIRE(seen.back() - from.first < from.records);
          seen.clear();
        }
      }
    }

    // What any number of ranks plan is one plan, and no record comes twice in it.
    planner all(feed, policy, lanes_from(0, lanes));
    const std::vector<kept_pack> whole =
        lanepack_test::packs_of(feed, policy, lanes_from(0, lanes));
    std::vector<record_ref> planned;
    for (const kept_pack& pack : whole) {
      for (const candidate& record : pack.records) planned.push_back(record.record);
    }
    REQUIRE(planned.size() == arrivals);
    std::sort(planned.begin(), planned.end());
    REQUIRE(std::adjacent_find(planned.begin(), planned.end()) == planned.end());
    const auto split = static_cast<std::uint32_t>(random.between(0, lanes));
    std::vector<kept_pack> joined = lanepack_test::packs_of(feed, policy, lanes_from(0, split));
    if (split != lanes) {
      for (kept_pack& pack : lanepack_test::packs_of(feed, policy, lanes_from(split, lanes))) {
        joined.push_back(std::move(pack));
      }
    }
    std::stable_sort(joined.begin(), joined.end(), [](const kept_pack& a, const kept_pack& b) {
      return a.step != b.step ? a.step < b.step : a.lane < b.lane;
    });
    REQUIRE(lanepack_test::same_packs(joined, whole));
    if (policy.buffered_steps() != 0) return;

    // A policy that holds nothing between windows has planned what arrived, by part too.
    while (all.next()) {
    }
    std::map<std::size_t, part_share> shares;
    const auto share_of = [&](const candidate& record) -> part_share& {
      return shares[feed->sampler().mixture()->part_of(record.record.id)];
    };
    const std::vector<kept_pack> windows =
        lanepack_test::packs_of(feed, policy, lanes_from(0, lanes));
    for (const kept_pack& pack : windows) {
      for (const candidate& record : pack.records) {
        ++share_of(record).records;
        share_of(record).tokens += record.tokens;
      }
    }
    for (std::size_t part = 0; part < run.parts.size(); ++part) {
      // The last window may reach past the end of the run.
      REQUIRE(all.statistics().parts[part].records >= shares[part].records);
      REQUIRE(all.statistics().parts[part].tokens >= shares[part].tokens);
    }
  });
}

TEST_CASE("mixture: a part that is added at a step moves nothing of the others", "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    mixed_run run = random_run(random, "sequential");
    // Rounding weights per token depends on all that have one.
    run.options.mixture->unit = mixture_unit::records;
    CAPTURE(seed, run.options.lanes);
    const auto before = run.feed();
    const step_index step = random.between(16, 30);
    mixed_run changed = run;
    changed.parts.push_back({"new", lanepack_test::corpus_of({5, 6, 7})});
    changed.options.mixture->phases.push_back(
        {step, {{"new", random.between(1, 20)}, {name_of(0), random.between(0, 5)}}});
    const auto after = changed.feed();
    const std::uint64_t same =
        before->sampler().schedule().lane_records_before(step) * run.options.lanes;
    std::vector<arrival> first(same);
    std::vector<arrival> second(same);
    before->sampler().stream_arrivals(0, first);
    after->sampler().stream_arrivals(0, second);
    REQUIRE(first == second);
    auto longer = by_part(*before, 3 * same);
    auto mixed = by_part(*after, 2 * same);
    REQUIRE(longer.size() == run.parts.size());
    for (std::size_t part = 0; part < run.parts.size(); ++part) {
      REQUIRE((begins_with(longer[part], mixed[part]) || begins_with(mixed[part], longer[part])));
    }
    REQUIRE_FALSE(mixed[run.parts.size()].empty());
  });
}

TEST_CASE("mixture: a run goes on with another mixture from a step that nothing planned reaches",
          "[contracts]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    const mixed_run run = random_run(random, random.pick(policy_names()));
    CAPTURE(seed, run.options.policy, run.options.lanes, run.options.lookahead_steps);
    const auto feed = run.feed();
    const any_policy policy = make_policy(run.options, *feed);
    const std::uint32_t lanes = run.options.lanes;
    planner first(feed, policy, lanes_from(0, lanes));
    const std::uint64_t stop = random.between(0, 19);
    for (std::uint64_t step = 0; step < stop; ++step) REQUIRE(first.next().has_value());
    run_state state = first.state();
    state.run = properties_of_run(run.options, *feed, state.planned_until);
    REQUIRE(state.planned_until >= stop);
    REQUIRE(state.planned_until <= stop + 2 * run.options.lookahead_steps);

    // The run that had the new mixture from the beginning.
    const step_index step = std::max<step_index>({state.planned_until, 16, random.between(0, 30)});
    mixed_run changed = run;
    changed.parts.push_back({"new", lanepack_test::corpus_of({50, 6, 7})});
    changed.options.mixture->phases.push_back({step, {{"new", random.between(1, 20)}}});
    const bool rounded = run.options.mixture->unit == mixture_unit::tokens;
    const auto other = changed.feed();
    const any_policy other_policy = make_policy(changed.options, *other);
    const auto expected = properties_of_run(changed.options, *other, state.planned_until);
    CAPTURE(rounded);
    REQUIRE_NOTHROW(detail::check_same_run(state, expected));
    std::vector<kept_pack> resumed;
    planner second(other, other_policy, lanes_from(0, lanes));
    second.restore(state);
    while (const auto plan = second.next()) {
      for (const pack_plan& pack : plan->packs) {
        resumed.push_back(
            {plan->step, pack.lane, pack.cost, {pack.records.begin(), pack.records.end()}});
      }
    }
    std::vector<kept_pack> whole =
        lanepack_test::packs_of(other, other_policy, lanes_from(0, lanes));
    std::erase_if(whole, [&](const kept_pack& pack) { return pack.step < stop; });
    REQUIRE(lanepack_test::same_packs(resumed, whole));
    // And up to then it is the old one.
    const auto old = lanepack_test::packs_of(feed, policy, lanes_from(0, lanes), 0, stop);
    REQUIRE(lanepack_test::same_packs(
        old, lanepack_test::packs_of(other, other_policy, lanes_from(0, lanes), 0, stop)));

    // What has been planned already cannot change.
    if (state.planned_until < 2) return;
    changed.options.mixture->phases.resize(run.options.mixture->phases.size());
    for (mixture_phase& phase : changed.options.mixture->phases) {
      for (part_weight& weight : phase.weights) weight.weight += 10 * weight.weight + 1;
    }
    changed.options.mixture->phases[0].weights.push_back({"new", 1});
    const auto wrong = changed.feed();
    REQUIRE_THROWS_WITH(
        detail::check_same_run(state,
                               properties_of_run(changed.options, *wrong, state.planned_until)),
        ContainsSubstring("weights from record 0") && ContainsSubstring("part new: found nothing"));
  });
}
