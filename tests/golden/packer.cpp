// Prints digests of packs and micro-batches of pseudo-random records.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <lanepack/core/digest.hpp>
#include <lanepack/packer.hpp>

#include "support/gen.hpp"

namespace {

std::vector<lanepack::candidate> records(std::size_t n) {
  lanepack_test::gen gen(2024);
  std::vector<lanepack::candidate> made(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t length = 1 + gen.between(0, 300) + gen.heavy_tailed(12);
    made[i].cost = 24576 * length + length * length;
    made[i].tokens = length;
    made[i].arrival = i;
  }
  return made;
}

void print(const char* name, const lanepack::digest_builder& digest) {
  std::printf("packer/%s %s\n", name, digest.value().hex().c_str());
}

void print_policy(const char* name, lanepack::any_policy policy, std::uint32_t packs_per_step) {
  constexpr std::uint32_t b = 16;
  constexpr std::uint32_t steps = 64;
  const std::size_t a_step = std::size_t{b} * packs_per_step;
  const std::vector<lanepack::candidate> all = records(steps * a_step);
  lanepack::pack_list packs;
  for (std::uint32_t step = 0; step < steps; step += policy.window_steps()) {
    lanepack::step_window window;
    window.first_step = step;
    window.steps = policy.window_steps();
    window.records_per_pack = b;
    window.packs_per_step = packs_per_step;
    window.lane = step / window.steps;
    policy.form(window, std::span(all).subspan(step * a_step, window.steps * a_step), packs);
  }
  lanepack::digest_builder digest;
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    digest.number(packs[pack].size());
    for (const lanepack::candidate& record : packs[pack]) digest.number(record.arrival);
  }
  print(name, digest);
}

void print_micro_batches(const std::string& name, const lanepack::micro_batch_options& options) {
  std::vector<std::uint64_t> tokens;
  for (const lanepack::candidate& record : records(1000)) tokens.push_back(record.tokens);
  lanepack::micro_batcher batcher(options);
  lanepack::micro_batch_list bins;
  batcher.form(tokens, bins);
  lanepack::digest_builder digest;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    digest.number(bins[bin].size());
    for (const std::uint32_t record : bins[bin]) digest.number(record);
  }
  print(name.c_str(), digest);
}

}  // namespace

int main() {
  print_policy("sequential", lanepack::make_policy("sequential"), 1);
  print_policy("window_16", lanepack::make_policy("window", {.lookahead_steps = 16}), 1);
  print_policy("window_4", lanepack::make_policy("window", {.lookahead_steps = 4}), 1);
  lanepack::window_options staggered;
  staggered.stagger = {.groups = 3, .shift = 4};
  print_policy("window_16_staggered", lanepack::window_policy(staggered), 1);
  print_policy("window_16_of_all_lanes", lanepack::make_policy("window"), 12);
  for (const lanepack::named_micro_batch_rule& rule : lanepack::micro_batch_rules()) {
    lanepack::micro_batch_options options;
    options.capacity_tokens = 4500;
    options.rule = rule.rule;
    print_micro_batches(std::string(rule.name), options);
    options.multiple_of = 64;
    print_micro_batches(std::string(rule.name) + "_multiple_of_64", options);
  }
}
