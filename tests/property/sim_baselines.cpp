// What every baseline promises on any step, and how their published forms compare.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <lanepack/packer/partitioner.hpp>
#include <lanepack/sim/baselines.hpp>
#include <lanepack/sim/bounds.hpp>
#include <lanepack/sim/karmarkar_karp.hpp>
#include <lanepack/sim/step_time.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using costs_list = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;

/// A step of `packs` packs of `b` records.
struct random_step {
  random_step(lanepack_test::gen& gen, std::size_t packs, std::size_t b, std::uint64_t largest)
      : records(packs, std::vector<lanepack::candidate>(b)) {
    const bool heavy = gen.one_in(2);
    for (std::size_t pack = 0; pack < packs; ++pack) {
      for (lanepack::candidate& record : records[pack]) {
        const std::uint64_t drawn = heavy ? gen.heavy_tailed(20) : gen.bits();
        record.tokens = 1 + drawn % largest;
        record.cost = 24576 * record.tokens + record.tokens * record.tokens;
      }
      plans.push_back(
          {.lane = static_cast<lanepack::lane_index>(pack), .cost = 0, .records = records[pack]});
    }
  }
  [[nodiscard]] lanepack::step_plan plan() const { return {.step = 0, .packs = plans}; }

  std::vector<std::vector<lanepack::candidate>> records;
  std::vector<lanepack::pack_plan> plans;
};

/// The largest differencing method with its states in a list that is sorted every time.
groups reference_differencing(const costs_list& costs, std::size_t parts, bool equal) {
  using part = std::pair<std::uint64_t, std::vector<std::uint32_t>>;
  const auto heavier = [](const part& a, const part& b) {
    if (a.first != b.first) return a.first > b.first;
    if (a.second.size() != b.second.size()) return a.second.size() > b.second.size();
    return a.second > b.second;
  };
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return costs[a] < costs[b]; });
  std::vector<std::vector<part>> states;
  const std::size_t items = equal ? parts : 1;
  for (std::size_t first = 0; first < order.size(); first += items) {
    std::vector<part> state(parts);
    for (std::size_t i = 0; i < items; ++i) {
      state[i] = {costs[order[first + i]], {order[first + i]}};
    }
    std::sort(state.begin(), state.end(), heavier);
    states.push_back(state);
  }
  if (states.empty()) return groups(parts);
  while (states.size() > 1) {
    std::sort(states.begin(), states.end(),
              [&](const std::vector<part>& a, const std::vector<part>& b) {
                const std::uint64_t left = a.front().first - a.back().first;
                const std::uint64_t right = b.front().first - b.back().first;
                return left != right ? left > right : heavier(a.front(), b.front());
              });
    std::vector<part> joined = states[0];
    for (std::size_t i = 0; i < parts; ++i) {
      const part& other = states[1][parts - 1 - i];
      joined[i].first += other.first;
      joined[i].second.insert(joined[i].second.end(), other.second.begin(), other.second.end());
    }
    std::sort(joined.begin(), joined.end(), heavier);
    states.erase(states.begin(), states.begin() + 2);
    states.push_back(joined);
  }
  groups out;
  for (part& each : states.front()) {
    std::sort(each.second.begin(), each.second.end());
    out.push_back(each.second);
  }
  return out;
}

groups to_groups(const lanepack::micro_batch_list& list) {
  groups out;
  for (std::size_t i = 0; i < list.size(); ++i) out.emplace_back(list[i].begin(), list[i].end());
  return out;
}

std::uint64_t heaviest(const groups& parts, const costs_list& costs) {
  std::uint64_t out = 0;
  for (const auto& part : parts) {
    std::uint64_t sum = 0;
    for (const std::uint32_t item : part) sum += costs[item];
    out = std::max(out, sum);
  }
  return out;
}

}  // namespace

TEST_CASE("sim: Karmarkar-Karp joins states in the order of its description", "[sim]") {
  lanepack::karmarkar_karp differencing;
  lanepack::micro_batch_list out;
  lanepack_test::for_each_seed(300, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::size_t parts = gen.between(1, 8);
    const auto bits = static_cast<unsigned>(gen.between(1, 40));
    costs_list costs(parts * gen.between(0, 12));
    for (std::uint64_t& cost : costs) cost = 1 + gen.heavy_tailed(bits) / 2;
    differencing.partition_equal(costs, parts, out);
    REQUIRE(to_groups(out) == reference_differencing(costs, parts, true));
    differencing.partition(costs, parts, out);
    REQUIRE(to_groups(out) == reference_differencing(costs, parts, false));
  });
}

TEST_CASE("sim: equal-size Karmarkar-Karp is far from longest first where records are heavy",
          "[sim]") {
  lanepack::karmarkar_karp differencing;
  lanepack::balanced_partitioner longest_first({.swap_rounds = 0});
  lanepack::micro_batch_list out;
  double differencing_excess = 0;
  double longest_first_excess = 0;
  lanepack_test::for_each_seed(40, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    // 512 records on 8 ranks; one in 64 costs about half a rank's share.
    costs_list costs(512);
    for (std::uint64_t& cost : costs) cost = gen.between(50, 1000);
    for (std::size_t i = 0; i < 8; ++i) costs[gen.between(0, 511)] = gen.between(10000, 20000);
    differencing.partition_equal(costs, 8, out);
    const auto bound = static_cast<double>(lanepack::largest_pack_lower_bound(costs, 64));
    differencing_excess += static_cast<double>(heaviest(to_groups(out), costs)) / bound - 1;
    longest_first_excess +=
        static_cast<double>(longest_first.partition(costs, 64).costs.front()) / bound - 1;
  });
  CAPTURE(differencing_excess, longest_first_excess);
  REQUIRE(differencing_excess > 5 * longest_first_excess);
}

TEST_CASE("sim: baselines lose nothing, keep the capacity and their counts", "[sim]") {
  lanepack_test::for_each_seed(150, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const auto ranks = static_cast<std::uint32_t>(gen.between(1, 6));
    const std::size_t b = gen.between(1, 12);
    lanepack::baseline_options options;
    options.capacity_tokens = gen.between(1, 3000);
    options.record_multiple = gen.one_in(3) ? 8 : 1;
    options.capacity_tokens = lanepack::round_up(options.capacity_tokens, options.record_multiple);
    if (gen.one_in(4)) options.micro_batches = static_cast<std::uint32_t>(gen.between(1, 2));
    options.micro_batches = std::min(options.micro_batches, static_cast<std::uint32_t>(b));
    const random_step step(gen, ranks, b, options.capacity_tokens);
    std::uint64_t tokens = 0;
    std::uint64_t cost = 0;
    for (const auto& pack : step.records) {
      for (const lanepack::candidate& record : pack) {
        tokens += record.tokens;
        cost += record.cost;
      }
    }
    lanepack::bound_metrics equal(ranks, 1);
    lanepack::bound_metrics free(ranks, 1, false);
    equal.add(step.plan());
    free.add(step.plan());
    for (const lanepack::named_baseline& baseline : lanepack::baselines()) {
      for (const lanepack::sync_model sync :
           {lanepack::sync_model::step, lanepack::sync_model::micro_batch}) {
        CAPTURE(baseline.name, ranks, b, options.capacity_tokens, lanepack::to_string(sync));
        options.sync = sync;
        lanepack::any_step_assigner assigner = baseline.make_assigner(options);
        lanepack::step_assignment assignment;
        // Ranks that cut what they are given take a forced number as a fixed one, which their
        // records may not fit.
        try {
          assigner.assign(step.plan(), ranks, assignment);
        } catch (const lanepack::data_error&) {
          REQUIRE(options.micro_batches > 1);
          REQUIRE(baseline.equal_counts);
          continue;
        }
        REQUIRE(assignment.ranks() == ranks);
        std::uint64_t found_tokens = 0;
        std::uint64_t found_cost = 0;
        std::uint64_t slowest = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          std::uint64_t records = 0;
          std::uint64_t own = 0;
          for (const lanepack::simulated_micro_batch& each : assignment[rank]) {
            REQUIRE(each.records > 0);
            REQUIRE(each.tokens <= options.capacity_tokens);
            found_tokens += each.tokens;
            own += each.cost;
            records += each.records;
          }
          found_cost += own;
          slowest = std::max(slowest, own);
          REQUIRE(assignment[rank].size() >= options.micro_batches);
          if (baseline.equal_counts) REQUIRE(records == b);
          if (!baseline.equal_counts || sync == lanepack::sync_model::micro_batch) {
            REQUIRE(assignment[rank].size() == assignment[0].size());
          }
        }
        REQUIRE(found_tokens == tokens);
        REQUIRE(found_cost == cost);
        // No baseline passes the bounds.
        const double reached = static_cast<double>(cost) / ranks / static_cast<double>(slowest);
        const lanepack::bound_metrics& bounds = baseline.equal_counts ? equal : free;
        REQUIRE(reached <= bounds.step_bound() + 1e-9);
        REQUIRE(bounds.step_bound() <= bounds.window_bound() + 1e-9);
        REQUIRE(lanepack::time_of(assignment, lanepack::sync_model::step, 0).elapsed <=
                lanepack::time_of(assignment, lanepack::sync_model::micro_batch, 0).elapsed);
      }
    }
  });
}

TEST_CASE("sim: pooled MFFD fills as NeMo-RL's tests expect", "[sim]") {
  // 1024 lengths of 50 to 799 in 4 chunks on 4 ranks, capacity 1200; the share of real tokens for
  // records padded to multiples of 1, 32, 64 and 256.
  struct expectation {
    std::uint32_t multiple;
    double least;
    double most;
  };
  const expectation expectations[] = {
      {1, 0.955, 1}, {32, 0.91, 0.97}, {64, 0.85, 0.92}, {256, 0.60, 0.80}};
  lanepack_test::for_each_seed(5, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    for (const expectation& expected : expectations) {
      CAPTURE(expected.multiple);
      lanepack::baseline_options options;
      options.capacity_tokens = 1200;
      options.record_multiple = expected.multiple;
      lanepack::pooled_packing_assigner assigner(lanepack::pooled_packer::mffd_nemo, options);
      std::uint64_t tokens = 0;
      std::uint64_t bins = 0;
      for (int chunk = 0; chunk < 4; ++chunk) {
        random_step step(gen, 4, 64, 1);
        for (auto& pack : step.records) {
          for (lanepack::candidate& record : pack) record.tokens = gen.between(50, 799);
        }
        lanepack::step_assignment assignment;
        assigner.assign(step.plan(), 4, assignment);
        for (const lanepack::simulated_micro_batch& each : assignment.micro_batches()) {
          tokens += each.tokens;
        }
        bins += assignment.micro_batches().size();
      }
      const double filled = static_cast<double>(tokens) / static_cast<double>(bins * 1200);
      REQUIRE(filled >= expected.least);
      REQUIRE(filled <= expected.most);
    }
  });
}
