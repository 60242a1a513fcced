#include <lanepack/core/digest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;

namespace {

digest128 digest_of(const std::string& text, std::uint32_t seed = 0) {
  digest_builder builder(seed);
  builder.bytes(std::as_bytes(std::span(text.data(), text.size())));
  return builder.value();
}

}  // namespace

// The value that SMHasher expects of MurmurHash3_x64_128: keys {0}, {0,1}, ... with seed 256 - n,
// the digests hashed together.
TEST_CASE("core: the digest passes SMHasher's verification", "[core]") {
  digest_builder all;
  std::vector<std::byte> key;
  for (std::uint32_t i = 0; i < 256; ++i) {
    digest_builder one(256 - i);
    one.bytes(key);
    all.digest(one.value());
    key.push_back(static_cast<std::byte>(i));
  }
  REQUIRE((all.value().low & 0xffffffff) == 0x6384ba69);
}

// From an independent implementation in Python.
TEST_CASE("core: digests print high half first", "[core]") {
  REQUIRE(digest_of("").hex() == "00000000000000000000000000000000");
  REQUIRE(digest_of("a").hex() == "e6b53a48510e895a85555565f6597889");
  REQUIRE(digest_of("lanepack").hex() == "a75f8f9bd49bdc7e0598d62724d6052b");
  REQUIRE(digest_of("The quick brown fox jumps over the lazy dog").hex() ==
          "7a433ca9c49a9347e34bbc7bbc071b6c");
}

TEST_CASE("core: a digest does not depend on how its bytes are fed", "[core]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    std::string text(random.between(0, 200), '\0');
    for (char& c : text) c = static_cast<char>(random.between(0, 255));
    digest_builder parts;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t count = random.between(0, std::min<std::size_t>(text.size() - begin, 40));
      parts.bytes(std::as_bytes(std::span(text.data() + begin, count)));
      begin += count;
      static_cast<void>(parts.value());
    }
    REQUIRE(parts.value() == digest_of(text));
  });
}

TEST_CASE("core: numbers are fed little-endian and texts with their length", "[core]") {
  digest_builder number;
  number.number(0x0807060504030201);
  REQUIRE(number.value() == digest_of("\x01\x02\x03\x04\x05\x06\x07\x08"));

  digest_builder text;
  text.text("ab");
  REQUIRE(text.value() == digest_of(std::string("\x02\0\0\0\0\0\0\0ab", 10)));

  digest_builder left;
  left.text("a");
  left.text("bc");
  digest_builder right;
  right.text("ab");
  right.text("c");
  REQUIRE(left.value() != right.value());
}
