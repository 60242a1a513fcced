#include <lanepack/sim/capacity_tuning.hpp>

#include <memory>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/token.hpp>
#include <lanepack/loader/compose.hpp>

#include "support/catch.hpp"

namespace {

/// Four lanes of packs of four records of 100 tokens each; a token costs 1.
std::shared_ptr<const lanepack::candidate_feed> even_feed() {
  lanepack::plan_options options;
  options.lanes = 4;
  options.records_per_pack = 4;
  options.policy = "sequential";
  options.limits.capacity_tokens = 1000;
  const lanepack::any_source source = lanepack::length_source(std::vector<std::uint32_t>(160, 100));
  return lanepack::make_candidate_feed(source, lanepack::summarize(source), lanepack::token_cost(),
                                       options);
}

}  // namespace

TEST_CASE("sim: steps are kept as they were planned", "[sim]") {
  const auto feed = even_feed();
  const lanepack::recorded_steps steps(feed, lanepack::sequential_policy(), 3);
  REQUIRE(steps.size() == 3);
  REQUIRE(steps[2].step == 2);
  REQUIRE(steps[2].packs.size() == 4);
  for (const lanepack::pack_plan& pack : steps[1].packs) {
    REQUIRE(pack.records.size() == 4);
    REQUIRE(pack.cost == 400);
    REQUIRE(pack.records[3].tokens == 100);
  }
  // The run has 10 steps.
  REQUIRE(lanepack::recorded_steps(feed, lanepack::sequential_policy(), 100).size() == 10);
}

TEST_CASE("sim: a capacity that fills the bins of all ranks is found", "[sim]") {
  const lanepack::recorded_steps steps(even_feed(), lanepack::sequential_policy(), 5);
  lanepack::baseline_options options;
  options.capacity_tokens = 1000;
  const lanepack::named_baseline& mffd = *lanepack::find_baseline("pooled_mffd");
  // In 1000, 10 + 6 records, and the fix-up to 4 bins leaves 8: 800. In 400 to 499, 4 bins of 400.
  const lanepack::tuned_capacity tuned = lanepack::tune_capacity(steps, 4, mffd, options, 100, 10);
  REQUIRE(tuned.elapsed == 5 * (400 + 10));
  REQUIRE(tuned.capacity_tokens >= 400);
  REQUIRE(tuned.capacity_tokens < 500);

  // Deterministic, and the user's capacity where nothing is better.
  REQUIRE(lanepack::tune_capacity(steps, 4, mffd, options, 100, 10).capacity_tokens ==
          tuned.capacity_tokens);
  const lanepack::named_baseline& lpt = *lanepack::find_baseline("pooled_lpt");
  REQUIRE(lanepack::tune_capacity(steps, 4, lpt, options, 100, 10).capacity_tokens == 1000);

  // Never below the longest record of the run, in these steps or not.
  REQUIRE(lanepack::tune_capacity(steps, 4, mffd, options, 900, 10).capacity_tokens >= 900);
}

TEST_CASE("sim: tuning reports how far it is", "[sim]") {
  const lanepack::recorded_steps steps(even_feed(), lanepack::sequential_policy(), 1);
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  static_cast<void>(lanepack::tune_capacity(steps, 4, *lanepack::find_baseline("pooled_kk"),
                                            {.capacity_tokens = 1000}, 100, 0,
                                            [&](std::uint64_t done, std::uint64_t all) {
                                              REQUIRE(done == last + 1);
                                              last = done;
                                              total = all;
                                            }));
  REQUIRE(last == total);
}
