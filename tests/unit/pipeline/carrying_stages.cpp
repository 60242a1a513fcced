#include <lanepack/pipeline/carrying_stages.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using lanepack_test::gen;

namespace {

sample numbered(std::int32_t first, std::size_t count) {
  sample made;
  for (std::size_t i = 0; i < count; ++i) {
    made.tokens.push_back(first + static_cast<std::int32_t>(i));
  }
  return made;
}

/// What a stage makes of one input.
template <class Stage>
std::vector<sample> apply(Stage& stage, std::vector<sample> samples) {
  stage.apply(samples);
  return samples;
}

bool same(const std::vector<sample>& a, const std::vector<sample>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].tokens != b[i].tokens || a[i].segments != b[i].segments ||
        a[i].loss_mask != b[i].loss_mask) {
      return false;
    }
  }
  return true;
}

/// Random inputs of up to three samples with keys that come in runs.
std::vector<std::vector<sample>> random_inputs(gen& random) {
  std::vector<std::vector<sample>> inputs(40);
  std::int32_t next = 0;
  for (std::vector<sample>& samples : inputs) {
    for (std::uint64_t count = random.between(0, 3); count > 0; --count) {
      samples.push_back(numbered(next, static_cast<std::size_t>(random.between(0, 9))));
      samples.back().key = std::to_string(next / 20);
      if (random.one_in(4)) samples.back().loss_mask.assign(samples.back().tokens.size(), 0);
      next += static_cast<std::int32_t>(samples.back().tokens.size());
    }
  }
  return inputs;
}

/// From any state a stage goes on as if it had never stopped.
template <class Stage>
void check_states(const Stage& unused, const std::vector<std::vector<sample>>& inputs) {
  std::vector<std::vector<sample>> whole;
  std::vector<stage_state> states;
  Stage running = unused;
  for (const std::vector<sample>& samples : inputs) {
    states.push_back(running.save());
    whole.push_back(apply(running, samples));
  }
  for (std::size_t from = 0; from < inputs.size(); ++from) {
    CAPTURE(from);
    Stage resumed = unused;
    resumed.restore(states[from].words);
    REQUIRE(states[from].replay <= from);
    for (std::size_t i = from - static_cast<std::size_t>(states[from].replay); i < from; ++i) {
      apply(resumed, inputs[i]);
    }
    REQUIRE(resumed.save() == states[from]);
    for (std::size_t i = from; i < inputs.size(); ++i) {
      REQUIRE(same(apply(resumed, inputs[i]), whole[i]));
    }
  }
}

}  // namespace

TEST_CASE("concatenate_and_cut: records of equal length with the rest carried over", "[pipeline]") {
  concatenate_and_cut stage({.tokens = 4, .separator = 99});
  REQUIRE(apply(stage, {numbered(0, 2)}).empty());
  REQUIRE(stage.save() == stage_state{1, {0}});
  // 0 1 99 | 10 11 12 13 14 99: one record of four, then another, and one token is left.
  const std::vector<sample> made = apply(stage, {numbered(10, 5)});
  REQUIRE(made.size() == 2);
  REQUIRE(made[0].tokens == std::vector<std::int32_t>{0, 1, 99, 10});
  REQUIRE(made[1].tokens == std::vector<std::int32_t>{11, 12, 13, 14});
  REQUIRE(stage.save() == stage_state{1, {5}});
  REQUIRE(apply(stage, {}).empty());
  REQUIRE(stage.save() == stage_state{2, {5}});
  std::vector<sample> rest;
  concatenate_and_cut dropping = stage;
  dropping.finish(rest);
  REQUIRE(rest.empty());

  concatenate_and_cut keeping({.tokens = 4, .separator = {}, .keep_rest = true});
  REQUIRE(apply(keeping, {numbered(0, 5)}).size() == 1);
  keeping.finish(rest);
  REQUIRE(rest.size() == 1);
  REQUIRE(rest[0].tokens == std::vector<std::int32_t>{4});
  REQUIRE_THROWS_AS(concatenate_and_cut({.tokens = 0}), invalid_option);
  const std::vector<std::uint64_t> two{1, 2};
  REQUIRE_THROWS_AS(keeping.restore(two), state_error);
}

TEST_CASE("group_consecutive: neighbours with the same key are one record", "[pipeline]") {
  const auto keyed = [](const char* key, std::int32_t first) {
    sample made = numbered(first, 2);
    made.key = key;
    return made;
  };
  group_consecutive stage;
  REQUIRE(apply(stage, {keyed("a", 0)}).empty());
  REQUIRE(apply(stage, {keyed("a", 10)}).empty());
  const std::vector<sample> made = apply(stage, {keyed("b", 20)});
  REQUIRE(made.size() == 1);
  REQUIRE(made[0].tokens == std::vector<std::int32_t>{0, 1, 10, 11});
  REQUIRE(made[0].segments == std::vector<std::uint64_t>{2, 2});
  REQUIRE(made[0].loss_mask == std::vector<std::uint8_t>{1, 1, 0, 1});
  std::vector<sample> rest;
  stage.finish(rest);
  REQUIRE(rest.size() == 1);
  REQUIRE(rest[0].tokens == std::vector<std::int32_t>{20, 21});

  group_consecutive pairs({.samples = 2});
  std::vector<sample> four{numbered(0, 1), numbered(1, 1), numbered(2, 1), numbered(3, 1)};
  pairs.apply(four);
  pairs.finish(rest);
  REQUIRE(four.size() == 1);
  REQUIRE(rest.back().tokens == std::vector<std::int32_t>{2, 3});
}

TEST_CASE("carrying stages: from any state they go on as if they had never stopped", "[pipeline]") {
  lanepack_test::for_each_seed(10, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const std::vector<std::vector<sample>> inputs = random_inputs(random);
    const std::uint64_t tokens = random.between(1, 40);
    const bool separated = random.one_in(2);
    check_states(concatenate_and_cut(
                     {.tokens = tokens,
                      .separator = separated ? std::optional<std::int32_t>(7) : std::nullopt}),
                 inputs);
    check_states(
        group_consecutive({.samples = random.between(0, 4), .most_tokens = random.between(1, 60)}),
        inputs);
  });
}
