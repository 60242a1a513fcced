#include <lanepack/corpus/cache_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

TEST_CASE("corpus: a cache file gives back what was put in", "[corpus]") {
  const scratch_dir scratch;
  detail::cache_writer out;
  out.number(0x0102030405060708);
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{300},
        ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    out.small_number(value);
  }
  out.text("");
  out.text("text");
  REQUIRE(out.save(scratch.path("c"), "kind 1"));

  detail::cache_reader in(scratch.path("c"), "kind 1");
  REQUIRE(in.good());
  REQUIRE(in.number() == 0x0102030405060708);
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{300},
        ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    REQUIRE(in.small_number() == value);
  }
  REQUIRE(in.text().empty());
  REQUIRE_FALSE(in.at_end());
  REQUIRE(in.text() == "text");
  REQUIRE(in.good());
  REQUIRE(in.at_end());
}

TEST_CASE("corpus: the layout of a cache file is fixed", "[corpus]") {
  const scratch_dir scratch;
  detail::cache_writer out;
  out.number(1);
  out.small_number(300);
  REQUIRE(out.save(scratch.path("c"), "k"));
  const std::string bytes = read_file(scratch.path("c"));
  REQUIRE(bytes.size() == 2 + 8 + 8 + 2 + 16);
  REQUIRE(bytes.substr(0, 20) == std::string("k\n\12\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\xac\2", 20));
}

TEST_CASE("corpus: reads past the end of a cache file give zeros", "[corpus]") {
  const scratch_dir scratch;
  detail::cache_writer out;
  out.number(5);
  REQUIRE(out.save(scratch.path("c"), "k"));
  {
    detail::cache_reader in(scratch.path("c"), "k");
    REQUIRE(in.number() == 5);
    REQUIRE(in.number() == 0);
    REQUIRE_FALSE(in.good());
    REQUIRE(in.small_number() == 0);
    REQUIRE(in.text().empty());
  }
  {
    // The number 5 is too long for a text.
    detail::cache_reader in(scratch.path("c"), "k");
    REQUIRE(in.text().empty());
    REQUIRE_FALSE(in.good());
  }
}

TEST_CASE("corpus: a number of more than 64 bits is damage", "[corpus]") {
  const scratch_dir scratch;
  for (const unsigned last : {2U, 128U}) {
    detail::cache_writer out;
    for (int i = 0; i < 9; ++i) out.number(~std::uint64_t{0});
    out.small_number(last);
    REQUIRE(out.save(scratch.path("c"), "k"));
    detail::cache_reader in(scratch.path("c"), "k");
    for (int i = 0; i < 7; ++i) static_cast<void>(in.number());
    REQUIRE(in.good());
    REQUIRE(in.small_number() == 0);
    REQUIRE_FALSE(in.good());
  }
}

TEST_CASE("corpus: cache files of another kind, damaged or missing are not good", "[corpus]") {
  const scratch_dir scratch;
  detail::cache_writer out;
  out.text("payload");
  REQUIRE(out.save(scratch.path("c"), "kind 1"));
  REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind 2").good());
  REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind").good());
  REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind 11").good());
  REQUIRE_FALSE(detail::cache_reader(scratch.path("missing"), "kind 1").good());
  REQUIRE_FALSE(detail::cache_reader(scratch.path(), "kind 1").good());
  const std::string whole = read_file(scratch.path("c"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] + 1);
    write_file(scratch.path("c"), damaged);
    REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind 1").good());
  }
}

TEST_CASE("corpus: a cache file that has grown is damaged and not read", "[corpus]") {
  const scratch_dir scratch;
  detail::cache_writer out;
  out.text("payload");
  REQUIRE(out.save(scratch.path("c"), "kind 1"));
  // More than any memory: holes take no room on the device.
  std::filesystem::resize_file(scratch.path("c"), std::uint64_t{1} << 42);
  REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind 1").good());
  write_file(scratch.path("c"), "");
  std::filesystem::resize_file(scratch.path("c"), std::uint64_t{1} << 42);
  REQUIRE_FALSE(detail::cache_reader(scratch.path("c"), "kind 1").good());
}

TEST_CASE("corpus: a key is equal to itself alone", "[corpus]") {
  const scratch_dir scratch;
  const cache_key key{.files = {{1, 2}}, .variant = "v"};
  detail::cache_writer out;
  detail::write_key(out, key);
  REQUIRE(out.save(scratch.path("c"), "k"));
  const auto matches = [&](const cache_key& other) {
    detail::cache_reader in(scratch.path("c"), "k");
    return detail::read_key(in, other);
  };
  REQUIRE(matches(key));
  REQUIRE_FALSE(matches({.files = {{1, 3}}, .variant = "v"}));
  REQUIRE_FALSE(matches({.files = {{2, 2}}, .variant = "v"}));
  REQUIRE_FALSE(matches({.files = {}, .variant = "v"}));
  REQUIRE_FALSE(matches({.files = {{1, 2}, {1, 2}}, .variant = "v"}));
  REQUIRE_FALSE(matches({.files = {{1, 2}}, .variant = "w"}));
}
