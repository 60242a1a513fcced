#pragma once

/// @file
/// Integer arithmetic that cannot wrap: saturating sums and products, rounding, 128-bit products.

#include <cstdint>
#include <limits>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Unsigned 128-bit integer of the compiler, for exact products of two 64-bit values.
__extension__ using uint128 = unsigned __int128;

/// Sum of `a` and `b`, or the largest 64-bit value where the sum does not fit.
[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

/// Product of `a` and `b`, or the largest 64-bit value where the product does not fit.
[[nodiscard]] constexpr std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept {
  const uint128 product = static_cast<uint128>(a) * b;
  return (product >> 64) != 0 ? std::numeric_limits<std::uint64_t>::max()
                              : static_cast<std::uint64_t>(product);
}

/// Upper 64 bits of the 128-bit product of `a` and `b`.
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::uint64_t>((static_cast<uint128>(a) * b) >> 64);
}

/// `a / b` rounded up; `b` must not be 0.
[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// The smallest multiple of `multiple` that is at least `value`, or the largest 64-bit value where
/// there is none; `multiple` must not be 0.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value,
                                               std::uint64_t multiple) noexcept {
  return saturating_mul(ceil_div(value, multiple), multiple);
}

}  // namespace lanepack::inline LANEPACK_ABI
