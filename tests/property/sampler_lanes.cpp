// Every rule against a simulation that deals records one by one, step by step.

#include <lanepack/sampler/lane_sampler.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::arrival;
using lanepack::epoch_end;
using lanepack::epoch_order;
using lanepack::lane_sampler;
using lanepack::record_domain;
using lanepack::record_role;
using lanepack::run_of_steps;
using lanepack::schedule_counts;
using lanepack::schedule_options;
using lanepack::shuffle_kind;
using lanepack::shuffle_options;
using lanepack::step_schedule;

struct simulated_step {
  std::uint64_t epoch = 0;
  std::uint32_t pack = 0;
  std::uint64_t lane_records_before = 0;
};

struct simulation {
  /// An epoch of the run has no step at all.
  bool impossible = false;
  /// Steps of the run, then those up to the end of the last epoch.
  std::uint64_t steps = 0;
  std::vector<simulated_step> plan;
  std::vector<arrival> stream;
  std::vector<std::vector<arrival>> lanes;
  schedule_counts counts;
};

std::uint32_t pack_at(const schedule_options& options, std::uint64_t step) {
  std::uint32_t pack = options.records_per_pack;
  for (const lanepack::pack_size_change& change : options.changes) {
    if (step >= change.step) pack = change.records_per_pack;
  }
  return pack;
}

class dealer {
 public:
  dealer(const epoch_order& order, const schedule_options& options)
      : order_(order), options_(options) {
    result_.lanes.resize(options.lanes);
  }

  simulation run() {
    if (options_.rule == epoch_end::continue_epochs) {
      endless();
    } else {
      epochs();
    }
    return std::move(result_);
  }

 private:
  void endless() {
    const std::uint64_t n = order_.size();
    std::uint64_t dealt = 0;
    for (std::uint64_t step = 0;; ++step) {
      const std::uint64_t wanted = std::uint64_t{options_.lanes} * pack_at(options_, step);
      if (options_.epochs && dealt + wanted > *options_.epochs * n) {
        result_.counts.dropped = *options_.epochs * n - dealt;
        result_.impossible = step == 0;
        break;
      }
      if (step == options_.steps.value_or(options_.epochs ? 1000000 : 50)) break;
      begin_step(dealt / n, step);
      for (std::uint64_t i = 0; i < wanted; ++i, ++dealt) {
        emit(dealt / n, dealt % n, dealt, record_role::regular);
        ++result_.counts.regular;
      }
      result_.steps = step + 1;
    }
  }

  void epochs() {
    const std::uint64_t n = order_.size();
    std::uint64_t step = 0;
    const std::uint64_t last_epoch = options_.epochs.value_or(options_.steps ? 1000000 : 1);
    const std::uint64_t last_step = options_.steps.value_or(1000000);
    for (std::uint64_t epoch = 0; epoch < last_epoch && step < last_step; ++epoch) {
      std::uint64_t position = 0;
      const std::uint64_t first_step = step;
      while (true) {
        const std::uint64_t wanted = std::uint64_t{options_.lanes} * pack_at(options_, step);
        if (options_.rule == epoch_end::drop_last ? position + wanted > n : position >= n) break;
        begin_step(epoch, step);
        for (std::uint64_t i = 0; i < wanted; ++i, ++position) {
          const record_role role = position < n                         ? record_role::regular
                                   : options_.rule == epoch_end::finite ? record_role::masked
                                                                        : record_role::repeated;
          emit(epoch, position % n, epoch * n + position, role);
          if (step >= last_step) continue;
          ++(role == record_role::regular    ? result_.counts.regular
             : role == record_role::repeated ? result_.counts.repeated
                                             : result_.counts.masked);
        }
        ++step;
      }
      if (step == first_step) {
        result_.impossible = true;
        return;
      }
      if (position < n && step <= last_step) result_.counts.dropped += n - position;
    }
    result_.steps = std::min(step, last_step);
  }

  void begin_step(std::uint64_t epoch, std::uint64_t step) {
    result_.plan.push_back(
        {epoch, pack_at(options_, step), result_.stream.size() / options_.lanes});
  }

  void emit(std::uint64_t epoch, std::uint64_t position, std::uint64_t dealt, record_role role) {
    std::vector<lanepack::record_id>& ids = orders_[epoch];
    if (ids.empty()) {
      std::vector<std::uint64_t> positions(order_.size());
      std::iota(positions.begin(), positions.end(), std::uint64_t{0});
      ids.resize(order_.size());
      order_.records(epoch, positions, ids);
    }
    const arrival next{{epoch, ids[position]}, role};
    result_.stream.push_back(next);
    result_.lanes[dealt % options_.lanes].push_back(next);
  }

  const epoch_order& order_;
  const schedule_options& options_;
  std::map<std::uint64_t, std::vector<lanepack::record_id>> orders_;
  simulation result_;
};

struct random_case {
  record_domain domain{1};
  shuffle_options shuffle;
  std::uint64_t seed = 0;
  schedule_options options;
};

random_case draw(lanepack_test::gen& gen) {
  random_case result;
  const std::uint64_t size = gen.between(1, gen.one_in(4) ? 200 : 40);
  std::vector<lanepack::record_id> excluded;
  for (lanepack::record_id id = 0; id + 1 < size; ++id) {
    if (gen.one_in(10)) excluded.push_back(id);
  }
  result.domain = record_domain(size, excluded);
  result.shuffle.kind = static_cast<shuffle_kind>(gen.between(0, 2));
  result.shuffle.block_records = gen.between(1, 9);
  result.shuffle.group_blocks = gen.between(1, 5);
  result.seed = gen.bits();

  schedule_options& options = result.options;
  options.lanes = static_cast<std::uint32_t>(gen.between(1, 7));
  options.records_per_pack = static_cast<std::uint32_t>(gen.between(1, 6));
  std::uint64_t step = 0;
  for (std::uint64_t changes = gen.between(0, 4); changes != 0; --changes) {
    step += gen.between(1, 12);
    options.changes.push_back({step, static_cast<std::uint32_t>(gen.between(1, 6))});
  }
  options.rule = static_cast<epoch_end>(gen.between(0, 3));
  if (!gen.one_in(3)) options.epochs = gen.between(1, 6);
  if (gen.one_in(2)) options.steps = gen.between(1, 40);
  for (std::uint64_t ranges = gen.between(0, 3); ranges != 0; --ranges) {
    const std::uint64_t first = gen.between(0, 40);
    options.skip_steps.push_back({first, first + gen.between(1, 10)});
  }
  return result;
}

run_of_steps expected_run(const schedule_options& options, const simulation& expected,
                          std::uint64_t step) {
  const auto& plan = expected.plan;
  run_of_steps run;
  run.records_per_pack = plan[step].pack;
  std::uint64_t first = step;
  if (options.rule == epoch_end::continue_epochs) {
    while (first > 0 && pack_at(options, first - 1) == run.records_per_pack) --first;
    run.first_step = first;
    for (const lanepack::pack_size_change& change : options.changes) {
      if (change.step > step && change.records_per_pack != run.records_per_pack) {
        run.end_step = change.step;
        break;
      }
    }
    run.epoch = plan[first].epoch;
    return run;
  }
  const auto alike = [&](std::uint64_t other) {
    return plan[other].epoch == plan[step].epoch && plan[other].pack == plan[step].pack;
  };
  while (first > 0 && alike(first - 1)) --first;
  std::uint64_t end = step;
  while (end < plan.size() && alike(end)) ++end;
  std::uint64_t epoch_end = step;
  while (epoch_end < plan.size() && plan[epoch_end].epoch == plan[step].epoch) ++epoch_end;
  run.first_step = first;
  run.end_step = end;
  run.epoch = plan[step].epoch;
  run.drains = end == epoch_end;
  run.epoch_end_step = epoch_end;
  return run;
}

TEST_CASE("sampler: every rule deals as a simulation record by record does", "[sampler]") {
  lanepack_test::for_each_seed(1500, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const random_case given = draw(gen);
    const epoch_order order(given.domain, given.shuffle, given.seed);
    const simulation expected = dealer(order, given.options).run();
    if (expected.impossible) {
      REQUIRE_THROWS_AS(step_schedule(order.size(), given.options), lanepack::invalid_option);
      return;
    }
    const lane_sampler sampler(order, step_schedule(order.size(), given.options));
    const step_schedule& schedule = sampler.schedule();
    const bool endless = given.options.rule == epoch_end::continue_epochs &&
                         !given.options.epochs && !given.options.steps;
    if (endless) {
      REQUIRE_FALSE(schedule.steps().has_value());
    } else {
      REQUIRE(schedule.steps() == expected.steps);
      REQUIRE(schedule.counts() == expected.counts);
    }

    for (std::uint64_t step = 0; step < expected.plan.size(); ++step) {
      CAPTURE(step);
      const simulated_step& planned = expected.plan[step];
      REQUIRE(schedule.records_per_pack(step) == planned.pack);
      REQUIRE(schedule.lane_records_before(step) == planned.lane_records_before);
      for (std::uint64_t i = 0; i < planned.pack; ++i) {
        REQUIRE(schedule.step_of_lane_record(planned.lane_records_before + i) == step);
      }
      REQUIRE(schedule.run(step) == expected_run(given.options, expected, step));
      const bool skipped = std::any_of(
          given.options.skip_steps.begin(), given.options.skip_steps.end(),
          [&](const lanepack::step_range& r) { return step >= r.first && step < r.last; });
      REQUIRE(schedule.skipped(step) == skipped);
      std::uint64_t next = schedule.first_not_skipped(step);
      REQUIRE_FALSE(schedule.skipped(next));
      while (next > step) REQUIRE(schedule.skipped(--next));
    }

    const auto same_slices = [&](const std::vector<arrival>& wanted, auto&& read) {
      std::vector<arrival> all(wanted.size());
      read(0, std::span(all));
      REQUIRE(all == wanted);
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t first = gen.between(0, wanted.size());
        std::vector<arrival> part(gen.between(0, wanted.size() - first));
        read(first, std::span(part));
        REQUIRE(std::equal(part.begin(), part.end(),
                           wanted.begin() + static_cast<std::ptrdiff_t>(first)));
      }
    };
    for (lanepack::lane_index lane = 0; lane < sampler.lanes(); ++lane) {
      CAPTURE(lane);
      same_slices(expected.lanes[lane], [&](std::uint64_t first, std::span<arrival> out) {
        sampler.lane_arrivals(lane, first, out);
      });
    }
    same_slices(expected.stream, [&](std::uint64_t first, std::span<arrival> out) {
      sampler.stream_arrivals(first, out);
    });
  });
}

TEST_CASE("sampler: a longer run begins with the same arrivals and runs", "[sampler]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    random_case given = draw(gen);
    const epoch_order order(given.domain, given.shuffle, given.seed);
    given.options.rule = gen.one_in(2) ? epoch_end::pad : epoch_end::continue_epochs;
    given.options.epochs.reset();
    given.options.steps = gen.between(1, 40);
    const lane_sampler shorter(order, step_schedule(order.size(), given.options));
    *given.options.steps += gen.between(1, 40);
    const lane_sampler longer(order, step_schedule(order.size(), given.options));
    for (std::uint64_t step = 0; step < *shorter.schedule().steps(); ++step) {
      REQUIRE(shorter.schedule().run(step) == longer.schedule().run(step));
    }
    std::vector<arrival> a(shorter.schedule().lane_records_before(*shorter.schedule().steps()));
    std::vector<arrival> b(a.size());
    for (lanepack::lane_index lane = 0; lane < shorter.lanes(); ++lane) {
      shorter.lane_arrivals(lane, 0, a);
      longer.lane_arrivals(lane, 0, b);
      REQUIRE(a == b);
    }
  });
}

TEST_CASE("sampler: every (epoch, id) arrives once over all lanes of whole epochs", "[sampler]") {
  lanepack_test::for_each_seed(300, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    random_case given = draw(gen);
    const epoch_order order(given.domain, given.shuffle, given.seed);
    given.options.rule =
        gen.pick(std::vector{epoch_end::pad, epoch_end::finite, epoch_end::continue_epochs});
    given.options.steps.reset();
    // Under continue, L epochs are a whole number of arrivals of every lane.
    const std::uint64_t epochs = given.options.lanes;
    if (given.options.rule == epoch_end::continue_epochs) {
      given.options.epochs.reset();
    } else {
      given.options.epochs = epochs;
    }
    const lane_sampler sampler(order, step_schedule(order.size(), given.options));
    const std::uint64_t arrivals =
        given.options.rule == epoch_end::continue_epochs
            ? order.size()
            : sampler.schedule().lane_records_before(*sampler.schedule().steps());
    std::map<lanepack::record_ref, int> seen;
    std::uint64_t filling = 0;
    for (lanepack::lane_index lane = 0; lane < sampler.lanes(); ++lane) {
      std::vector<arrival> out(arrivals);
      sampler.lane_arrivals(lane, 0, out);
      for (const arrival& a : out) {
        if (a.role == record_role::regular) {
          ++seen[a.record];
        } else {
          ++filling;
        }
      }
    }
    REQUIRE(seen.size() == epochs * order.size());
    for (const auto& [record, times] : seen) {
      REQUIRE(times == 1);
      REQUIRE(record.epoch < epochs);
      REQUIRE(order.domain().contains(record.id));
    }
    if (given.options.rule != epoch_end::continue_epochs) {
      const schedule_counts counts = *sampler.schedule().counts();
      REQUIRE(filling == counts.repeated + counts.masked);
      REQUIRE(counts.regular == epochs * order.size());
    }
  });
}

TEST_CASE("sampler: the step count depends on records, lanes, pack size and rule alone",
          "[sampler]") {
  lanepack_test::for_each_seed(100, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    random_case given = draw(gen);
    given.options.rule = epoch_end::finite;
    const std::uint64_t n = given.domain.size();
    const std::optional<std::uint64_t> steps = step_schedule(n, given.options).steps();
    given.options.skip_steps.clear();
    REQUIRE(step_schedule(n, given.options).steps() == steps);
    // Ranks have their own schedule object each; equal options give equal plans.
    const step_schedule one(n, given.options);
    const step_schedule other(n, schedule_options(given.options));
    for (std::uint64_t step = 0; step < *steps; ++step) REQUIRE(one.run(step) == other.run(step));
  });
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE("sampler: memory does not grow with the corpus", "[sampler]") {
  for (const shuffle_kind kind : {shuffle_kind::full, shuffle_kind::block}) {
    const std::uint64_t before = resident_bytes();
    const std::uint64_t n = std::uint64_t{1} << 40;
    schedule_options options;
    options.lanes = 1024;
    options.records_per_pack = 16;
    options.epochs = 1000;
    const lane_sampler sampler(epoch_order(record_domain(n), {.kind = kind}, 1),
                               step_schedule(n, options));
    std::vector<arrival> out(256);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      sampler.lane_arrivals(static_cast<lanepack::lane_index>(i), i * 1000000000, out);
      for (const arrival& a : out) sum += a.record.id;
    }
    CHECK(sum != 0);
    CHECK(resident_bytes() < before + (std::uint64_t{8} << 20));
  }
}

}  // namespace
