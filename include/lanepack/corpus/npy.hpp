#pragma once

/// @file
/// The header of NumPy's `.npy` files, for one-dimensional arrays of integers.
///
/// Layout as in NumPy's format description (versions 1.0, 2.0 and 3.0): magic, version, length of
/// the header, a Python dict literal, data.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// First bytes of every `.npy` file.
inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// What the header of a one-dimensional integer array says.
struct npy_header {
  token_type type = token_type::u32;
  /// Numbers in the array.
  std::uint64_t count = 0;
  /// Byte at which they start.
  std::uint64_t data_offset = 0;
};

namespace detail {

/// Reads the dict literal of a header; every fault names the byte at which it is.
class npy_header_parser {
 public:
  npy_header_parser(const std::string& path, std::string_view text, std::uint64_t text_offset)
      : path_(path), text_(text), text_offset_(text_offset) {}

  npy_header parse() {
    npy_header header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        header.type = type();
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        // In one dimension both orders are the same.
        boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.count = length();
        has_shape = true;
      } else {
        fail("found the key '" + std::string(key) +
             "', expected 'descr', 'fortran_order' and 'shape', each once");
      }
      if (accept('}')) break;
      expect(',');
    }
    skip_space();
    if (position_ != text_.size()) fail("found more text, expected the end of the header");
    if (!has_type || !has_order || !has_shape) {
      fail("the header ends, expected the keys 'descr', 'fortran_order' and 'shape'");
    }
    return header;
  }

 private:
  [[noreturn]] LANEPACK_COLD void fail(const std::string& what) const {
    throw_file_error_at(path_, text_offset_ + position_, "NumPy header: " + what);
  }

  void skip_space() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n' ||
                                        text_[position_] == '\t' || text_[position_] == '\r')) {
      ++position_;
    }
  }

  bool accept(char wanted) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) {
      fail("found " + here() + ", expected '" + std::string(1, wanted) + "'");
    }
  }

  [[nodiscard]] std::string here() const {
    if (position_ >= text_.size()) return "the end of the header";
    const char next = text_[position_];
    return next >= ' ' && next <= '~' ? "'" + std::string(1, next) + "'"
                                      : "byte " + std::to_string(static_cast<unsigned char>(next));
  }

  std::string_view quoted() {
    skip_space();
    if (position_ >= text_.size() || (text_[position_] != '\'' && text_[position_] != '"')) {
      fail("found " + here() + ", expected a quoted text");
    }
    const std::size_t end = text_.find(text_[position_], position_ + 1);
    if (end == std::string_view::npos) fail("found a quoted text without an end");
    const std::string_view value = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return value;
  }

  bool word(std::string_view wanted) {
    if (text_.substr(position_, wanted.size()) != wanted) return false;
    position_ += wanted.size();
    return true;
  }

  void boolean() {
    skip_space();
    if (!word("True") && !word("False")) fail("found " + here() + ", expected True or False");
  }

  token_type type() {
    skip_space();
    const std::size_t start = position_;
    if (position_ < text_.size() && text_[position_] == '[') {
      fail("found a structured type, expected integers");
    }
    const std::string_view name = quoted();
    constexpr std::array<std::string_view, 8> suffixes = {"u1", "i1", "u2", "i2",
                                                          "u4", "i4", "u8", "i8"};
    for (std::size_t i = 0; i < suffixes.size(); ++i) {
      const bool one_byte = i < 2;
      if (name.size() == 3 && name.substr(1) == suffixes[i] &&
          (name[0] == '<' || (name[0] == '|' && one_byte))) {
        return static_cast<token_type>(i);
      }
    }
    position_ = start;
    fail("found the type '" + std::string(name) +
         "', expected little-endian integers ('<u4', '<i8', '|u1', ...)");
  }

  std::uint64_t length() {
    expect('(');
    skip_space();
    const std::size_t start = position_;
    std::uint64_t value = 0;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      value = saturating_add(saturating_mul(value, 10),
                             static_cast<std::uint64_t>(text_[position_] - '0'));
      ++position_;
    }
    const bool has_digits = position_ != start;
    // Python 2 wrote long integers with an L.
    if (has_digits && position_ < text_.size() && text_[position_] == 'L') ++position_;
    if (!has_digits || !accept(',') || !accept(')')) {
      position_ = start;
      const std::size_t end = text_.find(')', start);
      fail("found the shape (" +
           std::string(text_.substr(start, end == std::string_view::npos ? 0 : end - start)) +
           "), expected one dimension, as (1000,)");
    }
    return value;
  }

  const std::string& path_;
  std::string_view text_;
  std::uint64_t text_offset_;
  std::size_t position_ = 0;
};

}  // namespace detail

/// Reads the header of a `.npy` file that holds one dimension of integers.
/// @throws data_error  It is another kind of file or array, or its size is not what the header
///                     says.
[[nodiscard]] inline npy_header read_npy_header(const input_file& file) {
  constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 20;
  const auto fail = [&file](std::uint64_t offset, const std::string& what) {
    detail::throw_file_error_at(file.path(), offset, what);
  };
  std::array<std::byte, 12> start{};
  const std::uint64_t start_bytes = std::min<std::uint64_t>(start.size(), file.size());
  file.read_at(0, std::span(start).first(static_cast<std::size_t>(start_bytes)));
  if (start_bytes < 10 || std::memcmp(start.data(), npy_magic.data(), npy_magic.size()) != 0) {
    fail(0, "found no NumPy magic, expected a .npy file");
  }
  const auto version = std::to_integer<unsigned>(start[6]);
  if (version < 1 || version > 3 || start[7] != std::byte{0}) {
    fail(6, "found version " + std::to_string(version) + "." +
                std::to_string(std::to_integer<unsigned>(start[7])) +
                " of the NumPy format, expected 1.0, 2.0 or 3.0");
  }
  const std::uint64_t text_offset = version == 1 ? 10 : 12;
  const std::uint64_t text_bytes = version == 1
                                       ? detail::load_number<std::uint16_t>(start.data() + 8)
                                       : detail::load_number<std::uint32_t>(start.data() + 8);
  if (start_bytes < text_offset || text_bytes > max_header_bytes ||
      text_offset + text_bytes > file.size()) {
    fail(8, "found a header of " + std::to_string(text_bytes) + " bytes in a file of " +
                std::to_string(file.size()) + " bytes, expected a header inside the file");
  }
  std::string text(static_cast<std::size_t>(text_bytes), '\0');
  file.read_at(text_offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  npy_header header = detail::npy_header_parser(file.path(), text, text_offset).parse();
  header.data_offset = text_offset + text_bytes;
  const std::uint64_t expected =
      saturating_add(header.data_offset, saturating_mul(header.count, token_bytes(header.type)));
  if (expected != file.size()) {
    fail(std::min(expected, file.size()),
         "found a file of " + std::to_string(file.size()) + " bytes, expected " +
             std::to_string(expected) + " for " + std::to_string(header.count) +
             " numbers of type " + std::string(token_type_name(header.type)));
  }
  return header;
}

}  // namespace lanepack::inline LANEPACK_ABI
