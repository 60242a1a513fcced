#include <lanepack/corpus/shard_source.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/record_table.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::scratch_dir;

namespace {

/// Files of records of four bytes: two tokens, and a payload of two bytes, as "pair" says.
shard_corpus corpus_of(const scratch_dir& scratch, const std::vector<std::string>& files,
                       std::vector<std::string> names = {"pair"}) {
  shard_corpus corpus{
      .format = "test",
      .path = scratch.path("corpus"),
      .files = {},
      .payload_names = std::move(names),
      .variant = "test 1",
      .scan = [](const input_file& file, std::uint32_t number) {
        record_table table(1);
        for (std::uint64_t at = 0; at + 4 <= file.size(); at += 4) {
          stored_record record;
          record.file = number;
          record.tokens = 2;
          record.loss_tokens = 1;
          record.patches = number;
          record.ids = {.offset = at, .type = token_type::u8};
          record.payloads = {{.offset = at + 2, .shape = {payload_type::u8, {1, 2}}}};
          table.add(record);
        }
        return table;
      }};
  for (std::size_t i = 0; i < files.size(); ++i) {
    corpus.files.push_back(scratch.path(std::to_string(i)));
    lanepack_test::write_file(corpus.files.back(), files[i]);
  }
  return corpus;
}

}  // namespace

TEST_CASE("shard_source: records of all shards in order", "[corpus]") {
  const scratch_dir scratch;
  const shard_corpus corpus = corpus_of(scratch, {"abAB", "", "cdCDefEF"});
  const shard_source source(corpus);
  REQUIRE(source.size() == 3);
  REQUIRE(source.largest_payload() == record_payload_bytes{0, 2});
  REQUIRE(source.describe() ==
          "test " + scratch.path("corpus") + ": 3 records, 6 tokens, 3 shards");
  std::array<record_shape, 2> shapes;
  source.shapes(std::array<record_id, 2>{2, 0}, shapes);
  REQUIRE(shapes[0] == record_shape{2, 1, 2});
  REQUIRE(shapes[1] == record_shape{2, 1, 0});
  std::array<std::int32_t, 2> last{};
  std::array<std::int32_t, 1> first{};
  const std::vector<record_read> reads = {{2, 0, last, {}}, {0, 1, first, {}}};
  source.read(reads);
  REQUIRE(last == std::array<std::int32_t, 2>{'e', 'f'});
  REQUIRE(first[0] == 'b');
  std::array<std::byte, 2> pair{};
  const payload_read read{1, 0, pair};
  source.read_payloads({&read, 1});
  REQUIRE(pair == std::array<std::byte, 2>{std::byte{'C'}, std::byte{'D'}});
  const payload_read small{1, 0, std::span(pair).first(1)};
  REQUIRE_THROWS_AS(source.read_payloads({&small, 1}), state_error);
  const payload_read absent{1, 1, pair};
  REQUIRE_THROWS_AS(source.read_payloads({&absent, 1}), state_error);
}

TEST_CASE("shard_source: the index is used while the files are the same", "[corpus]") {
  const scratch_dir scratch;
  shard_corpus corpus = corpus_of(scratch, {"abAB"});
  shard_options options;
  options.index_path = scratch.path("index");
  const digest128 fingerprint = shard_source(corpus, options).fingerprint();
  const auto scan = corpus.scan;
  int scans = 0;
  corpus.scan = [&](const input_file& file, std::uint32_t number) {
    ++scans;
    return scan(file, number);
  };
  REQUIRE(shard_source(corpus, options).fingerprint() == fingerprint);
  REQUIRE(scans == 0);
  corpus.variant = "test 2";
  REQUIRE(shard_source(corpus, options).fingerprint() != fingerprint);
  REQUIRE(scans == 1);
  lanepack_test::write_file(corpus.files[0], "abABcdCD");
  REQUIRE(shard_source(corpus, options).size() == 2);
  REQUIRE(scans == 2);
  // A folder that does not exist cannot keep it.
  options.index_path = scratch.path("none/index");
  REQUIRE(shard_source(corpus, options).size() == 2);
}

TEST_CASE("shard_source: a shard that changes is an error with its record", "[corpus]") {
  const scratch_dir scratch;
  const shard_corpus corpus = corpus_of(scratch, {"abABcdCD"});
  const shard_source source(corpus);
  std::array<std::byte, 2> pair{};
  const payload_read read{1, 0, pair};
  source.read_payloads({&read, 1});
  lanepack_test::write_file(corpus.files[0], "abAB");
  REQUIRE_THROWS_AS(source.read_payloads({&read, 1}), file_changed);
  REQUIRE_THROWS_WITH(
      source.read_payloads({&read, 1}),
      ContainsSubstring(corpus.files[0] + ", byte ") && ContainsSubstring("record 1: "));
}

TEST_CASE("shard_source: options are checked", "[corpus]") {
  const scratch_dir scratch;
  REQUIRE_THROWS_AS(shard_source(corpus_of(scratch, {"abAB"}, {""})), invalid_option);
  shard_options options;
  options.threads = 0;
  REQUIRE_THROWS_AS(shard_source(corpus_of(scratch, {"abAB"}), options), invalid_option);
  options.threads = 1;
  options.most_open_files = 0;
  REQUIRE_THROWS_AS(shard_source(corpus_of(scratch, {"abAB"}), options), invalid_option);
}
