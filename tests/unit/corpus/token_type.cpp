#include <lanepack/corpus/token_type.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

using namespace lanepack;

namespace {

constexpr std::array<token_type, 8> all_types = {token_type::u8,  token_type::i8,  token_type::u16,
                                                 token_type::i16, token_type::u32, token_type::i32,
                                                 token_type::u64, token_type::i64};

struct decoded {
  std::vector<std::int32_t> ids;
  std::size_t good = 0;
};

/// Decodes from an odd address.
decoded decode(token_type type, const std::string& stored) {
  std::vector<std::byte> bytes(stored.size() + 1);
  std::memcpy(bytes.data() + 1, stored.data(), stored.size());
  decoded result;
  result.ids.resize(stored.size() / token_bytes(type));
  result.good = decode_tokens(type, bytes.data() + 1, result.ids);
  std::vector<std::int32_t> apart(result.ids.size());
  REQUIRE(decode_tokens_apart(type, bytes.data() + 1, apart) == result.good);
  REQUIRE(std::equal(apart.begin(), apart.begin() + static_cast<std::ptrdiff_t>(result.good),
                     result.ids.begin()));
  return result;
}

}  // namespace

TEST_CASE("corpus: token types have sizes and names", "[corpus]") {
  const std::array<std::size_t, 8> sizes = {1, 1, 2, 2, 4, 4, 8, 8};
  const std::array<std::string, 8> names = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};
  const std::array<std::string, 8> long_names = {"uint8",  "int8",  "uint16", "int16",
                                                 "uint32", "int32", "uint64", "int64"};
  for (std::size_t i = 0; i < all_types.size(); ++i) {
    REQUIRE(token_bytes(all_types[i]) == sizes[i]);
    REQUIRE(token_type_name(all_types[i]) == names[i]);
    REQUIRE(parse_token_type(names[i]) == all_types[i]);
    REQUIRE(parse_token_type(long_names[i]) == all_types[i]);
  }
  REQUIRE_FALSE(parse_token_type("f32").has_value());
  REQUIRE_FALSE(parse_token_type("").has_value());
}

TEST_CASE("corpus: the largest id of a type is what it stores, up to 2^31 - 1", "[corpus]") {
  REQUIRE(max_token_id(token_type::u8) == 255);
  REQUIRE(max_token_id(token_type::i8) == 127);
  REQUIRE(max_token_id(token_type::u16) == 65535);
  REQUIRE(max_token_id(token_type::i16) == 32767);
  for (const token_type type :
       {token_type::u32, token_type::i32, token_type::u64, token_type::i64}) {
    REQUIRE(max_token_id(type) == 2147483647);
  }
}

TEST_CASE("corpus: numbers are decoded little-endian from any address", "[corpus]") {
  using lanepack_test::little_endian;
  for (const token_type type : all_types) {
    CAPTURE(std::string(token_type_name(type)));
    const decoded one = decode(type, detail::with_token_type(type, [](auto zero) {
                                 using stored = decltype(zero);
                                 return little_endian(stored{0}) + little_endian(stored{1}) +
                                        little_endian(std::numeric_limits<stored>::max());
                               }));
    REQUIRE(one.ids[0] == 0);
    REQUIRE(one.ids[1] == 1);
    if (type == token_type::u32 || token_bytes(type) == 8) {
      REQUIRE(one.good == 2);
    } else {
      REQUIRE(one.good == 3);
      REQUIRE(one.ids[2] == max_token_id(type));
    }
  }
}

TEST_CASE("corpus: the first number outside the range is found wherever it stands", "[corpus]") {
  lanepack_test::for_each_seed(300, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const token_type type = random.pick(std::span<const token_type>(all_types));
    const std::size_t count = random.between(1, 300);
    detail::with_token_type(type, [&](auto zero) {
      using stored = decltype(zero);
      std::vector<stored> numbers(count);
      std::size_t first_bad = count;
      for (std::size_t i = 0; i < count; ++i) {
        const bool wide = random.one_in(200);
        numbers[i] = static_cast<stored>(
            wide ? random.bits()
                 : random.between(0, static_cast<std::uint64_t>(max_token_id(type))));
        // Of the value itself, not of its bits.
        const bool bad = numbers[i] < 0 || static_cast<std::uint64_t>(numbers[i]) > 2147483647;
        if (bad && first_bad == count) first_bad = i;
      }
      const decoded found =
          decode(type, lanepack_test::little_endian(std::span<const stored>(numbers)));
      REQUIRE(found.good == first_bad);
      for (std::size_t i = 0; i < first_bad; ++i) {
        REQUIRE(static_cast<stored>(found.ids[i]) == numbers[i]);
      }
    });
  });
}

TEST_CASE("corpus: narrow numbers are widened in place", "[corpus]") {
  lanepack_test::for_each_seed(100, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const std::size_t count = random.between(0, 500);
    for (const token_type type : {token_type::u8, token_type::u16, token_type::u32}) {
      std::vector<std::int32_t> memory(count);
      std::vector<std::int32_t> expected(count);
      const std::size_t bytes = token_bytes(type);
      auto* tail =
          reinterpret_cast<std::byte*>(memory.data()) + count * (sizeof(std::int32_t) - bytes);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t id = random.between(0, static_cast<std::uint64_t>(max_token_id(type)));
        expected[i] = static_cast<std::int32_t>(id);
        std::memcpy(tail + i * bytes, &id, bytes);
      }
      REQUIRE(decode_tokens(type, tail, memory) == count);
      REQUIRE(memory == expected);
    }
  });
}

TEST_CASE("corpus: the first negative id is found", "[corpus]") {
  for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 200U}) {
    std::vector<std::int32_t> ids(count, 2147483647);
    REQUIRE(detail::first_negative(ids) == count);
    for (std::size_t i = 0; i < count; ++i) {
      ids[i] = -1;
      REQUIRE(detail::first_negative(ids) == i);
      ids[i] = 0;
    }
  }
}

TEST_CASE("corpus: stored numbers are shown with their sign", "[corpus]") {
  const std::array<std::byte, 8> ones = {std::byte{255}, std::byte{255}, std::byte{255},
                                         std::byte{255}, std::byte{255}, std::byte{255},
                                         std::byte{255}, std::byte{255}};
  REQUIRE(detail::number_text(token_type::u8, ones.data()) == "255");
  REQUIRE(detail::number_text(token_type::i8, ones.data()) == "-1");
  REQUIRE(detail::number_text(token_type::u32, ones.data()) == "4294967295");
  REQUIRE(detail::number_text(token_type::i32, ones.data()) == "-1");
  REQUIRE(detail::number_text(token_type::u64, ones.data()) == "18446744073709551615");
  REQUIRE(detail::number_text(token_type::i64, ones.data()) == "-1");
}
