#include <lanepack/corpus/lengths.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;
using namespace std::string_literals;

namespace {

constexpr std::array<file_access, 2> accesses = {file_access::positioned, file_access::mapped};

template <class Failure>
std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

std::vector<std::uint64_t> tokens_of(const length_source& source) {
  std::vector<record_id> ids(source.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  std::vector<std::uint64_t> tokens;
  for (const record_shape& shape : shapes) {
    REQUIRE(shape.loss_tokens == (shape.tokens == 0 ? 0 : shape.tokens - 1));
    tokens.push_back(shape.tokens);
  }
  return tokens;
}

std::string npy_i64(const std::vector<std::int64_t>& values) {
  std::string text =
      "{'descr': '<i8', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",)}";
  text.resize(117, ' ');
  return "\x93NUMPY\x01\x00\x76\x00"s + text + "\n" +
         little_endian(std::span<const std::int64_t>(values));
}

}  // namespace

TEST_CASE("corpus: lengths are read from u32 and NumPy files and from memory", "[corpus]") {
  const scratch_dir scratch;
  const std::vector<std::uint64_t> expected = {3, 0, 70000, 4294967295};
  const std::vector<std::uint32_t> stored(expected.begin(), expected.end());
  write_file(scratch.path("f.u32"), little_endian(std::span<const std::uint32_t>(stored)));
  write_file(scratch.path("f.npy"), npy_i64({3, 0, 70000, 4294967295}));
  const length_source memory(stored);
  REQUIRE(tokens_of(memory) == expected);
  for (const file_access access : accesses) {
    const auto raw = length_source::from_u32(scratch.path("f.u32"), access);
    const auto numpy = length_source::from_npy(scratch.path("f.npy"), access);
    REQUIRE(tokens_of(raw) == expected);
    REQUIRE(tokens_of(numpy) == expected);
    REQUIRE(raw.fingerprint() == memory.fingerprint());
    REQUIRE(numpy.fingerprint() == memory.fingerprint());
    REQUIRE_FALSE(raw.traits().has_payload);
    REQUIRE(raw.traits().has_all_shapes);
    REQUIRE_THAT(raw.describe(), ContainsSubstring(scratch.path("f.u32")));
    REQUIRE(raw.identity().files == std::vector{*identify_file(scratch.path("f.u32"))});
  }
  REQUIRE(memory.identity().files.empty());
  REQUIRE(memory.fingerprint() != length_source(std::vector<std::uint32_t>{3}).fingerprint());
}

TEST_CASE("corpus: an empty length table has no records", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f.u32"), "");
  write_file(scratch.path("f.npy"), npy_i64({}));
  for (const file_access access : accesses) {
    REQUIRE(length_source::from_u32(scratch.path("f.u32"), access).size() == 0);
    REQUIRE(length_source::from_npy(scratch.path("f.npy"), access).size() == 0);
  }
  REQUIRE(length_source(std::vector<std::uint32_t>{}).size() == 0);
}

TEST_CASE("corpus: reading tokens of a length table is an error", "[corpus]") {
  const length_source source(std::vector<std::uint32_t>{3});
  source.read({});
  std::array<std::int32_t, 3> tokens;
  const std::vector<record_read> reads = {{0, 0, tokens, {}}};
  REQUIRE_THAT(message_of<state_error>([&] { source.read(reads); }),
               ContainsSubstring("a length table holds no tokens"));
}

TEST_CASE("corpus: lengths outside their range name path, offset and record", "[corpus]") {
  const scratch_dir scratch;
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{4294967296}}) {
    write_file(scratch.path("f.npy"), npy_i64({3, bad}));
    const std::string expected = scratch.path("f.npy") +
                                 ", byte 136, record 1: found a length of " + std::to_string(bad) +
                                 " tokens";
    REQUIRE_THAT(message_of<data_error>(
                     [&] { static_cast<void>(length_source::from_npy(scratch.path("f.npy"))); }),
                 ContainsSubstring(expected));
    const auto mapped = length_source::from_npy(scratch.path("f.npy"), file_access::mapped);
    REQUIRE_THAT(message_of<data_error>([&] { tokens_of(mapped); }), ContainsSubstring(expected));
  }
}

TEST_CASE("corpus: a u32 file of odd size is refused", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f.u32"), "1234567");
  REQUIRE_THAT(message_of<data_error>(
                   [&] { static_cast<void>(length_source::from_u32(scratch.path("f.u32"))); }),
               ContainsSubstring("f.u32, byte 4: found a file of 7 bytes, expected a multiple"));
}

TEST_CASE("corpus: a mapped table that changes is noticed, one in memory stays", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f.u32"), std::string(400, '\1'));
  const auto mapped = length_source::from_u32(scratch.path("f.u32"), file_access::mapped);
  const auto memory = length_source::from_u32(scratch.path("f.u32"));
  std::filesystem::resize_file(scratch.path("f.u32"), 200);
  REQUIRE_THAT(message_of<data_error>([&] { tokens_of(mapped); }),
               ContainsSubstring("byte 200: found a file of 200 bytes, expected 400"));
  REQUIRE(tokens_of(memory).size() == 100);
}

TEST_CASE("corpus: an unknown record of a length table is refused", "[corpus]") {
  const length_source source(std::vector<std::uint32_t>{3});
  std::array<record_shape, 1> shape;
  const std::array<record_id, 1> id = {1};
  REQUIRE_THROWS_AS(source.shapes(id, shape), state_error);
}
