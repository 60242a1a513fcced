#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/core/digest.hpp>
#include <lanepack/packer/calendar.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using lanepack::calendar_options;
using lanepack::calendar_policy;
using lanepack::candidate;

namespace {

std::shared_ptr<const lanepack::cost_distribution> skewed() {
  std::vector<lanepack::cost_bucket> buckets;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    buckets.push_back({.cost = i * i * 100, .tokens = i, .records = 201 - i});
  }
  return std::make_shared<const lanepack::cost_distribution>(std::move(buckets));
}

calendar_options small_options() {
  calendar_options options;
  options.costs = skewed();
  options.records_per_pack = 4;
  options.lookahead_steps = 6;
  options.max_displacement_steps = 40;
  options.tuning = lanepack::calendar_tuning{};
  options.tuning->spare_ppm = 30'000;
  options.tuning->slot_delay_steps = 20;
  options.tuning->overdue_steps = 26;
  return options;
}

std::vector<candidate> stream(const lanepack::cost_distribution& costs, std::size_t count,
                              std::uint64_t seed) {
  lanepack_test::gen gen(seed);
  std::vector<candidate> records(count);
  for (std::size_t i = 0; i < count; ++i) {
    const lanepack::cost_bucket& bucket = costs.at_rank(gen.between(0, costs.records() - 1));
    records[i].record = {.epoch = 0, .id = i};
    records[i].cost = bucket.cost;
    records[i].tokens = bucket.tokens;
    records[i].arrival = i;
  }
  return records;
}

/// Hands over what the concept promises before `step` and forms its pack.
void form(calendar_policy& policy, std::vector<candidate>& records, std::uint32_t b,
          std::uint64_t step, std::size_t& handed, lanepack::pack_list& out,
          std::optional<std::uint64_t> steps_to_drain = std::nullopt) {
  const std::size_t until =
      std::min<std::size_t>(records.size(), (step + 1 + policy.buffered_steps()) * b);
  for (std::size_t i = handed; i < until; ++i) records[i].admitted = step;
  policy.form({.first_step = step,
               .steps = 1,
               .records_per_pack = b,
               .packs_per_step = 1,
               .steps_to_drain = steps_to_drain},
              std::span(records).subspan(handed, until - handed), out);
  handed = until;
}

}  // namespace

TEST_CASE("packer: the calendar says what it is", "[packer]") {
  const calendar_policy policy(small_options());
  REQUIRE(policy.name() == "calendar");
  REQUIRE(policy.scope() == lanepack::policy_scope::lane);
  REQUIRE(policy.window_steps() == 1);
  REQUIRE(policy.buffered_steps() == 5);
  REQUIRE(policy.max_displacement_steps() == 40);
  REQUIRE(policy.held().empty());
}

TEST_CASE("packer: the calendar refuses options that cannot work", "[packer]") {
  const auto refused = [](auto change) {
    calendar_options options = small_options();
    change(options);
    REQUIRE_THROWS_AS(calendar_policy(options), lanepack::invalid_option);
  };
  refused([](calendar_options& o) { o.costs.reset(); });
  refused([](calendar_options& o) { o.records_per_pack = 0; });
  refused([](calendar_options& o) { o.lookahead_steps = 0; });
  refused([](calendar_options& o) { o.max_displacement_steps = 5; });
  refused([](calendar_options& o) { o.min_records_per_pack = 5; });
  refused([](calendar_options& o) { o.min_records_per_pack = 0; });
  refused([](calendar_options& o) { o.max_records_per_pack = 3; });
  // Six steps of eight records cannot leave within 10 steps of four.
  refused([](calendar_options& o) {
    o.max_records_per_pack = 8;
    o.max_displacement_steps = 10;
  });
  // Where the number of records changes, that is what the message names: 48 of them at least 5 a
  // step.
  calendar_options changing = small_options();
  changing.max_records_per_pack = 8;
  changing.max_displacement_steps = 10;
  REQUIRE_THROWS_WITH(calendar_policy(changing),
                      Catch::Matchers::ContainsSubstring("min_records_per_pack: found 4, expected "
                                                         "at least 5"));
  refused([](calendar_options& o) { o.max_ranks = 0; });
  refused([](calendar_options& o) { o.max_step_tokens_ppm = 1'000'000; });
  // Six steps of four records cannot leave within 23 steps of one.
  refused([](calendar_options& o) {
    o.min_records_per_pack = 1;
    o.max_displacement_steps = 23;
  });
}

TEST_CASE("packer: the calendar refuses windows and states that are not its own", "[packer]") {
  calendar_policy policy(small_options());
  lanepack::pack_list out;
  REQUIRE_THROWS_AS(policy.form({.steps = 2, .records_per_pack = 4}, {}, out),
                    lanepack::state_error);
  REQUIRE_THROWS_AS(policy.form({.steps = 1, .records_per_pack = 4, .packs_per_step = 2}, {}, out),
                    lanepack::state_error);
  REQUIRE_THROWS_AS(policy.form({.steps = 1, .records_per_pack = 4}, {}, out),
                    lanepack::state_error);
  REQUIRE_THROWS_AS(policy.form({.steps = 1, .records_per_pack = 3}, {}, out),
                    lanepack::state_error);
  REQUIRE_THROWS_AS(policy.restore({}, {}), lanepack::state_error);
}

TEST_CASE("packer: a calendar's state holds its tuning and goes on with the same packs",
          "[packer]") {
  calendar_policy policy(small_options());
  std::vector<candidate> records = stream(*skewed(), 4 * 300, 5);
  lanepack::pack_list before;
  std::size_t handed = 0;
  for (std::uint64_t step = 0; step < 150; ++step) form(policy, records, 4, step, handed, before);
  const lanepack::policy_state state = policy.save();
  const std::vector<candidate> held(policy.held().begin(), policy.held().end());

  calendar_options options = small_options();
  options.tuning = calendar_policy::tuning_of(state);
  REQUIRE(*options.tuning == policy.tuning());
  calendar_policy restored(options);
  restored.restore(state, held);
  REQUIRE(restored.save().words == state.words);
  REQUIRE(restored.statistics() == policy.statistics());
  std::vector<candidate> same = records;
  std::size_t same_handed = handed;
  lanepack::pack_list expected;
  lanepack::pack_list found;
  for (std::uint64_t step = 150; step < 250; ++step) {
    form(policy, records, 4, step, handed, expected);
    form(restored, same, 4, step, same_handed, found);
  }
  for (std::size_t i = 0; i < expected.records().size(); ++i) {
    REQUIRE(found.records()[i].arrival == expected.records()[i].arrival);
  }
  REQUIRE(restored.save().words == policy.save().words);
}

TEST_CASE("packer: a calendar refuses the state of another tuning, distribution or bound",
          "[packer]") {
  const lanepack::policy_state state = calendar_policy(small_options()).save();
  const auto message = [&](auto change) {
    calendar_options options = small_options();
    change(options);
    calendar_policy policy(options);
    try {
      policy.restore(state, {});
    } catch (const lanepack::state_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(message([](calendar_options&) {}).empty());
  const auto contains = [](const char* text) { return Catch::Matchers::ContainsSubstring(text); };
  REQUIRE_THAT(message([](calendar_options& o) { o.tuning->spare_ppm = 30'001; }),
               contains("tuning (30000, "));
  REQUIRE_THAT(message([](calendar_options& o) { o.max_displacement_steps = 41; }),
               contains("displacement bound"));
  REQUIRE_THAT(message([](calendar_options& o) { o.lookahead_steps = 7; }), contains("lookahead"));
  REQUIRE_THAT(message([](calendar_options& o) {
                 o.costs = std::make_shared<const lanepack::cost_distribution>(
                     std::vector<lanepack::cost_bucket>{{.cost = 7, .tokens = 1, .records = 1}});
               }),
               contains("other costs"));
  REQUIRE_THROWS_AS(calendar_policy::tuning_of({}), lanepack::state_error);
  lanepack::policy_state damaged = state;
  damaged.words[1] = std::uint64_t{1} << 32;
  REQUIRE_THROWS_AS(calendar_policy::tuning_of(damaged), lanepack::state_error);
}

TEST_CASE("packer: a calendar refuses numbers that make no calendar", "[packer]") {
  const auto refused = [](auto change) {
    calendar_options options = small_options();
    change(*options.tuning);
    REQUIRE_THROWS_AS(calendar_policy(options), lanepack::invalid_option);
  };
  refused([](lanepack::calendar_tuning& t) { t.light_ppm = 0; });
  refused([](lanepack::calendar_tuning& t) { t.light_ppm = 1'000'001; });
  refused([](lanepack::calendar_tuning& t) { t.dither_ppm = 2'000'001; });
  refused([](lanepack::calendar_tuning& t) { t.slot_delay_steps = 0; });
  refused([](lanepack::calendar_tuning& t) { t.step_cost_ppm = 1'000'000; });
  refused([](lanepack::calendar_tuning& t) { t.step_tokens_ppm = 1; });
}

TEST_CASE("packer: a calendar's packs and their order never change", "[packer][golden]") {
  calendar_policy policy(small_options());
  std::vector<candidate> records = stream(*skewed(), 4 * 400, 1);
  lanepack::pack_list out;
  std::size_t handed = 0;
  for (std::uint64_t step = 0; step < 400; ++step) {
    form(policy, records, 4, step, handed, out, 400 - step);
  }
  lanepack::digest_builder digest;
  for (const candidate& record : out.records()) digest.number(record.arrival);
  REQUIRE(digest.value().hex() == "311345f5ae3d242723958b053e1be1cb");
}

TEST_CASE("packer: a record above every cap leaves by its bound and is counted", "[packer]") {
  calendar_options options = small_options();
  calendar_policy policy(options);
  std::vector<candidate> records = stream(*options.costs, 4 * 100, 2);
  records[30].cost = std::uint64_t{1} << 35;
  lanepack::pack_list out;
  std::size_t handed = 0;
  std::uint64_t left_at = 0;
  for (std::uint64_t step = 0; step < 90; ++step) {
    const std::size_t before = out.size();
    form(policy, records, 4, step, handed, out);
    for (const candidate& record : out[before]) {
      if (record.arrival == 30) left_at = step;
    }
  }
  REQUIRE(left_at == records[30].admitted + 40);
  REQUIRE(policy.statistics().packs == 90);
  REQUIRE(policy.statistics().packs_above_cap >= 1);
  REQUIRE(policy.statistics().due_records >= 1);
}

TEST_CASE("packer: the calendar drains in packs of falling, balanced cost", "[packer]") {
  calendar_policy policy(small_options());
  std::vector<candidate> records = stream(*skewed(), 4 * 60, 3);
  lanepack::pack_list out;
  std::size_t handed = 0;
  std::vector<std::uint64_t> costs;
  for (std::uint64_t step = 0; step < 60; ++step) {
    form(policy, records, 4, step, handed, out, 60 - step);
    std::uint64_t cost = 0;
    for (const candidate& record : out[step]) cost += record.cost;
    costs.push_back(cost);
  }
  REQUIRE(policy.held().empty());
  // Six packs of 24 records; a single record costs at most 4,000,000.
  for (std::size_t step = 55; step < 60; ++step) {
    REQUIRE(costs[step] <= costs[step - 1]);
    REQUIRE(costs[54] - costs[step] <= 4'000'000);
  }
}

TEST_CASE("packer: the calendar follows a change of the number of records a pack", "[packer]") {
  calendar_options options = small_options();
  options.min_records_per_pack = 2;
  calendar_policy policy(options);
  const std::vector<candidate> records = stream(*options.costs, 4000, 4);
  const auto count = [](std::uint64_t step) -> std::uint32_t {
    return step < 50 ? 4 : (step < 120 ? 2 : 6);
  };
  const auto before = [&](std::uint64_t step) {
    std::size_t sum = 0;
    for (std::uint64_t s = 0; s < step; ++s) sum += count(s);
    return sum;
  };
  lanepack::pack_list out;
  std::size_t handed = 0;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const std::size_t until = before(step + 6);
    std::vector<candidate> arrivals(records.begin() + static_cast<std::ptrdiff_t>(handed),
                                    records.begin() + static_cast<std::ptrdiff_t>(until));
    for (candidate& record : arrivals) record.admitted = step;
    policy.form({.first_step = step, .steps = 1, .records_per_pack = count(step)}, arrivals, out);
    handed = until;
    REQUIRE(out[step].size() == count(step));
    for (const candidate& record : out[step]) REQUIRE(step - record.admitted <= 40);
  }
}
