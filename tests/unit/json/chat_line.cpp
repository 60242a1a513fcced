#include <lanepack/json/chat_line.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/chat/encoder.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/json/tokenizer_json.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;

namespace {

conversation parsed(const std::string& line, chat_shape shape = chat_shape::automatic) {
  chat_line_parser parser(shape);
  const bool good = parser.parse(line);
  INFO(parser.fault().what);
  REQUIRE(good);
  return parser.value();
}

std::string fault_of(const std::string& line, chat_shape shape = chat_shape::automatic) {
  chat_line_parser parser(shape);
  REQUIRE_FALSE(parser.parse(line));
  return "byte " + std::to_string(parser.fault().offset) + ": " + parser.fault().what;
}

chat_message said(chat_role role, const std::string& text) {
  return {.role = role, .text = text};
}

const conversation hi{{said(chat_role::user, "Hi"), said(chat_role::assistant, "Hello")}};

}  // namespace

TEST_CASE("chat_line_parser: the three shapes", "[chat_line]") {
  CHECK(parsed(R"({"messages": [{"role": "user", "content": "Hi"},
                                {"content": "Hello", "role": "assistant", "name": 1}]})") == hi);
  CHECK(parsed(R"({"id": 7, "conversations": [{"from": "human", "value": "Hi"},
                                              {"from": "gpt", "value": "Hello"}]})") == hi);
  CHECK(parsed(R"({"instruction": "Hi", "input": "", "output": "Hello"})") == hi);
  CHECK(parsed(R"({"instruction": "Hi", "output": "Hello", "messages": null})") == hi);
  CHECK(parsed(R"({"conversations": [{"role": "user", "content": "Hi"},
                                     {"from": null, "role": "assistant", "content": "Hello"}]})") ==
        hi);
  CHECK(parsed(R"({"instruction": "Do", "input": "this", "output": "done", "system": "S",
                   "history": [["a", "b"], ["c", "d"]]})") ==
        conversation{{said(chat_role::system, "S"), said(chat_role::user, "a"),
                      said(chat_role::assistant, "b"), said(chat_role::user, "c"),
                      said(chat_role::assistant, "d"), said(chat_role::user, "Do\nthis"),
                      said(chat_role::assistant, "done")}});
  CHECK(parsed(R"({"system": "S", "conversations": [{"from": "human", "value": "Hi"},
                                                    {"from": "gpt", "value": "Hello"}]})")
            .messages[0] == said(chat_role::system, "S"));
  CHECK(parsed(R"({"system": "S", "messages": [{"role": "developer", "content": "D"}]})") ==
        conversation{{said(chat_role::system, "D")}});
  const std::string both = R"({"messages": [{"role": "user", "content": "Hi"}],
                               "conversations": [{"from": "tool", "value": "x"}]})";
  CHECK(parsed(both, chat_shape::conversations) == conversation{{said(chat_role::tool, "x")}});
}

TEST_CASE("chat_line_parser: parts, calls and weights", "[chat_line]") {
  CHECK(parsed(R"({"messages": [{"role": "user", "content": [
                     {"type": "text", "text": "a"}, {"text": "b", "image": null}]}]})") ==
        conversation{{said(chat_role::user, "ab")}});
  const conversation calls = parsed(
      R"({"messages": [{"role": "assistant", "content": null, "tool_calls": [
           {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
           {"name": "g", "arguments": {"y" : [2]}}, {"function": {"name": "h"}}]},
           {"role": "assistant", "function_call": {"name": "i", "arguments": ""}, "content": "t",
            "weight": 0},
           {"role": "tool", "content": "r", "weight": 1}]})");
  REQUIRE(calls.messages.size() == 3);
  CHECK(calls.messages[0].tool_calls ==
        std::vector<tool_call>{{"f", "{\"x\": 1}"}, {"g", "{\"y\" : [2]}"}, {"h", "{}"}});
  CHECK(calls.messages[0].is_target);
  CHECK(calls.messages[1] == chat_message{.role = chat_role::assistant,
                                          .text = "t",
                                          .tool_calls = {{"i", ""}},
                                          .is_target = false});
  CHECK(calls.messages[2].is_target);
}

TEST_CASE("chat_line_parser: what is wrong is named", "[chat_line]") {
  CHECK(fault_of(R"({"text": "a"})") ==
        "byte 0: found no conversation, expected key \"messages\", \"conversations\" or "
        "\"instruction\"");
  CHECK(fault_of(R"({"messages": [], "instruction": "a"})") ==
        "byte 32: found both \"messages\" and \"instruction\", expected one of them, or an option "
        "that says which to read");
  CHECK(fault_of(R"({"messages": []})") ==
        "byte 13: messages: found no message, expected at least one");
  CHECK(fault_of(R"({"messages": {}})") ==
        "byte 13: messages: found an object, expected an array of messages");
  CHECK(fault_of(R"({"messages": [1]})") == "byte 14: messages[0]: found 1, expected an object");
  CHECK(fault_of(R"({"messages": [{"content": "a"}]})") ==
        "byte 14: messages[0]: found no key \"role\", expected it");
  CHECK(fault_of(R"({"conversations": [{"from": "human"}]})") ==
        "byte 19: conversations[0]: found no key \"value\", expected it");
  CHECK(fault_of(R"({"messages": [{"role": "bot", "content": "a"}]})") ==
        "byte 23: messages[0].role: found \"bot\", expected system, user, assistant or tool "
        "(human, gpt, ...)");
  CHECK(fault_of(R"({"messages": [{"role": "user", "content": 5}]})") ==
        "byte 42: messages[0].content: found 5, expected a string or an array of text parts");
  CHECK(fault_of(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})") ==
        "byte 52: messages[0].content[0].type: found \"image_url\", expected \"text\"");
  CHECK(fault_of(R"({"messages": [{"role": "user", "role": "user", "content": ""}]})") ==
        "byte 31: messages[0]: key \"role\" is there twice, expected once");
  CHECK(fault_of(R"({"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]})") ==
        "byte 51: messages[0].tool_calls[0]: found no key \"name\", expected it");
  CHECK(fault_of(R"({"messages": [{"role": "user", "content": "a", "weight": 2}]})") ==
        "byte 57: messages[0].weight: found 2, expected 0 or 1");
  CHECK(fault_of(R"({"instruction": "a"})") == "byte 0: found no key \"output\", expected a text");
  CHECK(fault_of(R"({"instruction": "a", "output": "b", "history": [["a"]]})") ==
        "byte 48: history[0]: found 1 texts, expected 2");
  CHECK(fault_of(R"({"instruction": "a", "output": "b", "instruction": "c"})") ==
        "byte 36: key \"instruction\" is there twice, expected once");
  CHECK(fault_of(R"({"instruction": "a", "output": "b"})", chat_shape::messages) ==
        "byte 0: found no key \"messages\", expected it");
  CHECK(fault_of(R"({"instruction": "a\ud800", "output": "b"})") ==
        "byte 18: instruction: found \\ud800, half a surrogate pair, expected a character");
  // That it is no JSON comes first.
  CHECK(fault_of(R"({"messages": 1, "instruction": tru})") ==
        "byte 34: malformed JSON: found '}', expected true, false or null");
}

TEST_CASE("chat_line_parser: tools and reasoning are no part of a template", "[chat_line]") {
  const std::string tools =
      R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"name": "f"}]})";
  CHECK(fault_of(tools) ==
        "byte 58: tools: found something that no template here writes down, expected nothing, or "
        "that it is to be ignored");
  CHECK(fault_of(R"({"messages": [{"role": "user", "content": "a", "thinking": "t"}]})")
            .starts_with("byte 59: messages[0].thinking: found something"));
  CHECK(fault_of(R"({"conversations": [{"from": "gpt", "value": "a"}], "tools": "[{}]"})")
            .starts_with("byte 60: tools: found something"));
  for (const std::string empty : {"null", "[]", "[ ]", "{}", R"("")"}) {
    CHECK(parsed(R"({"messages": [{"role": "user", "content": "a", "reasoning_content": )" + empty +
                 R"(}], "tools": )" + empty + R"(, "functions": )" + empty + "}") ==
          conversation{{said(chat_role::user, "a")}});
  }
  chat_line_parser ignoring(chat_shape::automatic, chat_extras::ignore);
  REQUIRE(ignoring.parse(tools));
  CHECK(ignoring.value() == conversation{{said(chat_role::user, "a")}});
}

TEST_CASE("encode_chat_line: a line to tokens and a loss mask", "[chat_line]") {
  chat_options options;
  options.format = chat_template::plain;
  const chat_encoder encoder(byte_level_tokenizer{}, options);
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> mask;
  encode_chat_line(R"({"instruction": "a", "output": "b"})", encoder, tokens, mask);
  CHECK(byte_level_tokenizer{}.decode(tokens) == "User: a\nAssistant: b\n");
  CHECK(std::vector<std::uint8_t>(mask.end() - 4, mask.end()) ==
        std::vector<std::uint8_t>{0, 1, 1, 1});
  try {
    encode_chat_line(R"({"instruction": 1, "output": "b"})", encoder, tokens, mask);
    FAIL("no error");
  } catch (const data_error& failure) {
    CHECK(failure.where().byte_offset == 16);
  }
}

TEST_CASE("chat_line_parser: the templates of model families, token for token", "[chat_line]") {
  const auto read = [](const std::string& path) {
    const std::vector<std::byte> bytes = read_whole_file(path);
    return nlohmann::json::parse(reinterpret_cast<const char*>(bytes.data()),
                                 reinterpret_cast<const char*>(bytes.data()) + bytes.size());
  };
  const std::string golden = LANEPACK_GOLDEN_FILES;
  std::vector<std::pair<std::string, any_tokenizer>> tokenizers;
  for (const auto& [name, specials] :
       {std::pair<std::string, std::vector<std::string>>{"qwen2", {}},
        std::pair<std::string, std::vector<std::string>>{
            "llama3", {"<|start_header_id|>", "<|end_header_id|>"}}}) {
    nlohmann::json file = read(golden + "/tokenizers/" + name + ".json");
    for (const std::string& text : specials) {
      nlohmann::json token = file["added_tokens"].back();
      token["id"] = token["id"].get<int>() + 1;
      token["content"] = text;
      file["added_tokens"].push_back(token);
    }
    tokenizers.emplace_back(name, parse_tokenizer_json(file.dump()).tokenizer);
  }
  const nlohmann::json cases = read(golden + "/chat/expected.json");
  REQUIRE(cases.size() == 38);
  for (const nlohmann::json& each : cases) {
    CAPTURE(each["name"].get<std::string>());
    chat_options options;
    if (each["template"] == "llama3") options.format = chat_template::llama3;
    if (each.contains("default_system")) options.default_system = each["default_system"];
    if (each.contains("system_prefix")) options.system_prefix = each["system_prefix"];
    // As Python writes it, so that arguments look as in the expected text.
    const conversation from = parsed(each["raw"].get<std::string>());
    CHECK(chat_text(from, options) == each["text"].get<std::string>());
    const any_tokenizer& tokenizer =
        tokenizers[each["tokenizer"] == tokenizers[0].first ? 0 : 1].second;
    for (const char* mask : {"mask", "last"}) {
      options.loss = mask == std::string("mask") ? chat_loss::assistant : chat_loss::last_assistant;
      std::vector<std::int32_t> tokens;
      std::vector<std::uint8_t> marks;
      chat_encoder(tokenizer, options).encode(from, tokens, marks);
      CHECK(tokens == each["ids"].get<std::vector<std::int32_t>>());
      CHECK(marks == each[mask].get<std::vector<std::uint8_t>>());
    }
  }
}
