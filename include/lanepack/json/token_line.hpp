#pragma once

/// @file
/// `token_line_parser`: one line of a JSON Lines file to token ids and a loss mask.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Where the tokens of a line that are to be predicted are marked.
enum class target_key : std::uint8_t {
  /// `labels` or `loss_mask`, whichever the line has; all tokens where it has neither.
  automatic,
  /// `labels`, which every line must have.
  labels,
  /// `loss_mask`, which every line must have.
  loss_mask,
  /// All tokens are targets; neither key is looked at.
  none,
};

/// Which keys of a line are read.
struct token_line_options {
  /// Key of the array of token ids. Empty: `input_ids`, or `tokens` in a line without it.
  std::string token_key;
  /// Where targets are marked.
  target_key targets = target_key::automatic;

  friend bool operator==(const token_line_options&, const token_line_options&) = default;
};

/// What is wrong with a line.
struct token_line_fault {
  /// Byte offset in the line.
  std::size_t offset = 0;
  /// The value found and the value expected.
  std::string what;
};

namespace detail {

/// `character` as a message shows it.
inline std::string describe_json_byte(char character) {
  constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(character);
  if (byte > 0x20 && byte < 0x7f) return std::string("'") + character + "'";
  if (byte == 0x20) return "a space";
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

/// Walks over JSON text (RFC 8259), strictly: UTF-8 is checked, and nothing is skipped unread.
/// Every `bool` function returns false and sets the fault where the text is not JSON; the position
/// is then unspecified. Depth is limited by memory alone.
class json_cursor {
 public:
  explicit json_cursor(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  /// The next byte; there must be one.
  [[nodiscard]] char peek() const noexcept { return text_[at_]; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  void seek(std::size_t position) noexcept { at_ = position; }
  [[nodiscard]] token_line_fault& fault() noexcept { return fault_; }

  void skip_space() noexcept {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  /// Takes `character` if it is next.
  bool take(char character) noexcept {
    if (at_ == text_.size() || text_[at_] != character) return false;
    ++at_;
    return true;
  }

  /// Sets the fault to what stands here, against what should.
  LANEPACK_COLD bool fail_here(const char* expected) {
    const std::string found =
        at_ < text_.size() ? describe_json_byte(text_[at_]) : std::string("the end of the line");
    fault_ = {at_, "malformed JSON: found " + found + ", expected " + expected};
    return false;
  }

  /// Walks over a string; `raw` receives what stands between the quotes.
  bool string(std::string_view& raw, bool& has_escape) {
    has_escape = false;
    if (!take('"')) return fail_here("a string");
    const std::size_t first = at_;
    for (;;) {
      skip_plain();
      if (at_ == text_.size()) return fail_here("'\"'");
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        raw = text_.substr(first, at_ - first);
        ++at_;
        return true;
      }
      if (byte == '\\') {
        has_escape = true;
        if (!escape()) return false;
      } else if (byte < 0x20) {
        return fail_here("an escape sequence instead of a control character");
      } else if (byte < 0x80) {
        ++at_;
      } else if (!multibyte(byte)) {
        return false;
      }
    }
  }

  /// Walks over any value.
  bool value() {
    open_.clear();
    for (;;) {
      skip_space();
      if (at_ == text_.size()) return fail_here("a value");
      const char next = text_[at_];
      if (next == '{' || next == '[') {
        ++at_;
        open_.push_back(next);
        skip_space();
        if (take(next == '{' ? '}' : ']')) {
          open_.pop_back();
        } else {
          if (next == '{' && !key()) return false;
          continue;
        }
      } else if (!scalar(next)) {
        return false;
      }
      for (;;) {
        if (open_.empty()) return true;
        const bool object = open_.back() == '{';
        skip_space();
        if (take(',')) {
          if (object) {
            skip_space();
            if (!key()) return false;
          }
          break;
        }
        if (!take(object ? '}' : ']')) return fail_here(object ? "',' or '}'" : "',' or ']'");
        open_.pop_back();
      }
    }
  }

 private:
  static bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  [[nodiscard]] bool digit_next() const noexcept {
    return at_ < text_.size() && is_digit(text_[at_]);
  }

  bool key() {
    std::string_view raw;
    bool has_escape = false;
    if (at_ == text_.size() || text_[at_] != '"') return fail_here("a key");
    if (!string(raw, has_escape)) return false;
    skip_space();
    return take(':') || fail_here("':'");
  }

  bool scalar(char next) {
    if (next == '"') {
      std::string_view raw;
      bool has_escape = false;
      return string(raw, has_escape);
    }
    if (next == '-' || is_digit(next)) return number();
    if (next == 't') return literal("true");
    if (next == 'f') return literal("false");
    if (next == 'n') return literal("null");
    return fail_here("a value");
  }

  bool literal(std::string_view word) {
    for (const char c : word) {
      if (!take(c)) return fail_here("true, false or null");
    }
    return true;
  }

  bool number() {
    take('-');
    if (!take('0')) {
      if (!digit_next()) return fail_here("a digit");
      while (digit_next()) ++at_;
    }
    if (take('.')) {
      if (!digit_next()) return fail_here("a digit");
      while (digit_next()) ++at_;
    }
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digit_next()) return fail_here("a digit");
      while (digit_next()) ++at_;
    }
    return true;
  }

  /// Moves past bytes of a string that need no attention, eight at a time.
  void skip_plain() noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101;
    constexpr std::uint64_t tops = 0x8080808080808080;
    while (text_.size() - at_ >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text_.data() + at_, 8);
      const std::uint64_t quote = word ^ (ones * '"');
      const std::uint64_t backslash = word ^ (ones * '\\');
      // A borrow can only mark a byte too many, which then takes the slow path.
      const std::uint64_t special =
          ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & tops;
      if (special != 0) break;
      at_ += 8;
    }
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') return;
      ++at_;
    }
  }

  bool escape() {
    ++at_;
    if (at_ == text_.size()) return fail_here("an escape sequence");
    const char kind = text_[at_];
    if (std::string_view("\"\\/bfnrt").find(kind) != std::string_view::npos) {
      ++at_;
      return true;
    }
    if (kind != 'u') return fail_here("an escape sequence");
    ++at_;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == text_.size()) return fail_here("four hexadecimal digits");
      const char c = text_[at_];
      if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) {
        return fail_here("four hexadecimal digits");
      }
    }
    return true;
  }

  bool multibyte(unsigned char lead) {
    // Well-formed byte sequences of the Unicode standard, table 3-7.
    std::size_t more = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return fail_here("UTF-8");
    }
    for (++at_; more > 0; --more, ++at_) {
      if (at_ == text_.size()) return fail_here("UTF-8");
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < low || byte > high) return fail_here("UTF-8");
      low = 0x80;
      high = 0xbf;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<char> open_;
  token_line_fault fault_;
};

/// The characters that a raw key stands for; surrogates stay as they are written, as no key that is
/// looked for has any.
inline std::string unescape_json_key(std::string_view raw) {
  std::string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text += raw[i];
      continue;
    }
    ++i;
    switch (raw[i]) {
      case 'b':
        text += '\b';
        break;
      case 'f':
        text += '\f';
        break;
      case 'n':
        text += '\n';
        break;
      case 'r':
        text += '\r';
        break;
      case 't':
        text += '\t';
        break;
      case 'u': {
        unsigned code = 0;
        for (std::size_t k = 1; k <= 4; ++k) {
          const char c = raw[i + k];
          code = code * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        if (code < 0x80) {
          text += static_cast<char>(code);
        } else if (code < 0x800) {
          text += static_cast<char>(0xc0 | (code >> 6));
          text += static_cast<char>(0x80 | (code & 0x3f));
        } else if (code >= 0xd800 && code <= 0xdfff) {
          text += raw.substr(i - 1, 6);
        } else {
          text += static_cast<char>(0xe0 | (code >> 12));
          text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
          text += static_cast<char>(0x80 | (code & 0x3f));
        }
        i += 4;
        break;
      }
      default:
        text += raw[i];
        break;
    }
  }
  return text;
}

/// Reads up to seven digits at `text`, of which eight bytes must be readable, into `value`; returns
/// their number, or 0 where there are none or more than seven. Eight digits are combined in one
/// word by two products (Johnny Lee's and Daniel Lemire's parallel decimal conversion).
inline std::size_t short_decimal(const char* text, std::uint32_t& value) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, text, 8);
  word ^= 0x3030303030303030;
  const std::uint64_t other = ((word + 0x7676767676767676) | word) & 0x8080808080808080;
  if (other == 0) return 0;
  const auto digits = static_cast<std::size_t>(std::countr_zero(other)) / 8;
  if (digits == 0) return 0;
  word <<= 64 - 8 * digits;
  word = word * 10 + (word >> 8);
  value = static_cast<std::uint32_t>((((word & 0x000000ff000000ff) * 0x000f424000000064) +
                                      (((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
                                     32);
  return digits;
}

}  // namespace detail

/// Reads lines of JSON Lines files: an object with an array of token ids (`input_ids` or `tokens`)
/// and optionally `labels` (aligned with the tokens: -100, or the token where it is a target) or
/// `loss_mask` (0 or 1 for each token). Other keys are checked to be JSON and ignored. Memory is
/// kept from line to line.
///
/// Two things that RFC 8259 leaves open: a lone surrogate escape in a string is accepted, and a key
/// that is read must not be repeated.
/// @complexity  O(bytes of the line), about 1 ns a byte.
/// @thread_safety  None: one thread per object.
class token_line_parser {
 public:
  explicit token_line_parser(token_line_options options = {}) : options_(std::move(options)) {}

  /// Reads one line, with or without its end. Returns false and sets `fault()` if it is not JSON or
  /// not such an object.
  [[nodiscard]] bool parse(std::string_view line) {
    tokens_ = marks_ = nullptr;
    for (field* one : {&main_, &other_, &labels_, &mask_}) one->reset();
    detail::json_cursor cursor(line);
    if (!object(cursor)) {
      fault_ = std::move(cursor.fault());
      return false;
    }
    return choose_tokens() && choose_targets();
  }

  /// Token ids of the line that was parsed last, each in [0, 2^31 - 1].
  [[nodiscard]] std::span<const std::int32_t> tokens() const noexcept { return tokens_->values; }

  /// Writes for the tokens from `first` on whether they are marked as targets: what `loss_mask` or
  /// `labels` say of them, 1 without either.
  void copy_loss_mask(std::size_t first, std::span<std::uint8_t> out) const noexcept {
    const std::int32_t zero = unmarked();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = marks_ == nullptr || marks_->values[first + i] != zero ? 1 : 0;
    }
  }

  /// Whether the line that was parsed last says which tokens are targets.
  [[nodiscard]] bool marks_targets() const noexcept { return marks_ != nullptr; }

  /// Tokens that are predicted: those marked, the first excluded.
  [[nodiscard]] std::uint64_t loss_tokens() const noexcept {
    const std::size_t size = tokens_->values.size();
    if (size == 0) return 0;
    if (marks_ == nullptr) return size - 1;
    std::uint64_t count = 0;
    const std::int32_t zero = unmarked();
    for (std::size_t i = 1; i < size; ++i) count += marks_->values[i] != zero ? 1 : 0;
    return count;
  }

  /// What is wrong with the line that was parsed last.
  [[nodiscard]] const token_line_fault& fault() const noexcept { return fault_; }

 private:
  static constexpr std::int32_t ignored_label = -100;

  enum class field_state : std::uint8_t { absent, null, present, wrong };

  /// One array of the line. A wrong one is a fault only if it turns out to be needed.
  struct field {
    field_state state = field_state::absent;
    std::size_t offset = 0;
    std::vector<std::int32_t> values;
    token_line_fault fault;

    void reset() noexcept {
      state = field_state::absent;
      values.clear();
    }
  };

  [[nodiscard]] std::int32_t unmarked() const noexcept {
    return marks_ == &labels_ ? ignored_label : 0;
  }

  LANEPACK_COLD bool fail(std::size_t offset, std::string what) {
    fault_ = {offset, std::move(what)};
    return false;
  }

  [[nodiscard]] std::string_view main_key() const noexcept {
    return options_.token_key.empty() ? std::string_view("input_ids")
                                      : std::string_view(options_.token_key);
  }

  /// The array that `key` names, or null for a key that is ignored.
  [[nodiscard]] field* field_of(std::string_view key) noexcept {
    if (key == main_key()) return &main_;
    if (options_.token_key.empty() && key == "tokens") return &other_;
    const bool automatic = options_.targets == target_key::automatic;
    if (key == "labels" && (automatic || options_.targets == target_key::labels)) return &labels_;
    if (key == "loss_mask" && (automatic || options_.targets == target_key::loss_mask)) {
      return &mask_;
    }
    return nullptr;
  }

  bool object(detail::json_cursor& cursor) {
    cursor.skip_space();
    if (!cursor.take('{')) return wrong_top(cursor);
    cursor.skip_space();
    if (!cursor.take('}')) {
      for (;;) {
        if (!member(cursor)) return false;
        cursor.skip_space();
        if (cursor.take('}')) break;
        if (!cursor.take(',')) return cursor.fail_here("',' or '}'");
        cursor.skip_space();
      }
    }
    cursor.skip_space();
    return cursor.at_end() || cursor.fail_here("the end of the line");
  }

  /// A value that is no object is reported as such only if it is JSON.
  LANEPACK_COLD static bool wrong_top(detail::json_cursor& cursor) {
    const std::size_t start = cursor.position();
    if (!cursor.value()) return false;
    cursor.skip_space();
    if (!cursor.at_end()) return cursor.fail_here("the end of the line");
    cursor.fault() = {start, "found " + kind_of(cursor.text()[start]) + ", expected an object"};
    return false;
  }

  bool member(detail::json_cursor& cursor) {
    if (cursor.at_end() || cursor.peek() != '"') return cursor.fail_here("a key");
    const std::size_t key_offset = cursor.position();
    std::string_view raw;
    bool has_escape = false;
    if (!cursor.string(raw, has_escape)) return false;
    field* const target =
        field_of(has_escape ? std::string_view(detail::unescape_json_key(raw)) : raw);
    cursor.skip_space();
    if (!cursor.take(':')) return cursor.fail_here("':'");
    cursor.skip_space();
    if (target == nullptr) return cursor.value();
    if (target->state != field_state::absent) return repeated(cursor, key_offset, name_of(target));
    target->offset = cursor.position();
    if (integers(cursor, *target)) return true;
    // Not an array of integers: whether it is JSON at all comes first.
    target->fault.what = name_of(target) + ": " + target->fault.what;
    const bool is_null = !cursor.at_end() && cursor.text()[target->offset] == 'n';
    cursor.seek(target->offset);
    if (!cursor.value()) return false;
    target->state = is_null ? field_state::null : field_state::wrong;
    return true;
  }

  LANEPACK_COLD static bool repeated(detail::json_cursor& cursor, std::size_t offset,
                                     const std::string& key) {
    if (!cursor.value()) return false;
    cursor.fault() = {offset, "key \"" + key + "\" is there twice, expected once"};
    return false;
  }

  [[nodiscard]] std::string name_of(const field* one) const {
    if (one == &main_) return std::string(main_key());
    if (one == &other_) return "tokens";
    return one == &labels_ ? "labels" : "loss_mask";
  }

  static std::string kind_of(char first) {
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

  /// Reads an array of 32-bit integers; returns false with the fault of the field set, and nothing
  /// said about the rest of the text, where there is something else.
  static bool integers(detail::json_cursor& cursor, field& target) {
    const std::string_view text = cursor.text();
    const char* const base = text.data();
    const char* const end = base + text.size();
    const char* at = base + cursor.position();
    const auto wrong = [&](const char* where, std::string what) {
      target.fault = {static_cast<std::size_t>(where - base), std::move(what)};
      return false;
    };
    const auto skip_space = [&] {
      while (at != end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) ++at;
    };
    if (at == end || *at != '[') {
      return wrong(at, "found " + kind_of(at == end ? ' ' : *at) + ", expected an array");
    }
    ++at;
    skip_space();
    if (at != end && *at == ']') {
      cursor.seek(static_cast<std::size_t>(at + 1 - base));
      target.state = field_state::present;
      return true;
    }
    for (;;) {
      if constexpr (std::endian::native == std::endian::little) {
        while (end - at >= 16) {
          std::uint32_t value = 0;
          const std::size_t digits = detail::short_decimal(at, value);
          if (digits == 0 || (*at == '0' && digits > 1) || at[digits] != ',') break;
          target.values.push_back(static_cast<std::int32_t>(value));
          at += digits + 1;
          at += *at == ' ' ? 1 : 0;
        }
      }
      skip_space();
      const char* const start = at;
      const bool negative = at != end && *at == '-';
      if (negative) ++at;
      std::uint64_t magnitude = 0;
      const char* const first_digit = at;
      while (at != end && *at >= '0' && *at <= '9') {
        if (magnitude < (std::uint64_t{1} << 40)) {
          magnitude = magnitude * 10 + static_cast<std::uint64_t>(*at - '0');
        }
        ++at;
      }
      const bool is_integer = at != first_digit && (*first_digit != '0' || at - first_digit == 1);
      if (!is_integer || (at != end && (*at == '.' || *at == 'e' || *at == 'E'))) {
        const char* last = start;
        while (last != end && *last != ',' && *last != ']' && *last != ' ' && last - start < 24) {
          ++last;
        }
        return wrong(start, "found " + std::string(start, last) + ", expected an integer");
      }
      if (magnitude > 0x7fffffff) {
        return wrong(start, "found " + std::string(start, at) + ", expected at most 2147483647");
      }
      const auto value = static_cast<std::int32_t>(magnitude);
      target.values.push_back(negative ? -value : value);
      skip_space();
      if (at != end && *at == ',') {
        ++at;
        skip_space();
        continue;
      }
      if (at == end || *at != ']') return wrong(at, "expected ',' or ']'");
      cursor.seek(static_cast<std::size_t>(at + 1 - base));
      target.state = field_state::present;
      return true;
    }
  }

  bool choose_tokens() {
    // Rows of tables carry a null where the column is for other rows.
    const bool use_other =
        options_.token_key.empty() &&
        (main_.state == field_state::absent ||
         (main_.state == field_state::null && other_.state != field_state::absent));
    field& chosen = use_other ? other_ : main_;
    if (main_.state == field_state::present && other_.state == field_state::present) {
      return fail(
          other_.offset,
          "found both \"input_ids\" and \"tokens\", expected one of them, or an option that "
          "says which to read");
    }
    if (chosen.state == field_state::absent) {
      return fail(0,
                  options_.token_key.empty()
                      ? "found no array of token ids, expected key \"input_ids\" or \"tokens\""
                      : "found no array of token ids, expected key \"" + options_.token_key + "\"");
    }
    if (chosen.state != field_state::present) {
      fault_ = chosen.fault;
      return false;
    }
    std::int32_t signs = 0;
    for (const std::int32_t value : chosen.values) signs |= value;
    if (signs < 0) {
      std::size_t i = 0;
      while (chosen.values[i] >= 0) ++i;
      return fail(chosen.offset, name_of(&chosen) + "[" + std::to_string(i) + "]: found " +
                                     std::to_string(chosen.values[i]) +
                                     ", expected 0 to 2147483647");
    }
    tokens_ = &chosen;
    return true;
  }

  bool choose_targets() {
    const bool has_labels =
        labels_.state != field_state::absent && labels_.state != field_state::null;
    const bool has_mask = mask_.state != field_state::absent && mask_.state != field_state::null;
    if (has_labels && has_mask) {
      return fail(
          mask_.offset,
          "found both \"labels\" and \"loss_mask\", expected one of them, or an option that "
          "says which to read");
    }
    if (!has_labels && !has_mask) {
      if (options_.targets == target_key::labels || options_.targets == target_key::loss_mask) {
        return fail(0, std::string("found no key \"") +
                           (options_.targets == target_key::labels ? "labels" : "loss_mask") +
                           "\", expected an array as long as that of the token ids");
      }
      return true;
    }
    field& chosen = has_labels ? labels_ : mask_;
    if (chosen.state != field_state::present) {
      fault_ = chosen.fault;
      return false;
    }
    const std::span<const std::int32_t> tokens = tokens_->values;
    const std::span<const std::int32_t> marks = chosen.values;
    if (marks.size() != tokens.size()) {
      return fail(chosen.offset, name_of(&chosen) + ": found " + std::to_string(marks.size()) +
                                     " elements, expected " + std::to_string(tokens.size()) +
                                     " as in \"" + name_of(tokens_) + "\"");
    }
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const bool fits = has_labels ? marks[i] == ignored_label || marks[i] == tokens[i]
                                   : marks[i] == 0 || marks[i] == 1;
      if (fits) continue;
      const std::string expected =
          has_labels ? "-100 or the token itself, " + std::to_string(tokens[i]) : "0 or 1";
      return fail(chosen.offset, name_of(&chosen) + "[" + std::to_string(i) + "]: found " +
                                     std::to_string(marks[i]) + ", expected " + expected);
    }
    marks_ = &chosen;
    return true;
  }

  token_line_options options_;
  field main_;
  field other_;
  field labels_;
  field mask_;
  const field* tokens_ = nullptr;
  const field* marks_ = nullptr;
  token_line_fault fault_;
};

}  // namespace lanepack::inline LANEPACK_ABI
