#pragma once

/// @file
/// `text_line_parser`: one line of a JSON Lines file to the text of one of its keys.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/json/token_line.hpp>
#include <lanepack/tokenizer/unicode.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// What a JSON value is, by its first byte.
inline const char* json_kind(char first) {
  switch (first) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

/// The number that four hexadecimal digits stand for.
inline std::uint32_t hex_value(std::string_view digits) {
  std::uint32_t value = 0;
  for (const char c : digits) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

/// Replaces `out` by what a string that `json_cursor::string` has walked over stands for. Returns
/// the position of half a surrogate pair, which stands for no text, or npos.
inline std::size_t unescape_json(std::string_view raw, std::string& out) {
  out.clear();
  for (std::size_t at = 0;;) {
    const std::size_t backslash = raw.find('\\', at);
    out += raw.substr(at, backslash - at);
    if (backslash == std::string_view::npos) return backslash;
    const char kind = raw[backslash + 1];
    at = backslash + 2;
    if (kind != 'u') {
      constexpr std::string_view letters = "bfnrt";
      constexpr std::string_view characters = "\b\f\n\r\t";
      const std::size_t which = letters.find(kind);
      out += which == std::string_view::npos ? kind : characters[which];
      continue;
    }
    std::uint32_t code = hex_value(raw.substr(at, 4));
    at += 4;
    if (code >= 0xd800 && code < 0xe000) {
      const bool has_second = code < 0xdc00 && raw.substr(at).starts_with("\\u");
      const std::uint32_t second = has_second ? hex_value(raw.substr(at + 2, 4)) : 0;
      if (second < 0xdc00 || second >= 0xe000) return backslash;
      code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
      at += 6;
    }
    append_utf8(out, code);
  }
}

/// Walks over an object; calls `member(key, key_offset)` with the cursor at each value, which it
/// has to walk over. Returns false where that did, or where the text is no object.
template <class Member>
bool walk_json_object(json_cursor& cursor, Member&& member) {
  if (!cursor.take('{')) return cursor.fail_here("an object");
  cursor.skip_space();
  if (cursor.take('}')) return true;
  std::string key;
  for (;;) {
    if (cursor.at_end() || cursor.peek() != '"') return cursor.fail_here("a key");
    const std::size_t offset = cursor.position();
    std::string_view raw;
    bool has_escape = false;
    if (!cursor.string(raw, has_escape)) return false;
    key = has_escape ? unescape_json_key(raw) : std::string(raw);
    cursor.skip_space();
    if (!cursor.take(':')) return cursor.fail_here("':'");
    cursor.skip_space();
    if (!member(std::string_view(key), offset)) return false;
    cursor.skip_space();
    if (cursor.take('}')) return true;
    if (!cursor.take(',')) return cursor.fail_here("',' or '}'");
    cursor.skip_space();
  }
}

/// Walks over an array; calls `element(index)` with the cursor at each value, as
/// `walk_json_object`.
template <class Element>
bool walk_json_array(json_cursor& cursor, Element&& element) {
  if (!cursor.take('[')) return cursor.fail_here("an array");
  cursor.skip_space();
  if (cursor.take(']')) return true;
  for (std::size_t index = 0;; ++index) {
    cursor.skip_space();
    if (!element(index)) return false;
    cursor.skip_space();
    if (cursor.take(']')) return true;
    if (!cursor.take(',')) return cursor.fail_here("',' or ']'");
  }
}

/// Reads values of a line that is known to be JSON.
class json_value_reader {
 public:
  explicit json_value_reader(std::string_view line) : cursor_(line) {}

  [[nodiscard]] json_cursor& cursor() noexcept { return cursor_; }

  [[nodiscard]] bool is(char first) const noexcept {
    return !cursor_.at_end() && cursor_.peek() == first;
  }

  /// Reads a string; `name` leads to it, for messages.
  bool text(std::string_view name, std::string& out) {
    if (!is('"')) return fail(name, "a string");
    const std::size_t start = cursor_.position() + 1;
    std::string_view raw;
    bool has_escape = false;
    if (!cursor_.string(raw, has_escape)) return false;
    if (!has_escape) {
      out = raw;
      return true;
    }
    const std::size_t half = unescape_json(raw, out);
    if (half == std::string_view::npos) return true;
    return fail_at(start + half, std::string(name) + ": found " + std::string(raw.substr(half, 6)) +
                                     ", half a surrogate pair, expected a character");
  }

  /// Says that the value here is not what it should be.
  LANEPACK_COLD bool fail(std::string_view name, const std::string& expected) {
    std::string found = "the end of the line";
    if (!cursor_.at_end()) {
      const char first = cursor_.peek();
      const std::size_t start = cursor_.position();
      found = json_kind(first);
      if (first != '{' && first != '[' && cursor_.value()) {
        constexpr std::size_t most = 40;
        const std::string_view shown = cursor_.text().substr(start, cursor_.position() - start);
        found = shown.size() <= most ? std::string(shown) : std::string(found);
      }
      cursor_.seek(start);
    }
    return fail_at(cursor_.position(),
                   std::string(name) + ": found " + found + ", expected " + expected);
  }

  LANEPACK_COLD bool fail_at(std::size_t offset, std::string what) {
    cursor_.fault() = {offset, std::move(what)};
    return false;
  }

  /// Checks that the line is one object and nothing else, handing each member to `member(key,
  /// key_offset, value_offset)`, which returns false where it is at fault.
  template <class Member>
  bool top(Member&& member) {
    cursor_.skip_space();
    if (!is('{')) {
      const std::size_t start = cursor_.position();
      if (!cursor_.value()) return false;
      cursor_.skip_space();
      if (!cursor_.at_end()) return cursor_.fail_here("the end of the line");
      return fail_at(
          start, std::string("found ") + json_kind(cursor_.text()[start]) + ", expected an object");
    }
    if (!walk_json_object(cursor_, [&](std::string_view key, std::size_t offset) {
          const std::size_t value = cursor_.position();
          return cursor_.value() && member(key, offset, value);
        })) {
      return false;
    }
    cursor_.skip_space();
    return cursor_.at_end() || cursor_.fail_here("the end of the line");
  }

 private:
  json_cursor cursor_;
};

}  // namespace detail

/// Reads the text of one key out of lines of a JSON Lines file. Other keys are checked to be JSON
/// and ignored. Memory is kept from line to line.
/// @complexity  O(bytes of the line).
/// @thread_safety  None: one thread per object.
class text_line_parser {
 public:
  /// @param key  The key whose value is the text, a string.
  explicit text_line_parser(std::string key = "text") : key_(std::move(key)) {}

  /// Reads one line, with or without its end. Returns false and sets `fault()` if it is not JSON or
  /// has no such text.
  [[nodiscard]] bool parse(std::string_view line) {
    detail::json_value_reader reader(line);
    constexpr std::size_t none = std::string_view::npos;
    std::size_t found = none;
    const bool good = reader.top([&](std::string_view key, std::size_t offset, std::size_t value) {
      if (key != key_) return true;
      if (found != none) {
        return reader.fail_at(offset, "key \"" + key_ + "\" is there twice, expected once");
      }
      found = value;
      return true;
    });
    bool has_text = good && found != none;
    if (good && !has_text) {
      reader.fail_at(0, "found no key \"" + key_ + "\", expected a text");
    } else if (good) {
      reader.cursor().seek(found);
      has_text = reader.text("\"" + key_ + "\"", text_);
    }
    if (!has_text) fault_ = std::move(reader.cursor().fault());
    return has_text;
  }

  /// The text of the line that was parsed last.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// What is wrong with the line that was parsed last.
  [[nodiscard]] const token_line_fault& fault() const noexcept { return fault_; }

 private:
  std::string key_;
  std::string text_;
  token_line_fault fault_;
};

}  // namespace lanepack::inline LANEPACK_ABI
