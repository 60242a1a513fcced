#include <lanepack/json/digest_log.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string line(int step, int lane, char digest, const std::string& more = {}) {
  return "{\"step\":" + std::to_string(step) + ",\"lane\":" + std::to_string(lane) +
         ",\"digest\":\"" + std::string(31, '0') + digest + "\"" + more + "}\n";
}

}  // namespace

TEST_CASE("json: digest logs of a run are read in any order", "[json]") {
  const lanepack_test::scratch_dir folder;
  const std::string a = folder.path("a.jsonl");
  const std::string b = folder.path("b.jsonl");
  lanepack_test::write_file(a, line(1, 1, 'd') + "\n" + line(0, 0, 'a') + line(0, 0, 'a'));
  lanepack_test::write_file(b, line(1, 0, 'c') + line(0, 1, 'b') + "{\"step\":");
  const run_digests run = run_digests::read({a, b});
  REQUIRE(run.packs().size() == 4);
  std::string order;
  for (const run_digests::pack& pack : run.packs()) order += pack.digest.hex().back();
  REQUIRE(order == "abcd");
  REQUIRE(run.steps() == 2);
  REQUIRE(run.repeated_lines() == 1);
  REQUIRE(run.unfinished_lines() == 1);
}

TEST_CASE("json: the first difference of two logs is named", "[json]") {
  const lanepack_test::scratch_dir folder;
  const auto run = [&](const std::string& name, const std::string& text) {
    lanepack_test::write_file(folder.path(name), text);
    return run_digests::read({folder.path(name)});
  };
  const std::string first = line(0, 0, '1') + line(0, 1, '2');
  const auto what = [&](const std::string& a, const std::string& b, bool common = false) {
    const auto found = first_difference(run("a", first + a), run("b", first + b), common);
    if (!found) return std::string("same");
    return std::to_string(found->step) + "/" + std::to_string(found->lane) + "/" +
           (found->record ? std::to_string(*found->record) : "-") + ": " + found->what;
  };
  REQUIRE(what("", "") == "same");
  REQUIRE(what(line(1, 0, '3'), "") == "1/0/-: only the first run has this pack");
  REQUIRE(what("", line(1, 0, '3')) == "1/0/-: only the second run has this pack");
  REQUIRE(what(line(1, 0, '3'), line(1, 1, '4')) == "1/0/-: only the first run has this pack");
  REQUIRE(what(line(1, 1, '3'), line(1, 0, '4')) == "1/0/-: only the second run has this pack");
  REQUIRE(what(line(1, 0, '3', R"(,"records":[5,6],"epochs":[0,0])"),
               line(1, 0, '4', R"(,"records":[5,7],"epochs":[0,0])")) ==
          "1/0/1: the first run has record 6 of epoch 0, the second record 7 of epoch 0");
  REQUIRE(what(line(1, 0, '3', R"(,"records":["18446744073709551615"],"epochs":[1])"),
               line(1, 0, '4', R"(,"records":["18446744073709551615"],"epochs":[2])")) ==
          "1/0/0: the first run has record 18446744073709551615 of epoch 1, the second record "
          "18446744073709551615 of epoch 2");
  REQUIRE(what(line(1, 0, '3', R"(,"records":[5,6],"tokens":[8,9])"),
               line(1, 0, '4', R"(,"records":[5,6],"tokens":[8,7])")) ==
          "1/0/1: record 6 of epoch 0 has 9 tokens in the first run, 7 in the second");
  REQUIRE(what(line(1, 0, '3', R"(,"records":[5,6],"record_digests":["a","b"])"),
               line(1, 0, '4', R"(,"records":[5,6],"record_digests":["a","c"])")) ==
          "1/0/1: record 6 of epoch 0 has other tokens");
  REQUIRE(what(line(1, 0, '3', R"(,"records":[5,6])"), line(1, 0, '4', R"(,"records":[5])")) ==
          "1/0/1: the first run has 2 records, the second 1");
  REQUIRE_THAT(what(line(1, 0, '3', R"(,"records":[5])"), line(1, 0, '4', R"(,"records":[5])")),
               ContainsSubstring("the digests differ and the records do not"));
  // Steps that only one of them has may be passed over, packs may not.
  REQUIRE(what(line(1, 0, '3') + line(2, 0, '5'), line(2, 0, '5') + line(3, 0, '6'), true) ==
          "same");
  REQUIRE(what(line(2, 0, '5') + line(2, 1, '5'),
               line(1, 0, '1') + line(2, 0, '5') + line(3, 0, '6'),
               true) == "2/1/-: only the first run has this pack");
}

TEST_CASE("json: a log that is none is refused with file and line", "[json]") {
  const lanepack_test::scratch_dir folder;
  const std::string path = folder.path("log.jsonl");
  const auto refused = [&](const std::string& text, const std::string& what) {
    CAPTURE(text);
    lanepack_test::write_file(path, line(0, 0, 'a') + text + "\n");
    try {
      static_cast<void>(run_digests::read({path}));
      FAIL("no exception");
    } catch (const data_error& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("log.jsonl"));
      REQUIRE_THAT(error.what(), ContainsSubstring(what));
    }
  };
  refused("{", "line 2");
  refused("[]", "no key \"step\"");
  refused(R"({"step":1,"lane":0})", "no key \"digest\"");
  refused(R"({"step":-1,"lane":0,"digest":""})", "found -1");
  refused(R"({"step":1,"lane":4294967296,"digest":""})", "at most 4294967295");
  refused(R"({"step":1,"lane":0,"digest":"xyz"})", "32 hexadecimal digits");
  refused(R"({"step":"99999999999999999999","lane":0,"digest":""})", "integer");
  refused(line(1, 0, 'b', R"(,"records":5)"), "expected an array");
  refused(line(1, 0, 'b', R"(,"records":[1,2],"epochs":[1])"), "1 values beside 2");
  refused(line(1, 0, 'b', R"(,"records":[1],"record_digests":[1])"), "expected a string");
  refused(line(0, 0, 'b'), "step 0, pack 0");
  REQUIRE_THROWS_AS(run_digests::read({folder.path("none")}), data_error);
}
