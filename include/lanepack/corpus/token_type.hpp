#pragma once

/// @file
/// `token_type`: how token ids are stored, and their conversion to and from int32.

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

static_assert(std::endian::native == std::endian::little,
              "corpus files are little-endian and are read in place");

/// Integer type in which a file stores numbers, always little-endian.
enum class token_type : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64 };

/// Bytes of one number.
[[nodiscard]] constexpr std::size_t token_bytes(token_type type) noexcept {
  switch (type) {
    case token_type::u8:
    case token_type::i8:
      return 1;
    case token_type::u16:
    case token_type::i16:
      return 2;
    case token_type::u32:
    case token_type::i32:
      return 4;
    case token_type::u64:
    case token_type::i64:
      break;
  }
  return 8;
}

/// Name of the type, e.g. "u16".
[[nodiscard]] constexpr std::string_view token_type_name(token_type type) noexcept {
  constexpr std::array<std::string_view, 8> names = {"u8",  "i8",  "u16", "i16",
                                                     "u32", "i32", "u64", "i64"};
  return names[static_cast<std::size_t>(type)];
}

/// The type of that name ("u16", also "uint16"), or nullopt.
[[nodiscard]] constexpr std::optional<token_type> parse_token_type(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 8> long_names = {"uint8",  "int8",  "uint16", "int16",
                                                          "uint32", "int32", "uint64", "int64"};
  for (std::size_t i = 0; i < long_names.size(); ++i) {
    const auto type = static_cast<token_type>(i);
    if (name == token_type_name(type) || name == long_names[i]) return type;
  }
  return std::nullopt;
}

/// The largest id that the type stores and lanepack delivers: at most 2^31 - 1.
[[nodiscard]] constexpr std::int32_t max_token_id(token_type type) noexcept {
  switch (type) {
    case token_type::i8:
      return 127;
    case token_type::u8:
      return 255;
    case token_type::i16:
      return 32767;
    case token_type::u16:
      return 65535;
    default:
      return std::numeric_limits<std::int32_t>::max();
  }
}

namespace detail {

/// Calls `function(T{})` with the C++ type of `type`.
template <class Function>
constexpr decltype(auto) with_token_type(token_type type, Function&& function) {
  switch (type) {
    case token_type::u8:
      return function(std::uint8_t{});
    case token_type::i8:
      return function(std::int8_t{});
    case token_type::u16:
      return function(std::uint16_t{});
    case token_type::i16:
      return function(std::int16_t{});
    case token_type::u32:
      return function(std::uint32_t{});
    case token_type::i32:
      return function(std::int32_t{});
    case token_type::u64:
      return function(std::uint64_t{});
    case token_type::i64:
      break;
  }
  return function(std::int64_t{});
}

/// The number stored at `from`, which need not be aligned.
template <class T>
[[nodiscard]] inline T load_number(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Appends `value` to a byte container.
template <class T, class Bytes>
void append_number(Bytes& bytes, T value) {
  std::array<std::byte, sizeof(T)> raw;
  std::memcpy(raw.data(), &value, sizeof value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// The bits that are 0 in every number in [0, 2^31), whether it is signed or not.
template <class T>
[[nodiscard]] constexpr std::make_unsigned_t<T> excess_bits() noexcept {
  using bits = std::make_unsigned_t<T>;
  if (sizeof(T) < 4 && std::unsigned_integral<T>) return 0;
  const unsigned first = std::min(31U, static_cast<unsigned>(8 * sizeof(T)) - 1);
  return static_cast<bits>(static_cast<bits>(~bits{0}) << first);
}

/// True where `value` is in [0, 2^31).
template <class T>
[[nodiscard]] constexpr bool is_token_id(T value) noexcept {
  return (static_cast<std::make_unsigned_t<T>>(value) & excess_bits<T>()) == 0;
}

/// Numbers that are converted or checked at a time. A fixed count lets compilers use vector
/// instructions at every level of optimization.
inline constexpr std::size_t token_block = 64;

/// Converts numbers stored at `from` to `out`; returns the position of the first that is not a
/// token id, or `out.size()`. `from` may overlap `out` where its end is the end of `out` and its
/// type is not wider than int32.
template <class T>
std::size_t decode_tokens_of(const std::byte* from, std::span<std::int32_t> out) noexcept {
  std::array<T, token_block> stored;
  std::array<std::int32_t, token_block> ids;
  for (std::size_t begin = 0; begin < out.size(); begin += token_block) {
    const std::size_t count = std::min(token_block, out.size() - begin);
    // Through copies, because `out` may overlap what is still to be read.
    if (count == token_block) {
      std::memcpy(stored.data(), from + begin * sizeof(T), sizeof stored);
    } else {
      stored.fill(0);
      std::memcpy(stored.data(), from + begin * sizeof(T), count * sizeof(T));
    }
    std::make_unsigned_t<T> any = 0;
    for (std::size_t i = 0; i < token_block; ++i) {
      any = static_cast<std::make_unsigned_t<T>>(any |
                                                 static_cast<std::make_unsigned_t<T>>(stored[i]));
      ids[i] = static_cast<std::int32_t>(stored[i]);
    }
    if (count == token_block) {
      std::memcpy(out.data() + begin, ids.data(), sizeof ids);
    } else {
      std::memcpy(out.data() + begin, ids.data(), count * sizeof(std::int32_t));
    }
    if ((any & excess_bits<T>()) != 0) {
      for (std::size_t i = 0; i < count; ++i) {
        if (!is_token_id(stored[i])) return begin + i;
      }
    }
  }
  return out.size();
}

/// `decode_tokens_of` for memory that does not overlap: one pass.
template <class T>
std::size_t decode_tokens_apart_of(const std::byte* from, std::span<std::int32_t> out) noexcept {
  std::size_t begin = 0;
  for (; begin + token_block <= out.size(); begin += token_block) {
    const std::byte* __restrict const stored = from + begin * sizeof(T);
    std::int32_t* __restrict const ids = out.data() + begin;
    std::make_unsigned_t<T> any = 0;
    for (std::size_t i = 0; i < token_block; ++i) {
      T value;
      std::memcpy(&value, stored + i * sizeof(T), sizeof value);
      any = static_cast<std::make_unsigned_t<T>>(any | static_cast<std::make_unsigned_t<T>>(value));
      ids[i] = static_cast<std::int32_t>(value);
    }
    if ((any & excess_bits<T>()) != 0) break;
  }
  return begin + decode_tokens_of<T>(from + begin * sizeof(T), out.subspan(begin));
}

/// True where one of `Count` numbers is negative; `Count` is a multiple of 16.
template <std::size_t Count>
[[nodiscard]] bool any_negative(const std::int32_t* tokens) noexcept {
  // Four chains of instructions side by side: one would take a cycle for every vector.
  constexpr std::size_t part = Count / 4;
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int32_t c = 0;
  std::int32_t d = 0;
  for (std::size_t i = 0; i < part; ++i) {
    a |= tokens[i];
    b |= tokens[i + part];
    c |= tokens[i + 2 * part];
    d |= tokens[i + 3 * part];
  }
  return (a | b | c | d) < 0;
}

/// Position of the first negative number, or `tokens.size()`.
inline std::size_t first_negative(std::span<const std::int32_t> tokens) noexcept {
  constexpr std::size_t large = 512;
  constexpr std::size_t small = 32;
  const std::int32_t* const at = tokens.data();
  std::size_t begin = 0;
  while (tokens.size() - begin >= large && !any_negative<large>(at + begin)) begin += large;
  while (tokens.size() - begin >= small && !any_negative<small>(at + begin)) begin += small;
  while (begin < tokens.size() && at[begin] >= 0) ++begin;
  return begin;
}

/// The number stored at `from`, as text.
inline std::string number_text(token_type type, const std::byte* from) {
  return with_token_type(
      type, [from](auto zero) { return std::to_string(load_number<decltype(zero)>(from)); });
}

}  // namespace detail

/// Converts `out.size()` numbers stored at `from`, which need not be aligned, to token ids.
/// @return  Position of the first number outside [0, 2^31), or `out.size()`; what `out` holds from
///          there on is unspecified.
[[nodiscard]] inline std::size_t decode_tokens(token_type type, const std::byte* from,
                                               std::span<std::int32_t> out) noexcept {
  return detail::with_token_type(
      type, [from, out](auto zero) { return detail::decode_tokens_of<decltype(zero)>(from, out); });
}

/// As `decode_tokens`, where `from` and `out` do not overlap.
[[nodiscard]] inline std::size_t decode_tokens_apart(token_type type, const std::byte* from,
                                                     std::span<std::int32_t> out) noexcept {
  return detail::with_token_type(type, [from, out](auto zero) {
    return detail::decode_tokens_apart_of<decltype(zero)>(from, out);
  });
}

}  // namespace lanepack::inline LANEPACK_ABI
