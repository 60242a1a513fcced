#include <lanepack/corpus/token_reads.hpp>

#include <array>
#include <cstdint>
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

namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const data_error& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace

TEST_CASE("corpus: runs of tokens are read in any order", "[corpus]") {
  const scratch_dir scratch;
  const std::array<std::uint16_t, 6> stored = {1, 2, 3, 4, 5, 65535};
  write_file(scratch.path("f"), "x" + little_endian(std::span<const std::uint16_t>(stored)));
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    const input_file file(scratch.path("f"), access);
    std::array<std::int32_t, 2> a;
    std::array<std::int32_t, 3> b;
    std::array<std::int32_t, 2> c;
    // The second and third overlap.
    std::vector<token_read> reads = {{9, a, 0}, {1, b, 1}, {5, c, 2}};
    read_tokens(file, token_type::u16, reads);
    REQUIRE(a == std::array<std::int32_t, 2>{5, 65535});
    REQUIRE(b == std::array<std::int32_t, 3>{1, 2, 3});
    REQUIRE(c == std::array<std::int32_t, 2>{3, 4});
  }
}

TEST_CASE("corpus: runs longer than what is converted at a time", "[corpus]") {
  const scratch_dir scratch;
  std::vector<std::int32_t> stored(2000);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::int32_t>(7 * i + 3);
  write_file(scratch.path("f"), little_endian(std::span<const std::int32_t>(stored)));
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    const input_file file(scratch.path("f"), access);
    for (const std::size_t first : {std::size_t{0}, std::size_t{255}, std::size_t{1743}}) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257}}) {
        std::vector<std::int32_t> tokens(count);
        std::vector<std::int32_t> all(stored.size());
        std::vector<token_read> reads = {{4 * first, tokens, 0}, {0, all, 1}};
        read_tokens(file, token_type::i32, reads);
        REQUIRE(all == stored);
        REQUIRE(std::equal(tokens.begin(), tokens.end(),
                           stored.begin() + static_cast<std::ptrdiff_t>(first)));
      }
    }
  }
  stored[1500] = -1;
  write_file(scratch.path("g"), little_endian(std::span<const std::int32_t>(stored)));
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    const input_file file(scratch.path("g"), access);
    std::vector<std::int32_t> all(stored.size());
    std::vector<token_read> reads = {{0, all, 5}};
    REQUIRE_THAT(message_of([&] { read_tokens(file, token_type::i32, reads); }),
                 Catch::Matchers::ContainsSubstring("byte 6000") &&
                     Catch::Matchers::ContainsSubstring("record 5"));
  }
}

TEST_CASE("corpus: a failed byte is traced to its record", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), std::string(10, '\1'));
  std::array<std::int32_t, 6> tokens;
  const std::span<std::int32_t> all(tokens);
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    const input_file file(scratch.path("f"), access);
    std::vector<token_read> outside = {
        {0, all.first(2), 7}, {8, all.first(0), 8}, {8, all.first(4), 9}};
    REQUIRE_THAT(message_of([&] { read_tokens(file, token_type::u8, outside); }),
                 ContainsSubstring("f, byte 8, record 9: found a file of 10 bytes, expected 4"));
    std::vector<token_read> far = {{4000, all.first(1), 3}};
    REQUIRE_THAT(message_of([&] { read_tokens(file, token_type::i64, far); }),
                 ContainsSubstring("f, byte 4000, record 3: "));
  }
}

TEST_CASE("corpus: a failure that is no record's is passed on as it is", "[corpus]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), std::string(10, '\1'));
  const input_file file(scratch.path("f"));
  write_file(scratch.path("g"), std::string(10, '\1'));
  REQUIRE(std::rename(scratch.path("g").c_str(), scratch.path("f").c_str()) == 0);
  std::array<std::int32_t, 2> tokens;
  std::vector<token_read> reads = {{0, tokens, 0}};
  REQUIRE_THAT(message_of([&] { read_tokens(file, token_type::u8, reads); }),
               ContainsSubstring("f: the file was deleted or replaced"));
  std::vector<token_read> none;
  REQUIRE_THROWS_AS(read_tokens(file, token_type::u8, none), data_error);
}
