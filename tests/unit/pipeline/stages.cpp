#include <lanepack/pipeline/stages.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

sample with_tokens(std::vector<std::int32_t> tokens, std::vector<std::uint8_t> mask = {}) {
  sample made;
  made.tokens = std::move(tokens);
  made.loss_mask = std::move(mask);
  return made;
}

std::vector<sample> with_text(const std::string& text) {
  std::vector<sample> samples(1);
  samples[0].text = text;
  return samples;
}

}  // namespace

TEST_CASE("stages: text becomes tokens with what is asked for around it", "[pipeline]") {
  std::vector<sample> samples = with_text("ab");
  samples.push_back(with_tokens({7}));
  const tokenize stage{byte_level_tokenizer(), {.begin = 1, .end = 2}};
  stage.apply(samples);
  REQUIRE(samples[0].tokens == std::vector<std::int32_t>{1, 97, 98, 2});
  REQUIRE(samples[0].text.empty());
  REQUIRE(samples[1].tokens == std::vector<std::int32_t>{7});
  REQUIRE(shape_of(samples[0]) == record_shape{4, 3, 0});
  // Another tokenizer or option is another stage.
  REQUIRE(tokenize(byte_level_tokenizer(), {.begin = 1, .end = 2}).describe() == stage.describe());
  REQUIRE(tokenize(byte_level_tokenizer()).describe() != stage.describe());
  const byte_level_tokenizer other({.end_of_text = 300, .end_of_text_spelling = "<end>"});
  REQUIRE(tokenize(other, {.begin = 1, .end = 2}).describe() != stage.describe());
  REQUIRE_THROWS_AS(tokenize(byte_level_tokenizer(), {.begin = -1, .end = {}}), invalid_option);
}

TEST_CASE("stages: map and filter do what the user's function does", "[pipeline]") {
  std::vector<sample> samples = with_text("keep");
  samples.push_back(with_text("drop").front());
  const filter stage("starts with k", [](const sample& each) { return each.text[0] == 'k'; });
  stage.apply(samples);
  REQUIRE(samples.size() == 1);
  map_samples("upper", [](sample& each) { each.text[0] = 'K'; }).apply(samples);
  REQUIRE(samples[0].text == "Keep");
  REQUIRE(stage.describe() == "filter(starts with k)");
  REQUIRE_THROWS_AS(filter("", [](const sample&) { return true; }), invalid_option);
  REQUIRE_THROWS_AS(map_samples("nothing", nullptr), invalid_option);
}

TEST_CASE("stages: split cuts at so many tokens, with overlap as context", "[pipeline]") {
  std::vector<sample> samples{with_tokens({0, 1, 2, 3, 4, 5, 6}, {1, 1, 0, 1, 1, 0, 1}),
                              with_tokens({7, 8, 9})};
  split({.tokens = 3, .overlap = 0}).apply(samples);
  REQUIRE(samples.size() == 4);
  REQUIRE(samples[0].tokens == std::vector<std::int32_t>{0, 1, 2});
  REQUIRE(samples[0].loss_mask == std::vector<std::uint8_t>{1, 1, 0});
  REQUIRE(samples[2].tokens == std::vector<std::int32_t>{6});
  REQUIRE(samples[3].tokens == std::vector<std::int32_t>{7, 8, 9});
  REQUIRE(samples[3].loss_mask.empty());

  samples = {with_tokens({0, 1, 2, 3, 4})};
  split({.tokens = 3, .overlap = 1}).apply(samples);
  REQUIRE(samples.size() == 2);
  REQUIRE(samples[1].tokens == std::vector<std::int32_t>{2, 3, 4});
  // Token 2 was predicted in the first part.
  REQUIRE(samples[1].loss_mask == std::vector<std::uint8_t>{0, 1, 1});
  REQUIRE_THROWS_AS(split({.tokens = 0, .overlap = 0}), invalid_option);
  REQUIRE_THROWS_AS(split({.tokens = 3, .overlap = 3}), invalid_option);
}

TEST_CASE("stages: a group is one record whose segments do not predict each other", "[pipeline]") {
  std::vector<sample> samples{with_tokens({1, 2, 3}), with_tokens({4, 5}, {1, 1}), with_tokens({})};
  group().apply(samples);
  REQUIRE(samples.size() == 1);
  REQUIRE(samples[0].tokens == std::vector<std::int32_t>{1, 2, 3, 4, 5});
  REQUIRE(samples[0].loss_mask == std::vector<std::uint8_t>{1, 1, 1, 0, 1});
  REQUIRE(samples[0].segments == std::vector<std::uint64_t>{3, 2});
  REQUIRE(shape_of(samples[0]).loss_tokens == 3);
  // It stays whole.
  split({.tokens = 2, .overlap = 0}).apply(samples);
  REQUIRE(samples.size() == 1);
  samples = with_text("not tokenized");
  REQUIRE_THROWS_AS(group().apply(samples), state_error);
}
