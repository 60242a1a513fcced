#include <lanepack/corpus/webdataset.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/any_source.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/tar.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::npy_bytes;
using lanepack_test::scratch_dir;
using lanepack_test::tar_end;
using lanepack_test::tar_member_bytes;
using namespace std::string_literals;

namespace {

/// Written by Python's tarfile (pax and ustar) and by GNU tar. Sample i of 0 to 4 has i + 3 tokens,
/// of which number k is 5 k + i; an image of (20 + i) x 30 pixels; even ones have features.
const std::vector<std::string> golden =
    expand_shards(std::string(LANEPACK_GOLDEN_WEBDATASET) + "/shard-{000..002}.tar");

shard_options uncached() {
  shard_options options;
  options.cache_index = false;
  options.threads = 1;
  return options;
}

std::vector<std::int32_t> tokens_of(const any_source& source, record_id id) {
  record_shape shape;
  source.shapes({&id, 1}, {&shape, 1});
  std::vector<std::int32_t> tokens(shape.tokens);
  const record_read read{id, 0, tokens, {}};
  source.read({&read, 1});
  return tokens;
}

std::string message_of(const std::string& bytes, const webdataset_options& options) {
  const scratch_dir scratch;
  lanepack_test::write_file(scratch.path("a.tar"), bytes);
  try {
    static_cast<void>(open_webdataset({scratch.path("a.tar")}, options, uncached()));
  } catch (const data_error& failure) {
    const std::string text = failure.what();
    return text.substr(text.find("a.tar"));
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("webdataset: names are taken apart at the first dot of their last part", "[corpus]") {
  const auto parts = [](const char* name) {
    const auto found = split_webdataset_name(name);
    return found ? std::string(found->key) + "|" + std::string(found->extension) : "";
  };
  REQUIRE(parts("a.txt") == "a|txt");
  REQUIRE(parts("d.e/a.seg.npy") == "d.e/a|seg.npy");
  for (const char* name : {"", "a", "a.", ".hidden", "d/.hidden", "d.e/a", "__meta__/a.txt"}) {
    REQUIRE(parts(name).empty());
  }
  REQUIRE(parts("__a/b.txt") == "__a/b|txt");
}

TEST_CASE("webdataset: patterns of shards are expanded", "[corpus]") {
  REQUIRE(expand_shards("a.tar") == std::vector<std::string>{"a.tar"});
  REQUIRE(expand_shards("a-{08..11}.tar") ==
          std::vector<std::string>{"a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"});
  REQUIRE(expand_shards("{9..10}/{0..1}") ==
          std::vector<std::string>{"9/0", "9/1", "10/0", "10/1"});
  for (const char* bad : {"{", "{}", "{1}", "{1..}", "{2..1}", "{a..b}", "{01..2}", "{1,2}"}) {
    CAPTURE(bad);
    REQUIRE_THROWS_AS(expand_shards(bad), invalid_option);
  }
}

TEST_CASE("webdataset: shards of tarfile and GNU tar are records with payloads", "[corpus]") {
  webdataset_options options;
  options.payloads = {"feat.npy", "jpg", "json"};
  options.patches = {.payload = "jpg", .patch_pixels = 10};
  for (const std::string tokens : {"tokens.npy", "bin"}) {
    CAPTURE(tokens);
    options.tokens = tokens;
    options.numbers_type = token_type::u32;
    const any_source source = open_webdataset(golden, options, uncached());
    REQUIRE(source.size() == 5);
    for (record_id i = 0; i < 5; ++i) {
      CAPTURE(i);
      std::vector<std::int32_t> expected;
      for (std::uint64_t k = 0; k < i + 3; ++k) {
        expected.push_back(static_cast<std::int32_t>(5 * k + i));
      }
      REQUIRE(tokens_of(source, i) == expected);
      record_shape shape;
      source.shapes({&i, 1}, {&shape, 1});
      REQUIRE(shape.loss_tokens == i + 2);
      // 20 x 30 pixels are 2 x 3 patches of 10; wider ones have another column.
      REQUIRE(shape.patches == (i == 0 ? 6 : 9));
      std::array<payload_shape, 3> shapes;
      std::array<std::vector<std::byte>, 3> bytes;
      std::vector<payload_read> reads;
      for (std::size_t p = 0; p < 3; ++p) {
        source.payload_shapes(p, {&i, 1}, {&shapes[p], 1});
        bytes[p].resize(shapes[p].bytes());
        reads.push_back({i, p, bytes[p]});
      }
      source.read_payloads(reads);
      if (i % 2 == 0) {
        REQUIRE(shapes[0] == payload_shape(payload_type::f16, {i + 1, 2, 3}));
        // 0.5, 2.5 and 4.5 in half precision.
        const std::array<std::uint16_t, 3> halves = {0x3800, 0x4100, 0x4480};
        std::uint16_t last = 0;
        std::memcpy(&last, bytes[0].data() + bytes[0].size() - 2, 2);
        REQUIRE(last == halves[i / 2]);
      } else {
        REQUIRE(shapes[0] == payload_shape());
      }
      REQUIRE(image_size_of(bytes[1]) == image_size{20 + i, 30});
      REQUIRE(std::string(reinterpret_cast<const char*>(bytes[2].data()), bytes[2].size()) ==
              "{\"n\": " + std::to_string(i) + "}");
    }
  }
}

TEST_CASE("webdataset: members are documents, whatever the case of their extension", "[corpus]") {
  const webdataset_documents documents(golden, "txt", uncached());
  REQUIRE(documents.size() == 5);
  const std::array<record_id, 3> ids = {4, 0, 2};
  std::array<std::string, 3> out;
  documents.read(ids, out);
  REQUIRE(out[0] == "text 4: \u00e9");
  REQUIRE(out[1] == "text 0: \u00e9");
  REQUIRE(out[2] == "text 2: \u00e9");
  std::array<std::uint64_t, 3> sizes{};
  documents.sizes(ids, sizes);
  REQUIRE(sizes[0] == 10);
}

TEST_CASE("webdataset: the index is kept, and one for each choice of members", "[corpus]") {
  const scratch_dir scratch;
  const std::string shard = scratch.path("a.tar");
  lanepack_test::write_file(
      shard, tar_member_bytes("s.tokens.npy", npy_bytes("<i2", "(2,)", "\x01\0\x02\0"s)) +
                 tar_member_bytes("s.mask", "\0\x01"s) +
                 tar_member_bytes("s.x.npy", npy_bytes("<f4", "(0, 7)", "")) + tar_end());
  webdataset_options options{.loss_mask = "mask", .payloads = {"x.npy"}};
  const shard_source first = open_webdataset({shard}, options);
  REQUIRE(scratch.entries() == 2);
  const shard_source again = open_webdataset({shard}, options);
  REQUIRE(again.table().digest() == first.table().digest());
  REQUIRE(again.fingerprint() == first.fingerprint());
  REQUIRE_FALSE(again.traits().has_loss_mask);
  REQUIRE(again.table().shape(0).loss_tokens == 1);
  REQUIRE(again.table().payload(0, 0).shape == payload_shape(payload_type::f32, {0, 7}));
  options.loss_mask.clear();
  REQUIRE(open_webdataset({shard}, options).fingerprint() != first.fingerprint());
  REQUIRE(scratch.entries() == 3);
  std::array<std::uint8_t, 2> mask{9, 9};
  std::array<std::int32_t, 2> tokens{};
  const record_read read{0, 0, tokens, mask};
  again.read({&read, 1});
  REQUIRE(mask == std::array<std::uint8_t, 2>{0, 1});
  REQUIRE(tokens == std::array<std::int32_t, 2>{1, 2});
}

TEST_CASE("webdataset: samples that are not what they should be are errors with their byte",
          "[corpus]") {
  const std::string tokens =
      tar_member_bytes("s.tokens.npy", npy_bytes("<i2", "(2,)", "\x01\0\x02\0"s));
  webdataset_options options{.loss_mask = "mask", .payloads = {"x.npy"}};
  options.patches = {.payload = "jpg"};
  const auto message = [&](const std::string& more) {
    return message_of(tokens + more + tar_end(), options);
  };
  REQUIRE(message("") == "nothing was thrown");
  // The first member takes 512 + 512 bytes; the next one begins at 1024, its contents at 1536.
  REQUIRE_THAT(
      message(tar_member_bytes("s.TOKENS.npy", "")),
      ContainsSubstring("a.tar, byte 1024: found a second member 'tokens.npy' of sample 's'"));
  REQUIRE_THAT(
      message(tar_member_bytes("t.txt", "x")),
      ContainsSubstring("byte 1024, record 1: found no member 'tokens.npy' of sample 't'"));
  REQUIRE_THAT(
      message(tar_member_bytes("s.mask", "\0"s)),
      ContainsSubstring("byte 1536, record 0: found 1 values of the loss mask, expected 2"));
  REQUIRE_THAT(message(tar_member_bytes("s.mask", "\0\x02"s)),
               ContainsSubstring("byte 1537, record 0: found a loss mask other than 0 and 1"));
  REQUIRE_THAT(
      message(tar_member_bytes("s.jpg", "GIF89a")),
      ContainsSubstring("byte 1536, record 0: member 'jpg': found the bytes 47 49 46 38 39 "
                        "61, expected a PNG or JPEG"));
  REQUIRE_THAT(message(tar_member_bytes("s.x.npy", npy_bytes("<f4", "(2, 3)", "abcd"))),
               ContainsSubstring("byte 1668: found a file of 132 bytes, expected 152 for 6 numbers "
                                 "of type f32"));
  REQUIRE_THAT(message(tar_member_bytes("s.x.npy", npy_bytes("|O", "(2, 3)", ""))),
               ContainsSubstring("found the type '|O', expected little-endian numbers"));
  options.tokens = "x.npy";
  REQUIRE_THAT(message(tar_member_bytes("s.x.npy", npy_bytes("<f4", "(1,)", "abcd"))),
               ContainsSubstring("byte 1536, record 0: member 'x.npy': found an array of f32"));
  REQUIRE_THROWS_AS(open_webdataset({}, {}, uncached()), invalid_option);
  REQUIRE_THROWS_AS(open_webdataset(golden, {.tokens = "bin"}, uncached()), invalid_option);
  REQUIRE_THROWS_AS(open_webdataset(golden, {.payloads = {"a", "a"}}, uncached()), invalid_option);
}
