#pragma once

/// @file
/// Splits text into the pieces that a byte-level vocabulary is applied to, one by one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/tokenizer/unicode.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The ways to split text, each known as a regular expression to those who use it.
enum class split_pattern : std::uint8_t {
  /// Not at all.
  none,
  /// GPT-2 and its like: contractions, words, numbers and punctuation with a space before them.
  gpt2,
  /// tiktoken's cl100k, Llama 3: numbers of up to three digits, words with any character before.
  llama3,
  /// Qwen2, Qwen3: the same with each digit alone.
  qwen2,
  /// tiktoken's o200k, Llama 4, gpt-oss: words cut before capitals, contractions kept with them.
  o200k,
};

/// A pattern with its name and the regular expression it stands for.
struct named_split_pattern {
  split_pattern pattern;
  std::string_view name;
  std::string_view regex;
};

/// All patterns that have a regular expression; some can be written in two ways.
[[nodiscard]] inline const std::array<named_split_pattern, 5>& split_patterns() {
  static constexpr std::array<named_split_pattern, 5> all = {
      {{split_pattern::gpt2, "gpt2",
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
       {split_pattern::llama3, "llama3",
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
        R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       {split_pattern::llama3, "cl100k",
        R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3})"
        R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
       {split_pattern::qwen2, "qwen2",
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
        R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       {split_pattern::o200k, "o200k",
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
        R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
        R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}};
  return all;
}

/// The pattern that a regular expression stands for, known by its exact text; nullopt for any
/// other.
[[nodiscard]] inline std::optional<split_pattern> find_split_pattern(std::string_view regex) {
  for (const named_split_pattern& each : split_patterns()) {
    if (each.regex == regex) return each.pattern;
  }
  return std::nullopt;
}

namespace detail {

/// Finds the ends of pieces as a backtracking matcher of the pattern's regular expression would.
template <split_pattern Pattern>
class piece_scanner {
 public:
  piece_scanner(const unicode_classes& classes, std::string_view text) noexcept
      : classes_(classes), end_(text.data() + text.size()) {}

  /// End of the piece that starts at `p`, which lies before the text's end; after `p`.
  /// @complexity  O(bytes of the piece, and of the white space that it starts).
  [[nodiscard]] const char* piece_end(const char* p) const noexcept {
    if constexpr (Pattern == split_pattern::gpt2) {
      return gpt2_end(p);
    } else {
      return tiktoken_end(p);
    }
  }

 private:
  struct classified {
    unicode_class what;
    std::uint32_t bytes;
  };

  [[nodiscard]] classified at(const char* p) const noexcept {
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) return {classes_.ascii(byte), 1};
    const code_point point = decode_utf8(p, end_);
    return {classes_.of(point.value), point.bytes};
  }

  static bool is_letter(unicode_class what) noexcept { return what >= unicode_class::upper; }
  static bool is_number(unicode_class what) noexcept {
    return what == unicode_class::number || what == unicode_class::number_symbol;
  }
  static bool is_space(unicode_class what) noexcept { return what == unicode_class::space; }
  /// `[^\s\p{L}\p{N}]`
  static bool is_symbol(unicode_class what) noexcept {
    return what == unicode_class::other || what == unicode_class::mark;
  }
  static bool is_line_break(char c) noexcept { return c == '\n' || c == '\r'; }

  template <class Predicate>
  [[nodiscard]] const char* skip(const char* p, Predicate predicate) const noexcept {
    while (p != end_) {
      const classified next = at(p);
      if (!predicate(next.what)) break;
      p += next.bytes;
    }
    return p;
  }

  /// End of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` at `p`; nullptr where none is.
  template <bool AnyCase>
  [[nodiscard]] const char* contraction_end(const char* p) const noexcept {
    const auto left = static_cast<std::size_t>(end_ - p);
    if (left < 2 || *p != '\'') return nullptr;
    const auto lower = [](char c) {
      return AnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = lower(p[1]);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
    if (left < 3) return nullptr;
    // The long s folds to s.
    if (AnyCase && p[1] == '\xc5' && p[2] == '\xbf') return p + 3;
    const char second = lower(p[2]);
    const bool is_pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                         (first == 'l' && second == 'l');
    return is_pair ? p + 3 : nullptr;
  }

  /// `\s+(?!\S)|\s+`: all of the white space but the last character, which goes to what follows.
  [[nodiscard]] const char* space_end(const char* p) const noexcept {
    const char* last = p;
    const char* next = p;
    while (next != end_) {
      const classified each = at(next);
      if (!is_space(each.what)) return last == p ? next : last;
      last = next;
      next += each.bytes;
    }
    return next;
  }

  /// `\s*[\r\n]+|\s+(?!\S)|\s+`
  [[nodiscard]] const char* space_or_lines_end(const char* p) const noexcept {
    const char* after_line = nullptr;
    const char* last = p;
    const char* next = p;
    while (next != end_) {
      const classified each = at(next);
      if (!is_space(each.what)) break;
      if (is_line_break(*next)) after_line = next + 1;
      last = next;
      next += each.bytes;
    }
    if (after_line != nullptr) return after_line;
    return next == end_ || last == p ? next : last;
  }

  [[nodiscard]] const char* gpt2_end(const char* p) const noexcept {
    if (*p == '\'') {
      if (const char* const end = contraction_end<false>(p)) return end;
    }
    classified first = at(p);
    const char* start = p;
    if (*p == ' ' && p + 1 != end_) {
      const classified second = at(p + 1);
      if (!is_space(second.what)) {
        first = second;
        start = p + 1;
      }
    }
    if (is_letter(first.what)) return skip(start + first.bytes, is_letter);
    if (is_number(first.what)) return skip(start + first.bytes, is_number);
    if (is_symbol(first.what)) return skip(start + first.bytes, is_symbol);
    return space_end(p);
  }

  [[nodiscard]] const char* tiktoken_end(const char* p) const noexcept {
    if constexpr (Pattern != split_pattern::o200k) {
      if (*p == '\'') {
        if (const char* const end = contraction_end<true>(p)) return end;
      }
    }
    const classified first = at(p);
    if (const char* const end = word_end(p, first)) return end;
    if (is_number(first.what)) return number_end(p + first.bytes);
    if (is_symbol(first.what)) return symbols_end(p + first.bytes);
    if (*p == ' ' && p + 1 != end_) {
      const classified second = at(p + 1);
      if (is_symbol(second.what)) return symbols_end(p + 1 + second.bytes);
    }
    return space_or_lines_end(p);
  }

  [[nodiscard]] const char* number_end(const char* p) const noexcept {
    if constexpr (Pattern != split_pattern::qwen2) {
      for (int digits = 1; digits < 3 && p != end_; ++digits) {
        const classified next = at(p);
        if (!is_number(next.what)) break;
        p += next.bytes;
      }
    }
    return p;
  }

  [[nodiscard]] const char* symbols_end(const char* p) const noexcept {
    p = skip(p, is_symbol);
    while (p != end_ && (is_line_break(*p) || (Pattern == split_pattern::o200k && *p == '/'))) ++p;
    return p;
  }

  /// End of a word at `p`, with a character before it that is neither letter nor number nor line
  /// break; nullptr where there is no word.
  [[nodiscard]] const char* word_end(const char* p, const classified& first) const noexcept {
    const bool takes_first = !is_letter(first.what) && !is_number(first.what) && !is_line_break(*p);
    if constexpr (Pattern == split_pattern::o200k) {
      const char* const start = takes_first ? p + first.bytes : p;
      const cased_end after = cased_word_end(start);
      if (after.has_lower) return with_contraction(after.end);
      // A mark may be the word itself as well as the character before it.
      if (takes_first && first.what == unicode_class::mark) {
        const cased_end own = cased_word_end(p);
        if (own.has_lower) return with_contraction(own.end);
      }
      if (after.end != start) return with_contraction(after.end);
      return nullptr;
    } else {
      if (is_letter(first.what)) return skip(p + first.bytes, is_letter);
      if (!takes_first) return nullptr;
      const char* const start = p + first.bytes;
      const char* const end = skip(start, is_letter);
      return end == start ? nullptr : end;
    }
  }

  struct cased_end {
    const char* end;
    /// It ends in a run of `[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`.
    bool has_lower;
  };

  /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, else the run of the first set.
  [[nodiscard]] cased_end cased_word_end(const char* p) const noexcept {
    const auto has_no_case = [](unicode_class what) {
      return what == unicode_class::letter || what == unicode_class::mark;
    };
    const char* after_caseless = nullptr;
    while (p != end_) {
      const classified next = at(p);
      if (next.what != unicode_class::upper && !has_no_case(next.what)) break;
      p += next.bytes;
      if (has_no_case(next.what)) after_caseless = p;
    }
    const char* const end = skip(
        p, [&](unicode_class what) { return what == unicode_class::lower || has_no_case(what); });
    if (end != p) return {end, true};
    // Letters without case are in both sets: the second takes the last of them back.
    if (after_caseless != nullptr) return {after_caseless, true};
    return {p, false};
  }

  [[nodiscard]] const char* with_contraction(const char* p) const noexcept {
    if (p == end_) return p;
    const char* const end = contraction_end<true>(p);
    return end != nullptr ? end : p;
  }

  const unicode_classes& classes_;
  const char* end_;
};

template <split_pattern Pattern, class Visit>
void visit_pieces(std::string_view text, Visit& visit) {
  const piece_scanner<Pattern> scanner(unicode_classes::table(), text);
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const char* const next = scanner.piece_end(p);
    visit(std::string_view(p, static_cast<std::size_t>(next - p)));
    p = next;
  }
}

}  // namespace detail

/// Calls `visit(piece)` for the pieces of `text` from first to last; together they are `text`.
///
/// A byte that starts no well-formed UTF-8 sequence counts as a symbol of its own.
/// @param text   Any bytes.
/// @param visit  Takes a std::string_view, never empty, into `text`.
/// @complexity   O(bytes).
template <class Visit>
void for_each_piece(split_pattern pattern, std::string_view text, Visit&& visit) {
  switch (pattern) {
    case split_pattern::none:
      if (!text.empty()) visit(text);
      return;
    case split_pattern::gpt2:
      return detail::visit_pieces<split_pattern::gpt2>(text, visit);
    case split_pattern::llama3:
      return detail::visit_pieces<split_pattern::llama3>(text, visit);
    case split_pattern::qwen2:
      return detail::visit_pieces<split_pattern::qwen2>(text, visit);
    case split_pattern::o200k:
      return detail::visit_pieces<split_pattern::o200k>(text, visit);
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
