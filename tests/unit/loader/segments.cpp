// Records of several segments on their way through the loader.

#include <lanepack/corpus/segments.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/statistics.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/pipeline_source.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/unindexed_pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"
#include "support/gen.hpp"
#include "support/segments.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::expected_token;
using lanepack_test::gen;
using lanepack_test::segmented_corpus;

namespace {

using lists = std::vector<std::vector<std::uint64_t>>;

lists random_lists(std::uint64_t records, std::uint64_t seed) {
  gen random(seed);
  lists made(records);
  for (std::vector<std::uint64_t>& list : made) {
    list.resize(random.between(1, 4));
    for (std::uint64_t& tokens : list) tokens = random.between(1, 30);
  }
  return made;
}

loader_options options_of(const std::string& policy = "window") {
  loader_options options;
  options.plan.seed = 7;
  options.plan.lanes = 6;
  options.plan.records_per_pack = 4;
  options.plan.lookahead_steps = 2;
  options.plan.policy = policy;
  options.plan.tuning = calendar_tuning{};
  options.plan.limits.capacity_tokens = 256;
  options.digests = true;
  options.fields.loss_mask = true;
  return options;
}

std::uint64_t round_to(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Checks a micro-batch against the segments that its records should have, each cut to `limit`
/// tokens a record.
template <class MicroBatch>
void check(const MicroBatch& of, const lists& expected, std::uint64_t multiple,
           std::uint64_t limit) {
  std::size_t segment = 0;
  std::uint64_t loss_tokens = 0;
  std::uint64_t records = 0;
  std::int32_t real = 0;
  std::uint64_t place = 0;
  while (segment < of.record_indices().size()) {
    const record_id id = of.record(segment).id;
    const std::uint32_t index = of.record_indices()[segment];
    CAPTURE(id, segment);
    ++records;
    std::uint64_t first = 0;
    for (const std::uint64_t whole : expected[id]) {
      const std::uint64_t tokens = std::min(whole, limit - first);
      if (tokens == 0) break;
      REQUIRE(of.record_indices()[segment] == index);
      REQUIRE(of.cu_seqlens()[segment] == real);
      REQUIRE(of.cu_seqlens_padded()[segment] == static_cast<std::int32_t>(place));
      for (std::uint64_t i = 0; i < tokens; ++i) {
        REQUIRE(of.tokens()[place + i] == expected_token(id, first + i));
        REQUIRE(of.position_ids()[place + i] == static_cast<std::int32_t>(i));
        const bool counts = i + 1 < tokens;
        REQUIRE(of.loss_mask()[place + i] == (counts ? 1 : 0));
        REQUIRE(of.labels()[place + i] ==
                (counts ? expected_token(id, first + i + 1) : ignored_label));
        loss_tokens += counts ? 1 : 0;
      }
      first += tokens;
      real += static_cast<std::int32_t>(tokens);
      place += round_to(tokens, multiple);
      ++segment;
    }
  }
  REQUIRE(of.counts().records == records);
  REQUIRE(of.counts().loss_tokens == loss_tokens);
  REQUIRE(of.total_tokens() <= 256);
}

/// Cuts every sample into halves, as the chosen and the rejected answer of a line would be.
struct halves {
  void apply(std::vector<sample>& samples) const {
    std::vector<sample> parts;
    for (const sample& each : samples) {
      const auto middle = each.tokens.begin() + static_cast<std::ptrdiff_t>(each.tokens.size() / 2);
      parts.emplace_back().tokens.assign(each.tokens.begin(), middle);
      parts.emplace_back().tokens.assign(middle, each.tokens.end());
    }
    samples = std::move(parts);
  }
  [[nodiscard]] std::string describe() const { return "halves"; }
};

}  // namespace

TEST_CASE("loader: segments are sequences of their own, on any number of ranks", "[loader]") {
  const lists expected = random_lists(96, 3);
  const any_source source = segmented_corpus(expected);
  for (const std::uint32_t multiple : {1U, 4U}) {
    std::map<std::pair<step_index, lane_index>, digest128> packs;
    for (const std::uint32_t ranks : {1U, 2U, 6U}) {
      loader_options options = options_of();
      options.plan.limits.record_multiple = multiple;
      std::vector<record_id> seen;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        loader loading(source, {rank, ranks}, options);
        for (auto&& step : loading) {
          for (auto&& micro_batch : step) {
            check(micro_batch, expected, multiple, 1000);
            const std::span<const std::uint32_t> records = micro_batch.record_indices();
            for (std::size_t i = 0; i < records.size(); ++i) {
              if (i == 0 || records[i] != records[i - 1]) seen.push_back(micro_batch.record(i).id);
            }
          }
          for (std::size_t i = 0; i < step.packs().size(); ++i) {
            const auto [at, added] =
                packs.try_emplace({step.number(), step.packs()[i].lane}, step.pack_digests()[i]);
            REQUIRE(at->second == step.pack_digests()[i]);
          }
        }
      }
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen.size() == 96);
      REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    }
  }
}

TEST_CASE("loader: a record of segments costs what they cost", "[loader]") {
  const lists expected = random_lists(96, 4);
  for (const std::string policy : {"sequential", "window", "calendar", "replicated"}) {
    loader loading(segmented_corpus(expected), {0, 1}, options_of(policy),
                   quadratic_cost({.linear = 3, .quadratic = 2}));
    for (auto&& step : loading) {
      for (const delivered_pack& pack : step.packs()) {
        std::uint64_t cost = 0;
        for (std::size_t i = pack.first; i < pack.last; ++i) {
          for (const std::uint64_t tokens : expected[step.records()[i].id]) {
            cost += 3 * tokens + 2 * tokens * tokens;
          }
        }
        REQUIRE(pack.cost == cost);
      }
    }
  }
}

TEST_CASE("loader: what is cut off of a record of segments are its last", "[loader]") {
  const lists expected = random_lists(96, 5);
  loader_options options = options_of();
  options.plan.limits.capacity_tokens = 40;
  options.plan.limits.infeasible = infeasible_policy::truncate;
  loader loading(segmented_corpus(expected), {0, 1}, options);
  REQUIRE(loading.selection().infeasible_records > 10);
  for (auto&& step : loading) {
    for (auto&& micro_batch : step) check(micro_batch, expected, 1, 40);
  }
}

TEST_CASE("loader: a record with a bad segment is masked as a whole", "[loader]") {
  lists expected = random_lists(24, 6);
  expected[5] = {7, 8, 9};
  loader_options options = options_of("sequential");
  options.bad_records = bad_record_policy::mask;
  loader loading(segmented_corpus(expected, 5), {0, 1}, options);
  std::uint64_t segments = 0;
  for (auto&& step : loading) {
    for (auto&& micro_batch : step) {
      for (std::size_t i = 0; i < micro_batch.record_indices().size(); ++i) {
        const auto first = static_cast<std::size_t>(micro_batch.cu_seqlens()[i]);
        const auto end = static_cast<std::size_t>(micro_batch.cu_seqlens()[i + 1]);
        std::uint64_t loss_tokens = 0;
        for (std::size_t k = first; k < end; ++k) loss_tokens += micro_batch.loss_mask()[k];
        const bool bad = micro_batch.record(i).id == 5;
        REQUIRE(loss_tokens == (bad ? 0 : end - first - 1));
        segments += bad ? 1 : 0;
      }
    }
  }
  REQUIRE(segments == 3);
  REQUIRE(loading.statistics().masked_records == 1);
}

TEST_CASE("loader: pairs that a pipeline makes, with an index and without", "[loader]") {
  gen random(9);
  const lanepack_test::memory_documents texts(lanepack_test::random_texts(random, 80, 5));
  const pipeline stages({tokenize(byte_level_tokenizer(), {.begin = 256}), halves(), group()});
  loader_options options = options_of();
  options.plan.rule = epoch_end::continue_epochs;
  options.plan.steps = 6;
  const any_source indexed = pipeline_source(texts, stages, make_count_index(texts, stages));
  REQUIRE(indexed.most_segments() == 2);
  const any_source unindexed = unindexed_pipeline(texts, stages, {.has_segments = true});
  for (const any_source& source : {indexed, unindexed}) {
    loader loading(source, {0, 1}, options);
    std::uint64_t pairs = 0;
    for (auto&& step : loading) {
      for (auto&& micro_batch : step) {
        const std::span<const std::uint32_t> records = micro_batch.record_indices();
        REQUIRE(micro_batch.segments() == records.size());
        for (std::size_t i = 0; i < records.size(); ++i) {
          const auto first = static_cast<std::size_t>(micro_batch.cu_seqlens()[i]);
          // A text begins with 256, its other half does not.
          const bool second = i != 0 && records[i - 1] == records[i];
          REQUIRE((micro_batch.tokens()[first] == 256) == !second);
          REQUIRE(micro_batch.position_ids()[first] == 0);
          if (!second) continue;
          REQUIRE(micro_batch.loss_mask()[first - 1] == 0);
          ++pairs;
        }
      }
    }
    REQUIRE(pairs > 60);
  }
  const any_source undeclared = unindexed_pipeline(texts, stages);
  REQUIRE_THROWS_WITH(loader(undeclared, {0, 1}, options),
                      ContainsSubstring("several segments") && ContainsSubstring("has_segments"));
}

TEST_CASE("loader: options that do not go with segments are refused", "[loader]") {
  const lists expected = random_lists(24, 6);
  loader_options options = options_of();
  options.plan.limits.infeasible = infeasible_policy::chunk;
  REQUIRE_THROWS_WITH(loader(segmented_corpus(expected), {0, 1}, options),
                      ContainsSubstring("infeasible: found chunk, expected fail") &&
                          ContainsSubstring("several segments"));
  options = options_of();
  options.plan.limits.record_multiple = 64;
  REQUIRE_THROWS_WITH(loader(segmented_corpus(expected), {0, 1}, options),
                      ContainsSubstring("capacity_tokens: found 256, expected at least") &&
                          ContainsSubstring("record_multiple = 64"));
  REQUIRE_THROWS_WITH(padded_loader(segmented_corpus(expected), {0, 1}, options_of()),
                      ContainsSubstring("source: found") && ContainsSubstring("segments"));
}
