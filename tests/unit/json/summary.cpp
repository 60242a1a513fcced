#include <lanepack/json/summary.hpp>

#include <string>

#include <lanepack/corpus/summary.hpp>

#include "support/catch.hpp"

TEST_CASE("json: a summary as JSON", "[json]") {
  lanepack::corpus_summary summary;
  summary.records = 4;
  summary.empty_records = 1;
  summary.tokens = 30;
  summary.loss_tokens = 20;
  summary.max_tokens = 17;
  for (const std::uint64_t length : {0U, 3U, 10U, 17U}) summary.histogram.add(length);
  summary.fingerprint = {.low = 0x1, .high = 0xab};
  const nlohmann::ordered_json json = summary;
  CHECK(json.dump() ==
        R"({"records":4,"empty_records":1,"tokens":30,"loss_tokens":20,"patches":0,)"
        R"("max_tokens":17,"length_quantiles":{"0":0,"0.01":0,"0.05":0,"0.25":0,"0.5":3,)"
        R"("0.75":10,"0.9":17,"0.95":17,"0.99":17,"0.999":17,"1":17},)"
        R"("fingerprint":"00000000000000ab0000000000000001"})");
  const nlohmann::ordered_json empty = lanepack::corpus_summary();
  CHECK(empty["records"] == 0);
  CHECK(empty["length_quantiles"]["0.5"] == 0);
}
