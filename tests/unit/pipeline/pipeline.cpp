#include <lanepack/pipeline/pipeline.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

std::vector<sample> text(const std::string& bytes) {
  std::vector<sample> samples(1);
  samples[0].text = bytes;
  return samples;
}

const tokenize bytes{byte_level_tokenizer()};

}  // namespace

TEST_CASE("pipeline: stages run in a row", "[pipeline]") {
  const pipeline stages({bytes, split({.tokens = 2, .overlap = 0})});
  std::vector<sample> samples = text("abcde");
  stages.run_stateless(samples, "corpus", 0);
  REQUIRE(samples.size() == 3);
  REQUIRE_FALSE(stages.stateful());
  REQUIRE_FALSE(stages.new_memory());
  REQUIRE(stages.describe() == bytes.describe() + " > split(2 tokens, overlap 0)");
  REQUIRE(stages.fingerprint() == pipeline({bytes, split({.tokens = 2})}).fingerprint());
  REQUIRE(stages.fingerprint() != pipeline({bytes, split({.tokens = 3})}).fingerprint());
  REQUIRE(stages.fingerprint() != pipeline({split({.tokens = 2}), bytes}).fingerprint());
}

TEST_CASE("pipeline: a stage with a memory stands among others", "[pipeline]") {
  const pipeline stages({bytes, concatenate_and_cut({.tokens = 4}), split({.tokens = 3})});
  any_stage memory = *stages.new_memory();
  any_stage other = memory;
  std::vector<sample> samples = text("abcde");
  stages.run_stateless(samples, "corpus", 0);
  REQUIRE(samples.size() == 1);
  stages.run_carrying(memory, samples, "corpus", 0);
  REQUIRE(samples.size() == 2);
  REQUIRE(samples[1].tokens == std::vector<std::int32_t>{'d'});
  // Copies have memories of their own.
  REQUIRE(memory.save() == stage_state{1, {4}});
  REQUIRE(other.save() == stage_state{0, {0}});
  REQUIRE_THROWS_AS(pipeline({concatenate_and_cut({.tokens = 4}), group_consecutive()}),
                    invalid_option);
}

TEST_CASE("pipeline: what goes wrong names stage and input", "[pipeline]") {
  const pipeline stages({map_samples("picky", [](sample& each) {
    if (each.text == "bad") throw std::runtime_error("cannot stand it");
    if (each.text == "worse") throw 17;
  })});
  std::vector<sample> samples = text("bad");
  try {
    stages.run_stateless(samples, "the corpus", 42);
    FAIL("no exception");
  } catch (const data_error& failure) {
    REQUIRE(std::string(failure.what()) ==
            "the corpus, record 42: stage map(picky): cannot stand it");
    REQUIRE(failure.where().record == 42U);
    try {
      std::rethrow_if_nested(failure);
      FAIL("nothing nested");
    } catch (const std::runtime_error& nested) {
      REQUIRE(std::string(nested.what()) == "cannot stand it");
    }
  }
  samples = text("worse");
  REQUIRE_THROWS_AS(stages.run_stateless(samples, "the corpus", 1), data_error);

  // Text that nobody tokenized is no record.
  samples = text("good");
  REQUIRE_THROWS_WITH(stages.run_stateless(samples, "the corpus", 7),
                      "the corpus, record 7: what the pipeline made of it, number 0: found 4 bytes "
                      "of text without tokens, expected a stage such as tokenize");
  const auto made = [](auto change) { return pipeline({bytes, map_samples("change", change)}); };
  const pipeline bad[] = {made([](sample& each) { each.loss_mask = {1}; }), made([](sample& each) {
                            each.loss_mask = {1, 2};
                          }),
                          made([](sample& each) { each.tokens[1] = -1; }),
                          made([](sample& each) { each.segments = {1}; })};
  for (const pipeline& each : bad) {
    samples = text("ab");
    REQUIRE_THROWS_AS(each.run_stateless(samples, "the corpus", 0), data_error);
  }
}
