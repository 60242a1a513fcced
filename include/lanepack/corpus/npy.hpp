#pragma once

/// @file
/// The header of NumPy's `.npy` files.
///
/// Layout as in NumPy's format description (versions 1.0, 2.0 and 3.0): magic, version, length of
/// the header, a Python dict literal, data.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include <lanepack/corpus/payload.hpp>
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

/// What an array may be.
enum class npy_kind : std::uint8_t {
  /// One dimension of integers.
  lengths,
  /// Up to eight dimensions of numbers, in C's order.
  array,
};

/// Reads the dict literal of a header; every fault names the byte at which it is.
class npy_header_parser {
 public:
  npy_header_parser(const std::string& path, std::string_view text, std::uint64_t text_offset,
                    npy_kind kind)
      : path_(path), text_(text), text_offset_(text_offset), kind_(kind) {}

  payload_shape parse() {
    payload_shape header;
    bool has_type = false;
    bool has_order = false;
    bool fortran_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        header.type = type();
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        shape(header);
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
    // In one dimension both orders are the same.
    if (fortran_order && header.dimensions > 1) {
      fail("found an array in Fortran's order, expected one in C's order");
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

  bool boolean() {
    skip_space();
    if (word("True")) return true;
    if (!word("False")) fail("found " + here() + ", expected True or False");
    return false;
  }

  payload_type type() {
    skip_space();
    const std::size_t start = position_;
    if (position_ < text_.size() && text_[position_] == '[') {
      fail("found a structured type, expected " +
           std::string(kind_ == npy_kind::lengths ? "integers" : "numbers"));
    }
    const std::string_view name = quoted();
    struct entry {
      std::string_view suffix;
      payload_type type;
    };
    constexpr std::array<entry, 12> types = {{{"u1", payload_type::u8},
                                              {"i1", payload_type::i8},
                                              {"u2", payload_type::u16},
                                              {"i2", payload_type::i16},
                                              {"u4", payload_type::u32},
                                              {"i4", payload_type::i32},
                                              {"u8", payload_type::u64},
                                              {"i8", payload_type::i64},
                                              {"b1", payload_type::u8},
                                              {"f2", payload_type::f16},
                                              {"f4", payload_type::f32},
                                              {"f8", payload_type::f64}}};
    constexpr std::size_t integer_types = 8;
    const std::size_t known = kind_ == npy_kind::lengths ? integer_types : types.size();
    for (std::size_t i = 0; i < known; ++i) {
      const bool one_byte = payload_type_bytes(types[i].type) == 1;
      if (name.size() == 3 && name.substr(1) == types[i].suffix &&
          (name[0] == '<' || (name[0] == '|' && one_byte))) {
        return types[i].type;
      }
    }
    position_ = start;
    fail("found the type '" + std::string(name) + "', expected little-endian " +
         (kind_ == npy_kind::lengths ? "integers ('<u4', '<i8', '|u1', ...)"
                                     : "numbers ('<f4', '<f2', '|u1', ...)"));
  }

  void shape(payload_shape& out) {
    expect('(');
    skip_space();
    const std::size_t start = position_;
    const std::size_t most = kind_ == npy_kind::lengths ? 1 : max_payload_dimensions;
    std::size_t count = 0;
    bool good = true;
    bool comma = true;
    while (good && !accept(')')) {
      const std::size_t first = position_;
      std::uint64_t value = 0;
      while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
        value = saturating_add(saturating_mul(value, 10),
                               static_cast<std::uint64_t>(text_[position_] - '0'));
        ++position_;
      }
      good = comma && position_ != first && count < most;
      if (good) out.extents[count++] = value;
      // Python 2 wrote long integers with an L.
      if (good && position_ < text_.size() && text_[position_] == 'L') ++position_;
      comma = accept(',');
    }
    // One extent without a comma is no tuple.
    good = good && (count != 1 || comma) && (kind_ == npy_kind::array || count == 1);
    out.dimensions = static_cast<std::uint32_t>(count);
    if (good) return;
    position_ = start;
    const std::size_t end = text_.find(')', start);
    fail("found the shape (" +
         std::string(text_.substr(start, end == std::string_view::npos ? 0 : end - start)) +
         "), expected " +
         (kind_ == npy_kind::lengths ? "one dimension, as (1000,)"
                                     : "a tuple of at most 8 extents, as (3, 224)"));
  }

  const std::string& path_;
  std::string_view text_;
  std::uint64_t text_offset_;
  npy_kind kind_;
  std::size_t position_ = 0;
};

/// An array in a file, and where its numbers start.
struct npy_array {
  payload_shape shape;
  std::uint64_t data_offset = 0;
};

/// Reads the header of an array that takes `bytes` bytes of a file from `first` on.
/// @pre  The file has those bytes.
[[nodiscard]] inline npy_array read_npy(const input_file& file, std::uint64_t first,
                                        std::uint64_t bytes, npy_kind kind) {
  constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 20;
  const auto fail = [&](std::uint64_t offset, const std::string& what) {
    throw_file_error_at(file.path(), first + offset, what);
  };
  std::array<std::byte, 12> start{};
  const std::uint64_t start_bytes = std::min<std::uint64_t>(start.size(), bytes);
  file.read_at(first, std::span(start).first(static_cast<std::size_t>(start_bytes)));
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
  const std::uint64_t text_bytes = version == 1 ? load_number<std::uint16_t>(start.data() + 8)
                                                : load_number<std::uint32_t>(start.data() + 8);
  if (start_bytes < text_offset || text_bytes > max_header_bytes ||
      text_offset + text_bytes > bytes) {
    fail(8, "found a header of " + std::to_string(text_bytes) + " bytes in a file of " +
                std::to_string(bytes) + " bytes, expected a header inside the file");
  }
  std::string text(static_cast<std::size_t>(text_bytes), '\0');
  file.read_at(first + text_offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  npy_array array;
  array.shape = npy_header_parser(file.path(), text, first + text_offset, kind).parse();
  array.data_offset = first + text_offset + text_bytes;
  const std::uint64_t expected = saturating_add(text_offset + text_bytes, array.shape.bytes());
  if (expected != bytes) {
    fail(std::min(expected, bytes),
         "found a file of " + std::to_string(bytes) + " bytes, expected " +
             std::to_string(expected) + " for " + std::to_string(array.shape.numbers()) +
             " numbers of type " + std::string(payload_type_name(array.shape.type)));
  }
  return array;
}

}  // namespace detail

/// Reads the header of a `.npy` file that holds one dimension of integers.
/// @throws data_error  It is another kind of file or array, or its size is not what the header
///                     says.
[[nodiscard]] inline npy_header read_npy_header(const input_file& file) {
  const detail::npy_array array = detail::read_npy(file, 0, file.size(), detail::npy_kind::lengths);
  // The eight types of integers come first in both lists.
  return {.type = static_cast<token_type>(array.shape.type),
          .count = array.shape.extents[0],
          .data_offset = array.data_offset};
}

}  // namespace lanepack::inline LANEPACK_ABI
