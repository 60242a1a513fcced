#include <lanepack/chat/rendering.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

chat_options options_for(chat_template format) {
  chat_options options;
  options.format = format;
  return options;
}

conversation dialogue() {
  return {{{.role = chat_role::system, .text = "Be brief."},
           {.role = chat_role::user, .text = "Hi"},
           {.role = chat_role::assistant, .text = "Hello"},
           {.role = chat_role::user, .text = "Time?"},
           {.role = chat_role::assistant,
            .text = "A moment.",
            .tool_calls = {{"clock", "{}"}, {"zone", "[1]"}}},
           {.role = chat_role::tool, .text = "12:00"},
           {.role = chat_role::assistant, .text = "Noon."}}};
}

}  // namespace

TEST_CASE("render_chat: plain has names, colons and newlines", "[chat]") {
  chat_options options = options_for(chat_template::plain);
  CHECK(chat_text(dialogue(), options) ==
        "System: Be brief.\nUser: Hi\nAssistant: Hello\nUser: Time?\n"
        "Assistant: A moment.\n{\"name\": \"clock\", \"arguments\": {}}\n"
        "{\"name\": \"zone\", \"arguments\": [1]}\nTool: 12:00\nAssistant: Noon.\n");
  options.end_of_turn = "</s>";
  options.default_system = "unused";
  options.system_prefix = "Today. ";
  conversation start = dialogue();
  start.messages.resize(3);
  CHECK(chat_text(start, options) == "System: Today. Be brief.\nUser: Hi\nAssistant: Hello</s>\n");
}

TEST_CASE("render_chat: a system message by default", "[chat]") {
  const conversation one{{{.role = chat_role::user, .text = "Hi"}}};
  chat_options options = options_for(chat_template::chatml);
  CHECK(chat_text(one, options) == "<|im_start|>user\nHi<|im_end|>\n");
  options.default_system = "";
  CHECK(chat_text(one, options) ==
        "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
  options.default_system.reset();
  options.system_prefix = "P";
  CHECK(chat_text(one, options) ==
        "<|im_start|>system\nP<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
  // Only a first message is one that stands above the conversation.
  const conversation later{
      {{.role = chat_role::user, .text = "Hi"}, {.role = chat_role::system, .text = "S"}}};
  CHECK(chat_text(later, options) ==
        "<|im_start|>system\nP<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>system\nS<|im_end|>\n");
}

TEST_CASE("render_chat: llama3 trims as templates do and knows one call", "[chat]") {
  chat_options options = options_for(chat_template::llama3);
  options.begin_of_text = false;
  const auto text_of = [&](const std::string& text) {
    const std::string whole = chat_text({{{.role = chat_role::user, .text = text}}}, options);
    const std::string head = "<|start_header_id|>user<|end_header_id|>\n\n";
    const std::string tail = "<|eot_id|>";
    REQUIRE(whole.starts_with(head));
    REQUIRE(whole.ends_with(tail));
    return whole.substr(head.size(), whole.size() - head.size() - tail.size());
  };
  // What Python's str.strip takes away, and what not: a zero width space, a byte that is no UTF-8.
  CHECK(text_of("\t\n\v\f\r \x1c\x1f\xc2\x85\xc2\xa0\xe2\x80\xa8\xe3\x80\x80"
                "a b\xe3\x80\x80\xe2\x80\x83\xc2\xa0 ") == "a b");
  CHECK(text_of("\xe2\x80\x8b a \x80 ") == "\xe2\x80\x8b a \x80");
  CHECK(text_of("\xc2") == "\xc2");
  CHECK(text_of(" \xe3\x80").size() == 2);
  CHECK(text_of(" \n").empty());
  const conversation call{
      {{.role = chat_role::assistant, .text = " Wait. ", .tool_calls = {{"clock", "{\"a\": 1}"}}}}};
  CHECK(chat_text(call, options) ==
        "<|start_header_id|>assistant<|end_header_id|>\n\nWait.\n"
        "{\"name\": \"clock\", \"parameters\": {\"a\": 1}}<|eot_id|>");
  CHECK_THROWS_AS(chat_text(dialogue(), options), data_error);
}

TEST_CASE("render_chat: a conversation has a message", "[chat]") {
  try {
    static_cast<void>(chat_text({}, options_for(chat_template::plain)));
    FAIL("no error");
  } catch (const data_error& failure) {
    CHECK_THAT(failure.what(), ContainsSubstring("without messages"));
  }
}
