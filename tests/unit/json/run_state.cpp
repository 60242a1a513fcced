#include <lanepack/json/run_state.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

run_state example() {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return {.next_step = 12,
          .planned_until = 14,
          .fragments_step = 11,
          .fragments_wanted = 3,
          .run = {{"seed", "1"}, {"odd \"name\"", ""}},
          .fragments = {{.lane = 0, .admitted = 40, .policy = {1, most}, .held = {{3, 0}, {9, 2}}},
                        {.lane = 2, .admitted = most, .policy = {}, .held = {}}}};
}

void refused(const std::string& bytes, const std::string& what) {
  CAPTURE(bytes);
  try {
    static_cast<void>(parse_run_state(bytes, "state.cbor"));
    FAIL("no exception; expected " << what);
  } catch (const data_error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("state.cbor"));
    REQUIRE_THAT(error.what(), ContainsSubstring(what));
  }
}

}  // namespace

TEST_CASE("json: a state survives either format byte for byte", "[json]") {
  for (const state_format format : {state_format::json, state_format::cbor}) {
    const std::string bytes = run_state_bytes(example(), format);
    const run_state read = parse_run_state(bytes);
    REQUIRE(read == example());
    REQUIRE(run_state_bytes(read, format) == bytes);
    REQUIRE(parse_run_state(run_state_bytes(run_state{}, format)) == run_state{});
  }
  REQUIRE(run_state_bytes(example()).size() <
          run_state_bytes(example(), state_format::json).size());
}

TEST_CASE("json: a state is saved and read", "[json]") {
  const lanepack_test::scratch_dir folder;
  const std::string path = folder.path("state");
  save_run_state(path, example());
  REQUIRE(read_run_state(path) == example());
  save_run_state(path, run_state{}, state_format::json);
  REQUIRE(read_run_state(path) == run_state{});
  REQUIRE_THROWS_AS(read_run_state(folder.path("none")), data_error);
  REQUIRE_THROWS_AS(save_run_state(folder.path("none/state"), example()), data_error);
}

TEST_CASE("json: a state that is none is refused with what is wrong", "[json]") {
  refused("", "malformed CBOR");
  refused("{", "malformed JSON");
  refused("{}", "no key \"lanepack_run_state\"");
  refused(std::string(100'000, '\x81'), "nested more than 8 deep");
  for (const state_format format : {state_format::json, state_format::cbor}) {
    const std::string bytes = run_state_bytes(example(), format);
    // A newline ends the JSON text.
    for (std::size_t size = 0; size + 1 < bytes.size(); ++size) {
      REQUIRE_THROWS_AS(parse_run_state(bytes.substr(0, size)), data_error);
    }
    REQUIRE_THROWS_AS(parse_run_state(bytes + "x"), data_error);
  }
  const std::string good = run_state_bytes(example(), state_format::json);
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  refused(with("\"lanepack_run_state\": 1", "\"lanepack_run_state\": 2"), "version 1");
  refused(with("\"next_step\": 12", "\"next_step\": -12"), "next_step");
  refused(with("\"next_step\"", "\"nextstep\""), "no key \"next_step\"");
  refused(with("\"fragments_wanted\": 3", "\"fragments_wanted\": 4294967296"), "4294967295");
  refused(with("\"lane\": 2", "\"lane\": 0"), "ascending lanes");
  refused(with("\"lanes\": [", "\"lanes\": 4, \"l\": ["), "an array");
  refused(with("\"run\": [", "\"run\": [[],"), "[name, value]");
  refused(with("    3,\n    9", "    9,\n    3"), "found arrival 3 after 9");
  refused(with("    3,\n    9", "    9"), "held_admitted");
}
