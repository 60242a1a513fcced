// What `calendar` promises for any stream: exact counts, every arrival once, bounded displacement,
// and the same packs however often it was saved and restored.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <lanepack/packer/calendar.hpp>

#include "support/calendars.hpp"
#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::calendar_policy;
using lanepack::candidate;

lanepack::calendar_options random_options(lanepack_test::gen& gen) {
  lanepack::calendar_options options;
  options.records_per_pack = static_cast<std::uint32_t>(gen.between(1, 20));
  options.lookahead_steps = static_cast<std::uint32_t>(gen.between(1, 12));
  options.max_displacement_steps = options.lookahead_steps + gen.between(0, gen.one_in(3) ? 2 : 60);
  options.tuning = lanepack_test::random_tuning(gen);
  return options;
}

/// One record for each of first to last tokens, at a cost of 1000 a token.
std::shared_ptr<const lanepack::cost_distribution> even_costs(std::uint64_t first,
                                                              std::uint64_t last) {
  std::vector<lanepack::cost_bucket> buckets;
  for (std::uint64_t tokens = first; tokens <= last; ++tokens) {
    buckets.push_back({.cost = tokens * 1000, .tokens = tokens, .records = 1});
  }
  return std::make_shared<const lanepack::cost_distribution>(std::move(buckets));
}

/// Records are declared to cost 50,000 to 150,000, evenly.
lanepack::calendar_options declared_even() {
  lanepack::calendar_options options;
  options.costs = even_costs(50, 150);
  options.records_per_pack = 8;
  options.lookahead_steps = 8;
  options.tuning = lanepack::calendar_tuning{};
  options.tuning->spare_ppm = 20'000;
  options.tuning->reserve_ppm = 2'000'000;
  return options;
}

/// The dearest pack of steps 500 to 999 where records cost 50 to 150 units.
std::uint64_t dearest_pack(calendar_policy& policy, lanepack_test::gen& gen, std::uint64_t unit) {
  std::vector<candidate> arrivals;
  lanepack::pack_list out;
  std::uint64_t arrived = 0;
  std::uint64_t largest = 0;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    arrivals.clear();
    for (; arrived < (step + 8) * 8; ++arrived) {
      candidate record;
      record.cost = gen.between(50, 150) * unit;
      record.arrival = arrived;
      record.admitted = step;
      arrivals.push_back(record);
    }
    policy.form({.first_step = step, .steps = 1, .records_per_pack = 8}, arrivals, out);
    if (step < 500) continue;
    std::uint64_t cost = 0;
    for (const candidate& record : out[step]) cost += record.cost;
    largest = std::max(largest, cost);
  }
  return largest;
}

}  // namespace

TEST_CASE("packer: calendar keeps its contracts on any stream", "[packer]") {
  lanepack_test::for_each_seed(120, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    lanepack::calendar_options options = random_options(gen);
    const std::uint32_t b = options.records_per_pack;
    const std::uint64_t bound = *options.max_displacement_steps;
    const auto bits = static_cast<unsigned>(gen.between(0, 40));
    std::vector<candidate> records(gen.between(1, 200) * b);
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].cost = gen.heavy_tailed(bits);
      records[i].tokens = gen.heavy_tailed(12);
      records[i].arrival = i;
    }
    // Often a distribution of other records: a wrong one may cost efficiency only.
    std::vector<candidate> known = records;
    if (gen.one_in(2)) {
      for (candidate& record : known) record.cost = gen.heavy_tailed(20);
    }
    options.costs = std::make_shared<const lanepack::cost_distribution>(
        lanepack::cost_distribution::of_records(known));

    const bool drains = gen.one_in(2);
    const std::size_t all_steps = records.size() / b;
    const std::size_t carried = options.lookahead_steps - 1;
    const std::size_t steps = drains ? all_steps : all_steps - std::min(all_steps, carried);
    calendar_policy policy(options);
    calendar_policy stopped(options);
    lanepack::pack_list packs;
    lanepack::pack_list packs_of_stopped;
    std::vector<int> seen(records.size(), 0);
    std::size_t handed = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t until = std::min(records.size(), (step + 1 + carried) * b);
      for (std::size_t i = handed; i < until; ++i) records[i].admitted = step;
      const lanepack::step_window window{
          .first_step = step,
          .steps = 1,
          .records_per_pack = b,
          .packs_per_step = 1,
          .steps_to_drain = drains ? std::optional<std::uint64_t>(steps - step) : std::nullopt};
      const auto arrivals = std::span(records).subspan(handed, until - handed);
      REQUIRE(policy.held().size() + arrivals.size() <= std::size_t{options.lookahead_steps} * b);
      policy.form(window, arrivals, packs);
      handed = until;

      REQUIRE(packs.size() == step + 1);
      REQUIRE(packs[step].size() == b);
      for (const candidate& record : packs[step]) {
        ++seen[record.arrival];
        REQUIRE(record.cost == records[record.arrival].cost);
        REQUIRE(step - record.admitted <= bound);
      }

      stopped.form(window, arrivals, packs_of_stopped);
      if (gen.one_in(4)) {
        const std::vector<candidate> held(stopped.held().begin(), stopped.held().end());
        const lanepack::policy_state state = stopped.save();
        calendar_policy fresh(options);
        fresh.restore(state, held);
        REQUIRE(fresh.save().words == state.words);
        REQUIRE(fresh.held().size() == held.size());
        stopped = fresh;
      }
      REQUIRE(stopped.statistics() == policy.statistics());
      REQUIRE(std::equal(
          packs[step].begin(), packs[step].end(), packs_of_stopped[step].begin(),
          [](const candidate& a, const candidate& c) { return a.arrival == c.arrival; }));
    }
    REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times <= 1; }));
    if (drains) {
      REQUIRE(policy.held().empty());
      REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    }
  });
}

TEST_CASE("packer: no pack of a calendar exceeds its cap while records are alike", "[packer]") {
  lanepack_test::for_each_seed(10, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    lanepack::calendar_options options;
    options.costs = even_costs(80, 120);
    options.records_per_pack = 16;
    options.lookahead_steps = 16;
    options.tuning = lanepack::calendar_tuning{};
    options.tuning->spare_ppm = 10'000;
    options.tuning->dither_ppm = 20'000;
    options.tuning->reserve_ppm = 2'000'000;
    calendar_policy policy(options);
    std::vector<candidate> arrivals;
    lanepack::pack_list out;
    std::uint64_t arrived = 0;
    for (std::uint64_t step = 0; step < 300; ++step) {
      arrivals.clear();
      for (; arrived < (step + 16) * 16; ++arrived) {
        candidate record;
        record.cost = gen.between(80, 120) * 1000;
        record.arrival = arrived;
        record.admitted = step;
        arrivals.push_back(record);
      }
      policy.form({.first_step = step, .steps = 1, .records_per_pack = 16}, arrivals, out);
    }
    REQUIRE(policy.statistics().packs_above_cap == 0);
  });
}

TEST_CASE("packer: a calendar for cheaper records raises its caps alike on all lanes", "[packer]") {
  const lanepack::calendar_options options = declared_even();
  // Records cost a fifth more than declared: packs must follow, and no lane may fall behind until
  // its records reach their bound.
  lanepack_test::for_each_seed(4, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    calendar_policy policy(options);
    const std::uint64_t largest = dearest_pack(policy, gen, 1200);
    // 8 x 100,000 x 1.2 = 960,000 is the true mean; spare, spread and estimate add up to a tenth.
    REQUIRE(largest > 960'000);
    REQUIRE(largest < 1'056'000);
    REQUIRE(policy.statistics().packs_above_cap > 500);
  });
}

TEST_CASE("packer: a calendar for dearer records lowers its ordinary caps alike on all lanes",
          "[packer]") {
  const lanepack::calendar_options options = declared_even();
  // Records cost a fifth less than declared; of those that all cost what is declared, none may.
  lanepack_test::for_each_seed(4, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    for (const std::uint64_t unit : {std::uint64_t{800}, std::uint64_t{1000}}) {
      calendar_policy policy(options);
      const std::uint64_t largest = dearest_pack(policy, gen, unit);
      // 800 units are the mean of 8 records in either case.
      REQUIRE(largest > 800 * unit);
      REQUIRE(largest < 880 * unit);
    }
  });
}
