#include <lanepack/loader/digest_log.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/json/digest_log.hpp>
#include <lanepack/loader/loader.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<record_ref> records{{0, 7}, {1, 9}};
const std::vector<std::uint64_t> tokens{100, 3};
const std::vector<digest128> digests{{.low = 1, .high = 2}, {.low = 0xabc, .high = 4}};

logged_pack pack_at(step_index step, lane_index lane) {
  return {.step = step,
          .lane = lane,
          .digest = {.low = step, .high = lane},
          .records = records,
          .tokens = tokens,
          .record_digests = digests};
}

}  // namespace

TEST_CASE("digest log: a line says what a pack holds", "[loader]") {
  const lanepack_test::scratch_dir folder;
  const std::string path = folder.path("log.jsonl");
  digest_log(path).add(pack_at(3, 17));
  REQUIRE(lanepack_test::read_file(path) ==
          "{\"step\":3,\"lane\":17,\"digest\":\"00000000000000110000000000000003\","
          "\"records\":[7,9],\"epochs\":[0,1],\"tokens\":[100,3],"
          "\"record_digests\":[\"0000000000000001\",\"0000000000000abc\"]}\n");
}

TEST_CASE("digest log: what a killed process left of a line is removed", "[loader]") {
  const lanepack_test::scratch_dir folder;
  const std::string path = folder.path("log.jsonl");
  digest_log(path).add(pack_at(0, 0));
  const std::string line = lanepack_test::read_file(path);
  for (const std::string& rest : {std::string(), std::string("{\"st"), std::string(10'000, 'x')}) {
    lanepack_test::write_file(path, line + rest);
    digest_log(path).add(pack_at(0, 1));
    const std::string text = lanepack_test::read_file(path);
    REQUIRE(text.substr(0, line.size()) == line);
    REQUIRE(text.substr(line.size(), 18) == "{\"step\":0,\"lane\":1");
    REQUIRE(run_digests::read({path}).packs().size() == 2);
  }
  // A file without a whole line.
  lanepack_test::write_file(path, "{\"step\":0");
  digest_log(path).add(pack_at(1, 1));
  REQUIRE(run_digests::read({path}).packs().size() == 1);
  REQUIRE_THROWS_AS(digest_log(folder.path("none/log.jsonl")), data_error);
}

TEST_CASE("digest log: the logs of two ranks are the log of one", "[loader]") {
  const lanepack_test::scratch_dir folder;
  const any_source source = lanepack_test::corpus_of({5, 8, 13, 2, 9, 40, 7, 7, 30, 1, 2, 3});
  loader_options options;
  options.plan.lanes = 2;
  options.plan.records_per_pack = 2;
  options.plan.lookahead_steps = 2;
  options.plan.limits.capacity_tokens = 64;
  options.staging_bytes = 64 << 10;
  const auto log = [&](rank_index rank, rank_index ranks, const std::string& path) {
    lanepack::loader loader(source, {rank, ranks}, options);
    digest_log written(path);
    for (auto&& step : loader) {
      for (auto&& micro_batch : step) static_cast<void>(micro_batch);
      written.add(step);
    }
  };
  REQUIRE_THROWS_AS(log(0, 1, folder.path("none")), state_error);
  options.digests = true;
  log(0, 1, folder.path("one"));
  log(0, 2, folder.path("a"));
  log(1, 2, folder.path("b"));
  const run_digests one = run_digests::read({folder.path("one")});
  const run_digests two = run_digests::read({folder.path("b"), folder.path("a")});
  REQUIRE(one.steps() == 3);
  REQUIRE(one.packs().size() == 6);
  REQUIRE_FALSE(first_difference(one, two).has_value());
  REQUIRE(one.chain() == two.chain());
  REQUIRE_FALSE(one.chain() == digest128{});
}
