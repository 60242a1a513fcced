#include <lanepack/corpus/open.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/summarize.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;
using namespace std::string_literals;

namespace {

void write_megatron(const std::string& prefix,
                    const std::vector<std::vector<std::int32_t>>& records) {
  megatron_writer writer(prefix);
  for (const auto& record : records) writer.add_document(record);
  writer.finish();
}

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

std::string llm_c_file() {
  std::string bytes = little_endian(std::int32_t{20240520}) + little_endian(std::int32_t{1}) +
                      little_endian(std::int32_t{2});
  bytes.resize(1024, '\0');
  return bytes + little_endian(std::uint16_t{50256}) + little_endian(std::uint16_t{3});
}

std::string npy_file() {
  std::string text = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,)}";
  text.resize(117, ' ');
  return "\x93NUMPY\x01\x00\x76\x00"s + text + "\n12345678";
}

}  // namespace

TEST_CASE("corpus: formats are found by their contents and names", "[corpus]") {
  const scratch_dir scratch;
  write_megatron(scratch.path("m"), {{1, 2}, {3}});
  write_file(scratch.path("llm.bin"), llm_c_file());
  write_file(scratch.path("nano.bin"), little_endian(std::uint16_t{50256}));
  write_file(scratch.path("a.npy"), npy_file());
  write_file(scratch.path("no-extension"), npy_file());
  write_file(scratch.path("a.u32"), "12345678");
  for (const char* path : {"m", "m.idx", "m.bin"}) {
    const opened_corpus corpus = open_corpus(scratch.path(path));
    REQUIRE(corpus.format == corpus_format::megatron);
    REQUIRE(corpus.source.size() == 2);
    REQUIRE(corpus.key.files.size() == 2);
    REQUIRE_FALSE(corpus.summary.has_value());
  }
  write_file(scratch.path("m"), "a file of another kind with the same name");
  REQUIRE(open_corpus(scratch.path("m")).format == corpus_format::megatron);
  std::filesystem::remove(scratch.path("m"));
  std::filesystem::create_directory(scratch.path("m"));
  REQUIRE(open_corpus(scratch.path("m")).format == corpus_format::megatron);
  REQUIRE(open_corpus(scratch.path("llm.bin")).format == corpus_format::token_file);
  open_options nano;
  nano.tokens.type = token_type::u16;
  REQUIRE(open_corpus(scratch.path("nano.bin"), nano).format == corpus_format::token_file);
  REQUIRE(open_corpus(scratch.path("a.npy")).format == corpus_format::npy_lengths);
  REQUIRE(open_corpus(scratch.path("no-extension")).format == corpus_format::npy_lengths);
  REQUIRE(open_corpus(scratch.path("a.u32")).format == corpus_format::u32_lengths);
  open_options raw;
  raw.format = corpus_format::u32_lengths;
  REQUIRE(open_corpus(scratch.path("llm.bin"), raw).source.size() == 257);
  REQUIRE(corpus_format_name(corpus_format::u32_lengths) == "u32 lengths");
}

TEST_CASE("corpus: what is no corpus is described", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("a.txt"), "hello");
  write_file(scratch.path("a.bin"), "hello");
  write_file(scratch.path("empty"), "");
  write_file(scratch.path("c.jsonl"), R"({"tokens": [1]})");
  REQUIRE_THAT(message_of([&] { static_cast<void>(open_corpus(scratch.path("a.txt"))); }),
               ContainsSubstring("a.txt, byte 0: found a file that starts with the bytes "
                                 "68 65 6c 6c 6f, expected a Megatron-LM"));
  REQUIRE_THAT(message_of([&] { static_cast<void>(open_corpus(scratch.path("a.bin"))); }),
               ContainsSubstring("a.idx beside it") && ContainsSubstring("nanoGPT") &&
                   ContainsSubstring("token_file_options::type") &&
                   ContainsSubstring("--dtype u16"));
  REQUIRE_THAT(
      message_of([&] { static_cast<void>(open_corpus(scratch.path("c.jsonl"))); }),
      ContainsSubstring("JSON Lines") && ContainsSubstring("open_any_corpus of lanepack/json.hpp"));
  REQUIRE_THAT(message_of([&] { static_cast<void>(open_corpus(scratch.path("empty"))); }),
               ContainsSubstring("found an empty file"));
  REQUIRE_THAT(message_of([&] { static_cast<void>(open_corpus(scratch.path("missing"))); }),
               ContainsSubstring("missing: cannot open the file"));
  REQUIRE_THAT(message_of([&] { static_cast<void>(open_corpus(scratch.path())); }),
               ContainsSubstring("found a directory, expected a regular file"));
  open_options options;
  options.threads = 0;
  REQUIRE_THROWS_AS(open_corpus(scratch.path("a.txt"), options), invalid_option);
}

TEST_CASE("corpus: a summary is made, kept beside the corpus and found again", "[corpus]") {
  const scratch_dir scratch;
  write_megatron(scratch.path("m"), {{1, 2}, {3}, {}});
  write_file(scratch.path("a.u32"), "12345678");
  write_file(scratch.path("llm.bin"), llm_c_file());
  for (const char* path : {"m.idx", "a.u32", "llm.bin"}) {
    open_options options;
    REQUIRE_FALSE(open_corpus(scratch.path(path), options).summary.has_value());
    options.summary = summary_use::always;
    const opened_corpus made = open_corpus(scratch.path(path), options);
    REQUIRE(made.summary.has_value());
    REQUIRE(made.summary->records == made.source.size());
    REQUIRE(made.summary->fingerprint == made.source.fingerprint());
    REQUIRE(identify_file(made.summary_path).has_value());
    options.summary = summary_use::if_saved;
    for (const bool verify : {false, true}) {
      options.verify_summary = verify;
      const opened_corpus found = open_corpus(scratch.path(path), options);
      REQUIRE(found.summary == made.summary);
      REQUIRE(found.source.fingerprint() == made.source.fingerprint());
    }
    options.summary = summary_use::none;
    REQUIRE_FALSE(open_corpus(scratch.path(path), options).summary.has_value());
  }
}

TEST_CASE("corpus: summaries of sequences and documents lie side by side", "[corpus]") {
  const scratch_dir scratch;
  megatron_writer writer(scratch.path("m"));
  writer.add_sequence(std::array<std::int32_t, 2>{1, 2});
  writer.add_sequence(std::array<std::int32_t, 1>{3});
  writer.finish();
  open_options sequences;
  sequences.summary = summary_use::always;
  open_options documents = sequences;
  documents.megatron.record = megatron_record::document;
  const std::string first = open_corpus(scratch.path("m"), sequences).summary_path;
  REQUIRE(open_corpus(scratch.path("m"), documents).summary_path != first);
  REQUIRE(open_corpus(scratch.path("m"), sequences).summary->records == 2);
  REQUIRE(open_corpus(scratch.path("m"), documents).summary->records == 1);
  REQUIRE(scratch.entries() == 4);
}

TEST_CASE("corpus: a summary of files that changed since is made again", "[corpus]") {
  const scratch_dir scratch;
  write_megatron(scratch.path("m"), {{1, 2}, {3}});
  open_options options;
  options.summary = summary_use::always;
  const opened_corpus old = open_corpus(scratch.path("m"), options);
  write_megatron(scratch.path("m"), {{1, 2}, {3}, {4}});
  options.summary = summary_use::if_saved;
  REQUIRE_FALSE(open_corpus(scratch.path("m"), options).summary.has_value());
  options.summary = summary_use::always;
  const opened_corpus now = open_corpus(scratch.path("m"), options);
  REQUIRE(now.summary->records == 3);
  REQUIRE(now.summary->fingerprint != old.summary->fingerprint);
}

TEST_CASE("corpus: a summary that only the index can tell to be wrong is found out", "[corpus]") {
  const scratch_dir scratch;
  write_megatron(scratch.path("m"), {{1, 2}, {3}});
  open_options options;
  options.summary = summary_use::always;
  const opened_corpus made = open_corpus(scratch.path("m"), options);
  corpus_summary wrong = *made.summary;
  wrong.fingerprint.low ^= 1;
  REQUIRE(save_summary(made.summary_path, made.key, wrong));
  // Sizes and times are trusted, so the saved fingerprint is too.
  REQUIRE(open_corpus(scratch.path("m"), options).source.fingerprint() == wrong.fingerprint);
  options.verify_summary = true;
  const opened_corpus verified = open_corpus(scratch.path("m"), options);
  REQUIRE(verified.source.fingerprint() == made.source.fingerprint());
  REQUIRE(verified.summary == made.summary);
  options.verify_summary = false;
  REQUIRE(open_corpus(scratch.path("m"), options).summary == made.summary);
}

TEST_CASE("corpus: the summary's place can be chosen and need not be writable", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("a.u32"), "12345678");
  open_options options;
  options.summary = summary_use::always;
  options.summary_path = scratch.path("elsewhere");
  REQUIRE(open_corpus(scratch.path("a.u32"), options).summary_path == scratch.path("elsewhere"));
  REQUIRE(identify_file(scratch.path("elsewhere")).has_value());
  options.summary_path = scratch.path("no/such/place");
  REQUIRE(open_corpus(scratch.path("a.u32"), options).summary->records == 2);
}
