// One digest of a whole run for every number of ranks, threads, executor and policy: documents are
// tokenized, filtered, cut and mixed on the way.

#include <lanepack/loader/loader.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/plan_digest.hpp>
#include <lanepack/packer/make_policy.hpp>
#include <lanepack/pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::memory_documents;

namespace {

constexpr std::uint32_t lanes = 48;

const tokenize bytes{byte_level_tokenizer(), {.begin = 256, .end = std::nullopt}};
const filter no_short_ones("at least 8 tokens",
                           [](const sample& each) { return each.tokens.size() >= 8; });

pipeline_input documents(std::uint64_t seed, std::uint64_t count) {
  gen random(seed);
  return memory_documents(lanepack_test::random_texts(random, count, 8));
}

/// Three corpora of documents, each with a pipeline of its own, indexed and read on an executor.
any_source indexed(const any_executor& on) {
  const auto part = [&on](const pipeline_input& input, const pipeline& stages) {
    count_index index = make_count_index(input, stages, {.executor = on, .memory_bytes = 20'000});
    return pipeline_source(input, stages, std::move(index),
                           {.executor = on, .cache_bytes = 10'000, .memory_bytes = 20'000});
  };
  const split chunks({.tokens = 60, .overlap = 4});
  return concatenated_source(
      {{"web", part(documents(1, 500), pipeline({bytes, no_short_ones, chunks}))},
       {"code", part(documents(2, 300), pipeline({bytes, chunks, no_short_ones}))},
       {"long", part(documents(3, 200),
                     pipeline({bytes, no_short_ones, concatenate_and_cut({.tokens = 50})}))}});
}

loader_options options_of(const std::string& policy) {
  loader_options options;
  options.plan = {.seed = 7,
                  .lanes = lanes,
                  .records_per_pack = 2,
                  .rule = epoch_end::continue_epochs,
                  .steps = 5,
                  .policy = policy,
                  .lookahead_steps = 3,
                  .max_step_tokens_ppm = 0,
                  .tuning = calendar_tuning{}};
  options.plan.limits.capacity_tokens = 256;
  options.staging_bytes = std::size_t{1} << 16;
  options.prefetch_micro_batches = 4;
  options.digests = true;
  return options;
}

using digests_of_packs = std::map<std::pair<step_index, lane_index>, digest128>;

/// Adds the packs of all ranks up to step `end`; where the run stands then.
run_state run_until(step_index end, std::uint32_t ranks, const any_source& source,
                    const loader_options& options, const std::optional<corpus_summary>& summary,
                    digests_of_packs& packs) {
  std::vector<run_state> states;
  for (rank_index rank = 0; rank < ranks; ++rank) {
    loader loading(source, world{rank, ranks}, options, default_cost(), summary);
    while (loading.state().next_step < end) {
      auto step = loading.next();
      if (!step) break;
      while (step->next()) {
      }
      for (std::size_t i = 0; i < step->packs().size(); ++i) {
        packs[{step->number(), step->packs()[i].lane}] = step->pack_digests()[i];
      }
    }
    states.push_back(loading.state());
  }
  return merge(states);
}

/// The packs of all steps, chained by step and lane.
digest128 chained(const digests_of_packs& packs, const loader_options& options) {
  digest_chain chain;
  std::vector<digest128> of_step;
  for (step_index step = 0; step < options.plan.steps; ++step) {
    of_step.clear();
    for (lane_index lane = 0; lane < lanes; ++lane) of_step.push_back(packs.at({step, lane}));
    chain.add(step, of_step);
  }
  return chain.value();
}

/// The packs of all ranks, chained by step and lane.
digest128 run_of(std::uint32_t ranks, const any_source& source, const loader_options& options,
                 const std::optional<corpus_summary>& summary) {
  digests_of_packs packs;
  static_cast<void>(run_until(*options.plan.steps, ranks, source, options, summary, packs));
  return chained(packs, options);
}

/// An executor and the numbers of ranks that it is tried with.
struct matrix_row {
  any_executor on;
  std::vector<std::uint32_t> worlds;
};

// A sanitizer makes the whole matrix a matter of minutes; every executor has its turn there too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LANEPACK_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LANEPACK_TEST_SANITIZED 1
#endif
#endif

std::vector<matrix_row> rows() {
#if defined(LANEPACK_TEST_SANITIZED)
  return {{any_executor(), {3}},
          {thread_pool(2), {1, 12}},
          {thread_pool(8), {6}},
          {lanepack_test::shuffling_executor(3), {4}}};
#else
  const std::vector<std::uint32_t> all{1, 2, 3, 4, 6, 8, 12, 16, 24};
  return {{any_executor(), all},
          {thread_pool(1), {1, 6, 24}},
          {thread_pool(2), all},
          {thread_pool(8), all},
          {lanepack_test::shuffling_executor(3), {4}}};
#endif
}

}  // namespace

TEST_CASE("contract 3: an indexed pipeline is the same run for all ranks, executors and policies",
          "[contracts]") {
  // The same on every compiler; they change where a stage, an order or a policy does.
  const std::map<std::string, std::string> golden{
      {"sequential", "7a2b213eb7da13763a9ba21337a4966f"},
      {"window", "db42a3337b1288a74efdd819c2cd3630"},
      {"calendar", "b18a78a973532573e2a9fed3e66353a4"},
      {"replicated", "69e6635c9c738f14ec92cc47da78ef73"}};
  REQUIRE(golden.size() == policies().size());
  std::optional<digest128> corpus;
  for (const auto& [on, worlds] : rows()) {
    const any_source source = indexed(on);
    if (!corpus) corpus = source.fingerprint();
    REQUIRE(source.fingerprint() == *corpus);
    const corpus_summary summary = summarize(source, {.threads = 1});
    for (const auto& [policy, expected] : golden) {
      loader_options options = options_of(policy);
      options.plan.mixture = mixture_options{
          .phases = {{0, {{"web", 4}, {"code", 2}, {"long", 1}}}, {3, {{"code", 5}, {"web", 1}}}}};
      for (const std::uint32_t ranks : worlds) {
        CAPTURE(policy, ranks, on.threads());
        REQUIRE(run_of(ranks, source, options, summary).hex() == expected);
      }
    }
  }
}

TEST_CASE("contract 3: a pipeline without an index is the same run for all ranks and executors",
          "[contracts]") {
  const std::map<std::string, std::string> golden{
      {"sequential", "ffb13f306e5e67c784bbd727970c4e8e"},
      {"window", "e47c196a11620f16828326a3c1b35908"},
      {"calendar", "d2aac762b8a53e2a37839ef9cbf80e29"}};
  const pipeline stages({bytes, no_short_ones, split({.tokens = 60, .overlap = 4})});
  for (const auto& [on, worlds] : rows()) {
    const any_source source =
        unindexed_pipeline(documents(4, 150), stages,
                           {.executor = on, .cache_bytes = 400'000, .memory_bytes = 20'000});
    for (const auto& [policy, expected] : golden) {
      const loader_options options = options_of(policy);
      for (const std::uint32_t ranks : worlds) {
        CAPTURE(policy, ranks, on.threads());
        REQUIRE(run_of(ranks, source, options, std::nullopt).hex() == expected);
      }
      // Stopped after every step and gone on with by another number of ranks.
      digests_of_packs packs;
      loader_options resumed = options;
      for (step_index step = 1; step <= *options.plan.steps; ++step) {
        const std::uint32_t ranks = worlds[static_cast<std::size_t>(step) % worlds.size()];
        resumed.resume_from = run_until(step, ranks, source, resumed, std::nullopt, packs);
        REQUIRE(resumed.resume_from->next_step == step);
      }
      REQUIRE(chained(packs, options).hex() == expected);
    }
  }
}

TEST_CASE("a stage that fails ends the run once, with the document named", "[contracts]") {
  gen random(1);
  std::vector<std::string> texts = lanepack_test::random_texts(random, 300, 8);
  texts[290] = "the one that cannot be read";
  const pipeline stages({map_samples("no spaces",
                                     [](sample& each) {
                                       if (each.text.find(' ') != std::string::npos) {
                                         throw std::runtime_error("found a space");
                                       }
                                     }),
                         bytes, no_short_ones});
  for (const auto& [on, worlds] : rows()) {
    loader_options options = options_of("window");
    options.plan.shuffle.kind = shuffle_kind::none;
    loader loading(unindexed_pipeline(memory_documents(texts), stages, {.executor = on}),
                   world{0, 1}, options);
    std::string failure;
    try {
      while (loading.next()) {
      }
    } catch (const data_error& caught) {
      failure = caught.what();
    }
    REQUIRE(failure == "memory: 300 documents, record 290: stage map(no spaces): found a space");
    REQUIRE_THROWS_AS(loading.next(), state_error);
  }
}
