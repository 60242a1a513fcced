#include <lanepack/core/error.hpp>

#include <string>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("core: invalid_option names option, value and expectation", "[core]") {
  const invalid_option failure("lookahead", "0", "at least 1");
  REQUIRE(std::string(failure.what()) == "lookahead: found 0, expected at least 1");
  REQUIRE(failure.option() == "lookahead");
  REQUIRE(failure.found() == "0");
  REQUIRE(failure.expected() == "at least 1");
}

TEST_CASE("core: data_error leads with the parts of the location that are known", "[core]") {
  REQUIRE(std::string(data_error({}, "bad").what()) == "bad");
  REQUIRE(
      std::string(data_error({.path = "a.bin", .byte_offset = {}, .record = {}, .line = {}}, "bad")
                      .what()) == "a.bin: bad");
  REQUIRE(std::string(data_error({.path = "a.bin", .byte_offset = 7, .record = 2, .line = 3}, "bad")
                          .what()) == "a.bin, line 3, byte 7, record 2: bad");
  REQUIRE(std::string(
              data_error({.path = {}, .byte_offset = {}, .record = 0, .line = {}}, "bad").what()) ==
          "record 0: bad");
  const data_error failure({.path = "a", .byte_offset = 1, .record = {}, .line = {}}, "x");
  REQUIRE(failure.where().path == "a");
  REQUIRE(failure.where().byte_offset == 1U);
  REQUIRE_FALSE(failure.where().record.has_value());
}

TEST_CASE("core: every exception is a lanepack error", "[core]") {
  REQUIRE_THROWS_AS(detail::throw_invalid_option("a", "b", "c"), error);
  REQUIRE_THROWS_AS(detail::throw_data_error({}, "x"), error);
  REQUIRE_THROWS_AS(detail::throw_state_error("x"), error);
}
