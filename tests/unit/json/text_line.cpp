#include <lanepack/json/text_line.hpp>

#include <string>

#include "support/catch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string text_of(const std::string& line, const std::string& key = "text") {
  text_line_parser parser(key);
  return parser.parse(line)
             ? parser.text()
             : "byte " + std::to_string(parser.fault().offset) + ": " + parser.fault().what;
}

}  // namespace

TEST_CASE("text_line_parser: texts", "[text_line]") {
  CHECK(text_of(R"({"text": "plain", "n": [1, {"text": 2}]})") == "plain");
  CHECK(text_of(" {\"id\": 1, \"body\": \"b\"}\r\n", "body") == "b");
  CHECK(text_of(R"({"t\u0065xt": "a\"\\\/\b\f\n\r\tA\u00e9\u20ac\ud83d\ude42"})") ==
        "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
  CHECK(text_of("{\"text\": \"nul \\u0000 in it\"}") == std::string("nul \0 in it", 11));
}

TEST_CASE("text_line_parser: what is wrong is named", "[text_line]") {
  CHECK(text_of(R"({"a": 1})") == "byte 0: found no key \"text\", expected a text");
  CHECK(text_of(R"({"text": 1.5})") == "byte 9: \"text\": found 1.5, expected a string");
  CHECK(text_of(R"({"text": null})") == "byte 9: \"text\": found null, expected a string");
  CHECK(text_of(R"({"text": ["a"]})") == "byte 9: \"text\": found an array, expected a string");
  CHECK(text_of(R"({"text": "a", "text": "b"})") ==
        "byte 14: key \"text\" is there twice, expected once");
  CHECK(text_of(R"(["text"])") == "byte 0: found an array, expected an object");
  CHECK(text_of(R"({"text": "a"} x)") ==
        "byte 14: malformed JSON: found 'x', expected the end of the line");
  CHECK(text_of(R"({"text": "a)") ==
        "byte 11: malformed JSON: found the end of the line, expected '\"'");
  CHECK(text_of("{\"text\": \"\xff\"}") ==
        "byte 10: malformed JSON: found byte 0xff, expected UTF-8");
  for (const char* half : {R"({"text": "a\ud83d"})", R"({"text": "a\ud83dx"})",
                           R"({"text": "a\ud83d\u0041"})", R"({"text": "a\ude42"})"}) {
    CAPTURE(half);
    CHECK_THAT(text_of(half), ContainsSubstring("byte 11: \"text\": found \\ud") &&
                                  ContainsSubstring("half a surrogate pair"));
  }
}
