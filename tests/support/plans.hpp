#pragma once

// Plans with random options.

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/packer/make_policy.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/calendars.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

namespace lanepack_test {

/// A plan with random options over a random corpus.
struct random_plan {
  lanepack::plan_options options;
  std::shared_ptr<const lanepack::candidate_feed> feed;
  std::optional<lanepack::any_policy> policy;
  std::uint64_t records = 0;
};

inline random_plan make_plan(gen& random) {
  random_plan made;
  lanepack::plan_options& options = made.options;
  options.seed = random.bits();
  options.lanes = static_cast<std::uint32_t>(random.between(1, 24));
  options.records_per_pack = static_cast<std::uint32_t>(random.between(1, 9));
  options.lookahead_steps = static_cast<std::uint32_t>(random.between(1, 7));
  const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const lanepack::named_policy& policy : lanepack::policies()) all.emplace_back(policy.name);
    return all;
  }();
  options.policy = random.pick(names);
  options.tuning = lanepack_test::random_tuning(random);
  if (random.one_in(3)) options.max_step_tokens_ppm = 0;
  if (random.one_in(3)) options.max_step_cost_ppm = 1'000'001;
  constexpr lanepack::epoch_end rules[] = {lanepack::epoch_end::drop_last, lanepack::epoch_end::pad,
                                           lanepack::epoch_end::finite,
                                           lanepack::epoch_end::continue_epochs};
  options.rule = random.pick(rules);
  constexpr lanepack::shuffle_kind kinds[] = {
      lanepack::shuffle_kind::full, lanepack::shuffle_kind::block, lanepack::shuffle_kind::none};
  options.shuffle.kind = random.pick(kinds);
  options.shuffle.block_records = random.between(1, 20);
  options.shuffle.group_blocks = random.between(1, 5);
  made.records = options.rule == lanepack::epoch_end::drop_last
                     ? static_cast<std::uint64_t>(options.lanes) * options.records_per_pack *
                               random.between(1, 12) +
                           random.between(0, 40)
                     : random.between(1, 2000);
  if (options.rule == lanepack::epoch_end::continue_epochs) {
    options.steps = random.between(1, 40);
  } else {
    options.epochs = random.between(1, 3);
  }
  if (random.one_in(3)) {
    options.skip_steps.push_back({random.between(0, 5), random.between(6, 9)});
  }
  lanepack::any_source source =
      lanepack_test::corpus_of(lanepack_test::random_lengths(random, made.records, 8));
  const lanepack::corpus_summary summary = summarize(source, {.threads = 1});
  made.feed = make_candidate_feed(source, summary, lanepack::default_cost(), options);
  made.policy = make_policy(options, *made.feed);
  return made;
}

}  // namespace lanepack_test
