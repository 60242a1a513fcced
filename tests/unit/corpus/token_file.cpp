#include <lanepack/corpus/token_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

namespace {

using records = std::vector<std::vector<std::int32_t>>;

template <class T>
std::string stored(const std::vector<T>& tokens) {
  return little_endian(std::span<const T>(tokens));
}

std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::string bytes = little_endian(magic) + little_endian(version) + little_endian(count);
  bytes.resize(1024, '\0');
  return bytes;
}

records records_of(const token_file_source& source) {
  std::vector<record_id> ids(source.size());
  std::iota(ids.begin(), ids.end(), record_id{0});
  std::vector<record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  records all(ids.size());
  std::vector<record_read> reads;
  for (std::size_t i = ids.size(); i-- > 0;) {
    all[i].resize(shapes[i].tokens);
    reads.push_back({i, 0, all[i], {}});
  }
  source.read(reads);
  return all;
}

template <class Failure>
std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

constexpr std::uint16_t gpt2 = 50256;

}  // namespace

TEST_CASE("corpus: llm.c's GPT-2 files are cut before the end-of-text token", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint16_t> tokens = {gpt2, 1, 2, gpt2, gpt2, 3, 65535};
  write_file(scratch.path("f.bin"), header(20240520, 1, 7) + stored(tokens));
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    const token_file_source source(scratch.path("f.bin"), {.access = access});
    REQUIRE(source.type() == token_type::u16);
    REQUIRE(records_of(source) == records{{50256, 1, 2}, {50256}, {50256, 3, 65535}});
    REQUIRE(source.traits().has_payload);
    REQUIRE_THAT(source.describe(), ContainsSubstring("3 documents, 7 tokens of type u16"));
  }
}

TEST_CASE("corpus: llm.c's LLaMA files have u32 tokens", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint32_t> tokens = {7, 128000, 1, 128000, 100000};
  write_file(scratch.path("f.bin"), header(20240801, 7, 5) + stored(tokens));
  const token_file_source source(scratch.path("f.bin"));
  REQUIRE(source.type() == token_type::u32);
  // The file starts in the middle of a document.
  REQUIRE(records_of(source) == records{{7}, {128000, 1}, {128000, 100000}});
}

TEST_CASE("corpus: nanoGPT's files are cut after the end-of-text token", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint16_t> tokens = {1, 2, gpt2, gpt2, 3, gpt2, 4};
  write_file(scratch.path("f.bin"), stored(tokens));
  const token_file_source source(scratch.path("f.bin"), {.type = token_type::u16});
  REQUIRE(records_of(source) == records{{1, 2, 50256}, {50256}, {3, 50256}, {4}});
}

TEST_CASE("corpus: id and place of the end-of-text token can be chosen", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint8_t> tokens = {5, 1, 5, 5, 2};
  write_file(scratch.path("f.bin"), stored(tokens));
  token_file_options options;
  options.type = token_type::u8;
  options.end_of_text = 5;
  REQUIRE(records_of(token_file_source(scratch.path("f.bin"), options)) ==
          records{{5}, {1, 5}, {5}, {2}});
  options.place = end_of_text_place::first;
  const token_file_source source(scratch.path("f.bin"), options);
  REQUIRE(records_of(source) == records{{5, 1}, {5}, {5, 2}});
}

TEST_CASE("corpus: a cut does not depend on threads, types or the cache", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::gen random(11);
  std::vector<std::uint16_t> tokens(2'500'000);
  records expected(1);
  for (std::uint16_t& token : tokens) {
    token = random.one_in(700) ? gpt2 : static_cast<std::uint16_t>(random.between(0, 50255));
    expected.back().push_back(token);
    if (token == gpt2) expected.emplace_back();
  }
  if (expected.back().empty()) expected.pop_back();
  write_file(scratch.path("f.bin"), stored(tokens));
  digest128 fingerprint;
  for (const unsigned threads : {1U, 3U}) {
    for (const bool cached : {false, true}) {
      token_file_options options;
      options.type = token_type::u16;
      options.threads = threads;
      options.index_path = scratch.path("index" + std::to_string(threads));
      int calls = 0;
      std::uint64_t last = 0;
      options.progress = [&](std::uint64_t done, std::uint64_t total) {
        ++calls;
        last = done;
        REQUIRE(done <= total);
        REQUIRE(total == 5'000'000);
      };
      const token_file_source source(scratch.path("f.bin"), options);
      REQUIRE((calls == 0) == cached);
      REQUIRE((cached || last == 5'000'000));
      REQUIRE(records_of(source) == expected);
      if (fingerprint == digest128{}) fingerprint = source.fingerprint();
      REQUIRE(source.fingerprint() == fingerprint);
    }
  }
}

TEST_CASE("corpus: the cached cut of a token file follows file and options", "[corpus]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("f.bin");
  write_file(path, stored(std::vector<std::uint16_t>{1, 2, gpt2, 3}));
  token_file_options options;
  options.type = token_type::u16;
  REQUIRE(token_file_source(path, options).size() == 2);
  REQUIRE(identify_file(path + ".lanepack-documents").has_value());
  options.end_of_text = 2;
  REQUIRE(records_of(token_file_source(path, options)) == records{{1, 2}, {50256, 3}});
  options.place = end_of_text_place::first;
  REQUIRE(records_of(token_file_source(path, options)) == records{{1}, {2, 50256, 3}});
  write_file(path, stored(std::vector<std::uint16_t>{2, 1, 2, 1, 2}));
  REQUIRE(records_of(token_file_source(path, options)) == records{{2, 1}, {2, 1}, {2}});
  // A damaged cache is made anew.
  write_file(path + ".lanepack-documents", "junk");
  REQUIRE(token_file_source(path, options).size() == 3);
  REQUIRE(read_file(path + ".lanepack-documents").size() > 4);
  // A cache that cannot be written is no error.
  options.index_path = scratch.path("no/such/place");
  REQUIRE(token_file_source(path, options).size() == 3);
}

TEST_CASE("corpus: fingerprints of token files follow the cut", "[corpus]") {
  const scratch_dir scratch;
  const auto fingerprint_of = [&](const std::vector<std::uint16_t>& tokens, std::int32_t id) {
    write_file(scratch.path("f.bin"), stored(tokens));
    return token_file_source(scratch.path("f.bin"), {.type = token_type::u16, .end_of_text = id})
        .fingerprint();
  };
  const digest128 first = fingerprint_of({1, 9, 2}, 9);
  REQUIRE(first == fingerprint_of({3, 9, 4}, 9));
  REQUIRE(first != fingerprint_of({1, 8, 2}, 8));
  REQUIRE(first != fingerprint_of({9, 1, 2}, 9));
}

TEST_CASE("corpus: llm.c headers that are wrong are refused with their place", "[corpus]") {
  const scratch_dir scratch;
  const auto failure_of = [&](const std::string& bytes) {
    write_file(scratch.path("f.bin"), bytes);
    return message_of<data_error>([&] { token_file_source source(scratch.path("f.bin")); });
  };
  const std::string tokens = stored(std::vector<std::uint16_t>{gpt2, 1});
  REQUIRE(failure_of(header(20240520, 1, 2) + tokens).empty());
  REQUIRE_THAT(failure_of(header(20240522, 1, 2) + tokens),
               ContainsSubstring("f.bin, byte 0: ") && ContainsSubstring("evaluation file"));
  REQUIRE_THAT(
      failure_of(header(20240520, 2, 2) + tokens),
      ContainsSubstring("f.bin, byte 4: ") && ContainsSubstring("found version 2, expected 1"));
  REQUIRE_THAT(failure_of(header(20240801, 1, 1) + tokens),
               ContainsSubstring("found version 1, expected 7"));
  REQUIRE_THAT(failure_of(header(20240520, 1, -1) + tokens),
               ContainsSubstring("f.bin, byte 8: ") && ContainsSubstring("found -1 tokens"));
  REQUIRE_THAT(failure_of(header(20240520, 1, 3) + tokens),
               ContainsSubstring("f.bin, byte 1028: ") &&
                   ContainsSubstring("found a file of 1028 bytes, expected 1030"));
  REQUIRE_THAT(failure_of(header(20240520, 1, 1) + tokens),
               ContainsSubstring("f.bin, byte 1026: ") &&
                   ContainsSubstring("found a file of 1028 bytes, expected 1026"));
  REQUIRE_THAT(failure_of(header(20240520, 1, 0).substr(0, 500)),
               ContainsSubstring("f.bin, byte 500: ") &&
                   ContainsSubstring("expected a header of 1024 bytes"));
}

TEST_CASE("corpus: options that a token file does not answer are asked for", "[corpus]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("f.bin");
  const auto failure_of = [&](const token_file_options& options) {
    return message_of<invalid_option>([&] { token_file_source source(path, options); });
  };
  write_file(path, stored(std::vector<std::uint16_t>{1, 2, gpt2, 3}));
  REQUIRE_THAT(failure_of({}), ContainsSubstring("type: found none") && ContainsSubstring(path));
  REQUIRE_THAT(failure_of({.type = token_type::u32}), ContainsSubstring("end_of_text: found none"));
  REQUIRE_THAT(failure_of({.type = token_type::u16, .end_of_text = -1}),
               ContainsSubstring("end_of_text: found -1"));
  token_file_options no_threads;
  no_threads.threads = 0;
  REQUIRE_THAT(failure_of(no_threads), ContainsSubstring("threads: found 0"));
  write_file(path, header(20240520, 1, 1) + stored(std::vector<std::uint16_t>{gpt2}));
  REQUIRE_THAT(failure_of({.type = token_type::u32}),
               ContainsSubstring("type: found u32, expected u16"));
}

TEST_CASE("corpus: a token file without the end-of-text token is refused", "[corpus]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("f.bin");
  write_file(path, stored(std::vector<std::uint16_t>{1, 2, 3}));
  REQUIRE_THAT(
      message_of<data_error>([&] { token_file_source source(path, {.type = token_type::u16}); }),
      ContainsSubstring("f.bin, byte 0: found no end-of-text token 50256 in 3 tokens"));
  // An id that the type cannot store.
  REQUIRE_THROWS_AS(token_file_source(path, {.type = token_type::u8, .end_of_text = 257}),
                    data_error);
  write_file(path, "123");
  REQUIRE_THAT(
      message_of<data_error>([&] { token_file_source source(path, {.type = token_type::u16}); }),
      ContainsSubstring("f.bin, byte 2: found a file of 3 bytes, expected a multiple"));
  write_file(path, "");
  REQUIRE(token_file_source(path, {.type = token_type::u16}).size() == 0);
  REQUIRE_THROWS_AS(token_file_source(scratch.path("missing"), {.type = token_type::u16}),
                    data_error);
}

TEST_CASE("corpus: a token file cut under its reader is noticed", "[corpus]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("f.bin");
  write_file(path, stored(std::vector<std::uint16_t>{1, 2, gpt2, 3, 4}));
  const token_file_source source(path, {.type = token_type::u16});
  std::filesystem::resize_file(path, 7);
  REQUIRE_THAT(message_of<data_error>([&] { records_of(source); }),
               ContainsSubstring("f.bin, byte 7, record 1: "));
  std::array<std::int32_t, 1> token;
  const std::vector<record_read> first = {{0, 0, token, {}}};
  REQUIRE_THAT(message_of<data_error>([&] { source.read(first); }),
               ContainsSubstring("found a file of 7 bytes, expected 10"));
}

TEST_CASE("corpus: ids of u32 token files stay below 2^31", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint32_t> tokens = {128000, 1, 128000, 2147483648U};
  write_file(scratch.path("f.bin"), header(20240801, 7, 4) + stored(tokens));
  const token_file_source source(scratch.path("f.bin"));
  REQUIRE_THAT(message_of<data_error>([&] { records_of(source); }),
               ContainsSubstring("f.bin, byte 1036, record 1: found token 2147483648"));
}

TEST_CASE("corpus: records outside a token file are refused", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f.bin"), stored(std::vector<std::uint16_t>{1, gpt2}));
  const token_file_source source(scratch.path("f.bin"), {.type = token_type::u16});
  std::array<record_shape, 1> shape;
  REQUIRE_THROWS_AS(source.shapes(std::array<record_id, 1>{1}, shape), state_error);
  const std::vector<record_read> unknown = {{1, 0, {}, {}}};
  REQUIRE_THROWS_AS(source.read(unknown), state_error);
}
