#include <lanepack/json/stages.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<sample> made(const std::vector<any_stage>& stages, const std::string& line) {
  std::vector<sample> samples(1);
  samples.front().text = line;
  pipeline(stages).run_stateless(samples, "lines", 7);
  return samples;
}

chat_encoder plain(chat_loss loss = chat_loss::assistant) {
  return chat_encoder(byte_level_tokenizer(), {.format = chat_template::plain, .loss = loss});
}

const std::string chat =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";

}  // namespace

TEST_CASE("text_line_stages: the text of a key", "[pipeline]") {
  const std::vector<sample> samples =
      made(text_line_stages(byte_level_tokenizer(), {.max_tokens = 3}, "body"),
           R"({"text": 1, "body": "\u0041BCD"})");
  REQUIRE(samples.size() == 1);
  CHECK(samples.front().tokens == std::vector<std::int32_t>{'A', 'B', 'C'});
  CHECK_THROWS_WITH(made(text_line_stages(byte_level_tokenizer()), R"({"body": "a"})"),
                    ContainsSubstring("lines") && ContainsSubstring("record 7") &&
                        ContainsSubstring("text_of_lines(text)"));
}

TEST_CASE("chat_line_stages: tokens, loss mask and the token behind", "[pipeline]") {
  for (const bool all : {false, true}) {
    const std::vector<sample> samples = made(
        chat_line_stages(plain(all ? chat_loss::all : chat_loss::assistant), {.end = 255}), chat);
    REQUIRE(samples.size() == 1);
    std::string text;
    for (const std::int32_t token : samples.front().tokens) text += static_cast<char>(token);
    CHECK(text == "User: a\nAssistant: b\n\xff");
    // "User: a\nAssistant:" is context, " b\n" is the answer.
    std::vector<std::uint8_t> mask(18, all ? 1 : 0);
    mask.insert(mask.end(), 3, 1);
    mask.push_back(all ? 1 : 0);
    CHECK(samples.front().loss_mask == mask);
  }
  CHECK_THROWS_WITH(made(chat_line_stages(plain()), "{}"),
                    ContainsSubstring("found no conversation"));
}

TEST_CASE("chat_line_stages: every option is part of what a pipeline is", "[pipeline]") {
  const auto fingerprint = [](const chat_of_lines& stage) {
    return pipeline({stage}).fingerprint();
  };
  const digest128 base = fingerprint(chat_of_lines(plain()));
  CHECK(fingerprint(chat_of_lines(plain())) == base);
  CHECK(fingerprint(chat_of_lines(plain(chat_loss::all))) != base);
  CHECK(fingerprint(chat_of_lines(plain(), chat_shape::messages)) != base);
  CHECK(fingerprint(chat_of_lines(plain(), chat_shape::automatic, 3)) != base);
  CHECK(fingerprint(chat_of_lines(plain(), chat_shape::automatic, {}, chat_extras::ignore)) !=
        base);
  CHECK(fingerprint(chat_of_lines(
            chat_encoder(byte_level_tokenizer(),
                         {.format = chat_template::plain, .default_system = "Be kind."}))) != base);
}
