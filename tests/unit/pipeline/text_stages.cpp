#include <lanepack/pipeline/text_stages.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

/// What texts become, a token a byte, as text again.
std::vector<std::string> made(const std::vector<std::string>& texts,
                              const text_stage_options& options) {
  std::vector<std::string> out;
  const pipeline stages(text_stages(byte_level_tokenizer({.end_of_text = 256}), options));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<sample> samples(1);
    samples.front().text = texts[i];
    stages.run_stateless(samples, "texts", i);
    for (const sample& each : samples) {
      std::string& text = out.emplace_back();
      for (const std::int32_t token : each.tokens) {
        text += token == 256 ? '$' : static_cast<char>(token);
      }
    }
  }
  return out;
}

using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("text_stages: documents that are too short or too long", "[pipeline]") {
  const texts some{"abcdefg", "", "ab", "abcd"};
  CHECK(made(some, {}) == texts{"abcdefg", "ab", "abcd"});
  CHECK(made(some, {.end = 256}) == texts{"abcdefg$", "$", "ab$", "abcd$"});
  CHECK(made(some, {.end = 256, .min_tokens = 3}) == texts{"abcdefg$", "ab$", "abcd$"});
  CHECK(made(some, {.max_tokens = 3}) == texts{"abc", "ab", "abc"});
  CHECK(made(some, {.max_tokens = 3, .when_long = long_documents::skip}) == texts{"ab"});
  CHECK(made(some, {.max_tokens = 3, .when_long = long_documents::split}) ==
        texts{"abc", "def", "g", "ab", "abc", "d"});
  CHECK_THROWS_WITH(made(some, {.max_tokens = 0}),
                    Catch::Matchers::ContainsSubstring("max_tokens: found 0, expected at least 1"));
}

TEST_CASE("text_stages: what is kept of a loss mask", "[pipeline]") {
  const std::vector<any_stage> stages = length_stages({.max_tokens = 2});
  std::vector<sample> samples(1);
  samples.front().tokens = {1, 2, 3};
  samples.front().loss_mask = {0, 1, 1};
  for (const any_stage& each : stages) each.apply(samples);
  REQUIRE(samples.size() == 1);
  CHECK(samples.front().tokens == std::vector<std::int32_t>{1, 2});
  CHECK(samples.front().loss_mask == std::vector<std::uint8_t>{0, 1});
}

TEST_CASE("text_stages: every option is part of what a pipeline is", "[pipeline]") {
  const auto fingerprint = [](const text_stage_options& options) {
    return pipeline(text_stages(byte_level_tokenizer(), options)).fingerprint();
  };
  const digest128 base = fingerprint({.max_tokens = 9});
  CHECK(fingerprint({.max_tokens = 9}) == base);
  CHECK(fingerprint({.max_tokens = 8}) != base);
  CHECK(fingerprint({.min_tokens = 2, .max_tokens = 9}) != base);
  CHECK(fingerprint({.end = 3, .max_tokens = 9}) != base);
  CHECK(fingerprint({.max_tokens = 9, .when_long = long_documents::skip}) != base);
  CHECK(fingerprint({.max_tokens = 9, .when_long = long_documents::split}) != base);
  CHECK(fingerprint({}) != base);
}
