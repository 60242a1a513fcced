#pragma once

/// @file
/// Code points of UTF-8 text and their classes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/tokenizer/unicode_tables.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What patterns of tokenizers tell apart, in the terms of regular expressions.
enum class unicode_class : std::uint8_t {
  /// Everything else: punctuation, symbols, unassigned code points, bytes that are no UTF-8.
  other,
  /// `\s`.
  space,
  /// `\p{No}`: superscripts, fractions, numbers in circles.
  number_symbol,
  /// `\p{Nd}` and `\p{Nl}`.
  number,
  /// `\p{M}`.
  mark,
  /// `\p{Lu}` and `\p{Lt}`.
  upper,
  /// `\p{Ll}`.
  lower,
  /// `\p{Lm}` and `\p{Lo}`: letters without case.
  letter,
};

namespace detail {

/// A code point and the bytes that it takes.
struct code_point {
  std::uint32_t value;
  std::uint32_t bytes;
};

/// No code point: a byte that starts no well-formed sequence. Adding the byte keeps it.
inline constexpr std::uint32_t ill_formed_byte = 0x8000'0000;

/// The code point at `p`, which lies before `end`. A byte that starts no well-formed sequence
/// (Unicode, table 3-7) stands alone: what follows is looked at anew.
[[nodiscard]] inline code_point decode_utf8(const char* p, const char* end) noexcept {
  const auto byte = [p](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(p[i])}; };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const auto left = static_cast<std::size_t>(end - p);
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (first >= 0xc2 && first < 0xe0) {
    if (left >= 2 && follows(1)) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  } else if (first >= 0xe0 && first < 0xf0) {
    if (left >= 3 && follows(1) && follows(2)) {
      const std::uint32_t value = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
      if (value >= 0x800 && (value < 0xd800 || value >= 0xe000)) return {value, 3};
    }
  } else if (first >= 0xf0 && first < 0xf5) {
    if (left >= 4 && follows(1) && follows(2) && follows(3)) {
      const std::uint32_t value =
          (first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
      if (value >= 0x1'0000 && value < 0x11'0000) return {value, 4};
    }
  }
  return {ill_formed_byte + first, 1};
}

/// Appends a code point, or an ill-formed byte as it was.
inline void append_utf8(std::string& out, std::uint32_t value) {
  const auto put = [&out](std::uint32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (value < 0x80) {
    put(value);
  } else if (value >= ill_formed_byte) {
    put(value - ill_formed_byte);
  } else if (value < 0x800) {
    put(0xc0 | value >> 6);
    put(0x80 | (value & 0x3f));
  } else if (value < 0x1'0000) {
    put(0xe0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  } else {
    put(0xf0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3f));
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  }
}

/// The class of every code point: a byte each for the first planes, where nearly all text lies.
class unicode_classes {
 public:
  /// The one table, made when it is first asked for.
  [[nodiscard]] static const unicode_classes& table() {
    static const unicode_classes made;
    return made;
  }

  [[nodiscard]] unicode_class ascii(unsigned char byte) const noexcept { return low_[byte]; }

  /// Class of a code point; of an ill-formed byte `other`.
  [[nodiscard]] unicode_class of(std::uint32_t value) const noexcept {
    if (value < low_.size()) return low_[value];
    if (value >= ill_formed_byte) return unicode_class::other;
    const auto* run = std::upper_bound(std::begin(unicode_class_runs), std::end(unicode_class_runs),
                                       value << 3 | 7);
    return static_cast<unicode_class>(*std::prev(run) & 7);
  }

 private:
  unicode_classes() {
    std::size_t next = 0;
    unicode_class current = unicode_class::other;
    for (const std::uint32_t run : unicode_class_runs) {
      const std::size_t first = std::min<std::size_t>(run >> 3, low_.size());
      std::fill(low_.begin() + static_cast<std::ptrdiff_t>(next),
                low_.begin() + static_cast<std::ptrdiff_t>(first), current);
      next = first;
      current = static_cast<unicode_class>(run & 7);
    }
    std::fill(low_.begin() + static_cast<std::ptrdiff_t>(next), low_.end(), current);
  }

  std::array<unicode_class, 0x2'0000> low_;
};

}  // namespace detail

/// Class of a code point of Unicode 16; above U+10FFFF `other`.
[[nodiscard]] inline unicode_class classify_code_point(std::uint32_t value) {
  return value > 0x10'ffff ? unicode_class::other : detail::unicode_classes::table().of(value);
}

}  // namespace lanepack::inline LANEPACK_ABI
