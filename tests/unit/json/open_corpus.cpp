#include <lanepack/json/open_corpus.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/json/summary.hpp>

#include "support/catch.hpp"
#include "support/mds.hpp"
#include "support/scratch.hpp"
#include "support/tar.hpp"

namespace {

using lanepack::any_corpus;
using lanepack::any_corpus_options;
using lanepack::open_any_corpus;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

constexpr const char* two_records = "{\"tokens\":[1,2,3]}\n{\"tokens\":[4]}\n";

any_corpus_options quiet() {
  any_corpus_options options;
  options.corpus.threads = 1;
  return options;
}

}  // namespace

TEST_CASE("json: JSON Lines are known by extension or by their first byte", "[json]") {
  const scratch_dir dir;
  for (const char* name : {"a.jsonl", "a.ndjson", "a.json", "a.txt", "noextension"}) {
    CAPTURE(name);
    write_file(dir.path(name), two_records);
    const any_corpus corpus = open_any_corpus(dir.path(name), quiet());
    CHECK(corpus.format == "JSON Lines");
    CHECK(corpus.source.size() == 2);
    CHECK_FALSE(corpus.summary);
  }
  write_file(dir.path("bom.txt"), std::string("\xef\xbb\xbf\r\n ") + two_records);
  CHECK(open_any_corpus(dir.path("bom.txt"), quiet()).source.size() == 2);
  write_file(dir.path("empty.jsonl"), "");
  CHECK(open_any_corpus(dir.path("empty.jsonl"), quiet()).source.size() == 0);
  write_file(dir.path("other.txt"), "tokens: 1 2 3\n");
  CHECK_THROWS_AS(open_any_corpus(dir.path("other.txt"), quiet()), lanepack::data_error);
  CHECK_THROWS_AS(open_any_corpus(dir.path("absent.jsonl"), quiet()), lanepack::data_error);
  CHECK_THROWS_AS(open_any_corpus(dir.path("absent"), quiet()), lanepack::data_error);
}

TEST_CASE("json: what the format is can be said", "[json]") {
  const scratch_dir dir;
  any_corpus_options options = quiet();
  write_file(dir.path("a.u32"), two_records);
  options.is_jsonl = true;
  CHECK(open_any_corpus(dir.path("a.u32"), options).format == "JSON Lines");
  write_file(dir.path("b.jsonl"), std::string("\1\0\0\0\2\0\0\0", 8));
  options.is_jsonl = std::nullopt;
  options.corpus.format = lanepack::corpus_format::u32_lengths;
  CHECK(open_any_corpus(dir.path("b.jsonl"), options).format == "u32 lengths");
  CHECK(open_any_corpus(dir.path("b.jsonl"), options).source.size() == 2);
}

TEST_CASE("json: other formats open as they do without JSON", "[json]") {
  const scratch_dir dir;
  write_file(dir.path("a.u32"), std::string("\5\0\0\0\7\0\0\0\7\0\0\0", 12));
  any_corpus_options options = quiet();
  options.corpus.summary = lanepack::summary_use::always;
  const any_corpus corpus = open_any_corpus(dir.path("a.u32"), options);
  CHECK(corpus.format == "u32 lengths");
  REQUIRE(corpus.summary);
  CHECK(corpus.summary->tokens == 19);
}

TEST_CASE("json: the summary of JSON Lines is saved and found", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  write_file(path, two_records);
  any_corpus_options options = quiet();
  options.corpus.summary = lanepack::summary_use::always;
  const any_corpus made = open_any_corpus(path, options);
  REQUIRE(made.summary);
  CHECK(made.summary->records == 2);
  CHECK(made.summary->tokens == 4);
  CHECK(made.summary->loss_tokens == 2);
  CHECK(made.summary->fingerprint == made.source.fingerprint());
  CHECK(dir.entries() == 3);

  options.corpus.summary = lanepack::summary_use::if_saved;
  const any_corpus found = open_any_corpus(path, options);
  CHECK(found.summary == made.summary);
  // Other marks for targets are another corpus.
  options.jsonl.keys.targets = lanepack::target_key::none;
  CHECK_FALSE(open_any_corpus(path, options).summary);
  CHECK(open_any_corpus(path, options).summary_path != made.summary_path);
}

TEST_CASE("json: progress of JSON Lines is told in bytes", "[json]") {
  const scratch_dir dir;
  write_file(dir.path("a.jsonl"), two_records);
  any_corpus_options options = quiet();
  std::vector<std::uint64_t> told;
  options.corpus.progress = [&](std::uint64_t done, std::uint64_t total) {
    CHECK(total == 34);
    told.push_back(done);
  };
  static_cast<void>(open_any_corpus(dir.path("a.jsonl"), options));
  REQUIRE_FALSE(told.empty());
  CHECK(told.back() == 34);
}

TEST_CASE("json: MDS datasets and WebDataset shards are found by their paths", "[json]") {
  const scratch_dir dir;
  const std::string tokens =
      lanepack_test::little_endian(std::int64_t{5}) + lanepack_test::little_endian(std::int64_t{6});
  std::filesystem::create_directory(dir.path("mds"));
  lanepack_test::write_mds(dir.path("mds"), {{"tokens", "bytes", 0}}, {{{tokens}, {""}}});
  any_corpus_options options = quiet();
  options.corpus.summary = lanepack::summary_use::always;
  for (const std::string& path : {dir.path("mds"), dir.path("mds/index.json")}) {
    const any_corpus corpus = open_any_corpus(path, options);
    CHECK(corpus.format == "MDS");
    CHECK(corpus.source.size() == 2);
    CHECK(corpus.summary->tokens == 2);
    CHECK(corpus.summary_path.starts_with(dir.path("mds/index.json.")));
  }
  for (const char* name : {"a-0.tar", "a-1.tar"}) {
    write_file(dir.path(name),
               lanepack_test::tar_member_bytes("s.bin", tokens) + lanepack_test::tar_end());
  }
  options.webdataset.tokens = "bin";
  options.webdataset.numbers_type = lanepack::token_type::i64;
  const any_corpus shards = open_any_corpus(dir.path("a-{0..1}.tar"), options);
  CHECK(shards.format == "WebDataset");
  CHECK(shards.summary->records == 2);
  CHECK(shards.summary->tokens == 4);
  options.is_jsonl = true;
  CHECK_THROWS_AS(open_any_corpus(dir.path("a-0.tar"), options), lanepack::data_error);
}
