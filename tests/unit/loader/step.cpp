#include <lanepack/loader/step.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <lanepack/loader/loader.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"

TEST_CASE("loader: every step and micro-batch carries the expected loss tokens of a step",
          "[loader]") {
  // 120 records of 2 to 9 tokens in equal parts: 4.5 loss tokens a record.
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 120; ++i) lengths.push_back(2 + i % 8);
  const lanepack::any_source source = lanepack_test::corpus_of(lengths);
  for (const std::string policy : {"sequential", "window", "calendar"}) {
    CAPTURE(policy);
    for (const std::uint32_t ranks : {1U, 3U}) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        lanepack::loader_options options;
        options.plan.seed = 3;
        options.plan.lanes = 3;
        options.plan.records_per_pack = 4;
        options.plan.pack_size_changes = {{2, 8}};
        options.plan.lookahead_steps = 2;
        options.plan.policy = policy;
        options.plan.tuning = lanepack::calendar_tuning{};
        options.plan.limits.capacity_tokens = 40;
        options.staging_bytes = 64 << 10;
        lanepack::loader loader(source, {rank, ranks}, options);
        std::uint64_t steps = 0;
        std::uint64_t expected_in_all = 0;
        for (auto&& step : loader) {
          // 3 lanes of 4 records, from step 2 on of 8.
          const std::uint64_t expected = step.number() < 2 ? 54 : 108;
          REQUIRE(step.expected_loss_tokens() == expected);
          for (auto&& micro_batch : step) REQUIRE(micro_batch.expected_loss_tokens() == expected);
          expected_in_all += expected;
          ++steps;
        }
        // 2 steps of 12 records and 4 of 24 are the 120 of the epoch.
        REQUIRE(steps == 6);
        REQUIRE(expected_in_all == 540);
      }
    }
  }
}
