#include <lanepack/loader/run_state.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/planner.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

run_state state_with(std::vector<lane_index> lanes) {
  run_state state{.next_step = 5,
                  .fragments_step = 5,
                  .fragments_wanted = 6,
                  .run = {{"seed", "1"}, {"lanes", "6"}},
                  .fragments = {}};
  for (const lane_index lane : lanes) {
    state.fragments.push_back(
        {.lane = lane, .admitted = 20 + lane, .policy = {lane}, .held = {{10 + lane, 4}}});
  }
  return state;
}

/// Holds two steps of records and emits them in the order of arrival, three steps at a time: a
/// policy with a memory and a window.
class queue_policy {
 public:
  [[nodiscard]] std::string name() const { return "queue"; }
  [[nodiscard]] policy_scope scope() const { return policy_scope::lane; }
  [[nodiscard]] std::uint32_t window_steps() const { return 3; }
  [[nodiscard]] std::uint32_t buffered_steps() const { return 2; }
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    held_.insert(held_.end(), arrivals.begin(), arrivals.end());
    ++windows_;
    for (std::uint32_t step = 0; step < window.steps; ++step) {
      for (std::uint32_t i = 0; i < window.records_per_pack; ++i) {
        // Every other window the newest come first.
        const std::size_t from = windows_ % 2 == 0 ? held_.size() - 1 : 0;
        out.add(held_[from]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(from));
      }
      out.close();
    }
  }
  [[nodiscard]] std::span<const candidate> held() const { return held_; }
  [[nodiscard]] policy_state save() const { return {{windows_}}; }
  void restore(const policy_state& state, std::span<const candidate> held) {
    windows_ = state.words.at(0);
    held_.assign(held.begin(), held.end());
  }

 private:
  std::uint64_t windows_ = 0;
  std::vector<candidate> held_;
};

std::shared_ptr<const candidate_feed> feed_of(const plan_options& options) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 500; ++i) lengths.push_back(1 + i * 37 % 101);
  const any_source source = lanepack_test::corpus_of(lengths);
  return make_candidate_feed(source, summarize(source, {.threads = 1}), default_cost(), options);
}

}  // namespace

TEST_CASE("run state: merging is a union, in whatever order and however often", "[loader]") {
  const run_state whole = state_with({0, 1, 2, 3, 4, 5});
  REQUIRE(whole.whole());
  const run_state a = state_with({4, 5});
  const run_state b = state_with({0, 2, 3});
  const run_state c = state_with({1, 2});
  REQUIRE_FALSE(a.whole());
  REQUIRE(merge(std::vector{a, b, c}) == whole);
  REQUIRE(merge(std::vector{c, a, b, a}) == whole);
  REQUIRE(merge(std::vector{merge(std::vector{c, a}), b}) == whole);
  REQUIRE(merge(std::vector{whole}) == whole);
}

TEST_CASE("run state: states that do not belong together are refused", "[loader]") {
  const auto refused = [](const std::vector<run_state>& parts, const char* what) {
    try {
      static_cast<void>(merge(parts));
      FAIL("no exception; expected " << what);
    } catch (const state_error& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring(what));
    }
  };
  refused({}, "expected at least one");
  run_state later = state_with({1});
  later.next_step = later.fragments_step = 6;
  refused({state_with({0}), later}, "before step 6 beside one before step 5");
  run_state other = state_with({1});
  other.run[0].value = "2";
  other.run.push_back({"shuffle", "full"});
  refused({state_with({0}), other},
          "seed: found 2, expected 1; shuffle: found full, expected nothing");
  run_state liar = state_with({0});
  liar.fragments[0].held[0].arrival = 11;
  refused({state_with({0}), liar}, "different things of lane 0");
}

TEST_CASE("run state: lanes that are missing are named", "[loader]") {
  REQUIRE(detail::lanes_missing(state_with({}), 0, 6) == "0 to 5");
  REQUIRE(detail::lanes_missing(state_with({0, 1, 4}), 0, 6) == "2 to 3, 5");
  REQUIRE(detail::lanes_missing(state_with({1, 3, 5}), 0, 6) == "0, 2, 4");
  REQUIRE(detail::lanes_missing(state_with({0, 1, 2, 3, 4, 5}), 0, 6).empty());
}

TEST_CASE("run state: a policy with a window and a memory is resumed in the middle of a window",
          "[loader]") {
  plan_options options;
  options.lanes = 4;
  options.records_per_pack = 5;
  options.epochs = 2;
  options.policy = "sequential";
  const auto feed = feed_of(options);
  const any_policy policy = queue_policy();
  const auto lanes = lanepack_test::lanes_from(0, 4);
  const auto whole = lanepack_test::packs_of(feed, policy, lanes);
  REQUIRE(whole.size() == 4 * 50);
  std::vector<lanepack_test::kept_pack> resumed;
  run_state state;
  for (bool first = true;; first = false) {
    planner planner(feed, policy, lanes);
    if (!first) planner.restore(state);
    const auto step = planner.next();
    if (!step) break;
    for (const pack_plan& pack : step->packs) {
      resumed.push_back(
          {step->step, pack.lane, pack.cost, {pack.records.begin(), pack.records.end()}});
    }
    state = planner.state();
    REQUIRE(state.next_step == step->step + 1);
    REQUIRE(state.next_step - state.fragments_step < 3);
    REQUIRE(state.whole());
  }
  REQUIRE(lanepack_test::same_packs(resumed, whole));
}

TEST_CASE("run state: a state that cannot be is refused, and the planner is as new", "[loader]") {
  plan_options options;
  options.lanes = 4;
  options.records_per_pack = 5;
  options.lookahead_steps = 4;
  options.policy = "calendar";
  options.tuning = calendar_tuning{};
  const auto feed = feed_of(options);
  const any_policy policy = make_policy(options, *feed);
  const auto lanes = lanepack_test::lanes_from(0, 4);
  planner planner(feed, policy, lanes);
  for (int i = 0; i < 6; ++i) static_cast<void>(planner.next());
  const run_state good = planner.state();
  REQUIRE(good.fragments.size() == 4);
  REQUIRE(good.fragments[1].held.size() == 15);

  const auto refused = [&](run_state state, const std::string& what) {
    lanepack::planner fresh(feed, policy, lanes);
    try {
      fresh.restore(state);
      FAIL("no exception; expected " << what);
    } catch (const state_error& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring(what));
    }
    REQUIRE(fresh.state().next_step == 0);
    REQUIRE(fresh.next()->step == 0);
  };
  run_state bad = good;
  bad.fragments.erase(bad.fragments.begin() + 1, bad.fragments.begin() + 3);
  refused(bad, "no state of lanes 1 to 2");
  bad = good;
  bad.fragments[2].held.pop_back();
  refused(bad, "found 14 records held");
  bad = good;
  std::swap(bad.fragments[2].held[0], bad.fragments[2].held[1]);
  refused(bad, "lane 2");
  bad = good;
  bad.fragments[0].held.back().arrival = bad.fragments[0].admitted;
  refused(bad, "below 45");
  bad = good;
  bad.fragments[0].held.back().admitted = good.next_step;
  refused(bad, "admitted before step 6");
  bad = good;
  bad.fragments[3].policy.pop_back();
  refused(bad, "words");
  bad = good;
  bad.fragments_step = 2;
  refused(bad, "before step 2 in a state before step 6");
  bad = good;
  bad.next_step = bad.fragments_step = 7;
  refused(bad, "emitted records");
}

TEST_CASE("run state: loaders that stop after every step and go on with other ranks are one run",
          "[loader]") {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 700; ++i)
    lengths.push_back(1 + i * 53 % 211 + (i % 97 == 0 ? 900 : 0));
  const any_source source = lanepack_test::corpus_of(lengths);
  const corpus_summary summary = summarize(source, {.threads = 1});
  for (const std::string policy : {"sequential", "window", "calendar", "replicated"}) {
    CAPTURE(policy);
    loader_options options;
    options.plan.seed = 11;
    options.plan.lanes = 12;
    options.plan.records_per_pack = 4;
    options.plan.lookahead_steps = 5;
    options.plan.rule = epoch_end::continue_epochs;
    options.plan.steps = 25;
    options.plan.policy = policy;
    options.plan.tuning = calendar_tuning{};
    options.plan.limits.capacity_tokens = 2000;
    options.staging_bytes = 1 << 20;
    options.digests = true;
    // Digests of all packs of a step, in order of their lanes.
    const auto run_step = [&](std::optional<loaded_step<thd_layout>>& step,
                              std::vector<digest128>& out) {
      for (auto&& micro_batch : *step) static_cast<void>(micro_batch);
      out.insert(out.end(), step->pack_digests().begin(), step->pack_digests().end());
    };
    std::vector<digest128> whole;
    {
      loader loader(source, {0, 1}, options, default_cost(), summary);
      while (auto step = loader.next()) run_step(step, whole);
    }
    REQUIRE(whole.size() == 25 * 12);

    std::vector<digest128> resumed;
    constexpr std::uint32_t worlds[] = {1, 4, 3, 12, 2, 6};
    for (std::uint64_t at = 0; at < 25; ++at) {
      std::vector<run_state> parts;
      const std::uint32_t ranks = worlds[at % 6];
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        loader loader(source, {rank, ranks}, options, default_cost(), summary);
        REQUIRE(loader.state().next_step == at);
        auto step = loader.next();
        REQUIRE(step.has_value());
        run_step(step, resumed);
        parts.push_back(step->state());
        REQUIRE(loader.state() == parts.back());
      }
      options.resume_from = merge(parts);
      REQUIRE(options.resume_from->whole());
      REQUIRE(options.resume_from->next_step == at + 1);
    }
    REQUIRE(resumed == whole);
    loader over(source, {0, 1}, options, default_cost(), summary);
    REQUIRE_FALSE(over.next().has_value());

    const auto refused = [&](auto&& change, const std::string& what) {
      loader_options changed = options;
      change(changed);
      try {
        loader loader(source, {0, 1}, changed, default_cost(), summary);
        FAIL("no exception; expected " << what);
      } catch (const error& e) {
        REQUIRE_THAT(e.what(), ContainsSubstring(what));
      }
    };
    refused([](loader_options& o) { o.plan.seed = 12; }, "seed: found 11, expected 12");
    refused([](loader_options& o) { o.plan.records_per_pack = 8; },
            "records_per_pack: found 4, expected 8");
    refused([](loader_options& o) { o.start_step = 3; }, "start_step");
    refused(
        [&](loader_options& o) { o.plan.policy = policy == "window" ? "sequential" : "window"; },
        "policy: found " + policy);
    const any_source other = lanepack_test::corpus_of({5, 6, 7});
    REQUIRE_THROWS_AS(loader(other, {0, 1}, options), state_error);
  }
}

TEST_CASE(
    "planner: skipped steps without a memory cost nothing, others can be passed over in parts",
    "[loader]") {
  plan_options options;
  options.lanes = 4;
  options.records_per_pack = 5;
  options.lookahead_steps = 4;
  options.rule = epoch_end::continue_epochs;
  options.policy = "window";
  constexpr std::uint64_t far = std::uint64_t{1} << 40;
  options.skip_steps = {{2, far}};
  options.steps = far + 2;
  const auto lanes = lanepack_test::lanes_from(0, 4);
  {
    const auto feed = feed_of(options);
    planner planner(feed, make_policy(options, *feed), lanes);
    std::vector<step_index> seen;
    while (const auto step = planner.next()) seen.push_back(step->step);
    REQUIRE(seen == std::vector<step_index>{0, 1, far, far + 1});
  }
  options.skip_steps = {{2, 50}};
  options.policy = "calendar";
  options.tuning = calendar_tuning{};
  const auto feed = feed_of(options);
  const any_policy policy = make_policy(options, *feed);
  planner whole(feed, policy, lanes);
  whole.start_at(1);
  REQUIRE(whole.next()->step == 1);
  const auto expected = whole.next();
  REQUIRE(expected->step == 50);
  planner parts(feed, policy, lanes);
  parts.start_at(50);
  REQUIRE(parts.next_step() == 50);
  int calls = 0;
  while (!parts.pass_over(7)) ++calls;
  // Steps 0 to 49, seven at a time.
  REQUIRE(calls == 7);
  const auto found = parts.next();
  REQUIRE(found->step == 50);
  for (std::size_t lane = 0; lane < 4; ++lane) {
    REQUIRE(found->packs[lane].cost == expected->packs[lane].cost);
  }
}
