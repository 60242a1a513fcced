#include <lanepack/json/length_histogram.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using lanepack::length_bucket;
using lanepack::parse_length_histogram;

TEST_CASE("json: a declared length histogram", "[json]") {
  REQUIRE(parse_length_histogram(R"({"lengths": [[100, 7], [3, 2]]})") ==
          std::vector<length_bucket>{{.first = 100, .last = 100, .records = 7, .tokens = 700},
                                     {.first = 3, .last = 3, .records = 2, .tokens = 6}});
}

TEST_CASE("json: a histogram that is none is refused with what is wrong", "[json]") {
  const auto refused = [](const std::string& text, const char* part) {
    CAPTURE(text);
    try {
      static_cast<void>(parse_length_histogram(text, "h.json"));
      FAIL("no exception");
    } catch (const lanepack::data_error& error) {
      REQUIRE_THAT(error.what(), Catch::Matchers::ContainsSubstring("h.json"));
      REQUIRE_THAT(error.what(), Catch::Matchers::ContainsSubstring(part));
    }
  };
  refused("", "malformed JSON");
  refused("[]", "expected an object");
  refused("{}", "\"lengths\": found nothing");
  refused(R"({"lengths": 5})", "array of pairs");
  refused(R"({"lengths": [], "unit": "k"})", "unit");
  refused(R"({"lengths": []})", "without records");
  refused(R"({"lengths": [[5, 0]]})", "without records");
  refused(R"({"lengths": [[1, 1], [5]]})", "pair 1: found [5]");
  refused(R"({"lengths": [[-1, 1]]})", "pair 0");
  refused(R"({"lengths": [[1.5, 1]]})", "pair 0");
  refused(R"({"lengths": [[1099511627777, 1]]})", "2^40");
  refused(R"({"lengths": [[1, 72057594037927937]]})", "2^56");
  refused(R"({"lengths": [[1099511627776, 8388609]]})", "2^63");
}

TEST_CASE("json: a histogram is read from a file", "[json]") {
  const lanepack_test::scratch_dir folder;
  REQUIRE_THROWS_AS(lanepack::read_length_histogram(folder.path("none.json")),
                    lanepack::data_error);
  const std::string path = folder.path("h.json");
  lanepack_test::write_file(path, R"({"lengths":[[4,1]]})");
  REQUIRE(lanepack::read_length_histogram(path).size() == 1);
}
