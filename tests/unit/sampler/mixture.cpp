#include <lanepack/sampler/mixture.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::gen;

namespace {

std::vector<std::uint32_t> parts_of(const mixture_order& order, std::uint64_t first,
                                    std::uint64_t last) {
  std::vector<std::uint32_t> parts;
  for (std::uint64_t at = first; at < last; ++at) parts.push_back(order(at).part);
  return parts;
}

}  // namespace

TEST_CASE("mixture: a period by hand", "[sampler]") {
  // Of part 0, copies may stand at 0-1, 1-3, 3-4 of 5 places; of part 1, at 0-2 and 2-4.
  const mixture_period period({6, 4});
  REQUIRE(period.size() == 5);
  std::vector<std::uint32_t> parts;
  for (const mixture_period::place& place : period.places()) parts.push_back(place.part);
  REQUIRE(parts == std::vector<std::uint32_t>{0, 1, 0, 0, 1});
  REQUIRE(period.places()[3].before == 2);
}

TEST_CASE("mixture: no part is ever off by a record", "[sampler]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    std::vector<std::uint64_t> weights(random.between(1, 12));
    for (std::uint64_t& weight : weights) weight = random.heavy_tailed(8);
    weights.back() = 1 + random.heavy_tailed(4);
    const mixture_period period(weights);
    std::vector<std::uint64_t> counts(weights.size(), 0);
    const std::uint64_t d = period.size();
    for (std::uint64_t g = 1; g <= d; ++g) {
      const mixture_period::place& place = period.places()[g - 1];
      REQUIRE(place.before == counts[place.part]++);
      for (std::size_t s = 0; s < weights.size(); ++s) {
        const std::uint64_t quota = g * period.weights()[s];
        REQUIRE(counts[s] >= quota / d);
        REQUIRE(counts[s] <= (quota + d - 1) / d);
      }
    }
    REQUIRE(counts == std::vector<std::uint64_t>(period.weights().begin(), period.weights().end()));
    // Parts without a weight do not matter to the others.
    std::vector<std::uint64_t> more = weights;
    more.push_back(0);
    const mixture_period wider(more);
    for (std::uint64_t g = 0; g < d; ++g) {
      REQUIRE(wider.places()[g].part == period.places()[g].part);
    }
  });
}

TEST_CASE("mixture: the largest period keeps every quota", "[sampler]") {
  std::vector<std::uint64_t> weights(1000, 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] = 1 + 2 * i;
  weights[0] += max_mixture_weights - sum;
  const mixture_period period(weights);
  REQUIRE(period.size() == max_mixture_weights);
  std::vector<std::uint64_t> counts(weights.size(), 0);
  bool kept = true;
  for (std::uint64_t g = 1; g <= period.size(); ++g) {
    // A part's count strays furthest where it changes.
    const std::uint32_t part = period.places()[g - 1].part;
    kept = kept && counts[part] >= (g - 1) * weights[part] / period.size();
    ++counts[part];
    kept = kept && counts[part] <= (g * weights[part] + period.size() - 1) / period.size();
  }
  REQUIRE(kept);
  REQUIRE(counts == weights);
  ++weights[1];
  REQUIRE_THROWS_WITH(mixture_period(weights), ContainsSubstring("found a sum of 1048577"));
}

TEST_CASE("mixture: every part goes on where it stood, wherever one looks", "[sampler]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const std::size_t parts = random.between(1, 6);
    std::vector<mixed_part> mixed(parts);
    for (mixed_part& part : mixed) {
      part.records = random.between(1, 40);
      constexpr part_end rules[] = {part_end::repeat, part_end::repeat, part_end::drop,
                                    part_end::stop};
      part.rule = random.pick(rules);
      part.epochs = random.between(1, 4);
    }
    std::vector<mixture_weights> phases;
    for (std::uint64_t first = 0; phases.size() < 4; first += random.between(0, 150)) {
      phases.push_back({first, std::vector<std::uint64_t>(parts)});
      for (std::uint64_t& weight : phases.back().weights) weight = random.between(0, 5);
      ++phases.back().weights[random.between(0, parts - 1)];
    }
    const mixture_order order(mixed, phases);
    // The rules, one position at a time.
    std::vector<std::uint64_t> counts(parts, 0);
    bool over = false;
    constexpr std::uint64_t looked_at = 700;
    for (std::uint64_t at = 0; at < looked_at; ++at) {
      REQUIRE(order.counts_before(at) == counts);
      const mixed_place place = order(at);
      const mixed_part& part = mixed[place.part];
      REQUIRE(place.index == counts[place.part]++);
      const mixture_weights* phase = &phases[0];
      for (const mixture_weights& each : phases) {
        if (each.first_position <= at) phase = &each;
      }
      REQUIRE(phase->weights[place.part] != 0);
      over = over || order.end_position() == at;
      if (!over && part.rule != part_end::repeat) {
        REQUIRE(place.index < part.epochs * part.records);
      }
      if (order.end_position() == at) {
        // The record here is the first too many, or all parts of the phase are dropped.
        bool all_dropped = true;
        for (std::size_t s = 0; s < parts; ++s) {
          if (phase->weights[s] == 0) continue;
          const std::uint64_t had = counts[s] - (s == place.part ? 1 : 0);
          all_dropped = all_dropped && mixed[s].rule == part_end::drop &&
                        had == mixed[s].epochs * mixed[s].records;
        }
        REQUIRE((all_dropped ||
                 (part.rule == part_end::stop && place.index == part.epochs * part.records)));
      }
    }
    // Any stride, any start.
    std::vector<mixed_place> strided(random.between(1, 40));
    const std::uint64_t stride = random.between(1, 17);
    const std::uint64_t first = random.between(0, looked_at);
    order.places(first, stride, strided);
    for (std::size_t i = 0; i < strided.size(); ++i) {
      REQUIRE(strided[i] == order(first + i * stride));
    }
  });
}

TEST_CASE("mixture: a dropped part leaves its share to the others", "[sampler]") {
  const mixture_weights weights{0, {2, 1, 1}};
  const mixture_order dropping(
      {{.records = 9}, {.records = 3, .rule = part_end::drop, .epochs = 2}, {.records = 4}},
      {&weights, 1});
  // Part 1 has one of every four, so its sixth is in the sixth period.
  REQUIRE_FALSE(dropping.end_position().has_value());
  REQUIRE(dropping.sections() == 2);
  const std::uint64_t first = dropping.section_first(1);
  REQUIRE(dropping.counts_before(first)[1] == 6);
  REQUIRE(dropping.counts_before(first - 1)[1] == 5);
  REQUIRE(first > 20);
  REQUIRE(first <= 24);
  // The others have two and one of three.
  const std::vector<std::uint64_t> before = dropping.counts_before(first);
  const std::vector<std::uint64_t> after = dropping.counts_before(first + 300);
  REQUIRE(after[0] - before[0] == 200);
  REQUIRE(after[1] == 6);
  REQUIRE(after[2] - before[2] == 100);
}

TEST_CASE("mixture: where all parts are dropped the stream ends, and goes on for lookaheads",
          "[sampler]") {
  const mixture_weights weights{0, {1, 1}};
  const mixture_order order(
      {{.records = 2, .rule = part_end::drop}, {.records = 5, .rule = part_end::drop, .epochs = 2}},
      {&weights, 1});
  REQUIRE(order.end_position() == 12);
  REQUIRE(parts_of(order, 4, 12) == std::vector<std::uint32_t>(8, 1));
  REQUIRE(order(12).index + order(13).index == 2 + 10);
}

TEST_CASE("mixture: a part that stops the run ends it before its next record", "[sampler]") {
  const mixture_weights phases[] = {{0, {3, 1}}, {100, {0, 1}}};
  const mixture_order order({{.records = 1000}, {.records = 30, .rule = part_end::stop}}, phases);
  // 25 before position 100, then one at each position.
  REQUIRE(order.end_position() == 105);
  const mixture_order longer(
      {{.records = 1000}, {.records = std::uint64_t{1} << 62, .rule = part_end::stop, .epochs = 9}},
      phases);
  REQUIRE_FALSE(longer.end_position().has_value());
  REQUIRE(longer(std::numeric_limits<std::uint64_t>::max()).index ==
          std::numeric_limits<std::uint64_t>::max() - 100 + 25);
}

TEST_CASE("mixture: what cannot be mixed is refused", "[sampler]") {
  const std::vector<mixed_part> two{{.records = 4}, {.records = 0}};
  const auto refused = [&](std::vector<mixture_weights> phases, const std::string& what) {
    REQUIRE_THROWS_WITH(mixture_order(two, phases), ContainsSubstring(what));
  };
  refused({}, "phases: found none");
  refused({{1, {1, 0}}}, "phases[0].first_position: found 1, expected 0");
  refused({{0, {1, 0}}, {9, {1, 0}}, {8, {1, 0}}}, "phases[2].first_position");
  refused({{0, {1}}}, "phases[0].weights: found 1");
  refused({{0, {1, 1}}}, "parts[1].records: found 0");
  refused({{0, {0, 0}}}, "weights: found all 0");
  // Sets of weights that differ take memory for each.
  std::vector<mixture_weights> many;
  for (std::uint64_t i = 0; i < 40; ++i) many.push_back({i, {max_mixture_weights - 1 - 2 * i, 0}});
  const std::vector<mixed_part> wide{{.records = 4}, {.records = 4}};
  for (mixture_weights& each : many) each.weights[1] = max_mixture_weights - each.weights[0];
  REQUIRE_THROWS_WITH(mixture_order(wide, many), ContainsSubstring("at most 16777216"));
}
