#include <lanepack/tokenizer/pre_tokenizer.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::split_pattern;
using pieces = std::vector<std::string>;

pieces split(split_pattern pattern, std::string_view text) {
  pieces out;
  lanepack::for_each_piece(pattern, text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

pieces gpt2(std::string_view text) {
  return split(split_pattern::gpt2, text);
}
pieces llama3(std::string_view text) {
  return split(split_pattern::llama3, text);
}
pieces qwen2(std::string_view text) {
  return split(split_pattern::qwen2, text);
}
pieces o200k(std::string_view text) {
  return split(split_pattern::o200k, text);
}

}  // namespace

// The expected pieces follow from the regular expressions, worked through by hand.

TEST_CASE("tokenizer: gpt2 splits words, numbers and symbols with a space before them",
          "[tokenizer]") {
  CHECK(gpt2("").empty());
  CHECK(gpt2("Hello world") == pieces{"Hello", " world"});
  CHECK(gpt2("a  b") == pieces{"a", " ", " b"});
  CHECK(gpt2("a \n b") == pieces{"a", " \n", " b"});
  CHECK(gpt2("a\nb") == pieces{"a", "\n", "b"});
  CHECK(gpt2("x   ") == pieces{"x", "   "});
  CHECK(gpt2("in 1234ab!?") == pieces{"in", " 1234", "ab", "!?"});
  CHECK(gpt2("it's IT'S they've") == pieces{"it", "'s", " IT", "'", "S", " they", "'ve"});
  CHECK(gpt2("'d'x") == pieces{"'d", "'", "x"});
  CHECK(gpt2("\xc2\xa0z") == pieces{"\xc2\xa0", "z"});
}

TEST_CASE("tokenizer: llama3 joins any character to a word and cuts numbers", "[tokenizer]") {
  CHECK(llama3("Hello world") == pieces{"Hello", " world"});
  CHECK(llama3("(foo) \tbar") == pieces{"(foo", ")", " ", "\tbar"});
  CHECK(llama3("1234567 x") == pieces{"123", "456", "7", " x"});
  CHECK(llama3(" 12") == pieces{" ", "12"});
  CHECK(llama3("IT'S 'tis") == pieces{"IT", "'S", " '", "tis"});
  CHECK(llama3("x!\n\ny") == pieces{"x", "!\n\n", "y"});
  CHECK(llama3("a \n \n  b") == pieces{"a", " \n \n", " ", " b"});
  CHECK(llama3("a\r\n") == pieces{"a", "\r\n"});
  CHECK(llama3("  ") == pieces{"  "});
  // The long s is a case of s.
  CHECK(llama3("x'\xc5\xbf") == pieces{"x", "'\xc5\xbf"});
}

TEST_CASE("tokenizer: qwen2 takes one digit at a time", "[tokenizer]") {
  CHECK(qwen2("v12 3") == pieces{"v", "1", "2", " ", "3"});
  CHECK(qwen2("caf\xc3\xa9") == pieces{"caf\xc3\xa9"});
  // A combining mark is no letter: it joins what follows as any symbol does.
  CHECK(qwen2("e\xcc\x81s") == pieces{"e", "\xcc\x81s"});
}

TEST_CASE("tokenizer: o200k cuts before capitals and keeps contractions", "[tokenizer]") {
  CHECK(o200k("CamelCase HTTPServer") == pieces{"Camel", "Case", " HTTPServer"});
  CHECK(o200k("they'll I'M") == pieces{"they'll", " I'M"});
  CHECK(o200k("ABC") == pieces{"ABC"});
  CHECK(o200k("a/b//\n/c") == pieces{"a", "/b", "//\n/", "c"});
  CHECK(o200k("e\xcc\x81s") == pieces{"e\xcc\x81s"});
  // Han then capitals: letters without case end a word that has no small letter.
  CHECK(o200k("\xe4\xb8\xad"
              "AB") == pieces{"\xe4\xb8\xad", "AB"});
  CHECK(o200k("\xe4\xb8\xad"
              "Ab") == pieces{"\xe4\xb8\xad"
                              "Ab"});
  CHECK(o200k("12345") == pieces{"123", "45"});
}

TEST_CASE("tokenizer: patterns are known by their exact text", "[tokenizer]") {
  for (const lanepack::named_split_pattern& each : lanepack::split_patterns()) {
    CAPTURE(each.name);
    CHECK(lanepack::find_split_pattern(each.regex) == each.pattern);
    CHECK_FALSE(lanepack::find_split_pattern(std::string(each.regex) + "|x"));
  }
  CHECK_FALSE(lanepack::find_split_pattern(""));
}

TEST_CASE("tokenizer: pieces of any bytes are the text again", "[tokenizer]") {
  lanepack_test::for_each_seed(300, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    constexpr std::string_view some[] = {" ",
                                         "\n",
                                         "'s",
                                         "a",
                                         "B",
                                         "7",
                                         "!",
                                         "\xc3\xa9",
                                         "\xe4\xb8\xad",
                                         "\xcc\x81",
                                         "\xf0\x9f\x98\x80",
                                         "\xff",
                                         "\xe2\x82",
                                         "\xc2\xa0"};
    std::string text;
    for (std::uint64_t i = random.between(0, 40); i > 0; --i) text += random.pick(some);
    for (const auto pattern : {split_pattern::none, split_pattern::gpt2, split_pattern::llama3,
                               split_pattern::qwen2, split_pattern::o200k}) {
      std::string together;
      for (const std::string& piece : split(pattern, text)) {
        REQUIRE_FALSE(piece.empty());
        together += piece;
      }
      REQUIRE(together == text);
    }
  });
}
