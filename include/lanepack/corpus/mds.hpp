#pragma once

/// @file
/// MosaicML's MDS shards: the encodings of columns, and where the values of a sample lie.
///
/// A shard is a count n of samples (u32), n + 1 offsets in the file (u32), its configuration as
/// JSON, and the samples. A sample is the sizes of its columns of variable size (u32 each) and then
/// the values of all columns. All numbers are little-endian and need not be aligned.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/file_window.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Kinds of column encodings.
enum class mds_kind : std::uint8_t {
  /// `bytes`: anything.
  bytes,
  /// `str`: UTF-8.
  text,
  /// `str_int`, `str_float`, `str_decimal`: a number written in digits.
  number_text,
  /// `json`: a JSON text.
  json,
  /// `int`, `uint8` to `int64`, `float16` to `float64`: one number.
  scalar,
  /// `ndarray`, with or without type and shape.
  array,
  /// `pil`: the raw pixels of an image.
  pixels,
  /// `jpeg`, `png`: an encoded image.
  image,
  /// `list[jpeg]`, `list[png]`: encoded images.
  image_list,
  /// `list[pil]`: images of raw pixels.
  pixels_list,
  /// `jpeg_array`: encoded images in another form of list.
  image_array,
  /// `pkl`: a Python pickle, which is never decoded.
  pickle,
};

/// How the values of a column are encoded.
struct mds_encoding {
  /// As the index names it.
  std::string name = "bytes";
  mds_kind kind = mds_kind::bytes;
  /// Of a scalar, or of an array whose type is fixed.
  std::optional<payload_type> type = std::nullopt;
  /// Of an array whose shape is fixed.
  std::optional<payload_shape> shape = std::nullopt;

  /// Bytes of every value, or nullopt where they vary.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept {
    if (kind == mds_kind::scalar) return payload_type_bytes(*type);
    if (type && shape) return saturating_mul(shape->numbers(), payload_type_bytes(*type));
    return std::nullopt;
  }
};

namespace detail {

/// Digits alone, below 2^63.
[[nodiscard]] inline std::optional<std::uint64_t> parse_extent(std::string_view text) noexcept {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > 18) return std::nullopt;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

/// "uint8" to "float64".
[[nodiscard]] inline std::optional<payload_type> parse_numpy_type(std::string_view name) noexcept {
  const std::optional<payload_type> type = parse_payload_type(name);
  if (!type || type == payload_type::bf16 || name == payload_type_name(*type)) return std::nullopt;
  return type;
}

/// "ndarray", "ndarray:int64" or "ndarray:int64:2,3", behind the first colon.
[[nodiscard]] inline std::optional<mds_encoding> parse_mds_array(std::string_view text) {
  mds_encoding encoding{.name = {}, .kind = mds_kind::array};
  if (text.empty()) return encoding;
  const std::size_t colon = text.find(':');
  encoding.type = parse_numpy_type(text.substr(0, colon));
  if (!encoding.type) return std::nullopt;
  if (colon == std::string_view::npos) return encoding;
  payload_shape shape;
  shape.type = *encoding.type;
  shape.dimensions = 0;
  for (std::size_t at = colon + 1; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto extent = parse_extent(text.substr(at, comma - at));
    if (!extent || *extent == 0 || shape.dimensions == max_payload_dimensions) return std::nullopt;
    shape.extents[shape.dimensions++] = *extent;
    at = comma + 1;
  }
  encoding.shape = shape;
  return encoding;
}

}  // namespace detail

/// The encoding of that name, or nullopt where there is none.
[[nodiscard]] inline std::optional<mds_encoding> parse_mds_encoding(std::string_view name) {
  struct entry {
    std::string_view name;
    mds_kind kind;
  };
  constexpr std::array<entry, 16> kinds = {{{"bytes", mds_kind::bytes},
                                            {"str", mds_kind::text},
                                            {"str_int", mds_kind::number_text},
                                            {"str_float", mds_kind::number_text},
                                            {"str_decimal", mds_kind::number_text},
                                            {"json", mds_kind::json},
                                            {"ndarray", mds_kind::array},
                                            {"pil", mds_kind::pixels},
                                            {"jpeg", mds_kind::image},
                                            {"png", mds_kind::image},
                                            {"list[jpeg]", mds_kind::image_list},
                                            {"list[png]", mds_kind::image_list},
                                            {"list[pil]", mds_kind::pixels_list},
                                            {"jpeg_array", mds_kind::image_array},
                                            {"jpegarray", mds_kind::image_array},
                                            {"pkl", mds_kind::pickle}}};
  std::optional<mds_encoding> found;
  for (const entry& each : kinds) {
    if (name == each.name) found = mds_encoding{.name = {}, .kind = each.kind};
  }
  if (name == "int") {
    found = mds_encoding{.name = {}, .kind = mds_kind::scalar, .type = payload_type::i64};
  }
  if (const std::optional<payload_type> type = detail::parse_numpy_type(name)) {
    found = mds_encoding{.name = {}, .kind = mds_kind::scalar, .type = type};
  }
  constexpr std::string_view array_prefix = "ndarray:";
  if (name.starts_with(array_prefix)) {
    found = detail::parse_mds_array(name.substr(array_prefix.size()));
  }
  if (found) found->name = std::string(name);
  return found;
}

/// A column of a shard.
struct mds_column {
  std::string name;
  mds_encoding encoding;
};

/// A value of a column in a shard.
struct mds_value {
  /// Byte of the file.
  std::uint64_t offset = 0;
  /// Bytes of it.
  std::uint64_t bytes = 0;
};

/// The numbers in a value, and where in it they start.
struct mds_numbers {
  payload_shape shape;
  std::uint64_t first_byte = 0;
};

namespace detail {

/// What is wrong with a value; `offset` counts from its first byte.
struct mds_fault {
  std::uint64_t offset = 0;
  std::string what;
};

/// Bytes of a value that suffice to know its shape.
inline constexpr std::uint64_t mds_header_bytes = 512;

[[nodiscard]] inline std::uint64_t load_uint(const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  }
  return value;
}

/// Reads the header of a value of `bytes` bytes.
/// @param start  Its first bytes, `mds_header_bytes` or all of them.
class mds_header_reader {
 public:
  mds_header_reader(const mds_encoding& encoding, std::span<const std::byte> start,
                    std::uint64_t bytes)
      : encoding_(encoding), start_(start), bytes_(bytes) {}

  /// @throws mds_fault  The value is not what its encoding says.
  mds_numbers read() {
    switch (encoding_.kind) {
      case mds_kind::scalar:
        return checked(payload_shape(*encoding_.type, {}));
      case mds_kind::array:
        return read_array();
      case mds_kind::pixels:
        return read_pixels();
      case mds_kind::pickle:
        throw mds_fault{0,
                        "found a Python pickle, expected another encoding: decoding a pickle "
                        "would run whatever program it holds"};
      default:
        return {.shape = payload_shape(payload_type::u8, {bytes_}), .first_byte = 0};
    }
  }

 private:
  std::uint64_t number(std::size_t bytes) {
    if (bytes > start_.size() - at_) {
      throw mds_fault{at_, "the value of " + std::to_string(bytes_) +
                               " bytes ends in its header, expected the header of encoding " +
                               detail::quoted(encoding_.name)};
    }
    at_ += bytes;
    return load_uint(start_.data() + at_ - bytes, bytes);
  }

  /// The numbers fill the rest of the value.
  [[nodiscard]] mds_numbers checked(const payload_shape& shape) const {
    if (shape.bytes() != bytes_ - at_) {
      throw mds_fault{at_, "found " + std::to_string(bytes_ - at_) +
                               " bytes of numbers, expected " + std::to_string(shape.bytes()) +
                               " for " + to_string(shape)};
    }
    return {.shape = shape, .first_byte = at_};
  }

  mds_numbers read_array() {
    payload_shape shape = encoding_.shape.value_or(payload_shape());
    if (encoding_.type) {
      shape.type = *encoding_.type;
    } else {
      const std::uint64_t code = number(1);
      constexpr std::array<std::uint8_t, 11> codes = {8, 9, 16, 17, 32, 33, 64, 65, 18, 34, 66};
      constexpr std::array<payload_type, 11> types = {
          payload_type::u8,  payload_type::i8,  payload_type::u16, payload_type::i16,
          payload_type::u32, payload_type::i32, payload_type::u64, payload_type::i64,
          payload_type::f16, payload_type::f32, payload_type::f64};
      const auto at = std::find(codes.begin(), codes.end(), code);
      if (at == codes.end()) {
        throw mds_fault{0,
                        "found code " + std::to_string(code) +
                            " of an array's type, expected 8, 9, 16 to 18, 32 to 34 or 64 to 66"};
      }
      shape.type = types[static_cast<std::size_t>(at - codes.begin())];
    }
    if (!encoding_.shape) {
      const std::uint64_t head = number(1);
      const std::uint64_t dimensions = head >> 2;
      if (dimensions == 0 || dimensions > max_payload_dimensions) {
        throw mds_fault{at_ - 1, "found an array of " + std::to_string(dimensions) +
                                     " dimensions, expected 1 to 8"};
      }
      shape.dimensions = static_cast<std::uint32_t>(dimensions);
      for (std::size_t i = 0; i < dimensions; ++i) {
        shape.extents[i] = number(std::size_t{1} << (head & 3));
      }
    }
    return checked(shape);
  }

  mds_numbers read_pixels() {
    const std::uint64_t width = number(4);
    const std::uint64_t height = number(4);
    const std::uint64_t mode_bytes = number(4);
    if (mode_bytes > 16 || mode_bytes > start_.size() - at_) {
      throw mds_fault{8, "found an image mode of " + std::to_string(mode_bytes) +
                             " bytes, expected a name as RGB"};
    }
    const std::string mode(reinterpret_cast<const char*>(start_.data()) + at_,
                           static_cast<std::size_t>(mode_bytes));
    at_ += static_cast<std::size_t>(mode_bytes);
    struct entry {
      std::string_view mode;
      payload_type type;
      std::uint64_t channels;
    };
    constexpr std::array<entry, 14> modes = {{{"L", payload_type::u8, 1},
                                              {"P", payload_type::u8, 1},
                                              {"RGB", payload_type::u8, 3},
                                              {"YCbCr", payload_type::u8, 3},
                                              {"LAB", payload_type::u8, 3},
                                              {"HSV", payload_type::u8, 3},
                                              {"RGBA", payload_type::u8, 4},
                                              {"RGBX", payload_type::u8, 4},
                                              {"CMYK", payload_type::u8, 4},
                                              {"LA", payload_type::u8, 2},
                                              {"PA", payload_type::u8, 2},
                                              {"I", payload_type::i32, 1},
                                              {"I;16", payload_type::u16, 1},
                                              {"F", payload_type::f32, 1}}};
    for (const entry& each : modes) {
      if (mode != each.mode) continue;
      if (each.channels == 1) return checked(payload_shape(each.type, {height, width}));
      return checked(payload_shape(each.type, {height, width, each.channels}));
    }
    throw mds_fault{12, "found the image mode " + detail::quoted(mode) +
                            ", expected L, P, LA, PA, RGB, RGBA, RGBX, CMYK, YCbCr, LAB, HSV, I, "
                            "I;16 or F"};
  }

  const mds_encoding& encoding_;
  std::span<const std::byte> start_;
  std::uint64_t bytes_;
  std::size_t at_ = 0;
};

/// Calls `visit(first, bytes)` for every image of a value, both counted from the value's start.
/// `view(offset, count)` shows parts of the value.
/// @throws mds_fault  The value is not what its encoding says.
template <class View, class Visit>
void for_each_image(const mds_encoding& encoding, std::uint64_t bytes, View&& view, Visit&& visit) {
  const bool is_list =
      encoding.kind == mds_kind::image_list || encoding.kind == mds_kind::pixels_list;
  if (!is_list && encoding.kind != mds_kind::image_array) {
    visit(std::uint64_t{0}, bytes);
    return;
  }
  // A list begins with a number that is kept for later use.
  const std::uint64_t head = is_list ? 8 : 4;
  if (bytes < head) {
    throw mds_fault{0, "found " + std::to_string(bytes) + " bytes, expected a list of images"};
  }
  const std::uint64_t count = load_uint(view(head - 4, 4).data(), 4);
  if (count > (bytes - head) / 4) {
    throw mds_fault{head - 4, "found a list of " + std::to_string(count) + " images in " +
                                  std::to_string(bytes) + " bytes, expected fewer"};
  }
  std::uint64_t first = head + 4 * count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = load_uint(view(head + 4 * i, 4).data(), 4);
    if (size > bytes - first) {
      throw mds_fault{head + 4 * i, "found an image of " + std::to_string(size) +
                                        " bytes, expected at most the " +
                                        std::to_string(bytes - first) + " that are left"};
    }
    visit(first, size);
    first += size;
  }
  if (first != bytes) {
    throw mds_fault{first, "found " + std::to_string(bytes - first) +
                               " bytes behind the last image, expected none"};
  }
}

/// Tells where the columns of samples lie.
class mds_columns {
 public:
  /// @throws data_error  There are no columns, or too many.
  mds_columns(std::vector<mds_column> columns, const std::string& path)
      : columns_(std::move(columns)) {
    if (columns_.empty() || columns_.size() > 4096) {
      throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                       "found " + std::to_string(columns_.size()) + " columns, expected 1 to 4096");
    }
    for (const mds_column& column : columns_) {
      const std::optional<std::uint64_t> size = column.encoding.size();
      if (size) {
        fixed_bytes_ = saturating_add(fixed_bytes_, *size);
      } else {
        head_bytes_ += 4;
      }
    }
  }

  [[nodiscard]] const std::vector<mds_column>& columns() const noexcept { return columns_; }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name) return i;
    }
    return std::nullopt;
  }
  /// Bytes in front of a sample's values.
  [[nodiscard]] std::size_t head_bytes() const noexcept { return head_bytes_; }

  /// Where the values of a sample of the bytes [begin, end) of a file lie.
  /// @param head  The first `head_bytes()` bytes of the sample.
  /// @throws data_error  The sizes in it do not add up to those of the sample.
  void locate(const std::string& path, std::uint64_t sample, std::uint64_t begin, std::uint64_t end,
              std::span<const std::byte> head, std::vector<mds_value>& out) const {
    out.clear();
    std::uint64_t at = begin + head_bytes_;
    std::size_t next = 0;
    for (const mds_column& column : columns_) {
      std::optional<std::uint64_t> size = column.encoding.size();
      if (!size) {
        size = load_uint(head.data() + next, 4);
        next += 4;
      }
      if (at > end || *size > end - at) {
        throw_data_error({.path = path,
                          .byte_offset = begin + (next == 0 ? 0 : next - 4),
                          .record = sample,
                          .line = {}},
                         "found column " + detail::quoted(column.name) + " of " +
                             std::to_string(*size) + " bytes, expected at most the " +
                             std::to_string(at > end ? 0 : end - at) +
                             " that are left of the sample's " + std::to_string(end - begin));
      }
      out.push_back({.offset = at, .bytes = *size});
      at += *size;
    }
    if (at != end) {
      throw_data_error({.path = path, .byte_offset = at, .record = sample, .line = {}},
                       "found " + std::to_string(end - at) +
                           " bytes behind the last column of the sample, expected none");
    }
  }

 private:
  std::vector<mds_column> columns_;
  std::size_t head_bytes_ = 0;
  std::uint64_t fixed_bytes_ = 0;
};

/// Reads where the samples of a shard start, and its end: n + 1 offsets.
/// @param samples  Number of samples that the index says.
/// @throws data_error  The shard has another number of samples, or offsets that overlap, leave out
///                     bytes between samples or do not lie in the file.
[[nodiscard]] inline std::vector<std::uint32_t> read_mds_offsets(const input_file& file,
                                                                 std::uint64_t samples) {
  const auto fail = [&](std::uint64_t offset, const std::string& what) {
    throw_file_error_at(file.path(), offset, "MDS shard: " + what);
  };
  std::array<std::byte, 4> count{};
  file.read_at(0, count);
  const std::uint64_t found = load_uint(count.data(), 4);
  if (found != samples) {
    fail(0, "found " + std::to_string(found) + " samples, expected " + std::to_string(samples) +
                " as in the index");
  }
  const std::uint64_t table_end = 4 + 4 * (found + 1);
  if (table_end > file.size()) {
    fail(4, "found offsets of " + std::to_string(found) + " samples in a file of " +
                std::to_string(file.size()) + " bytes, expected at least " +
                std::to_string(table_end));
  }
  std::vector<std::uint32_t> offsets(static_cast<std::size_t>(found) + 1);
  file.read_at(4, std::as_writable_bytes(std::span(offsets)));
  if (offsets[0] < table_end) {
    fail(4, "found a first sample at byte " + std::to_string(offsets[0]) + ", expected " +
                std::to_string(table_end) + " or more, behind the offsets");
  }
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i + 1]) {
      fail(4 + 4 * (std::uint64_t{i} + 1), "found offset " + std::to_string(offsets[i + 1]) +
                                               " after " + std::to_string(offsets[i]) +
                                               ", expected a larger one (a shard of 4 GiB or more "
                                               "cannot be written in this format)");
    }
  }
  if (offsets.back() != file.size()) {
    fail(4 + 4 * found, "found an end of the last sample at byte " +
                            std::to_string(offsets.back()) + ", expected " +
                            std::to_string(file.size()) + ", the end of the file");
  }
  return offsets;
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
