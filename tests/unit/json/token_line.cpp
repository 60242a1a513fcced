#include <lanepack/json/token_line.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::target_key;
using lanepack::token_line_options;
using lanepack::token_line_parser;

struct parsed {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> mask;
  std::uint64_t loss_tokens = 0;
};

parsed parse_good(std::string_view line, const token_line_options& options = {}) {
  token_line_parser parser(options);
  CAPTURE(line);
  const bool good = parser.parse(line);
  CAPTURE(parser.fault().what);
  REQUIRE(good);
  parsed result;
  result.tokens.assign(parser.tokens().begin(), parser.tokens().end());
  result.mask.resize(result.tokens.size());
  parser.copy_loss_mask(0, result.mask);
  result.loss_tokens = parser.loss_tokens();
  return result;
}

void require_fault(std::string_view line, std::size_t offset, const std::string& what,
                   const token_line_options& options = {}) {
  token_line_parser parser(options);
  CAPTURE(line);
  REQUIRE_FALSE(parser.parse(line));
  CHECK(parser.fault().what == what);
  CHECK(parser.fault().offset == offset);
}

void require_malformed(std::string_view line) {
  token_line_parser parser;
  CAPTURE(line);
  REQUIRE_FALSE(parser.parse(line));
  CHECK_THAT(parser.fault().what, Catch::Matchers::StartsWith("malformed JSON: found "));
}

using tokens = std::vector<std::int32_t>;
using bytes = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("token_line: a line that marks its targets is told apart", "[jsonl]") {
  token_line_parser parser;
  REQUIRE(parser.parse(R"({"tokens": [1, 2]})"));
  CHECK_FALSE(parser.marks_targets());
  REQUIRE(parser.parse(R"({"tokens": [1, 2], "loss_mask": [0, 1]})"));
  CHECK(parser.marks_targets());
}

TEST_CASE("json: token arrays of either key and any spacing are read", "[json]") {
  CHECK(parse_good(R"({"input_ids": [1, 2, 3]})").tokens == tokens{1, 2, 3});
  CHECK(parse_good(R"({"tokens":[1,2,3]})").tokens == tokens{1, 2, 3});
  CHECK(parse_good(" \t{ \"tokens\" :\t[ 7 ,8\t, 9 ]\r } \r").tokens == tokens{7, 8, 9});
  CHECK(parse_good(R"({"input_ids": []})").tokens.empty());
  CHECK(parse_good(R"({"input_ids": [ ]})").tokens.empty());
  CHECK(parse_good(R"({"input_ids": [0, -0, 2147483647]})").tokens == tokens{0, 0, 2147483647});
  CHECK(parse_good(R"({"a": {"input_ids": [9]}, "input_ids": [1]})").tokens == tokens{1});
}

TEST_CASE("json: numbers of every width are read by the fast and the slow loop", "[json]") {
  // The fast loop needs 16 readable bytes, so the end of each line goes through the slow one.
  tokens expected;
  std::string array = "[";
  std::int64_t value = 1;
  for (int round = 0; round < 3; ++round) {
    for (value = 1; value <= 2147483647; value = value * 10 + round) {
      for (const std::int64_t near : {value - 1, value, value + 1}) {
        if (near > 2147483647) continue;
        if (!expected.empty()) array += round == 0 ? "," : ", ";
        array += std::to_string(near);
        expected.push_back(static_cast<std::int32_t>(near));
      }
    }
  }
  CHECK(parse_good("{\"tokens\": " + array + "]}").tokens == expected);
}

TEST_CASE("json: a line with two arrays of token ids is refused", "[json]") {
  CHECK(parse_good(R"({"tokens": ["EU", "rejects"], "input_ids": [1, 2]})").tokens == tokens{1, 2});
  require_fault(R"({"input_ids": [1, 2], "tokens": [5]})", 32,
                "found both \"input_ids\" and \"tokens\", expected one of them, or an option that "
                "says which to read");
  CHECK(parse_good(R"({"input_ids": [1, 2], "tokens": [5]})", {.token_key = "tokens"}).tokens ==
        tokens{5});
  CHECK(parse_good(R"({"input_ids": [1, 2], "tokens": null})").tokens == tokens{1, 2});
  CHECK(parse_good(R"({"input_ids": null, "tokens": [5]})").tokens == tokens{5});
  require_fault(R"({"input_ids": "x", "tokens": [5]})", 14,
                "input_ids: found a string, expected an array");
}

TEST_CASE("json: a key of the user's own is read alone", "[json]") {
  const token_line_options options{.token_key = "ids"};
  CHECK(parse_good(R"({"input_ids": [1], "ids": [2, 3]})", options).tokens == tokens{2, 3});
  require_fault(R"({"input_ids": [1]})", 0, "found no array of token ids, expected key \"ids\"",
                options);
}

TEST_CASE("json: a key written with escapes is the same key", "[json]") {
  CHECK(parse_good(R"({"input\u005fids": [4]})").tokens == tokens{4});
  CHECK(parse_good(R"({"\u0074\u006Fkens": [4]})").tokens == tokens{4});
  CHECK(parse_good(R"({"input_ids\u0000": [9], "x\n\t\"\\\/\b\f\r": 1, "tokens": [4]})").tokens ==
        tokens{4});
  require_fault(R"({"tokens": [1], "\u0074okens": [2]})", 16,
                "key \"tokens\" is there twice, expected once");
}

TEST_CASE("json: labels mark the tokens that they repeat", "[json]") {
  const parsed line = parse_good(R"({"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]})");
  CHECK(line.mask == bytes{0, 0, 1, 1});
  CHECK(line.loss_tokens == 2);

  // The first token is predicted by nothing, so its label counts for nothing.
  const parsed all = parse_good(R"({"labels": [5, 6], "input_ids": [5, 6]})");
  CHECK(all.mask == bytes{1, 1});
  CHECK(all.loss_tokens == 1);
  CHECK(parse_good(R"({"input_ids": [], "labels": []})").loss_tokens == 0);
}

TEST_CASE("json: a label that is neither -100 nor the token is refused", "[json]") {
  require_fault(R"({"input_ids": [5, 6], "labels": [6, -100]})", 32,
                "labels[0]: found 6, expected -100 or the token itself, 5");
  require_fault(R"({"input_ids": [5, 6], "labels": [5]})", 32,
                "labels: found 1 elements, expected 2 as in \"input_ids\"");
  require_fault(R"({"input_ids": [5, 6], "labels": 1})", 32,
                "labels: found a number, expected an array");
  require_fault(R"({"input_ids": [5, 6], "labels": [5, 6.0]})", 36,
                "labels: found 6.0, expected an integer");
}

TEST_CASE("json: loss_mask is 0 or 1 for each token", "[json]") {
  const parsed line = parse_good(R"({"tokens": [5, 6, 7], "loss_mask": [1, 0, 1]})");
  CHECK(line.mask == bytes{1, 0, 1});
  CHECK(line.loss_tokens == 1);
  require_fault(R"({"tokens": [5, 6, 7], "loss_mask": [1, 2, 1]})", 35,
                "loss_mask[1]: found 2, expected 0 or 1");
  require_fault(R"({"tokens": [5], "loss_mask": [1, 0]})", 29,
                "loss_mask: found 2 elements, expected 1 as in \"tokens\"");
}

TEST_CASE("json: without marks all tokens but the first are predicted", "[json]") {
  const parsed line = parse_good(R"({"tokens": [5, 6, 7]})");
  CHECK(line.mask == bytes{1, 1, 1});
  CHECK(line.loss_tokens == 2);
  CHECK(parse_good(R"({"tokens": [5]})").loss_tokens == 0);
  CHECK(parse_good(R"({"tokens": []})").loss_tokens == 0);
  CHECK(parse_good(R"({"tokens": [5, 6], "labels": null, "loss_mask": null})").loss_tokens == 1);
}

TEST_CASE("json: both kinds of marks need an option that chooses", "[json]") {
  const std::string line =
      R"({"tokens": [5, 6, 7], "labels": [-100, -100, 7], "loss_mask": [0, 1, 1]})";
  require_fault(line, 62,
                "found both \"labels\" and \"loss_mask\", expected one of them, or an option that "
                "says which to read");
  CHECK(parse_good(line, {.token_key = {}, .targets = target_key::labels}).mask == bytes{0, 0, 1});
  CHECK(parse_good(line, {.token_key = {}, .targets = target_key::loss_mask}).mask ==
        bytes{0, 1, 1});
  CHECK(parse_good(line, {.token_key = {}, .targets = target_key::none}).mask == bytes{1, 1, 1});
  CHECK(parse_good(R"({"tokens": [5], "labels": "positive"})",
                   {.token_key = {}, .targets = target_key::none})
            .tokens == tokens{5});
  require_fault(R"({"tokens": [5]})", 0,
                "found no key \"labels\", expected an array as long as that of the token ids",
                {.token_key = {}, .targets = target_key::labels});
  require_fault(R"({"tokens": [5], "loss_mask": null})", 0,
                "found no key \"loss_mask\", expected an array as long as that of the token ids",
                {.token_key = {}, .targets = target_key::loss_mask});
}

TEST_CASE("json: elements that are no token ids are named", "[json]") {
  require_fault(R"({"tokens": [1, -1]})", 11, "tokens[1]: found -1, expected 0 to 2147483647");
  require_fault(R"({"tokens": [1, 2147483648]})", 15,
                "tokens: found 2147483648, expected at most 2147483647");
  require_fault(R"({"tokens": [1, 99999999999999999999999]})", 15,
                "tokens: found 99999999999999999999999, expected at most 2147483647");
  require_fault(R"({"tokens": [1, 2.0, 3]})", 15, "tokens: found 2.0, expected an integer");
  require_fault(R"({"tokens": [1, 2e3]})", 15, "tokens: found 2e3, expected an integer");
  require_fault(R"({"tokens": [1, "2"]})", 15, "tokens: found \"2\", expected an integer");
  require_fault(R"({"tokens": [1, null]})", 15, "tokens: found null, expected an integer");
  require_fault(R"({"tokens": [[1], [2]]})", 12, "tokens: found [1, expected an integer");
  require_fault(R"({"tokens": {}})", 11, "tokens: found an object, expected an array");
  require_fault(R"({"tokens": true})", 11, "tokens: found a boolean, expected an array");
  require_fault(R"({"input_ids": null})", 14, "input_ids: found null, expected an array");
}

TEST_CASE("json: a line that is no object with tokens is refused", "[json]") {
  require_fault("[1, 2]", 0, "found an array, expected an object");
  require_fault("  3", 2, "found a number, expected an object");
  require_fault("{}", 0, "found no array of token ids, expected key \"input_ids\" or \"tokens\"");
  require_fault(R"({"text": "no tokens"})", 0,
                "found no array of token ids, expected key \"input_ids\" or \"tokens\"");
}

TEST_CASE("json: repeated keys are refused where they are read", "[json]") {
  require_fault(R"({"tokens": [1], "tokens": [1]})", 16,
                "key \"tokens\" is there twice, expected once");
  require_fault(R"({"tokens": [1], "labels": [1], "labels": null})", 31,
                "key \"labels\" is there twice, expected once");
  CHECK(parse_good(R"({"id": 1, "tokens": [1], "id": 2})").tokens == tokens{1});
}

TEST_CASE("json: other keys of any kind and depth are passed over", "[json]") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(parse_good("{\"x\": " + deep + ", \"tokens\": [1]}").tokens == tokens{1});
  CHECK(parse_good(R"({"a": [], "b": {}, "c": [{}, [[], {"d": [1.5e+3, -0.25E-2, 0, true, false,
null]}]], "e": "\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00", "tokens": [1]})")
            .tokens == tokens{1});
  // U+2028 and U+0085 are line ends to some readers and plain characters to JSON.
  CHECK(parse_good("{\"text\": \"a\xe2\x80\xa8\x62\xc2\x85\x63\", \"tokens\": [1]}").tokens ==
        tokens{1});
  // Writers put lone surrogates into text that a tokenizer has cut; no text is read here.
  CHECK(parse_good(R"({"text": "\ud83d", "tokens": [1]})").tokens == tokens{1});
}

TEST_CASE("json: strings are checked byte by byte around every word boundary", "[json]") {
  for (std::size_t before = 0; before < 20; ++before) {
    const std::string pad(before, 'a');
    for (const char* good : {"\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\x7f", "\\u1aF9"}) {
      CHECK(parse_good("{\"" + pad + good + pad + "\": \"" + pad + good + "\", \"tokens\": [1]}")
                .tokens == tokens{1});
    }
    for (const char* bad : {"\x01", "\x1f", "\x80", "\xc1\x80", "\xc3", "\xc3(", "\xe0\x9f\xbf",
                            "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80",
                            "\xe2\x82", "\\x", "\\u12g4", "\\u12"}) {
      require_malformed("{\"x\": \"" + pad + bad + "\", \"tokens\": [1]}");
    }
  }
  require_malformed(std::string("{\"x\": \"a\0b\", \"tokens\": [1]}", 27));
}

TEST_CASE("json: malformed text is refused at the byte where it ends to be JSON", "[json]") {
  require_fault(R"({"tokens": [1, 2)", 16,
                "malformed JSON: found the end of the line, expected ',' or ']'");
  require_fault(R"({"tokens": [1, 2]])", 17, "malformed JSON: found ']', expected ',' or '}'");
  require_fault(R"({"tokens": [1,]})", 14, "malformed JSON: found ']', expected a value");
  require_fault(R"({"tokens": [01]})", 13, "malformed JSON: found '1', expected ',' or ']'");
  require_fault(R"({"tokens": [1 2]})", 14, "malformed JSON: found '2', expected ',' or ']'");
  require_fault(R"({"tokens": [1], })", 16, "malformed JSON: found '}', expected a key");
  require_fault(R"({"tokens": [1]} x)", 16,
                "malformed JSON: found 'x', expected the end of the line");
  require_fault(R"({'tokens': [1]})", 1, "malformed JSON: found ''', expected a key");
  require_fault(R"({"tokens" [1]})", 10, "malformed JSON: found '[', expected ':'");
  require_fault("\xef\xbb\xbf{}", 0, "malformed JSON: found byte 0xef, expected a value");
  for (const char* text : {"",
                           "{",
                           "{\"",
                           "{\"a",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{\"a\":1,",
                           "{\"a\":1,}",
                           "}",
                           "{\"a\":tru}",
                           "{\"a\":nulL}",
                           "{\"a\":+1}",
                           "{\"a\":.5}",
                           "{\"a\":1.}",
                           "{\"a\":1e}",
                           "{\"a\":1e+}",
                           "{\"a\":-}",
                           "{\"a\":-a}",
                           "{\"a\":00}",
                           "{\"a\":0x1}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":[1}",
                           "{\"a\":{\"b\":1]}",
                           "{\"a\":{1:2}}",
                           "{\"a\":[,1]}",
                           "{\"tokens\":[1],\"tokens\":[}",
                           "[1,",
                           "// {}",
                           "{\"tokens\":[9999999x]}"}) {
    require_malformed(text);
  }
}

TEST_CASE("json: a parser forgets the line before", "[json]") {
  token_line_parser parser;
  REQUIRE(parser.parse(R"({"tokens": [1, 2, 3], "loss_mask": [0, 0, 1]})"));
  CHECK(parser.loss_tokens() == 1);
  REQUIRE_FALSE(parser.parse("x"));
  REQUIRE(parser.parse(R"({"tokens": [1, 2, 3]})"));
  CHECK(parser.loss_tokens() == 2);
  REQUIRE(parser.parse(R"({"input_ids": [4]})"));
  CHECK(parser.tokens().size() == 1);
}
