#include <lanepack/tokenizer/unicode.hpp>

#include <cstdint>
#include <string>

#include "support/catch.hpp"

using lanepack::classify_code_point;
using lanepack::unicode_class;

TEST_CASE("tokenizer: code points have the classes of Unicode", "[tokenizer]") {
  CHECK(classify_code_point('A') == unicode_class::upper);
  CHECK(classify_code_point('z') == unicode_class::lower);
  CHECK(classify_code_point('0') == unicode_class::number);
  CHECK(classify_code_point('_') == unicode_class::other);
  CHECK(classify_code_point(' ') == unicode_class::space);
  CHECK(classify_code_point(0x85) == unicode_class::space);
  CHECK(classify_code_point(0x200b) == unicode_class::other);
  CHECK(classify_code_point(0x3000) == unicode_class::space);
  CHECK(classify_code_point(0xb2) == unicode_class::number_symbol);
  CHECK(classify_code_point(0x2167) == unicode_class::number);
  CHECK(classify_code_point(0x301) == unicode_class::mark);
  CHECK(classify_code_point(0x1c5) == unicode_class::upper);
  CHECK(classify_code_point(0x2b0) == unicode_class::letter);
  CHECK(classify_code_point(0x4e2d) == unicode_class::letter);
  CHECK(classify_code_point(0x1f600) == unicode_class::other);
  // The ends of the table of bytes and of extension H.
  CHECK(classify_code_point(0x1ffff) == unicode_class::other);
  CHECK(classify_code_point(0x20000) == unicode_class::letter);
  CHECK(classify_code_point(0x323af) == unicode_class::letter);
  CHECK(classify_code_point(0x323b0) == unicode_class::other);
  CHECK(classify_code_point(0xe0100) == unicode_class::mark);
  CHECK(classify_code_point(0xffffffff) == unicode_class::other);
}

TEST_CASE("tokenizer: UTF-8 is decoded strictly", "[tokenizer]") {
  const auto decoded = [](const std::string& text) {
    const auto point = lanepack::detail::decode_utf8(text.data(), text.data() + text.size());
    if (point.value >= lanepack::detail::ill_formed_byte) {
      REQUIRE(point.bytes == 1);
      return std::int64_t{-1};
    }
    std::string again;
    lanepack::detail::append_utf8(again, point.value);
    CHECK(again == text.substr(0, point.bytes));
    return static_cast<std::int64_t>(point.value);
  };
  CHECK(decoded("a") == 0x61);
  CHECK(decoded("\xc2\x80") == 0x80);
  CHECK(decoded("\xdf\xbf") == 0x7ff);
  CHECK(decoded("\xe0\xa0\x80") == 0x800);
  CHECK(decoded("\xef\xbf\xbf") == 0xffff);
  CHECK(decoded("\xf0\x90\x80\x80") == 0x10000);
  CHECK(decoded("\xf4\x8f\xbf\xbf") == 0x10ffff);
  // Alone, cut, too long, a surrogate, beyond the last.
  for (const char* bad :
       {"\x80", "\xc3", "\xc3z", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    CHECK(decoded(bad) == -1);
  }
}
