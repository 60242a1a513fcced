#pragma once

/// @file
/// What a record carries beside its tokens: named arrays of numbers or bytes.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Type of a payload's numbers, always little-endian; bytes without a meaning are `u8`.
enum class payload_type : std::uint8_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64
};

/// Bytes of one number.
[[nodiscard]] constexpr std::size_t payload_type_bytes(payload_type type) noexcept {
  constexpr std::array<std::uint8_t, 12> bytes = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}

/// Name of the type, e.g. "f32".
[[nodiscard]] constexpr std::string_view payload_type_name(payload_type type) noexcept {
  constexpr std::array<std::string_view, 12> names = {"u8",  "i8",  "u16", "i16",  "u32", "i32",
                                                      "u64", "i64", "f16", "bf16", "f32", "f64"};
  return names[static_cast<std::size_t>(type)];
}

/// The type of that name ("f32", also "float32"), or nullopt.
[[nodiscard]] constexpr std::optional<payload_type> parse_payload_type(
    std::string_view name) noexcept {
  constexpr std::array<std::string_view, 12> long_names = {
      "uint8",  "int8",  "uint16",  "int16",    "uint32",  "int32",
      "uint64", "int64", "float16", "bfloat16", "float32", "float64"};
  for (std::size_t i = 0; i < long_names.size(); ++i) {
    const auto type = static_cast<payload_type>(i);
    if (name == payload_type_name(type) || name == long_names[i]) return type;
  }
  return std::nullopt;
}

/// Most dimensions of a payload.
inline constexpr std::size_t max_payload_dimensions = 8;

/// Type and extents of one record's payload, row by row. A record that lacks a payload has no
/// bytes of it: one dimension of extent 0.
struct payload_shape {
  payload_type type = payload_type::u8;
  /// Dimensions, at most `max_payload_dimensions`; none for a single number.
  std::uint32_t dimensions = 1;
  /// Extents, slowest first; 0 from `dimensions` on.
  std::array<std::uint64_t, max_payload_dimensions> extents{};

  payload_shape() = default;
  /// @pre  At most `max_payload_dimensions` extents.
  payload_shape(payload_type of, std::span<const std::uint64_t> sizes)
      : type(of), dimensions(static_cast<std::uint32_t>(sizes.size())) {
    LANEPACK_ASSERT(sizes.size() <= max_payload_dimensions);
    for (std::size_t i = 0; i < sizes.size(); ++i) extents[i] = sizes[i];
  }
  payload_shape(payload_type of, std::initializer_list<std::uint64_t> sizes)
      : payload_shape(of, std::span(sizes.begin(), sizes.size())) {}

  /// Numbers in all, at most 2^64 - 1.
  [[nodiscard]] std::uint64_t numbers() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < dimensions; ++i) product = saturating_mul(product, extents[i]);
    return product;
  }
  /// Bytes in all, at most 2^64 - 1.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return saturating_mul(numbers(), payload_type_bytes(type));
  }

  friend bool operator==(const payload_shape&, const payload_shape&) = default;
};

/// Type and extents for messages, as "f32 (4, 1176)".
[[nodiscard]] inline std::string to_string(const payload_shape& shape) {
  std::string text(payload_type_name(shape.type));
  text += " (";
  for (std::size_t i = 0; i < shape.dimensions; ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape.extents[i]);
  }
  return text + ")";
}

/// One payload of a record, to be read into memory that the caller owns.
struct payload_read {
  record_id id = 0;
  /// Number of the payload in the source's `payload_names()`.
  std::size_t payload = 0;
  /// Receives the payload, exactly as many bytes as its shape has.
  std::span<std::byte> bytes;
};

/// A record and its payload bytes, all payloads together.
struct record_payload_bytes {
  record_id id = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const record_payload_bytes&, const record_payload_bytes&) = default;
};

/// A corpus whose records carry payloads beside their tokens.
///
/// Semantic requirements on a model, beside those of `record_source`:
/// - `payload_names()` are distinct, not empty, and never change for the life of the object; every
///   record has each of them, if only with no bytes;
/// - `payload_shapes(payload, ids, out)` writes the shape of that payload of `ids[i]` to `out[i]`
///   without reading it, in O(1) a record;
/// - `read_payloads(reads)` fills every span, visiting them in any order; throws data_error with
///   path, byte offset and record number where one cannot be delivered;
/// - `largest_payload()`, the record with the most payload bytes, is known without work per record;
///   {0, 0} where no record has any;
/// - an id or a payload that is not in the corpus, or a span of another size, is a state_error;
/// - `fingerprint()` covers names and shapes.
template <class Source>
concept payload_source = record_source<Source> &&
    requires(const Source& source, std::size_t payload, std::span<const record_id> ids,
             std::span<payload_shape> shapes, std::span<const payload_read> reads) {
  { source.payload_names() } -> std::same_as<std::span<const std::string>>;
  source.payload_shapes(payload, ids, shapes);
  source.read_payloads(reads);
  { source.largest_payload() } -> std::same_as<record_payload_bytes>;
};

namespace detail {

/// @throws state_error  There is no payload of that number.
inline void check_payload(std::size_t payload, std::size_t count) {
  if (payload < count) return;
  throw_state_error("found payload number " + std::to_string(payload) + ", expected one of " +
                    std::to_string(count));
}

/// Adds type and extents.
inline void digest_shape(digest_builder& digest, const payload_shape& shape) {
  digest.number(static_cast<std::uint64_t>(shape.type) | std::uint64_t{shape.dimensions} << 8);
  for (std::size_t i = 0; i < shape.dimensions; ++i) digest.number(shape.extents[i]);
}

/// @throws state_error  The memory of a read is not as large as the payload.
inline void check_payload_read(const payload_read& read, std::uint64_t bytes) {
  if (read.bytes.size() == bytes) return;
  throw_state_error("record " + std::to_string(read.id) + ": found memory of " +
                    std::to_string(read.bytes.size()) + " bytes for payload number " +
                    std::to_string(read.payload) + ", expected " + std::to_string(bytes));
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
