#include <lanepack/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack::detail::json_object;
using lanepack::detail::parse_json;

}  // namespace

TEST_CASE("json: typed access to the keys of an object", "[json]") {
  const nlohmann::json document = parse_json(
      R"({"n": 3, "big": 18446744073709551615, "flag": true, "text": "x", "none": null,
          "list": [1, 2], "names": ["a", "b"], "in": {"m": 4}})",
      "f.json");
  const json_object top(document, "f.json");
  CHECK(top.number("n") == std::uint64_t{3});
  CHECK(top.number("big") == ~std::uint64_t{0});
  CHECK_FALSE(top.number("absent"));
  CHECK_FALSE(top.number("none"));
  CHECK(top.number({"absent", "none", "n"}) == std::uint64_t{3});
  CHECK(top.required({"none", "n"}) == 3);
  CHECK(top.flag("flag") == true);
  CHECK(top.text("text") == "x");
  CHECK(top.numbers("list") == std::vector<std::uint64_t>{1, 2});
  CHECK(top.texts("names") == std::vector<std::string>{"a", "b"});
  CHECK(top.object("in")->number("m") == std::uint64_t{4});
  CHECK_FALSE(top.object("none"));

  using Catch::Matchers::Message;
  using lanepack::data_error;
  CHECK_THROWS_MATCHES(top.number("n", 4), data_error,
                       Message("f.json: key \"n\": found 3, expected an integer of at least 4"));
  CHECK_THROWS_MATCHES(top.flag("n"), data_error,
                       Message("f.json: key \"n\": found 3, expected true or false"));
  CHECK_THROWS_MATCHES(top.text("n"), data_error,
                       Message("f.json: key \"n\": found 3, expected a string"));
  CHECK_THROWS_MATCHES(top.numbers("n"), data_error,
                       Message("f.json: key \"n\": found 3, expected an array of integers"));
  CHECK_THROWS_MATCHES(top.numbers("names"), data_error,
                       Message("f.json: key \"names\": found [\"a\",\"b\"], expected an array of "
                               "integers of at least 0"));
  CHECK_THROWS_MATCHES(top.texts("list"), data_error,
                       Message("f.json: key \"list\": found [1,2], expected an array of strings"));
  CHECK_THROWS_MATCHES(top.object("in")->required({"a", "b"}), data_error,
                       Message("f.json: found no key \"in.a\" or \"in.b\", expected an integer of "
                               "at least 0"));
  CHECK_THROWS_MATCHES(top.object("n"), data_error,
                       Message("f.json: key \"n\": found 3, expected an object"));
}

TEST_CASE("json: long and odd values are shown short", "[json]") {
  const nlohmann::json document =
      parse_json("{\"t\": \"" + std::string(100, 'a') + "\"}", "f.json");
  const json_object top(document, "f.json");
  CHECK_THROWS_MATCHES(
      top.number("t"), lanepack::data_error,
      Catch::Matchers::Message("f.json: key \"t\": found \"" + std::string(59, 'a') +
                               "..., expected an integer of at least 0"));
}

TEST_CASE("json: a document that is too large is not read", "[json]") {
  const lanepack_test::scratch_dir dir;
  const std::string path = dir.path("large.json");
  lanepack_test::write_file(path, "");
  std::filesystem::resize_file(path, (std::uintmax_t{1} << 26) + 1);
  CHECK_THROWS_MATCHES(
      lanepack::detail::read_json_text(path), lanepack::data_error,
      Catch::Matchers::Message(
          path + ": found 67108865 bytes, expected a JSON document of at most 67108864"));
}

TEST_CASE("json: a key that is twice in an object is refused", "[json]") {
  using Catch::Matchers::Message;
  CHECK_THROWS_MATCHES(parse_json(R"({"a": {"b": 1, "c": 2, "\u0062": 3}})", "f.json"),
                       lanepack::data_error,
                       Message("f.json: key \"b\" is there twice in an object, expected once"));
  // In different objects it is not the same key.
  CHECK(parse_json(R"({"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]})", "f.json").size() == 2);
}
