#pragma once

/// @file
/// Tokens that are found in text as they are spelled, before it is split into pieces.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/unicode.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A token that a vocabulary has beside those it learnt.
struct added_token {
  /// How it is spelled; not empty.
  std::string text;
  std::int32_t id = 0;
  /// Special tokens mark structure; they are never found in text, only placed by the caller.
  bool special = false;
  /// It is looked for in normalized text, and normalized itself; else in text as it comes.
  bool normalized = false;
  /// White space before it belongs to it.
  bool strip_left = false;
  /// White space after it belongs to it.
  bool strip_right = false;
  /// It is no token beside a word's character (`\w`).
  bool single_word = false;

  friend bool operator==(const added_token&, const added_token&) = default;
};

namespace detail {

inline void check_added_tokens(const std::vector<added_token>& added, std::size_t max_tokens) {
  const auto refuse = [](const added_token& token, const std::string& expected) {
    throw_invalid_option(
        "added", detail::quoted(token.text) + " with the id " + std::to_string(token.id), expected);
  };
  for (const added_token& each : added) {
    if (each.text.empty()) refuse(each, "a spelling");
    if (each.id < 0 || static_cast<std::size_t>(each.id) >= max_tokens) {
      refuse(each, "an id below " + std::to_string(max_tokens));
    }
  }
  const auto check_different = [&](auto key) {
    std::vector<const added_token*> order;
    order.reserve(added.size());
    for (const added_token& each : added) order.push_back(&each);
    std::sort(order.begin(), order.end(),
              [&](const added_token* a, const added_token* b) { return key(*a) < key(*b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (key(*order[i - 1]) == key(*order[i])) {
        refuse(*order[i], "different spellings and ids of added tokens");
      }
    }
  };
  check_different([](const added_token& token) { return std::string_view(token.text); });
  check_different([](const added_token& token) { return token.id; });
}

/// An added token and the text that it is found by.
struct added_pattern {
  added_token token;
  std::string wanted;
};

/// Cuts text at added tokens: at every place the longest one, from left to right.
/// @complexity  O(bytes) where no token starts, at most the longest token's bytes at a place.
class added_token_splitter {
 public:
  added_token_splitter() = default;
  explicit added_token_splitter(std::vector<added_pattern> patterns)
      : patterns_(std::move(patterns)) {
    std::stable_sort(
        patterns_.begin(), patterns_.end(),
        [](const added_pattern& a, const added_pattern& b) { return a.wanted < b.wanted; });
    // What normalization made equal to another is never found.
    patterns_.erase(std::unique(patterns_.begin(), patterns_.end(),
                                [](const added_pattern& a, const added_pattern& b) {
                                  return a.wanted == b.wanted;
                                }),
                    patterns_.end());
    for (const added_pattern& each : patterns_) {
      starts_[static_cast<unsigned char>(each.wanted[0])] = true;
      finds_any_ = finds_any_ || !each.token.special;
    }
  }

  /// Calls `text_part(part)` and `token(id)` from left to right; no part is empty.
  template <class TextPart, class Token>
  void split(std::string_view text, TextPart&& text_part, Token&& token) const {
    if (!finds_any_) {
      if (!text.empty()) text_part(text);
      return;
    }
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size();) {
      const added_pattern* const found =
          starts_[static_cast<unsigned char>(text[at])] ? longest(text.substr(at)) : nullptr;
      if (found == nullptr) {
        ++at;
        continue;
      }
      std::size_t first = at;
      std::size_t last = at + found->wanted.size();
      // What a special token covers is text all the same, and no other token is found in it.
      at = last;
      if (found->token.special) continue;
      if (found->token.single_word && !stands_alone(text, first, last)) continue;
      if (found->token.strip_left) first = std::max(before_spaces(text, first), start);
      if (found->token.strip_right) last = after_spaces(text, last);
      if (start < first) text_part(text.substr(start, first - start));
      token(found->token.id);
      start = last;
    }
    if (start != text.size()) text_part(text.substr(start));
  }

 private:
  /// The longest pattern that `text` starts with: the patterns that share its first bytes are
  /// neighbours, so the range of them narrows byte by byte.
  [[nodiscard]] const added_pattern* longest(std::string_view text) const {
    auto first = patterns_.begin();
    auto last = patterns_.end();
    const added_pattern* found = nullptr;
    for (std::size_t i = 0; first != last; ++i) {
      if (first->wanted.size() == i) {
        found = &*first;
        ++first;
      }
      if (i == text.size()) break;
      const auto byte = static_cast<unsigned char>(text[i]);
      const auto byte_at = [i](const added_pattern& each) {
        return static_cast<unsigned char>(each.wanted[i]);
      };
      first = std::partition_point(first, last,
                                   [&](const added_pattern& each) { return byte_at(each) < byte; });
      last = std::partition_point(first, last,
                                  [&](const added_pattern& each) { return byte_at(each) == byte; });
    }
    return found;
  }

  /// `\w`: alphabetic, marks, decimal numbers, connecting punctuation and joiners.
  static bool is_word(std::uint32_t value) {
    switch (classify_code_point(value)) {
      case unicode_class::space:
      case unicode_class::number_symbol:
        return false;
      case unicode_class::other:
        break;
      default:
        return true;
    }
    constexpr std::pair<std::uint32_t, std::uint32_t> others[] = {
        {'_', '_'},         {0x200c, 0x200d},   {0x203f, 0x2040},  {0x2054, 0x2054},
        {0x24b6, 0x24e9},   {0xfe33, 0xfe34},   {0xfe4d, 0xfe4f},  {0xff3f, 0xff3f},
        {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    return std::any_of(std::begin(others), std::end(others), [value](const auto& each) {
      return value >= each.first && value <= each.second;
    });
  }

  /// Start of the code point that ends at `last`.
  static std::size_t previous_point(std::string_view text, std::size_t last) {
    for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(last, 4); ++bytes) {
      const code_point point = decode_utf8(text.data() + last - bytes, text.data() + last);
      if (point.value < ill_formed_byte && point.bytes == bytes) return last - bytes;
    }
    return last - 1;
  }

  static std::uint32_t point_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size()).value;
  }

  static bool stands_alone(std::string_view text, std::size_t first, std::size_t last) {
    if (first != 0 && is_word(point_at(text.substr(0, first), previous_point(text, first)))) {
      return false;
    }
    return last == text.size() || !is_word(point_at(text, last));
  }

  static std::size_t before_spaces(std::string_view text, std::size_t at) {
    while (at != 0) {
      const std::size_t previous = previous_point(text, at);
      const std::uint32_t value = point_at(text.substr(0, at), previous);
      if (classify_code_point(value) != unicode_class::space) break;
      at = previous;
    }
    return at;
  }

  static std::size_t after_spaces(std::string_view text, std::size_t at) {
    while (at != text.size()) {
      const code_point point = decode_utf8(text.data() + at, text.data() + text.size());
      if (classify_code_point(point.value) != unicode_class::space) break;
      at += point.bytes;
    }
    return at;
  }

  std::vector<added_pattern> patterns_;
  std::array<bool, 256> starts_{};
  bool finds_any_ = false;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
