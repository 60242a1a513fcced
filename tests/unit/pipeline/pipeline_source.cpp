#include <lanepack/pipeline/pipeline_source.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/memory.hpp>
#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/thread_pool.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/documents.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::memory_documents;

namespace {

const tokenize bytes{byte_level_tokenizer()};

pipeline_source made(const pipeline_input& input, const pipeline& stages,
                     const pipeline_source_options& options = {}) {
  return {input, stages, make_count_index(input, stages), options};
}

/// All that a pipeline makes of a corpus, straight on.
std::vector<sample> all_records(const pipeline_input& input, const pipeline& stages) {
  std::vector<sample> all;
  std::optional<any_stage> memory = stages.new_memory();
  for (record_id id = 0; id <= input.size(); ++id) {
    std::vector<sample> samples(1);
    if (id == input.size()) {
      samples.clear();
      if (memory) stages.run_finish(*memory, samples, "", id);
    } else {
      input.read({&id, 1}, samples);
      stages.run_stateless(samples, "", id);
      if (memory) stages.run_carrying(*memory, samples, "", id);
    }
    for (sample& each : samples) all.push_back(std::move(each));
  }
  return all;
}

std::vector<std::int32_t> tokens_of(const pipeline_source& source, record_id id) {
  record_shape shape;
  source.shapes({&id, 1}, {&shape, 1});
  std::vector<std::int32_t> tokens(shape.tokens);
  const record_read read{.id = id, .first_token = 0, .tokens = tokens, .loss_mask = {}};
  source.read({&read, 1});
  return tokens;
}

}  // namespace

TEST_CASE("pipeline source: random reads give what the pipeline makes, whatever runs it",
          "[pipeline]") {
  lanepack_test::for_each_seed(12, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const pipeline_input input =
        memory_documents(lanepack_test::random_texts(random, random.between(1, 80), 7));
    std::vector<any_stage> parts{bytes};
    if (random.one_in(2)) {
      parts.emplace_back(filter("short", [](const sample& s) { return s.tokens.size() < 100; }));
    }
    if (random.one_in(2)) parts.emplace_back(split({.tokens = 20, .overlap = 5}));
    if (random.one_in(2)) {
      parts.emplace_back(
          concatenate_and_cut({.tokens = random.between(1, 90), .keep_rest = random.one_in(2)}));
    }
    if (random.one_in(3)) parts.emplace_back(split({.tokens = 7}));
    const pipeline stages(parts);
    const std::vector<sample> expected = all_records(input, stages);
    const std::vector<any_executor> executors{any_executor(), thread_pool(3),
                                              lanepack_test::shuffling_executor(seed)};
    const pipeline_source source =
        made(input, stages,
             {.executor = random.pick(executors),
              .cache_bytes = static_cast<std::size_t>(random.between(0, 20'000)),
              .memory_bytes = random.between(1, 20'000)});
    REQUIRE(source.size() == expected.size());
    if (expected.empty()) return;
    for (int again = 0; again < 10; ++again) {
      const std::size_t count = static_cast<std::size_t>(random.between(0, 30));
      std::vector<record_read> reads(count);
      std::vector<std::vector<std::int32_t>> tokens(count);
      std::vector<std::vector<std::uint8_t>> masks(count);
      for (std::size_t i = 0; i < count; ++i) {
        const record_id id = random.between(0, expected.size() - 1);
        const std::size_t length = expected[id].tokens.size();
        const std::size_t first = static_cast<std::size_t>(random.between(0, length));
        tokens[i].resize(static_cast<std::size_t>(random.between(0, length - first)));
        if (random.one_in(2)) masks[i].resize(tokens[i].size());
        reads[i] = {.id = id, .first_token = first, .tokens = tokens[i], .loss_mask = masks[i]};
      }
      source.read(reads);
      for (std::size_t i = 0; i < count; ++i) {
        const sample& whole = expected[reads[i].id];
        for (std::size_t k = 0; k < tokens[i].size(); ++k) {
          const std::size_t at = static_cast<std::size_t>(reads[i].first_token) + k;
          REQUIRE(tokens[i][k] == whole.tokens[at]);
          if (masks[i].empty()) continue;
          REQUIRE(masks[i][k] == (whole.loss_mask.empty() ? 1 : whole.loss_mask[at]));
        }
      }
    }
  });
}

TEST_CASE("pipeline source: records of a corpus are inputs too", "[pipeline]") {
  const memory_source corpus = lanepack_test::corpus_of({5, 6, 8}, true);
  const pipeline_source source = made(corpus, pipeline({split({.tokens = 4})}));
  REQUIRE(source.size() == 6);
  REQUIRE(source.traits().has_loss_mask);
  const std::vector<std::int32_t> tokens = tokens_of(source, 5);
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(tokens[i] == lanepack_test::expected_token(2, 4 + i));
  }
  REQUIRE(any_source(source).fingerprint() == source.fingerprint());
}

TEST_CASE("pipeline source: segments of a group", "[pipeline]") {
  const pipeline_source source =
      made(memory_documents({"aaaa", "bb"}), pipeline({bytes, split({.tokens = 3}), group()}));
  REQUIRE(source.size() == 2);
  REQUIRE(source.most_segments() == 2);
  segment_lists lists;
  const std::vector<record_id> ids{1, 0};
  source.segments(ids, lists);
  REQUIRE(std::ranges::equal(lists[0], std::vector<std::uint64_t>{2}));
  REQUIRE(std::ranges::equal(lists[1], std::vector<std::uint64_t>{3, 1}));
  // An input to another pipeline, which keeps them apart.
  const pipeline_source again = made(source, pipeline({split({.tokens = 2})}));
  REQUIRE(again.size() == 2);
  lists.clear();
  again.segments(ids, lists);
  REQUIRE(std::ranges::equal(lists[1], std::vector<std::uint64_t>{3, 1}));
  REQUIRE(again.index().shape(0) == record_shape{4, 2, 0});
}

TEST_CASE("pipeline source: an index of something else is refused", "[pipeline]") {
  const memory_documents input({"aaaa", "bb"});
  const pipeline stages({bytes});
  const count_index index = make_count_index(input, stages);
  REQUIRE_THROWS_WITH(pipeline_source(memory_documents({"a"}), stages, index),
                      Catch::Matchers::ContainsSubstring("of another corpus"));
  REQUIRE_THROWS_WITH(pipeline_source(input, pipeline({bytes, group()}), index),
                      Catch::Matchers::ContainsSubstring("of another pipeline"));
  const pipeline_source source(input, stages, index);
  REQUIRE_THROWS_AS(tokens_of(source, 2), state_error);
}

TEST_CASE("pipeline source: a stage that fails or changes its mind names the input", "[pipeline]") {
  auto mode = std::make_shared<std::atomic<int>>(0);
  const pipeline stages({bytes, map_samples("moody", [mode](sample& each) {
                           if (*mode == 1 && each.tokens[0] == 'b') {
                             throw std::runtime_error("not today");
                           }
                           if (*mode == 2) each.tokens.push_back(0);
                         })});
  const memory_documents input({"a", "b", "c", "bb"});
  const std::vector<any_executor> executors{any_executor(), thread_pool(4)};
  for (const any_executor& on : executors) {
    *mode = 0;
    const pipeline_source source = made(input, stages, {.executor = on, .cache_bytes = 0});
    *mode = 1;
    std::vector<std::int32_t> tokens(4);
    std::vector<record_read> reads;
    for (const record_id id : {3U, 2U, 1U, 0U}) {
      reads.push_back({.id = id,
                       .first_token = 0,
                       .tokens = std::span(tokens).subspan(id, 1),
                       .loss_mask = {}});
    }
    REQUIRE_THROWS_WITH(source.read(reads),
                        "memory: 4 documents, record 1: stage map(moody): not today");
    *mode = 2;
    REQUIRE_THROWS_WITH(source.read(reads),
                        Catch::Matchers::ContainsSubstring("a stage is no pure function"));
    *mode = 0;
    source.read(reads);
    REQUIRE(tokens == std::vector<std::int32_t>{'a', 'b', 'c', 'b'});
  }
}
