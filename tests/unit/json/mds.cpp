#include <lanepack/json/mds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/image_size.hpp>

#include "support/catch.hpp"
#include "support/mds.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::scratch_dir;

namespace {

/// Written by the package mosaicml-streaming 0.13.0. Sample i of 0 to 4 has i + 2 tokens, of which
/// number k is 3 k + i; all other columns hold what the tests say.
const std::string golden = LANEPACK_GOLDEN_MDS;

template <class T>
std::vector<T> numbers_in(std::span<const std::byte> bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

shard_options uncached() {
  return {.cache_index = false, .threads = 1};
}

std::vector<std::int32_t> tokens_of(const any_source& source, record_id id) {
  record_shape shape;
  source.shapes({&id, 1}, {&shape, 1});
  std::vector<std::int32_t> tokens(shape.tokens);
  const record_read read{id, 0, tokens, {}};
  source.read({&read, 1});
  return tokens;
}

std::vector<std::int32_t> expected_tokens(int i) {
  std::vector<std::int32_t> tokens;
  for (int k = 0; k < i + 2; ++k) tokens.push_back(3 * k + i);
  return tokens;
}

/// A dataset of one shard whose index says what its bytes should be.
struct one_shard {
  one_shard(const std::vector<lanepack_test::mds_test_column>& columns,
            const std::vector<std::vector<std::string>>& samples) {
    lanepack_test::write_mds(scratch.path(), columns, {samples});
    path = scratch.path("shard.0.mds");
    bytes = lanepack_test::read_file(path);
  }
  /// Replaces the little-endian u32 at `at`.
  void put(std::size_t at, std::uint32_t value) {
    bytes.replace(at, 4, little_endian(value));
    lanepack_test::write_file(path, bytes);
  }

  scratch_dir scratch;
  std::string path;
  std::string bytes;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const data_error& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("mds: every encoding of the reference package is read", "[json]") {
  const mds_dataset dataset(golden, {.threads = 1});
  REQUIRE(dataset.size() == 5);
  REQUIRE(dataset.index().shards.size() > 1);
  std::vector<mds_sample> samples(5);
  const std::array<record_id, 5> ids = {4, 0, 2, 1, 3};
  dataset.read(ids, samples);
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const mds_sample& sample = samples[at];
    const int i = static_cast<int>(ids[at]);
    const auto u = static_cast<std::uint64_t>(i);
    CAPTURE(i);
    REQUIRE(sample.columns().size() == 33);
    REQUIRE(sample.text("text") == "sample " + std::to_string(i) + ": \u00e9");
    REQUIRE(sample.text("info") == "{\"n\": " + std::to_string(i) + "}");
    REQUIRE(sample.text("sint") == "10000000000000000000" + std::to_string(i));
    REQUIRE(sample.text("sfloat") == std::to_string(i) + ".5");
    REQUIRE(sample.text("sdec") == "1." + std::to_string(i));
    REQUIRE(sample.scalar<int>("int") == -i);
    REQUIRE(sample.scalar<unsigned>("u8") == u);
    REQUIRE(sample.scalar<unsigned>("u16") == 1000 + u);
    REQUIRE(sample.scalar<unsigned>("u32") == 70000 + u);
    REQUIRE(sample.scalar<std::uint64_t>("u64") == (std::uint64_t{1} << 63) + u);
    REQUIRE(sample.scalar<int>("i8") == -i);
    REQUIRE(sample.scalar<int>("i16") == -1000 - i);
    REQUIRE(sample.scalar<int>("i32") == -70000 - i);
    REQUIRE(sample.scalar<std::int64_t>("i64") == -(std::int64_t{1} << 40) - i);
    REQUIRE(sample.scalar<float>("f32") == static_cast<float>(i) + 0.25F);
    REQUIRE(sample.scalar<double>("f64") == i + 0.125);
    // 0.5, 1.5, 2.5, 3.5 and 4.5 in half precision.
    const std::array<std::uint16_t, 5> halves = {0x3800, 0x3e00, 0x4100, 0x4300, 0x4480};
    REQUIRE(numbers_in<std::uint16_t>(sample.bytes("f16")) ==
            std::vector<std::uint16_t>{halves[u]});
    REQUIRE(sample.numbers("f16").first == payload_shape(payload_type::f16, {}));

    const auto shape = [&](const char* column) { return sample.numbers(column).first; };
    REQUIRE(shape("tokens") == payload_shape(payload_type::i32, {u + 2}));
    REQUIRE(numbers_in<std::int32_t>(sample.numbers("tokens").second) == expected_tokens(i));
    const std::array<payload_type, 3> types = {payload_type::u8, payload_type::i64,
                                               payload_type::u16};
    REQUIRE(shape("ids") == payload_shape(types[u % 3], {u + 2}));
    REQUIRE(shape("grid") == payload_shape(payload_type::u16, {2, 2}));
    REQUIRE(numbers_in<std::uint16_t>(sample.numbers("grid").second) ==
            std::vector<std::uint16_t>{static_cast<std::uint16_t>(i), 1, 2, 300});
    REQUIRE(shape("half") == payload_shape(payload_type::f16, {1, 2}));
    REQUIRE(numbers_in<std::uint16_t>(sample.numbers("half").second) ==
            std::vector<std::uint16_t>{0x3800, 0xc000});
    REQUIRE(numbers_in<std::int8_t>(sample.numbers("any").second) ==
            std::vector<std::int8_t>{static_cast<std::int8_t>(i), -1, 5});
    REQUIRE(shape("dyn") == payload_shape(payload_type::f32, {u + 1, 2, 3}));
    REQUIRE(numbers_in<float>(sample.numbers("dyn").second).back() ==
            static_cast<float>(6 * (i + 1) - 1));
    REQUIRE(shape("raw") == payload_shape(payload_type::u8, {8 * (u + 2)}));

    // RGB of 3 x (2 + i) pixels whose byte k is 7 k.
    REQUIRE(shape("pil") == payload_shape(payload_type::u8, {u + 2, 3, 3}));
    REQUIRE(sample.numbers("pil").second[5] == std::byte{35});
    REQUIRE(image_size_of(sample.bytes("jpeg")) == image_size{20 + u, 30});
    REQUIRE(image_size_of(sample.bytes("png")) == image_size{15, 28 + u});
    REQUIRE(sample.images("jpeg").size() == 1);
    REQUIRE(sample.images("jpegs").size() == 1 + u % 2);
    for (const auto image : sample.images("jpegs")) {
      REQUIRE(image_size_of(image) == image_size{16, 16 + u});
    }
    const auto pngs = sample.images("pngs");
    REQUIRE(pngs.size() == 2);
    REQUIRE(image_size_of(pngs[1]) == image_size{29, 14});
    REQUIRE(sample.images("pils").size() == 1);
    REQUIRE(sample.images("pils")[0].size() == 12 + 1 + 14 * 28);
    REQUIRE(sample.images("array").size() == 1);
    REQUIRE(image_size_of(sample.images("array")[0]) == image_size{14, 14});
  }
}

TEST_CASE("mds: what a column is not is refused, pickles above all", "[json]") {
  const mds_dataset dataset(golden, {.threads = 1});
  const record_id id = 3;
  mds_sample sample;
  dataset.read({&id, 1}, {&sample, 1});
  REQUIRE_THROWS_WITH(sample.numbers("pickle"), ContainsSubstring("found a Python pickle"));
  REQUIRE_THROWS_WITH(sample.text("pickle"), ContainsSubstring("found encoding 'pkl'"));
  REQUIRE_THROWS_AS(sample.scalar<float>("int"), data_error);
  REQUIRE_THROWS_AS(sample.scalar<int>("u64"), data_error);
  REQUIRE_THROWS_AS(sample.scalar<unsigned>("i8"), data_error);
  REQUIRE_THROWS_AS(sample.bytes("absent"), state_error);
  REQUIRE_THROWS_WITH(open_mds(golden, {.payloads = {"pickle"}}, uncached()),
                      ContainsSubstring("shard.00000.mds, byte ") &&
                          ContainsSubstring("record 0: column 'pickle'"));
}

TEST_CASE("mds: documents are a column, read without the others", "[json]") {
  const mds_documents documents(golden, "text", {.threads = 1});
  REQUIRE(documents.size() == 5);
  const std::array<record_id, 2> ids = {4, 1};
  std::array<std::string, 2> out;
  documents.read(ids, out);
  REQUIRE(out[0] == "sample 4: \u00e9");
  REQUIRE(out[1] == "sample 1: \u00e9");
  std::array<std::uint64_t, 2> sizes{};
  documents.sizes(ids, sizes);
  REQUIRE(sizes[0] > out[0].size());
  REQUIRE(documents.fingerprint() != mds_documents(golden, "info").fingerprint());
  REQUIRE_THROWS_WITH(mds_documents(golden, "jpeg"), ContainsSubstring("found encoding 'jpeg'"));
  REQUIRE_THROWS_WITH(mds_documents(golden, "none"), ContainsSubstring("found no such column"));
}

TEST_CASE("mds: records have tokens, masks, payloads and patches", "[json]") {
  mds_record_options options;
  options.loss_mask = "mask";
  options.payloads = {"jpeg", "dyn", "pil", "f32"};
  options.patches = {.payload = "jpegs", .patch_pixels = 8, .merge = 2};
  for (const std::string tokens : {"tokens", "ids", "raw"}) {
    CAPTURE(tokens);
    options.tokens = tokens;
    const any_source source = open_mds(golden, options, uncached());
    REQUIRE(source.size() == 5);
    REQUIRE(source.traits().has_loss_mask);
    REQUIRE(source.payload_names().size() == 4);
    for (record_id i = 0; i < 5; ++i) {
      CAPTURE(i);
      REQUIRE(tokens_of(source, i) == expected_tokens(static_cast<int>(i)));
      record_shape shape;
      source.shapes({&i, 1}, {&shape, 1});
      // Mask k is (k + i) mod 2, and the first token cannot be predicted. Images of 16 x (16 + i)
      // pixels have 2 x 2 patches of 8 pixels, from i = 1 on 2 x 4; odd samples have two of them.
      const std::array<std::uint64_t, 5> ones = {1, 1, 2, 2, 3};
      const std::array<std::uint64_t, 5> patches = {4, 16, 8, 16, 8};
      REQUIRE(shape.loss_tokens == ones[i]);
      REQUIRE(shape.patches == patches[i]);
      std::array<std::int32_t, 1> token{};
      std::array<std::uint8_t, 1> mask{};
      const record_read second{i, 1, token, mask};
      source.read({&second, 1});
      REQUIRE(token[0] == static_cast<std::int32_t>(i + 3));
      REQUIRE(mask[0] == (i + 1) % 2);

      std::vector<std::vector<std::byte>> bytes(4);
      std::vector<payload_read> reads;
      for (std::size_t p = 0; p < 4; ++p) {
        payload_shape of;
        source.payload_shapes(p, {&i, 1}, {&of, 1});
        bytes[p].resize(of.bytes());
        reads.push_back({i, p, bytes[p]});
        if (p == 1) REQUIRE(of == payload_shape(payload_type::f32, {i + 1, 2, 3}));
        if (p == 2) REQUIRE(of == payload_shape(payload_type::u8, {i + 2, 3, 3}));
        if (p == 3) REQUIRE(of == payload_shape(payload_type::f32, {}));
      }
      std::reverse(reads.begin(), reads.end());
      source.read_payloads(reads);
      REQUIRE(image_size_of(bytes[0]) == image_size{20 + i, 30});
      REQUIRE(numbers_in<float>(bytes[1])[3] == 3.0F);
      REQUIRE(bytes[2][5] == std::byte{35});
      REQUIRE(numbers_in<float>(bytes[3])[0] == static_cast<float>(i) + 0.25F);
    }
  }
}

TEST_CASE("mds: the index of records is kept and made again where it does not fit", "[json]") {
  scratch_dir scratch;
  std::filesystem::copy(golden, scratch.path("data"));
  mds_record_options options{.payloads = {"dyn"}};
  options.patches = {.payload = "png"};
  const std::string kept = scratch.path("kept");
  const shard_options shards{.index_path = kept, .threads = 1};
  const shard_source first = open_mds(scratch.path("data"), options, shards);
  const std::string index = lanepack_test::read_file(kept);
  const shard_source second = open_mds(scratch.path("data"), options, shards);
  REQUIRE(second.fingerprint() == first.fingerprint());
  REQUIRE(second.table().digest() == first.table().digest());
  REQUIRE(second.largest_payload() == record_payload_bytes{4, 120});
  REQUIRE(second.table().payload(2, 0) == first.table().payload(2, 0));
  // Damaged, or of other options.
  std::string damaged = index;
  damaged[index.size() / 2] = static_cast<char>(damaged[index.size() / 2] ^ 1);
  lanepack_test::write_file(kept, damaged);
  REQUIRE(open_mds(scratch.path("data"), options, shards).table().digest() ==
          first.table().digest());
  REQUIRE(lanepack_test::read_file(kept) == index);
  options.patches.merge = 2;
  const shard_source merged = open_mds(scratch.path("data"), options, shards);
  REQUIRE(merged.fingerprint() != first.fingerprint());
  // 15 x 28 pixels are 2 x 2 patches of 14 pixels; in groups of two as well.
  REQUIRE(first.table().shape(0).patches == 4);
  REQUIRE(merged.table().shape(0).patches == 4);
  // 15 x 29 are 2 x 3, in groups 2 x 4.
  REQUIRE(first.table().shape(1).patches == 6);
  REQUIRE(merged.table().shape(1).patches == 8);
}

TEST_CASE("mds: sizes and offsets that contradict each other are errors with their byte",
          "[json]") {
  // Offsets at 4 and 8 and 12; "{}" at 16; samples of 4 + 4 + 8 and 4 + 4 + 16 bytes from 18 on.
  const std::vector<lanepack_test::mds_test_column> columns = {{"n", "uint32", 4},
                                                               {"tokens", "bytes", 0}};
  const std::vector<std::vector<std::string>> samples = {
      {little_endian(std::uint32_t{1}), little_endian(std::int64_t{5})},
      {little_endian(std::uint32_t{2}),
       little_endian(std::int64_t{6}) + little_endian(std::int64_t{7})}};
  const auto damaged = [&](std::size_t at, std::uint32_t value) {
    one_shard shard(columns, samples);
    shard.put(at, value);
    const std::string folder = shard.scratch.path();
    const std::string message =
        message_of([&] { static_cast<void>(open_mds(folder, {}, uncached())); });
    // Reading samples finds the same.
    REQUIRE(message_of([&] {
              const mds_dataset dataset(folder, {.threads = 1});
              std::vector<mds_sample> all(2);
              dataset.read(std::array<record_id, 2>{0, 1}, all);
            }) == message);
    REQUIRE_THAT(message, Catch::Matchers::StartsWith(shard.path + ", byte "));
    return message.substr(shard.path.size());
  };
  {
    const one_shard good(columns, samples);
    const any_source source = open_mds(good.scratch.path(), {}, uncached());
    REQUIRE(tokens_of(source, 1) == std::vector<std::int32_t>{6, 7});
  }
  REQUIRE_THAT(damaged(0, 3), ContainsSubstring("byte 0: MDS shard: found 3 samples, expected 2"));
  REQUIRE_THAT(damaged(4, 15),
               ContainsSubstring("byte 4: MDS shard: found a first sample at byte 15"));
  REQUIRE_THAT(damaged(8, 18), ContainsSubstring("byte 8: MDS shard: found offset 18 after 18"));
  REQUIRE_THAT(damaged(8, 100), ContainsSubstring("byte 12: MDS shard: found offset 58 after 100"));
  REQUIRE_THAT(damaged(12, 57), ContainsSubstring("byte 12: MDS shard: found an end of the last "
                                                  "sample at byte 57, expected 58"));
  REQUIRE_THAT(damaged(8, 20), ContainsSubstring("byte 18, record 0: found a sample of 2 bytes"));
  REQUIRE_THAT(damaged(18, 9), ContainsSubstring("byte 18, record 0: found column 'tokens' of 9 "
                                                 "bytes, expected at most the 8 that are left"));
  REQUIRE_THAT(damaged(34, 15), ContainsSubstring("byte 57, record 1: found 1 bytes behind"));

  one_shard shorter(columns, samples);
  lanepack_test::write_file(shorter.path, shorter.bytes.substr(0, 10));
  REQUIRE_THAT(
      message_of([&] { static_cast<void>(open_mds(shorter.scratch.path(), {}, uncached())); }),
      ContainsSubstring("byte 4: MDS shard: found offsets of 2 samples in a file of 10"));
  lanepack_test::write_file(shorter.path, "");
  REQUIRE_THAT(
      message_of([&] { static_cast<void>(open_mds(shorter.scratch.path(), {}, uncached())); }),
      ContainsSubstring("byte 0: found a file of 0 bytes"));
}

TEST_CASE("mds: values that are not what their encoding says are errors with their byte",
          "[json]") {
  const auto refused = [](const std::string& encoding, const std::string& value) {
    const std::vector<lanepack_test::mds_test_column> columns = {{"tokens", "bytes", 0},
                                                                 {"x", encoding, 0}};
    const one_shard shard(columns, {{little_endian(std::int64_t{5}), value}});
    // One sample: offsets to byte 12, "{}", two sizes, 8 bytes of tokens; the value is at 30.
    mds_record_options options{.payloads = {"x"}};
    if (encoding.find("list") == 0 || encoding == "jpeg") options.patches.payload = "x";
    const std::string message =
        message_of([&] { static_cast<void>(open_mds(shard.scratch.path(), options, uncached())); });
    REQUIRE_THAT(message, Catch::Matchers::StartsWith(shard.path + ", byte "));
    return message.substr(shard.path.size() + 7);
  };
  using namespace std::string_literals;
  REQUIRE_THAT(refused("ndarray", "\x07\x04\x01\x01"),
               ContainsSubstring("30, record 0: column 'x': found code 7 of an array's type"));
  REQUIRE_THAT(refused("ndarray", ""),
               ContainsSubstring("30, record 0: column 'x': the value of 0"));
  REQUIRE_THAT(
      refused("ndarray:int16", "\x08\x02"),
      ContainsSubstring("32, record 0: column 'x': the value of 2 bytes ends in its header"));
  REQUIRE_THAT(refused("ndarray:int16", "\x08\x02\x03\x01\x01"),
               ContainsSubstring("33, record 0: column 'x': found 2 bytes of numbers, expected 12 "
                                 "for i16 (2, 3)"));
  REQUIRE_THAT(refused("ndarray:int16", "\x24"s + std::string(9, '\x01') + "\x01\x01"),
               ContainsSubstring("30, record 0: column 'x': found an array of 9 dimensions"));
  // Extents whose product leaves 64 bits.
  REQUIRE_THAT(refused("ndarray:int16", "\x0b"s + std::string(16, '\xff')),
               ContainsSubstring("found 0 bytes of numbers, expected 18446744073709551615"));
  REQUIRE_THAT(refused("pil", "\x02\0\0\0\x02\0\0\0\xff\0\0\0RGB"s),
               ContainsSubstring("38, record 0: column 'x': found an image mode of 255 bytes"));
  REQUIRE_THAT(refused("pil", "\x02\0\0\0\x02\0\0\0\x01\0\0\0X"s),
               ContainsSubstring("42, record 0: column 'x': found the image mode 'X'"));
  REQUIRE_THAT(refused("list[png]", "\0\0\0\0\x02\0\0\0\0\0\0\0"s),
               ContainsSubstring("34, record 0: column 'x': found a list of 2 images in 12 bytes"));
  REQUIRE_THAT(refused("list[png]", "\0\0\0\0\x01\0\0\0\x05\0\0\0abcd"s),
               ContainsSubstring("38, record 0: column 'x': found an image of 5 bytes"));
  REQUIRE_THAT(refused("list[png]", "\0\0\0\0\x01\0\0\0\x03\0\0\0abcd"s),
               ContainsSubstring("42, record 0: column 'x': found the bytes 61 62 63, expected a "
                                 "PNG or JPEG image"));
  REQUIRE_THAT(refused("jpeg", "\xff\xd8\xff\xe0\x00\x10"s),
               ContainsSubstring("36, record 0: column 'x': the image ends in its header"));
}

TEST_CASE("mds: an index that cannot be used says why", "[json]") {
  scratch_dir scratch;
  const std::vector<lanepack_test::mds_test_column> columns = {{"tokens", "bytes", 0}};
  lanepack_test::write_mds(scratch.path(), columns, {{{little_endian(std::int64_t{5})}}});
  const std::string path = scratch.path("index.json");
  const std::string good = lanepack_test::read_file(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    lanepack_test::write_file(path, text);
    const std::string message =
        message_of([&] { static_cast<void>(read_mds_index(scratch.path())); });
    lanepack_test::write_file(path, good);
    return message;
  };
  REQUIRE_NOTHROW(read_mds_index(path));
  REQUIRE_THAT(with("\"version\":2,\"shards\"", "\"version\":3,\"shards\""),
               ContainsSubstring("key \"version\": found 3, expected 2"));
  REQUIRE_THAT(with("\"format\":\"mds\"", "\"format\":\"csv\""),
               ContainsSubstring("key \"shards[0].format\": found \"csv\""));
  REQUIRE_THAT(with("\"bytes\"],", "\"tensor\"],"), ContainsSubstring("found encoding 'tensor'"));
  REQUIRE_THAT(with("[null]", "[8]"), ContainsSubstring("found size 8, expected null"));
  REQUIRE_THAT(with("shard.0.mds", "../shard.0.mds"), ContainsSubstring("basename"));
  REQUIRE_THAT(with("shard.0.mds", "/etc/passwd"), ContainsSubstring("basename"));
  REQUIRE_THAT(with("\"samples\":1", "\"samples\":-1"), ContainsSubstring("samples"));
  REQUIRE_THAT(with("[\"tokens\"]", "[]"), ContainsSubstring("found 0 names of columns"));
  // Only a compressed form of the shard is there.
  std::filesystem::rename(scratch.path("shard.0.mds"), scratch.path("shard.0.mds.zstd"));
  REQUIRE_THAT(with("\"zip_data\":null",
                    R"("zip_data":{"basename":"shard.0.mds.zstd","bytes":9,"hashes":{}})"),
               ContainsSubstring("shard.0.mds.zstd, byte 0: found a compressed shard"));
}

TEST_CASE("mds: encodings are known by their names", "[corpus]") {
  const auto size = [](const char* name) { return parse_mds_encoding(name)->size(); };
  REQUIRE(size("int") == 8);
  REQUIRE(size("uint8") == 1);
  REQUIRE(size("float16") == 2);
  REQUIRE(size("ndarray:int32:2,3") == 24);
  REQUIRE(size("ndarray:int32") == std::nullopt);
  REQUIRE(parse_mds_encoding("jpegarray")->kind == mds_kind::image_array);
  for (const char* name : {"", "u8", "bf16", "bfloat16", "bool", "ndarray:", "ndarray:int",
                           "ndarray:u8", "ndarray:int32:", "ndarray:int32:0", "ndarray:int32:2,",
                           "ndarray:int32:-1", "ndarray:int32:1,1,1,1,1,1,1,1,1",
                           "ndarray:int32:99999999999999999999", "list[pkl]", "Int"}) {
    CAPTURE(name);
    // `ndarray:` is `ndarray`.
    REQUIRE(parse_mds_encoding(name).has_value() == (std::string(name) == "ndarray:"));
  }
}
