#include <lanepack/tokenizer/normalization.hpp>

#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/gen.hpp"

using lanepack::normalize_nfc;

TEST_CASE("tokenizer: form C composes, orders marks and knows Hangul", "[tokenizer]") {
  CHECK(normalize_nfc("").empty());
  CHECK(normalize_nfc("plain ASCII, longer than a word") == "plain ASCII, longer than a word");
  CHECK(normalize_nfc("caf\xc3\xa9") == "caf\xc3\xa9");
  CHECK(normalize_nfc("cafe\xcc\x81 and more text") == "caf\xc3\xa9 and more text");
  // q with dot above and dot below: the one below comes first; d composes with it.
  CHECK(normalize_nfc("q\xcc\x87\xcc\xa3") == "q\xcc\xa3\xcc\x87");
  CHECK(normalize_nfc("d\xcc\x87\xcc\xa3") == "\xe1\xb8\x8d\xcc\x87");
  CHECK(normalize_nfc("\xe1\xb8\x8b\xcc\xa3") == "\xe1\xb8\x8d\xcc\x87");
  // Singletons, exclusions, three steps.
  CHECK(normalize_nfc("\xe2\x84\xab") == "\xc3\x85");
  CHECK(normalize_nfc("\xe2\x84\xa6") == "\xce\xa9");
  CHECK(normalize_nfc("\xe0\xa5\x98") == "\xe0\xa4\x95\xe0\xa4\xbc");
  CHECK(normalize_nfc("a\xcc\x88\xcc\x84") == "\xc7\x9f");
  // Lead, vowel and tail; a syllable and a tail; a syllable with a tail takes no other.
  CHECK(normalize_nfc("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab") == "\xed\x95\x9c");
  CHECK(normalize_nfc("\xed\x95\x98\xe1\x86\xab") == "\xed\x95\x9c");
  CHECK(normalize_nfc("\xed\x95\x9c\xe1\x86\xab") == "\xed\x95\x9c\xe1\x86\xab");
  // A lone mark at the start, and one after a byte that is no UTF-8.
  CHECK(normalize_nfc("\xcc\x81x") == "\xcc\x81x");
  CHECK(normalize_nfc("\xff\xcc\x81"
                      "e\xcc\x81") == "\xff\xcc\x81\xc3\xa9");
  // A mark of the same class stands between.
  CHECK(normalize_nfc("e\xcc\x82\xcc\x81\xcc\x80") == "\xe1\xba\xbf\xcc\x80");
  CHECK(normalize_nfc("e\xcc\x8d\xcc\x81") == "e\xcc\x8d\xcc\x81");
}

TEST_CASE("tokenizer: form C of form C is the same", "[tokenizer]") {
  constexpr std::string_view some[] = {"a",
                                       "e",
                                       " ",
                                       "\xcc\x81",
                                       "\xcc\xa3",
                                       "\xcc\x88",
                                       "\xcd\x85",
                                       "\xc3\xa9",
                                       "\xe1\xb8\x8d",
                                       "\xe1\x84\x92",
                                       "\xe1\x85\xa1",
                                       "\xe1\x86\xab",
                                       "\xed\x95\x98",
                                       "\xe4\xb8\xad",
                                       "\xff",
                                       "\xe2\x84\xab"};
  lanepack_test::for_each_seed(500, [&](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    std::string text;
    for (std::uint64_t i = random.between(0, 30); i > 0; --i) text += random.pick(some);
    const std::string once = normalize_nfc(text);
    REQUIRE(normalize_nfc(once) == once);
    // A text in front that does not compose changes nothing.
    REQUIRE(normalize_nfc("abcdefghijkl." + text) == "abcdefghijkl." + once);
  });
}
