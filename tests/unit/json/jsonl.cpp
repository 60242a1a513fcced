#include <lanepack/json/jsonl.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/any_source.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack::data_error;
using lanepack::input_file;
using lanepack::jsonl_line;
using lanepack::jsonl_options;
using lanepack::jsonl_source;
using lanepack::record_id;
using lanepack::record_shape;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

using tokens = std::vector<std::int32_t>;

jsonl_options without_index(std::uint64_t chunk_bytes = std::uint64_t{1} << 22,
                            unsigned threads = 1) {
  jsonl_options options;
  options.cache_index = false;
  options.chunk_bytes = chunk_bytes;
  options.threads = threads;
  return options;
}

record_shape shape_of(const jsonl_source& source, record_id id) {
  record_shape shape;
  source.shapes({&id, 1}, {&shape, 1});
  return shape;
}

tokens tokens_of(const jsonl_source& source, record_id id) {
  tokens out(static_cast<std::size_t>(shape_of(source, id).tokens));
  const lanepack::record_read read{.id = id, .first_token = 0, .tokens = out, .loss_mask = {}};
  source.read({&read, 1});
  return out;
}

std::vector<tokens> all_tokens(const jsonl_source& source) {
  std::vector<tokens> all;
  for (record_id id = 0; id < source.size(); ++id) all.push_back(tokens_of(source, id));
  return all;
}

std::optional<data_error> error_of(const std::string& path, const jsonl_options& options) {
  try {
    const jsonl_source source(path, options);
  } catch (const data_error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("json: lines are found with their offsets, bytes and counts", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  // Offsets by hand: 17 + 1 to 18, a blank line to 19, 34 + 2 to 55, spaces + 2 to 60, 14.
  write_file(path,
             "{\"tokens\": [1,2]}\n"
             "\n"
             "{\"tokens\":[3,4],\"loss_mask\":[1,1]}\r\n"
             "  \t\r\n"
             "{\"tokens\":[5]}");
  const lanepack::jsonl_index index = scan_jsonl(input_file(path), without_index());
  REQUIRE(index.lines.size() == 3);
  CHECK(index.lines[0] == jsonl_line{0, 17, 2, 1, 0});
  CHECK(index.lines[1] == jsonl_line{19, 35, 2, 1, 1});
  CHECK(index.lines[2] == jsonl_line{60, 14, 1, 0, 2});
  CHECK(index.tokens == 5);
  CHECK(index.loss_tokens == 2);
}

TEST_CASE("json: the edges of the format are tolerated", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  const auto contents = [&](std::string_view text) {
    write_file(path, text);
    return all_tokens(jsonl_source(path, without_index()));
  };
  using all = std::vector<tokens>;
  CHECK(contents("").empty());
  CHECK(contents("\n").empty());
  CHECK(contents("\r\n \n\t\n").empty());
  CHECK(contents("\xef\xbb\xbf").empty());
  CHECK(contents("\xef\xbb\xbf\n{\"tokens\":[1]}") == all{{1}});
  CHECK(contents("\xef\xbb\xbf{\"tokens\":[1]}\r\n{\"tokens\":[2]}\r\n") == all{{1}, {2}});
  CHECK(contents("{\"tokens\":[1]}\n\n\n{\"tokens\":[]}\n{\"input_ids\":[2,3]}") ==
        all{{1}, {}, {2, 3}});
  // U+2028 is not a line end.
  CHECK(contents("{\"t\":\"a\xe2\x80\xa8\x62\",\"tokens\":[1]}\n{\"tokens\":[2]}\n") ==
        all{{1}, {2}});
  // A carriage return alone is a space.
  CHECK(contents("{\"tokens\":\r[1]}\n") == all{{1}});
}

TEST_CASE("json: a line of four megabytes is one record", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  std::string text = "{\"tokens\":[1]}\n{\"text\":\"" + std::string(4'000'000, 'x') +
                     "\",\"tokens\":[2,3]}\n{\"tokens\":[4]}\n";
  write_file(path, text);
  for (const std::uint64_t chunk : {std::uint64_t{65536}, std::uint64_t{1} << 22}) {
    const jsonl_source source(path, without_index(chunk, 2));
    CHECK(all_tokens(source) == std::vector<tokens>{{1}, {2, 3}, {4}});
  }
}

TEST_CASE("json: a malformed line is reported with path, line and byte", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  const std::string good = "{\"tokens\": [1, 2, 3]}\n";  // 22 bytes
  std::string text = "\xef\xbb\xbf" + good + "\n" + good + "  \r\n";
  const std::size_t start = text.size();
  REQUIRE(start == 3 + 22 + 1 + 22 + 4);
  text += "{\"tokens\": [1, x]}\n" + good + "also bad\n";
  write_file(path, text);
  for (std::uint64_t chunk = 1; chunk <= text.size() + 1; ++chunk) {
    for (const unsigned threads : {1U, 3U}) {
      CAPTURE(chunk, threads);
      const auto error = error_of(path, without_index(chunk, threads));
      REQUIRE(error);
      CHECK(error->where().path == path);
      CHECK(error->where().line == 5);
      CHECK(error->where().byte_offset == start + 15);
      CHECK(error->what() ==
            path + ", line 5, byte 67: malformed JSON: found 'x', expected a value");
    }
  }
}

TEST_CASE("json: the index does not depend on chunks and threads", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  lanepack_test::for_each_seed(20, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    std::string text;
    std::vector<jsonl_line> expected;
    std::uint32_t blank = 0;
    const std::uint64_t lines = gen.between(0, 40);
    for (std::uint64_t i = 0; i < lines; ++i) {
      if (gen.one_in(5)) {
        text += gen.one_in(2) ? "\n" : " \r\n";
        ++blank;
        continue;
      }
      const std::uint64_t count = gen.between(0, 30);
      std::string line = "{\"tokens\":[";
      for (std::uint64_t k = 0; k < count; ++k) {
        line += (k == 0 ? "" : ",") + std::to_string(gen.heavy_tailed(31));
      }
      line += "]}";
      const auto size = static_cast<std::uint32_t>(line.size());
      const auto n = static_cast<std::uint32_t>(count);
      expected.push_back({text.size(), size, n, n == 0 ? 0 : n - 1, blank});
      text += line;
      if (i + 1 < lines || gen.one_in(2)) text += "\n";
    }
    write_file(path, text);
    for (const std::uint64_t chunk : {std::uint64_t{1}, std::uint64_t{2}, gen.between(3, 100),
                                      gen.between(100, 1000), std::uint64_t{1} << 22}) {
      const auto threads = static_cast<unsigned>(gen.between(1, 4));
      CAPTURE(chunk, threads);
      const auto index = scan_jsonl(input_file(path), without_index(chunk, threads));
      CHECK(index.lines == expected);
    }
  });
}

TEST_CASE("json: parts of records are read in any order", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  write_file(path,
             "{\"tokens\":[10,11,12,13],\"labels\":[-100,11,-100,13]}\n"
             "{\"tokens\":[20]}\n"
             "{\"tokens\":[30,31]}\n");
  const jsonl_source source(path, without_index());
  CHECK(source.size() == 3);
  CHECK(source.traits().has_payload);
  CHECK(source.traits().has_all_shapes);
  CHECK(source.traits().has_loss_mask);
  CHECK(shape_of(source, 0) == record_shape{4, 2, 0});
  CHECK(shape_of(source, 1) == record_shape{1, 0, 0});

  tokens a(2);
  tokens b(1);
  tokens c(4);
  tokens d(2);
  std::vector<std::uint8_t> a_mask(2, 9);
  std::vector<std::uint8_t> d_mask(2, 9);
  const std::vector<lanepack::record_read> reads = {
      {.id = 2, .first_token = 0, .tokens = d, .loss_mask = d_mask},
      {.id = 0, .first_token = 1, .tokens = a, .loss_mask = a_mask},
      {.id = 1, .first_token = 1, .tokens = {}, .loss_mask = {}},
      {.id = 0, .first_token = 0, .tokens = c, .loss_mask = {}},
      {.id = 1, .first_token = 0, .tokens = b, .loss_mask = {}},
  };
  source.read(reads);
  CHECK(a == tokens{11, 12});
  CHECK(a_mask == std::vector<std::uint8_t>{1, 0});
  CHECK(b == tokens{20});
  CHECK(c == tokens{10, 11, 12, 13});
  CHECK(d == tokens{30, 31});
  CHECK(d_mask == std::vector<std::uint8_t>{1, 1});
  source.read({});

  tokens beyond(3);
  const lanepack::record_read read{.id = 2, .first_token = 0, .tokens = beyond, .loss_mask = {}};
  CHECK_THROWS_AS(source.read({&read, 1}), lanepack::state_error);
  const lanepack::record_read none{.id = 3, .first_token = 0, .tokens = {}, .loss_mask = {}};
  CHECK_THROWS_AS(source.read({&none, 1}), lanepack::state_error);
  CHECK_THROWS_AS(shape_of(source, 3), lanepack::state_error);
}

TEST_CASE("json: random batches of parts equal the whole records", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  lanepack_test::gen gen(7);
  std::vector<tokens> expected;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    tokens record(static_cast<std::size_t>(gen.between(0, 60)));
    text += "{\"input_ids\": [";
    for (std::size_t k = 0; k < record.size(); ++k) {
      record[k] = static_cast<std::int32_t>(gen.between(0, 200'000));
      text += (k == 0 ? "" : ", ") + std::to_string(record[k]);
    }
    text += "], \"pad\": \"" + std::string(static_cast<std::size_t>(gen.heavy_tailed(12)), '.') +
            "\"}\n";
    expected.push_back(record);
  }
  write_file(path, text);
  const lanepack::any_source source = jsonl_source(path, without_index());
  for (int round = 0; round < 50; ++round) {
    std::vector<tokens> out(gen.between(1, 100));
    std::vector<lanepack::record_read> reads;
    for (tokens& one : out) {
      const record_id id = gen.between(0, 299);
      const std::uint64_t size = expected[id].size();
      const std::uint64_t first = gen.between(0, size);
      one.resize(static_cast<std::size_t>(gen.between(0, size - first)));
      reads.push_back({.id = id, .first_token = first, .tokens = one, .loss_mask = {}});
    }
    source.read(reads);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const tokens& whole = expected[reads[i].id];
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(reads[i].first_token);
      CHECK(out[i] == tokens(begin, begin + static_cast<std::ptrdiff_t>(out[i].size())));
    }
  }
}

TEST_CASE("json: the index is kept beside the corpus and used again", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  const std::string index_path = path + ".lanepack-index";
  write_file(path, "{\"tokens\":[1,2]}\n\n{\"tokens\":[3],\"labels\":[-100]}\n");
  int scans = 0;
  jsonl_options options;
  options.threads = 1;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { scans += done == total; };

  const jsonl_source first(path, options);
  CHECK(scans == 1);
  CHECK(read_file(index_path).size() == 96 + 2 * 24);
  CHECK(dir.entries() == 2);
  const jsonl_source second(path, options);
  CHECK(scans == 1);
  CHECK(second.index() == first.index());
  CHECK(second.fingerprint() == first.fingerprint());
  CHECK(all_tokens(second) == std::vector<tokens>{{1, 2}, {3}});
  CHECK(jsonl_source(path, without_index()).fingerprint() == first.fingerprint());

  SECTION("every damaged byte of it is noticed") {
    const std::string index = read_file(index_path);
    for (std::size_t i = 0; i < index.size(); ++i) {
      std::string damaged = index;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      write_file(index_path, damaged);
      scans = 0;
      CAPTURE(i);
      CHECK(jsonl_source(path, options).index() == first.index());
      CHECK(scans == 1);
      CHECK(read_file(index_path) == index);
    }
  }
  SECTION("an index cut short or too long is made again") {
    const std::string index = read_file(index_path);
    for (const std::string& other : {std::string(), index.substr(0, 95), index.substr(0, 96),
                                     index.substr(0, index.size() - 1), index + '\0'}) {
      write_file(index_path, other);
      scans = 0;
      CHECK(jsonl_source(path, options).index() == first.index());
      CHECK(scans == 1);
    }
  }
  SECTION("a corpus of another size or time is indexed again") {
    write_file(path, "{\"tokens\":[1,2]}\n");
    CHECK(jsonl_source(path, options).size() == 1);
    CHECK(scans == 2);
    const std::string index = read_file(index_path);
    const timespec times[2] = {{1000, 0}, {1000, 1}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    CHECK(jsonl_source(path, options).size() == 1);
    CHECK(scans == 3);
    CHECK(read_file(index_path) != index);
  }
  SECTION("other keys have an index of their own") {
    options.keys.targets = lanepack::target_key::none;
    const jsonl_source other(path, options);
    CHECK(scans == 2);
    CHECK(shape_of(other, 1) == record_shape{1, 0, 0});
    CHECK(dir.entries() == 3);
    options.keys = {};
    CHECK(jsonl_source(path, options).index() == first.index());
    CHECK(scans == 2);
    // Told to share one file, they do not believe each other.
    options.keys.targets = lanepack::target_key::none;
    options.index_path = index_path;
    CHECK(jsonl_source(path, options).index() == other.index());
    CHECK(scans == 3);
  }
  SECTION("an index path is used as given") {
    options.index_path = dir.path("elsewhere");
    CHECK(jsonl_source(path, options).index() == first.index());
    CHECK(read_file(options.index_path) == read_file(index_path));
  }
}

TEST_CASE("json: a place where no index can be written is no error", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  write_file(path, "{\"tokens\":[1,2]}\n");
  jsonl_options options;
  options.index_path = dir.path("no/such/folder/index");
  CHECK(all_tokens(jsonl_source(path, options)) == std::vector<tokens>{{1, 2}});
  options.index_path = dir.path("folder");
  REQUIRE(::mkdir(options.index_path.c_str(), 0777) == 0);
  CHECK(jsonl_source(path, options).size() == 1);
  CHECK(dir.entries() == 2);
}

TEST_CASE("json: the fingerprint tells corpora apart, not paths", "[json]") {
  const scratch_dir dir;
  const auto fingerprint = [&](const std::string& name, std::string_view text) {
    write_file(dir.path(name), text);
    return jsonl_source(dir.path(name), without_index()).fingerprint();
  };
  const auto one = fingerprint("a", "{\"tokens\":[1,2]}\n");
  CHECK(fingerprint("b", "{\"tokens\":[1,2]}\n") == one);
  CHECK_FALSE(fingerprint("c", "{\"tokens\":[1]}\n") == one);
  CHECK_FALSE(fingerprint("d", "{\"tokens\":[1,2]}") == one);
  CHECK_FALSE(fingerprint("e", "{\"tokens\":[1,2]}\n{\"tokens\":[]}\n") == one);
}

TEST_CASE("json: a corpus that changes while it is open is an error", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  write_file(path, "{\"tokens\":[1,2]}\n{\"tokens\":[3,4]}\n");
  const jsonl_source source(path, without_index());
  SECTION("cut short") {
    write_file(path, "{\"tokens\":[1,2]}\n");
    CHECK_THROWS_AS(tokens_of(source, 1), data_error);
    CHECK_THROWS_AS(tokens_of(source, 0), data_error);
  }
  SECTION("rewritten at the same size") {
    write_file(path, "{\"tokens\":[1,2]}\n{\"tokens\":[345]}\n");
    CHECK_THROWS_MATCHES(
        tokens_of(source, 1), data_error,
        Catch::Matchers::Message(path +
                                 ", line 2, byte 17, record 1: found 1 tokens, 0 of them targets, "
                                 "expected 2 and 1 as in the index"));
    write_file(path, "{\"tokens\":[1,2]}\n{\"tokens\":[3,x]}\n");
    CHECK_THROWS_MATCHES(
        tokens_of(source, 1), data_error,
        Catch::Matchers::Message(path + ", line 2, byte 30, record 1: malformed JSON: "
                                        "found 'x', expected a value"));
  }
}

TEST_CASE("json: progress counts all bytes once, one thread at a time", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"tokens\":[1,2,3]}\n";
  write_file(path, text);
  jsonl_options options = without_index(100, 4);
  std::uint64_t last = 0;
  std::mutex mutex;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    const std::unique_lock lock(mutex, std::try_to_lock);
    CHECK(lock.owns_lock());
    CHECK(total == text.size());
    CHECK((done > last || done == total));
    last = done;
  };
  const jsonl_source source(path, options);
  CHECK(source.size() == 1000);
  CHECK(last == text.size());
}

TEST_CASE("json: a line that is too long is a fault, however the file is read", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  // 16, 15 and 18 bytes.
  write_file(path, "{\"tokens\":[1,2]}\n{\"tokens\":[34]}\n{\"tokens\":[1,2,3]}\n");
  for (const std::uint64_t chunk_bytes : {1U, 7U, 1000U}) {
    jsonl_options options = without_index(chunk_bytes, 2);
    options.max_line_bytes = 18;
    CHECK(jsonl_source(path, options).size() == 3);
    options.max_line_bytes = 17;
    CHECK_THROWS_MATCHES(
        jsonl_source(path, options), data_error,
        Catch::Matchers::Message(
            path + ", line 3, byte 33: found a line of more than 17 bytes, expected at most so "
                   "many"));
    options.max_line_bytes = 15;
    const auto problems = lanepack::find_jsonl_problems(input_file(path), options, 10);
    CHECK(problems.count == 2);
  }
}

TEST_CASE("json: a line without an end is refused at its first bytes", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  write_file(path, "{\"tokens\":[1,2]}\n \n  ");
  // More than any memory: holes take no room on the device and read as zeros.
  std::filesystem::resize_file(path, std::uint64_t{1} << 42);
  CHECK_THROWS_MATCHES(
      jsonl_source(path, without_index()), data_error,
      Catch::Matchers::Message(path + ", line 3, byte 21: found byte 0x00, expected an object"));
  std::string text = "{\"tokens\":[1,2]}\n[";
  for (int i = 0; i < 100'000; ++i) text += "1,";
  write_file(path, text + "1]\n{\"tokens\":[3]}\n");
  for (const std::uint64_t chunk_bytes : {1000U, 1'000'000U}) {
    const auto problems =
        lanepack::find_jsonl_problems(input_file(path), without_index(chunk_bytes), 10);
    CHECK(problems.count == 1);
    CHECK(problems.first.at(0).what() == path + ", line 2, byte 17: found '[', expected an object");
  }
}

TEST_CASE("json: options and paths that cannot work are refused", "[json]") {
  const scratch_dir dir;
  const std::string path = dir.path("a.jsonl");
  CHECK_THROWS_MATCHES(
      jsonl_source(path, without_index()), data_error,
      Catch::Matchers::Message(path + ": cannot open the file: No such file or directory"));
  write_file(path, "");
  CHECK_THROWS_MATCHES(jsonl_source(path, without_index(0)), lanepack::invalid_option,
                       Catch::Matchers::Message("jsonl.chunk_bytes: found 0, expected at least 1"));
  CHECK_THROWS_MATCHES(jsonl_source(path, without_index(1, 0)), lanepack::invalid_option,
                       Catch::Matchers::Message("jsonl.threads: found 0, expected at least 1"));
}
