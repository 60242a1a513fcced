#include <lanepack/corpus/megatron.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;
using namespace std::string_literals;

namespace {

/// An index laid out by hand; every part can be made wrong on its own.
struct hand_made_index {
  std::string magic = "MMIDIDX\0\0"s;
  std::uint64_t version = 1;
  std::uint8_t code = 4;
  std::vector<std::int32_t> lengths = {3, 0, 2};
  std::vector<std::int64_t> pointers = {0, 12, 12};
  std::vector<std::int64_t> documents = {0, 2, 3};
  std::string tail;

  [[nodiscard]] std::string bytes() const {
    return magic + little_endian(version) + little_endian(code) +
           little_endian(std::uint64_t{lengths.size()}) +
           little_endian(std::uint64_t{documents.size()}) +
           little_endian(std::span<const std::int32_t>(lengths)) +
           little_endian(std::span<const std::int64_t>(pointers)) +
           little_endian(std::span<const std::int64_t>(documents)) + tail;
  }
};

/// Tokens 10, 11, 12 | | 20, 21 as i32.
std::string five_tokens() {
  const std::array<std::int32_t, 5> tokens = {10, 11, 12, 20, 21};
  return little_endian(std::span<const std::int32_t>(tokens));
}

struct corpus_files {
  scratch_dir scratch;
  std::string prefix = scratch.path("corpus");

  explicit corpus_files(const std::string& index = hand_made_index{}.bytes(),
                        const std::string& bin = five_tokens()) {
    write_file(prefix + ".idx", index);
    write_file(prefix + ".bin", bin);
  }
};

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const data_error& failure) {
    return failure.what();
  }
  return {};
}

std::vector<record_id> all_ids(const megatron_source& source) {
  std::vector<record_id> ids(source.size());
  std::iota(ids.begin(), ids.end(), record_id{0});
  return ids;
}

std::vector<std::uint64_t> tokens_of(const megatron_source& source) {
  std::vector<record_shape> shapes(source.size());
  source.shapes(all_ids(source), shapes);
  std::vector<std::uint64_t> tokens;
  for (const record_shape& shape : shapes) tokens.push_back(shape.tokens);
  return tokens;
}

std::vector<std::vector<std::int32_t>> records_of(const megatron_source& source) {
  std::vector<std::vector<std::int32_t>> records;
  std::vector<record_read> reads;
  for (const std::uint64_t tokens : tokens_of(source)) records.emplace_back(tokens);
  // Not in the order of the file.
  for (std::size_t i = records.size(); i-- > 0;) reads.push_back({i, 0, records[i], {}});
  source.read(reads);
  return records;
}

const std::vector<std::vector<std::int32_t>> three_sequences = {{10, 11, 12}, {}, {20, 21}};

/// Opens a corpus with this index and these tokens, looks at every shape, and reads everything.
std::string failure_of(const hand_made_index& index, const std::string& bin = five_tokens(),
                       const megatron_options& options = {}) {
  const corpus_files files(index.bytes(), bin);
  return message_of([&] { records_of(megatron_source(files.prefix, options)); });
}

std::vector<megatron_options> access_options() {
  std::vector<megatron_options> all;
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    for (const file_access index_access : {file_access::positioned, file_access::mapped}) {
      for (const std::uint64_t cache : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        for (const auto pointers : {megatron_pointers::checked, megatron_pointers::recomputed}) {
          megatron_options options;
          options.access = access;
          options.index_access = index_access;
          options.index_cache_bytes = cache;
          options.pointers = pointers;
          options.threads = 2;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("corpus: a Megatron-LM corpus laid out by hand is read", "[corpus]") {
  const corpus_files files;
  for (const megatron_options& options : access_options()) {
    for (const std::string& path : {files.prefix, files.prefix + ".idx", files.prefix + ".bin"}) {
      const megatron_source source(path, options);
      REQUIRE(source.size() == 3);
      REQUIRE(source.sequences() == 3);
      REQUIRE(source.documents() == 2);
      REQUIRE(source.type() == token_type::i32);
      REQUIRE_FALSE(source.is_multimodal());
      REQUIRE(source.traits().has_payload);
      REQUIRE_FALSE(source.traits().has_loss_mask);
      REQUIRE(tokens_of(source) == std::vector<std::uint64_t>{3, 0, 2});
      REQUIRE(records_of(source) == three_sequences);
      REQUIRE_THAT(source.describe(), ContainsSubstring("3 sequences, 5 tokens of type i32"));
    }
  }
}

TEST_CASE("corpus: parts of records are read with a loss mask of ones", "[corpus]") {
  const corpus_files files;
  const megatron_source source(files.prefix);
  std::array<std::int32_t, 2> first;
  std::array<std::int32_t, 1> second;
  std::array<std::uint8_t, 2> mask{};
  const std::vector<record_read> reads = {
      {2, 1, second, {}}, {0, 1, first, mask}, {1, 0, {}, {}}, {2, 2, {}, {}}};
  source.read(reads);
  REQUIRE(first == std::array<std::int32_t, 2>{11, 12});
  REQUIRE(second[0] == 21);
  REQUIRE(mask == std::array<std::uint8_t, 2>{1, 1});
  source.read({});
}

TEST_CASE("corpus: the shape of a Megatron-LM record counts its loss tokens", "[corpus]") {
  const corpus_files files;
  const megatron_source source(files.prefix);
  std::array<record_shape, 3> shapes;
  source.shapes(std::array<record_id, 3>{2, 1, 0}, shapes);
  REQUIRE(shapes[0] == record_shape{2, 1, 0});
  REQUIRE(shapes[1] == record_shape{0, 0, 0});
  REQUIRE(shapes[2] == record_shape{3, 2, 0});
}

TEST_CASE("corpus: every integer type of Megatron-LM is read", "[corpus]") {
  const auto check = [](std::uint8_t code, token_type type, auto zero) {
    CAPTURE(int{code});
    using stored = decltype(zero);
    const std::array<stored, 5> tokens = {10, 11, 12, 20, 21};
    hand_made_index index;
    index.code = code;
    constexpr std::int64_t bytes = sizeof(stored);
    index.pointers = {0, 3 * bytes, 3 * bytes};
    const corpus_files files(index.bytes(), little_endian(std::span<const stored>(tokens)));
    for (const megatron_options& options : access_options()) {
      const megatron_source source(files.prefix, options);
      REQUIRE(source.type() == type);
      REQUIRE(records_of(source) == three_sequences);
    }
  };
  check(1, token_type::u8, std::uint8_t{});
  check(2, token_type::i8, std::int8_t{});
  check(3, token_type::i16, std::int16_t{});
  check(4, token_type::i32, std::int32_t{});
  check(5, token_type::i64, std::int64_t{});
  check(8, token_type::u16, std::uint16_t{});
  check(9, token_type::u32, std::uint32_t{});
  check(10, token_type::u64, std::uint64_t{});
}

TEST_CASE("corpus: documents of Megatron-LM join their sequences", "[corpus]") {
  const corpus_files files;
  for (megatron_options options : access_options()) {
    options.record = megatron_record::document;
    const megatron_source source(files.prefix, options);
    REQUIRE(source.size() == 2);
    REQUIRE(records_of(source) == std::vector<std::vector<std::int32_t>>{{10, 11, 12}, {20, 21}});
    REQUIRE_THAT(source.describe(), ContainsSubstring("2 documents"));
  }
}

TEST_CASE("corpus: sequences after the last document's end are one more document", "[corpus]") {
  hand_made_index index;
  index.documents = {0, 1};
  const corpus_files files(index.bytes());
  REQUIRE(records_of(megatron_source(files.prefix)) == three_sequences);
  for (megatron_options options : access_options()) {
    options.record = megatron_record::document;
    const megatron_source source(files.prefix, options);
    REQUIRE(source.documents() == 1);
    REQUIRE(records_of(source) == std::vector<std::vector<std::int32_t>>{{10, 11, 12}, {20, 21}});
  }
}

TEST_CASE("corpus: an index without documents is read by sequence alone", "[corpus]") {
  for (const std::vector<std::int64_t>& documents :
       {std::vector<std::int64_t>{0}, std::vector<std::int64_t>{}}) {
    hand_made_index index;
    index.documents = documents;
    REQUIRE(failure_of(index).empty());
    megatron_options options;
    options.record = megatron_record::document;
    REQUIRE_THAT(failure_of(index, five_tokens(), options),
                 ContainsSubstring(".idx, byte 70, record 0: ") &&
                     ContainsSubstring("open the corpus by sequence"));
  }
}

TEST_CASE("corpus: a corpus of no sequences is empty", "[corpus]") {
  hand_made_index index;
  index.lengths = {};
  index.pointers = {};
  index.documents = {0};
  const corpus_files files(index.bytes(), "");
  for (megatron_options options : access_options()) {
    REQUIRE(megatron_source(files.prefix, options).size() == 0);
    options.record = megatron_record::document;
    REQUIRE(megatron_source(files.prefix, options).size() == 0);
  }
  REQUIRE_THAT(failure_of(index, "1234"), ContainsSubstring("corpus.bin, byte 0: found a file of 4 "
                                                            "bytes, expected 0"));
}

TEST_CASE("corpus: modes of a multimodal index are accepted by the size", "[corpus]") {
  hand_made_index index;
  index.tail = "\0\1\0"s;
  const corpus_files files(index.bytes());
  const megatron_source source(files.prefix);
  REQUIRE(source.is_multimodal());
  REQUIRE(records_of(source) == three_sequences);
}

TEST_CASE("corpus: other formats with a like index are refused by name", "[corpus]") {
  hand_made_index index;
  index.magic = "TNTIDX\0\0\0"s;
  REQUIRE_THAT(failure_of(index), ContainsSubstring("corpus.idx, byte 0: ") &&
                                      ContainsSubstring("fairseq's older format"));
  index.magic = "XMIDIDX\0\0"s;
  REQUIRE_THAT(failure_of(index),
               ContainsSubstring("corpus.idx, byte 0: ") && ContainsSubstring("expected MMIDIDX"));

  // fairseq: the same magic and version, no document count and no documents.
  const hand_made_index parts;
  const std::string fairseq = parts.magic + little_endian(parts.version) +
                              little_endian(parts.code) + little_endian(std::uint64_t{3}) +
                              little_endian(std::span<const std::int32_t>(parts.lengths)) +
                              little_endian(std::span<const std::int64_t>(parts.pointers));
  const corpus_files files(fairseq);
  REQUIRE_THAT(
      message_of([&] { megatron_source source(files.prefix); }),
      ContainsSubstring("corpus.idx, byte 26: ") && ContainsSubstring("fairseq's variant"));
}

TEST_CASE("corpus: damaged headers of an index are refused with their place", "[corpus]") {
  hand_made_index index;
  index.version = 2;
  REQUIRE_THAT(failure_of(index),
               ContainsSubstring("byte 9: ") && ContainsSubstring("found version 2, expected 1"));
  // Written on a big-endian machine.
  index.version = std::uint64_t{1} << 56;
  REQUIRE_THAT(failure_of(index), ContainsSubstring("found version 72057594037927936"));
  index.version = 1;
  for (const std::uint8_t code : std::array<std::uint8_t, 5>{0, 6, 7, 11, 255}) {
    index.code = code;
    REQUIRE_THAT(failure_of(index),
                 ContainsSubstring("byte 17: ") &&
                     ContainsSubstring("found the token type code " + std::to_string(code)));
  }
  index.code = 7;
  REQUIRE_THAT(failure_of(index), ContainsSubstring("floating point"));

  const corpus_files empty("");
  REQUIRE_THAT(message_of([&] { megatron_source source(empty.prefix); }),
               ContainsSubstring("corpus.idx, byte 0: "));
  const corpus_files shorter(hand_made_index{}.bytes().substr(0, 20));
  REQUIRE_THAT(message_of([&] { megatron_source source(shorter.prefix); }),
               ContainsSubstring("corpus.idx, byte 20: found a file of 20 bytes") ||
                   ContainsSubstring("byte 20: Megatron-LM index: found a file of 20 bytes"));
}

TEST_CASE("corpus: truncated and over-long indices are refused with both sizes", "[corpus]") {
  const std::string whole = hand_made_index{}.bytes();
  REQUIRE(whole.size() == 34 + 12 * 3 + 8 * 3);
  for (std::size_t size = 26; size < whole.size(); ++size) {
    CAPTURE(size);
    if (size == 26 + 12 * 3) continue;  // That is the size of fairseq's variant.
    const corpus_files files(whole.substr(0, size));
    const std::string message = message_of([&] { megatron_source source(files.prefix); });
    REQUIRE_THAT(message, ContainsSubstring("corpus.idx, byte ") &&
                              ContainsSubstring("found a file of " + std::to_string(size)));
  }
  for (const std::size_t extra : {1U, 2U, 4U, 8U}) {
    const corpus_files files(whole + std::string(extra, '\0'));
    REQUIRE_THAT(message_of([&] { megatron_source source(files.prefix); }),
                 ContainsSubstring("corpus.idx, byte 94: ") &&
                     ContainsSubstring("expected 94 (or 97 with modes)"));
  }
}

TEST_CASE("corpus: counts that overflow are refused", "[corpus]") {
  for (const std::uint64_t sequences :
       {~std::uint64_t{0}, std::uint64_t{1} << 62, (std::uint64_t{1} << 63) / 3}) {
    for (const std::uint64_t documents : {std::uint64_t{1}, ~std::uint64_t{0}}) {
      const hand_made_index parts;
      const corpus_files files(parts.magic + little_endian(parts.version) +
                               little_endian(parts.code) + little_endian(sequences) +
                               little_endian(documents));
      REQUIRE_THAT(
          message_of([&] { megatron_source source(files.prefix); }),
          ContainsSubstring("corpus.idx, byte 18: ") && ContainsSubstring("in a file of 34 bytes"));
    }
  }
}

TEST_CASE("corpus: a .bin that does not fit its index is refused", "[corpus]") {
  REQUIRE_THAT(failure_of({}, five_tokens().substr(0, 19)),
               ContainsSubstring("corpus.bin, byte 19: found a file of 19 bytes, expected 20"));
  REQUIRE_THAT(failure_of({}, ""),
               ContainsSubstring("corpus.bin, byte 0: found a file of 0 bytes"));
  REQUIRE_THAT(failure_of({}, five_tokens() + "1234"),
               ContainsSubstring("corpus.bin, byte 20: found a file of 24 bytes, expected 20"));
  megatron_options options;
  options.allow_longer_bin = true;
  const corpus_files files(hand_made_index{}.bytes(), five_tokens() + "1234");
  REQUIRE(records_of(megatron_source(files.prefix, options)) == three_sequences);
}

TEST_CASE("corpus: pointers that are wrong are refused with their place", "[corpus]") {
  for (const file_access index_access : {file_access::positioned, file_access::mapped}) {
    for (const std::uint64_t cache : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      megatron_options options;
      options.index_access = index_access;
      options.index_cache_bytes = cache;
      const auto with = [&](const std::vector<std::int64_t>& pointers) {
        hand_made_index index;
        index.pointers = pointers;
        return failure_of(index, five_tokens(), options);
      };
      // Pointers lie from byte 34 + 4 * 3 on.
      REQUIRE_THAT(with({4, 12, 12}), ContainsSubstring("corpus.idx, byte 46, record 0: ") &&
                                          ContainsSubstring("found the pointer 4, expected 0"));
      REQUIRE_THAT(
          with({0, 8, 12}),
          ContainsSubstring("corpus.idx, byte 54, record 1: ") &&
              ContainsSubstring("found the pointer 8, expected 12, the end of sequence 0"));
      REQUIRE_THAT(with({0, 16, 12}), ContainsSubstring("byte 54, record 1: "));
      REQUIRE_THAT(with({0, -4, 12}), ContainsSubstring("byte 54, record 1: ") &&
                                          ContainsSubstring("found the pointer -4"));
      REQUIRE_THAT(with({0, 13, 12}), ContainsSubstring("byte 54, record 1: ") &&
                                          ContainsSubstring("expected a multiple of 4"));
      REQUIRE_THAT(with({0, 12, 8}), !ContainsSubstring("corpus.idx, byte 54"));
      REQUIRE_FALSE(with({0, 12, 8}).empty());
      REQUIRE_FALSE(with({0, 12, std::int64_t{1} << 62}).empty());
      REQUIRE_THAT(with({0, 12, std::numeric_limits<std::int64_t>::min()}),
                   ContainsSubstring("byte 62, record 2: "));
    }
  }
}

TEST_CASE("corpus: pointers that overflowed are recomputed on demand", "[corpus]") {
  hand_made_index index;
  index.pointers = {0, -2147483648, 77};
  const corpus_files files(index.bytes());
  REQUIRE_THAT(message_of([&] { records_of(megatron_source(files.prefix)); }),
               ContainsSubstring("can be recomputed"));
  for (const megatron_options& options : access_options()) {
    if (options.pointers != megatron_pointers::recomputed) continue;
    REQUIRE(records_of(megatron_source(files.prefix, options)) == three_sequences);
  }
}

TEST_CASE("corpus: negative lengths are refused with their place", "[corpus]") {
  hand_made_index index;
  index.lengths = {3, -1, 2};
  for (const megatron_options& options : access_options()) {
    REQUIRE_THAT(failure_of(index, five_tokens(), options),
                 ContainsSubstring("corpus.idx, byte 38, record 1: ") &&
                     ContainsSubstring("found a length of -1 tokens"));
  }
  index.lengths = {3, 0, -2147483647};
  REQUIRE_THAT(failure_of(index), ContainsSubstring("byte 42, record 2: "));
}

TEST_CASE("corpus: document boundaries that are wrong are refused", "[corpus]") {
  for (megatron_options options : access_options()) {
    options.record = megatron_record::document;
    const auto with = [&](const std::vector<std::int64_t>& documents) {
      hand_made_index index;
      index.documents = documents;
      return failure_of(index, five_tokens(), options);
    };
    // Documents lie from byte 34 + 12 * 3 on.
    REQUIRE_THAT(with({1, 2, 3}), ContainsSubstring("corpus.idx, byte 70, record 0: "));
    REQUIRE_THAT(with({0, 4, 3}), ContainsSubstring("byte 78, record 1: ") &&
                                      ContainsSubstring("expected one in [0, 3]"));
    REQUIRE_THAT(with({0, -1, 3}), ContainsSubstring("byte 78, record 1: "));
    REQUIRE_THAT(with({0, 2, 1, 3}), ContainsSubstring("byte 86, record 2: ") &&
                                         ContainsSubstring("expected at least 2"));
    REQUIRE_THAT(with({0, 2, 4}), ContainsSubstring("byte 86, record 2: "));
  }
}

TEST_CASE("corpus: tokens outside the range name path, offset and record", "[corpus]") {
  for (const megatron_options& options : access_options()) {
    const std::array<std::int32_t, 5> i32 = {10, 11, 12, 20, -7};
    REQUIRE_THAT(failure_of({}, little_endian(std::span<const std::int32_t>(i32)), options),
                 ContainsSubstring("corpus.bin, byte 16, record 2: found token -7, expected an id "
                                   "in [0, 2147483647]"));
    hand_made_index index;
    index.code = 9;
    const std::array<std::uint32_t, 5> u32 = {10, 2147483648U, 12, 20, 21};
    REQUIRE_THAT(failure_of(index, little_endian(std::span<const std::uint32_t>(u32)), options),
                 ContainsSubstring("corpus.bin, byte 4, record 0: found token 2147483648"));
    index.code = 5;
    index.pointers = {0, 24, 24};
    const std::array<std::int64_t, 5> i64 = {10, 11, 12, std::int64_t{1} << 40, 21};
    REQUIRE_THAT(failure_of(index, little_endian(std::span<const std::int64_t>(i64)), options),
                 ContainsSubstring("corpus.bin, byte 24, record 2: found token 1099511627776"));
    index.code = 2;
    index.pointers = {0, 3, 3};
    REQUIRE_THAT(failure_of(index, "\x01\x02\x83\x04\x05", options),
                 ContainsSubstring("corpus.bin, byte 2, record 0: found token -125"));
  }
}

TEST_CASE("corpus: files that cannot be opened are named", "[corpus]") {
  const corpus_files files;
  std::filesystem::remove(files.prefix + ".idx");
  REQUIRE_THAT(message_of([&] { megatron_source source(files.prefix); }),
               ContainsSubstring("corpus.idx: cannot open the file"));
  REQUIRE_THAT(message_of([&] { megatron_source source(files.scratch.path("other")); }),
               ContainsSubstring("other."));
  std::filesystem::create_directory(files.prefix + ".idx");
  REQUIRE_THAT(message_of([&] { megatron_source source(files.prefix); }),
               ContainsSubstring("corpus.idx: cannot read the file"));
}

TEST_CASE("corpus: options of a Megatron-LM corpus are checked", "[corpus]") {
  const corpus_files files;
  megatron_options options;
  options.threads = 0;
  REQUIRE_THROWS_AS(megatron_source(files.prefix, options), invalid_option);
}

TEST_CASE("corpus: records outside a Megatron-LM corpus are refused", "[corpus]") {
  const corpus_files files;
  const megatron_source source(files.prefix);
  std::array<record_shape, 1> shape;
  REQUIRE_THROWS_AS(source.shapes(std::array<record_id, 1>{3}, shape), state_error);
  std::array<std::int32_t, 4> tokens;
  const std::vector<record_read> unknown = {{3, 0, {}, {}}};
  REQUIRE_THROWS_AS(source.read(unknown), state_error);
  const std::vector<record_read> longer = {{0, 0, tokens, {}}};
  REQUIRE_THROWS_AS(source.read(longer), state_error);
}

TEST_CASE("corpus: files cut, written or replaced under a reader are noticed", "[corpus]") {
  const auto cut = [](const std::string& path, std::size_t size) {
    std::filesystem::resize_file(path, size);
  };
  {
    const corpus_files files;
    const megatron_source source(files.prefix);
    REQUIRE(records_of(source) == three_sequences);
    cut(files.prefix + ".bin", 14);
    REQUIRE_THAT(message_of([&] { records_of(source); }),
                 ContainsSubstring("corpus.bin, byte 14, record 2: "));
  }
  {
    const corpus_files files;
    const megatron_source source(files.prefix);
    cut(files.prefix + ".idx", 50);
    REQUIRE_THAT(message_of([&] { records_of(source); }), ContainsSubstring("corpus.idx, byte 50"));
  }
  {
    const corpus_files files;
    const megatron_source source(files.prefix);
    write_file(files.scratch.path("new"), five_tokens());
    std::filesystem::rename(files.scratch.path("new"), files.prefix + ".bin");
    REQUIRE_THAT(message_of([&] { records_of(source); }),
                 ContainsSubstring("corpus.bin: the file was deleted or replaced"));
  }
  {
    const corpus_files files;
    const megatron_source source(files.prefix);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_file(files.prefix + ".bin", five_tokens());
    REQUIRE_THAT(message_of([&] { records_of(source); }),
                 ContainsSubstring("corpus.bin: found a file changed at "));
  }
  {
    // A mapped index is looked at before it is touched.
    const corpus_files files;
    megatron_options options;
    options.index_access = file_access::mapped;
    const megatron_source source(files.prefix, options);
    cut(files.prefix + ".idx", 50);
    REQUIRE_THAT(message_of([&] { tokens_of(source); }), ContainsSubstring("corpus.idx, byte 50"));
  }
}

TEST_CASE("corpus: an index that is written to is noticed where its entries are not kept",
          "[corpus]") {
  hand_made_index other;
  other.lengths = {2, 0, 3};
  other.pointers = {0, 8, 8};
  for (const megatron_record record : {megatron_record::sequence, megatron_record::document}) {
    for (const std::uint64_t kept : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
      CAPTURE(kept);
      const corpus_files files;
      megatron_options options;
      options.record = record;
      options.index_cache_bytes = kept;
      const megatron_source source(files.prefix, options);
      const std::vector<std::uint64_t> before = tokens_of(source);
      // In place, so that the file is the same one.
      const int fd = ::open((files.prefix + ".idx").c_str(), O_WRONLY);
      const std::string bytes = other.bytes();
      REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<::ssize_t>(bytes.size()));
      ::close(fd);
      std::vector<record_shape> shapes(source.size());
      std::vector<std::int32_t> tokens(3);
      const record_read read{.id = 0, .first_token = 0, .tokens = tokens, .loss_mask = {}};
      if (kept == 0) {
        REQUIRE_THROWS_AS(source.shapes(all_ids(source), shapes), file_changed);
        REQUIRE_THROWS_AS(source.read({&read, 1}), file_changed);
      } else {
        // What is kept stays as it was.
        REQUIRE(tokens_of(source) == before);
        REQUIRE_NOTHROW(source.read({&read, 1}));
      }
    }
  }
}

TEST_CASE("corpus: fingerprints of Megatron-LM corpora follow index and type", "[corpus]") {
  const auto fingerprint_of = [](const hand_made_index& index, const std::string& bin,
                                 const megatron_options& options = {}) {
    const corpus_files files(index.bytes(), bin);
    return megatron_source(files.prefix, options).fingerprint();
  };
  const digest128 whole = fingerprint_of({}, five_tokens());
  REQUIRE(whole == fingerprint_of({}, std::string(20, '\0')));
  for (const megatron_options& options : access_options()) {
    REQUIRE(whole == fingerprint_of({}, five_tokens(), options));
  }
  hand_made_index moved;
  moved.lengths = {2, 1, 2};
  moved.pointers = {0, 8, 12};
  REQUIRE(whole != fingerprint_of(moved, five_tokens()));
  hand_made_index unsigned_type;
  unsigned_type.code = 9;
  REQUIRE(whole != fingerprint_of(unsigned_type, five_tokens()));

  megatron_options by_document;
  by_document.record = megatron_record::document;
  const digest128 documents = fingerprint_of({}, five_tokens(), by_document);
  REQUIRE(whole != documents);
  hand_made_index other_documents;
  other_documents.documents = {0, 1, 3};
  REQUIRE(whole == fingerprint_of(other_documents, five_tokens()));
  REQUIRE(documents != fingerprint_of(other_documents, five_tokens(), by_document));

  megatron_options known;
  known.known_fingerprint = digest128{1, 2};
  REQUIRE(fingerprint_of({}, five_tokens(), known) == digest128{1, 2});
}

TEST_CASE("corpus: the Megatron-LM writer makes the bytes laid out by hand", "[corpus]") {
  const scratch_dir scratch;
  megatron_writer writer(scratch.path("corpus.bin"));
  writer.add_sequence(three_sequences[0]);
  writer.add_sequence(three_sequences[1]);
  writer.end_document();
  writer.add_document(three_sequences[2]);
  REQUIRE(writer.sequences() == 3);
  REQUIRE(writer.documents() == 2);
  REQUIRE(writer.tokens() == 5);
  REQUIRE_FALSE(identify_file(scratch.path("corpus.idx")).has_value());
  writer.finish();
  REQUIRE(read_file(scratch.path("corpus.bin")) == five_tokens());
  REQUIRE(read_file(scratch.path("corpus.idx")) == hand_made_index{}.bytes());
  REQUIRE_THROWS_AS(writer.finish(), state_error);
  REQUIRE_THROWS_AS(writer.add_sequence({}), state_error);
  REQUIRE_THROWS_AS(writer.end_document(), state_error);
}

TEST_CASE("corpus: the Megatron-LM writer closes the last document itself", "[corpus]") {
  const scratch_dir scratch;
  {
    megatron_writer writer(scratch.path("corpus"));
    writer.add_sequence(three_sequences[0]);
    writer.end_document();
    writer.end_document();
    writer.add_sequence(three_sequences[2]);
    writer.finish();
    REQUIRE(writer.documents() == 3);
  }
  REQUIRE(scratch.entries() == 2);
  megatron_options options;
  options.record = megatron_record::document;
  REQUIRE(records_of(megatron_source(scratch.path("corpus"), options)) ==
          std::vector<std::vector<std::int32_t>>{{10, 11, 12}, {}, {20, 21}});
}

TEST_CASE("corpus: a Megatron-LM writer that is not finished leaves nothing", "[corpus]") {
  const scratch_dir scratch;
  {
    megatron_writer writer(scratch.path("corpus"));
    writer.add_document(three_sequences[0]);
  }
  REQUIRE(scratch.entries() == 0);
  megatron_writer(scratch.path("corpus")).finish();
  REQUIRE(megatron_source(scratch.path("corpus")).size() == 0);
  REQUIRE_THROWS_AS(megatron_writer(scratch.path("no/such/place")), data_error);
}

TEST_CASE("corpus: ids that do not fit the type are refused and nothing is added", "[corpus]") {
  const std::vector<std::pair<token_type, std::int32_t>> limits = {{token_type::u8, 256},
                                                                   {token_type::i8, 128},
                                                                   {token_type::u16, 65536},
                                                                   {token_type::i16, 32768}};
  for (const auto& limit : limits) {
    const token_type type = limit.first;
    const std::int32_t first_bad = limit.second;
    const scratch_dir scratch;
    megatron_writer writer(scratch.path("corpus"), {.type = type});
    writer.add_document(std::array<std::int32_t, 2>{0, first_bad - 1});
    REQUIRE_THAT(message_of([&] {
                   writer.add_sequence(std::array<std::int32_t, 2>{1, first_bad});
                 }),
                 ContainsSubstring("corpus.bin, byte " + std::to_string(3 * token_bytes(type)) +
                                   ", record 1: found token " + std::to_string(first_bad)));
    REQUIRE_THROWS_AS(writer.add_sequence(std::array<std::int32_t, 1>{-1}), data_error);
    writer.finish();
    REQUIRE(records_of(megatron_source(scratch.path("corpus"))) ==
            std::vector<std::vector<std::int32_t>>{{0, first_bad - 1}});
  }
}

TEST_CASE("corpus: every type that is written is read back", "[corpus]") {
  for (const token_type type :
       {token_type::u8, token_type::i8, token_type::u16, token_type::i16, token_type::u32,
        token_type::i32, token_type::u64, token_type::i64}) {
    const scratch_dir scratch;
    megatron_writer writer(scratch.path("corpus"), {.type = type});
    const std::vector<std::vector<std::int32_t>> records = {
        {0, max_token_id(type)}, {}, std::vector<std::int32_t>(1000, 7)};
    for (const auto& record : records) writer.add_document(record);
    writer.finish();
    const megatron_source source(scratch.path("corpus"));
    REQUIRE(source.type() == type);
    REQUIRE(records_of(source) == records);
  }
}

TEST_CASE("corpus: an index of several blocks is read across their borders", "[corpus]") {
  const scratch_dir scratch;
  std::vector<std::vector<std::int32_t>> records(10'000);
  megatron_writer writer(scratch.path("corpus"), {.type = token_type::u16});
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].assign(i * i % 11, static_cast<std::int32_t>(i % 60'000));
    writer.add_sequence(records[i]);
    if (i % 3 == 2) writer.end_document();
  }
  writer.finish();
  for (megatron_options options : access_options()) {
    // Room for one of the three blocks: the others are read record by record.
    if (options.index_cache_bytes != 0) options.index_cache_bytes = sizeof(detail::record_block);
    REQUIRE(records_of(megatron_source(scratch.path("corpus"), options)) == records);
    options.record = megatron_record::document;
    const megatron_source documents(scratch.path("corpus"), options);
    REQUIRE(documents.size() == 3334);
    std::vector<std::int32_t> joined;
    for (std::size_t i = 4095; i < 4098; ++i) {
      joined.insert(joined.end(), records[i].begin(), records[i].end());
    }
    std::vector<std::int32_t> found(joined.size());
    const std::vector<record_read> reads = {{1365, 0, found, {}}};
    documents.read(reads);
    REQUIRE(found == joined);
  }
}

TEST_CASE("corpus: tokens beyond 4 GiB are read from the right place", "[corpus]") {
  const scratch_dir scratch;
  // Three sequences of 1.4 G, 0 and 2 tokens as i32, the first of them a hole in the file.
  constexpr std::int32_t first = 1'400'000'000;
  hand_made_index index;
  index.lengths = {first, 0, 2};
  index.pointers = {0, 4 * std::int64_t{first}, 4 * std::int64_t{first}};
  write_file(scratch.path("corpus.idx"), index.bytes());
  write_file(scratch.path("corpus.bin"), "");
  const int fd = ::open(scratch.path("corpus.bin").c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  const std::string last = little_endian(std::int32_t{20}) + little_endian(std::int32_t{21});
  REQUIRE(::pwrite(fd, last.data(), last.size(), 4 * static_cast<::off_t>(first)) == 8);
  ::close(fd);
  for (const megatron_options& options : access_options()) {
    const megatron_source source(scratch.path("corpus"), options);
    std::array<std::int32_t, 2> tokens;
    std::array<std::int32_t, 1> zero = {1};
    const std::vector<record_read> reads = {{2, 0, tokens, {}}, {0, first - 1, zero, {}}};
    source.read(reads);
    REQUIRE(tokens == std::array<std::int32_t, 2>{20, 21});
    REQUIRE(zero[0] == 0);
  }
}

TEST_CASE("corpus: many threads read one Megatron-LM corpus", "[corpus]") {
  const scratch_dir scratch;
  std::vector<std::vector<std::int32_t>> records(9000);
  megatron_writer writer(scratch.path("corpus"), {.type = token_type::u16});
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].assign(i % 7, static_cast<std::int32_t>(i));
    writer.add_document(records[i]);
  }
  writer.finish();
  const megatron_source source(scratch.path("corpus"));
  std::vector<std::thread> threads;
  std::array<bool, 4> good{};
  for (std::size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] { good[t] = records_of(source) == records; });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(good == std::array<bool, 4>{true, true, true, true});
}
