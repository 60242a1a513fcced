// Limits, balance and the order of steps of `replicated` on random records.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <lanepack/packer/replicated.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::candidate;
using lanepack::pack_list;

struct random_window {
  std::uint32_t steps = 1;
  std::uint32_t packs = 1;
  std::uint32_t b = 1;
  std::vector<candidate> records;
  std::uint64_t tokens = 0;
};

random_window make_window(lanepack_test::gen& gen) {
  random_window made;
  made.steps = static_cast<std::uint32_t>(gen.between(1, 16));
  made.packs = static_cast<std::uint32_t>(gen.between(1, 24));
  made.b = static_cast<std::uint32_t>(gen.between(1, 20));
  made.records.resize(std::size_t{made.steps} * made.packs * made.b);
  const auto bits = static_cast<unsigned>(gen.between(1, 20));
  const bool has_patches = gen.one_in(3);
  for (std::size_t i = 0; i < made.records.size(); ++i) {
    candidate& record = made.records[i];
    record.tokens = 1 + gen.heavy_tailed(bits);
    record.cost = 24576 * record.tokens + record.tokens * record.tokens;
    // Work that no token shows.
    if (has_patches && gen.one_in(4)) record.cost += gen.between(0, 3'000'000'000);
    record.arrival = 3 * i;
    made.tokens += record.tokens;
  }
  return made;
}

std::vector<std::uint64_t> tokens_of_steps(const random_window& window, const pack_list& packs) {
  std::vector<std::uint64_t> tokens(window.steps, 0);
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    for (const candidate& record : packs[pack]) tokens[pack / window.packs] += record.tokens;
  }
  return tokens;
}

}  // namespace

TEST_CASE("packer: replicated keeps every step within its limit where one record allows it",
          "[packer]") {
  lanepack_test::for_each_seed(400, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const random_window window = make_window(gen);
    lanepack::replicated_options options;
    options.lookahead_steps = window.steps;
    options.limits.max_tokens_ppm = static_cast<std::uint32_t>(gen.between(1'200'000, 3'000'000));
    lanepack::replicated_policy policy(options);
    pack_list packs;
    policy.form({.first_step = gen.between(0, 1000),
                 .steps = window.steps,
                 .records_per_pack = window.b,
                 .packs_per_step = window.packs},
                window.records, packs);

    const std::uint64_t mean = (window.tokens + window.steps - 1) / window.steps;
    const std::uint64_t limit = mean * options.limits.max_tokens_ppm / 1'000'000;
    std::uint64_t above = 0;
    for (const std::uint64_t tokens : tokens_of_steps(window, packs)) above += tokens > limit;
    REQUIRE(policy.statistics().steps_above_limits == above);

    // The longest record beside the shortest others of a step.
    std::vector<std::uint64_t> lengths;
    for (const candidate& record : window.records) lengths.push_back(record.tokens);
    std::sort(lengths.begin(), lengths.end());
    std::uint64_t alone = lengths.back();
    for (std::size_t i = 0; i + 1 < std::size_t{window.packs} * window.b; ++i) alone += lengths[i];
    CAPTURE(alone, limit, above);
    if (alone <= limit) REQUIRE(above == 0);
  });
}

TEST_CASE("packer: without limits a step of replicated costs its dearest pack on all lanes",
          "[packer]") {
  // 16 steps of 64 packs of 16 records, of which one in 500 outweighs a pack.
  lanepack_test::for_each_seed(4, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    std::vector<candidate> records(std::size_t{16} * 64 * 16);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::uint64_t length = gen.one_in(500)
                                       ? gen.between(4000, 9000)
                                       : 20 + gen.between(0, 300) + gen.heavy_tailed(10);
      records[i].cost = 24576 * length + length * length;
      records[i].tokens = length;
      records[i].arrival = i;
    }
    lanepack::replicated_policy policy({.limits = {}});
    pack_list packs;
    policy.form({.steps = 16, .records_per_pack = 16, .packs_per_step = 64}, records, packs);
    std::uint64_t total = 0;
    std::uint64_t maxima = 0;
    for (std::size_t step = 0; step < 16; ++step) {
      std::uint64_t most = 0;
      for (std::size_t pack = step * 64; pack < (step + 1) * 64; ++pack) {
        std::uint64_t cost = 0;
        for (const candidate& record : packs[pack]) cost += record.cost;
        total += cost;
        most = std::max(most, cost);
      }
      maxima += most;
    }
    CAPTURE(total / 64, maxima);
    REQUIRE(policy.statistics().outlier_steps > 0);
    REQUIRE(total / 64 >= maxima / 1000 * 995);
  });
}
