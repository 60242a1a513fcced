// Runs over records that a pipeline makes, with an index: ends of the data, and 200 steps with a
// stop after every one.

#include <lanepack/loader/loader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/statistics.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/pipeline_source.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/thread_pool.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::memory_documents;

namespace {

constexpr std::uint32_t lanes = 12;

any_source corpus(std::uint64_t documents, const any_executor& on = {}) {
  gen random(21);
  const memory_documents texts(lanepack_test::random_texts(random, documents, 6));
  const pipeline stages(
      {tokenize(byte_level_tokenizer(), {.begin = 256}),
       filter("at least 3 tokens", [](const sample& each) { return each.tokens.size() >= 3; }),
       split({.tokens = 24, .overlap = 2})});
  return pipeline_source(texts, stages, make_count_index(texts, stages), {.executor = on});
}

loader_options options_of(const std::string& policy) {
  loader_options options;
  options.plan = {.seed = 5,
                  .lanes = lanes,
                  .records_per_pack = 2,
                  .policy = policy,
                  .lookahead_steps = 3,
                  .max_step_tokens_ppm = 0,
                  .tuning = calendar_tuning{}};
  options.plan.limits.capacity_tokens = 128;
  options.staging_bytes = std::size_t{1} << 15;
  options.prefetch_micro_batches = 2;
  options.digests = true;
  options.fields.loss_mask = true;
  return options;
}

using digests_of_packs = std::map<std::pair<step_index, lane_index>, digest128>;

/// Adds what `ranks` ranks deliver until step `end`, which they all reach; where they stand then.
run_state run_until(std::optional<step_index> end, std::uint32_t ranks, const any_source& source,
                    const loader_options& options, const corpus_summary& summary,
                    digests_of_packs& packs) {
  std::vector<run_state> states;
  for (rank_index rank = 0; rank < ranks; ++rank) {
    loader loading(source, world{rank, ranks}, options, default_cost(), summary);
    while (!end || loading.state().next_step < *end) {
      auto step = loading.next();
      if (!step) break;
      while (step->next()) {
      }
      for (std::size_t i = 0; i < step->packs().size(); ++i) {
        const bool added =
            packs.try_emplace({step->number(), step->packs()[i].lane}, step->pack_digests()[i])
                .second;
        REQUIRE(added);
      }
    }
    states.push_back(loading.state());
  }
  return merge(states);
}

}  // namespace

TEST_CASE("contract 5: 200 steps of a pipeline, stopped after every one, are the same run",
          "[contracts]") {
  const any_source source = corpus(300, thread_pool(2));
  const corpus_summary summary = summarize(source, {.threads = 1});
  const std::vector<std::uint32_t> worlds{3, 1, 12, 2, 6, 4};
  for (const std::string policy : {"window", "calendar"}) {
    loader_options options = options_of(policy);
    options.plan.rule = epoch_end::continue_epochs;
    options.plan.steps = 200;
    digests_of_packs whole;
    static_cast<void>(run_until({}, 1, source, options, summary, whole));
    REQUIRE(whole.size() == 200 * lanes);
    digests_of_packs resumed;
    for (step_index step = 1; step <= 200; ++step) {
      const std::uint32_t ranks = worlds[static_cast<std::size_t>(step) % worlds.size()];
      options.resume_from = run_until(step, ranks, source, options, summary, resumed);
    }
    REQUIRE(resumed == whole);
  }
}

TEST_CASE("ends of the data are the same for records that a pipeline makes", "[contracts]") {
  const any_source source = corpus(60);
  const corpus_summary summary = summarize(source, {.threads = 1});
  const std::uint64_t in_step = 2 * lanes;
  REQUIRE(source.size() % in_step != 0);
  for (const epoch_end rule : {epoch_end::drop_last, epoch_end::pad, epoch_end::finite}) {
    CAPTURE(to_string(rule));
    loader_options options = options_of("replicated");
    options.plan.rule = rule;
    std::map<record_id, std::uint64_t> seen;
    std::map<record_role, std::uint64_t> roles;
    std::vector<std::uint64_t> steps;
    std::uint64_t loss_tokens = 0;
    for (rank_index rank = 0; rank < 4; ++rank) {
      loader loading(source, world{rank, 4}, options, default_cost(), summary);
      std::uint64_t& of_rank = steps.emplace_back(0);
      for (auto&& step : loading) {
        ++of_rank;
        for (std::size_t i = 0; i < step.records().size(); ++i) {
          ++roles[step.roles()[i]];
          if (step.roles()[i] == record_role::regular) ++seen[step.records()[i].id];
        }
        for (auto&& micro_batch : step) loss_tokens += micro_batch.counts().loss_tokens;
      }
    }
    const std::uint64_t rest = source.size() % in_step;
    const std::uint64_t full = source.size() / in_step;
    const bool drops = rule == epoch_end::drop_last;
    REQUIRE(steps == std::vector<std::uint64_t>(4, full + (drops ? 0 : 1)));
    REQUIRE(seen.size() == (drops ? full * in_step : source.size()));
    REQUIRE(
        std::all_of(seen.begin(), seen.end(), [](const auto& each) { return each.second == 1; }));
    REQUIRE(roles[record_role::repeated] == (rule == epoch_end::pad ? in_step - rest : 0));
    REQUIRE(roles[record_role::masked] == (rule == epoch_end::finite ? in_step - rest : 0));
    // Every record counts once, so a sum over an evaluation is exact.
    if (rule == epoch_end::finite) REQUIRE(loss_tokens == summary.loss_tokens);
  }
}
