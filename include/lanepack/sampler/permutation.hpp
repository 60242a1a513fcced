#pragma once

/// @file
/// `keyed_permutation`: a random-looking bijection on [0, n) that needs no memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The largest number of records that can be permuted.
inline constexpr std::uint64_t max_permutation_size = std::uint64_t{1} << 63;

namespace detail {

/// Divides any value by a number of at least 1 that is known beforehand, without a division.
class fixed_divider {
 public:
  explicit constexpr fixed_divider(std::uint64_t divisor) noexcept
      : divisor_(divisor), reciprocal_(~std::uint64_t{0} / divisor) {}

  [[nodiscard]] constexpr std::uint64_t divisor() const noexcept { return divisor_; }

  /// Quotient and remainder.
  [[nodiscard]] constexpr std::pair<std::uint64_t, std::uint64_t> operator()(
      std::uint64_t value) const noexcept {
    // reciprocal >= 2^64 / divisor - 1 and value < 2^64, so the estimate is short by 1 at most.
    std::uint64_t quotient = multiply_high(value, reciprocal_);
    std::uint64_t remainder = value - quotient * divisor_;
    const bool is_short = remainder >= divisor_;
    remainder -= is_short ? divisor_ : 0;
    quotient += is_short ? 1 : 0;
    return {quotient, remainder};
  }

 private:
  std::uint64_t divisor_;
  std::uint64_t reciprocal_;
};

/// The smallest number whose square is at least `value`, at least 1; `value` is at most 2^63.
[[nodiscard]] constexpr std::uint64_t ceil_sqrt(std::uint64_t value) noexcept {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root | bit) * (root | bit) < value) root |= bit;
  }
  return root + 1;
}

/// The key-independent part of a permutation: [0, n) inside a grid of `rows` x `columns`.
struct permutation_grid {
  explicit constexpr permutation_grid(std::uint64_t records) noexcept
      : size(records),
        columns(ceil_sqrt(records)),
        rows(records == 0 ? 1 : ceil_div(records, columns.divisor())),
        rounds(records < 0x100      ? 24
               : records < 0x1'0000 ? 10
                                    : 6) {}

  std::uint64_t size;
  fixed_divider columns;
  std::uint64_t rows;
  std::uint32_t rounds;
};

inline constexpr std::uint32_t max_permutation_rounds = 24;

}  // namespace detail

/// A bijection on [0, n) keyed by (seed, epoch, stage, lane), in constant memory.
///
/// Source: the generalised Feistel network of Black and Rogaway, "Ciphers with arbitrary finite
/// domains" (CT-RSA 2002): a position is a place in a grid of ceil(sqrt n) columns; rounds add a
/// keyed hash of one coordinate to the other; the few places past n are walked through. Not a
/// cipher: the hash is a multiply-xorshift, checked by statistics only.
/// @complexity     Memory and time O(1): 6 rounds from 2^16 records on, 10 from 2^8 on, 24 below,
///                 where few positions need more rounds to mix. Construction about 0.2 us.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Integers only: a pure function of n and the key.
class keyed_permutation {
 public:
  /// @param size  Number of records, 0 to 2^63.
  /// @throws invalid_option  where `size` is larger.
  keyed_permutation(std::uint64_t size, const random_key& key)
      : keyed_permutation(checked_grid(size), key, 0) {}

  /// As above, with the grid known and `index` naming one of many permutations of the same key.
  keyed_permutation(const detail::permutation_grid& grid, const random_key& key,
                    std::uint64_t index) noexcept
      : grid_(grid) {
    for (std::uint32_t i = 0; i < grid_.rounds; i += 2) {
      const auto words = counter_random_block(key, index, i / 2);
      if (i == 0) swap_ends_ = (words[1] & 1) != 0;
      keys_[i] = {words[0], words[1] | 1};
      keys_[i + 1] = {words[2], words[3] | 1};
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return grid_.size; }

  /// The record at `position`.
  /// @pre  `position < size()`.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const noexcept {
    LANEPACK_ASSERT(position < grid_.size);
    std::uint64_t value = forward(position);
    while (value >= grid_.size) value = forward(value);
    return transpose(value);
  }

  /// The position of `record`: the inverse of `operator()`.
  /// @pre  `record < size()`.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t record) const noexcept {
    LANEPACK_ASSERT(record < grid_.size);
    std::uint64_t value = backward(transpose(record));
    while (value >= grid_.size) value = backward(value);
    return value;
  }

  /// Writes the record at `positions[i]` to `out[i]`; the two may be the same memory.
  /// @pre  Every position is below `size()`; both spans have the same length.
  void apply(std::span<const std::uint64_t> positions,
             std::span<std::uint64_t> out) const noexcept {
    LANEPACK_ASSERT(positions.size() == out.size());
    for (std::size_t i = 0; i < positions.size(); ++i) out[i] = (*this)(positions[i]);
  }

 private:
  struct round_key {
    std::uint64_t addend = 0;
    std::uint64_t multiplier = 1;
  };

  static detail::permutation_grid checked_grid(std::uint64_t size) {
    if (size > max_permutation_size) {
      detail::throw_invalid_option("records", std::to_string(size), "at most 2^63");
    }
    return detail::permutation_grid(size);
  }

  // Two odd sides make every round, and so the whole network, an even permutation: half of all
  // permutations would be out of reach. A keyed transposition of 0 and 1 lets them in.
  [[nodiscard]] std::uint64_t transpose(std::uint64_t value) const noexcept {
    return value < 2 && swap_ends_ && grid_.size > 1 ? value ^ 1 : value;
  }

  static std::uint64_t hash(std::uint64_t value, const round_key& key, std::uint64_t n) noexcept {
    value = (value + key.addend) * key.multiplier;
    value ^= value >> 32;
    return random_below(value * 0x9e3779b97f4a7c15, n);
  }

  [[nodiscard]] std::uint64_t forward(std::uint64_t value) const noexcept {
    const std::uint64_t columns = grid_.columns.divisor();
    const std::uint64_t rows = grid_.rows;
    auto [row, column] = grid_.columns(value);
    for (std::uint32_t i = 0; i < grid_.rounds; i += 2) {
      column += hash(row, keys_[i], columns);
      column -= column >= columns ? columns : 0;
      row += hash(column, keys_[i + 1], rows);
      row -= row >= rows ? rows : 0;
    }
    return row * columns + column;
  }

  [[nodiscard]] std::uint64_t backward(std::uint64_t value) const noexcept {
    const std::uint64_t columns = grid_.columns.divisor();
    const std::uint64_t rows = grid_.rows;
    auto [row, column] = grid_.columns(value);
    for (std::uint32_t i = grid_.rounds; i != 0; i -= 2) {
      row += rows - hash(column, keys_[i - 1], rows);
      row -= row >= rows ? rows : 0;
      column += columns - hash(row, keys_[i - 2], columns);
      column -= column >= columns ? columns : 0;
    }
    return row * columns + column;
  }

  detail::permutation_grid grid_;
  bool swap_ends_ = false;
  std::array<round_key, detail::max_permutation_rounds> keys_;
};

}  // namespace lanepack::inline LANEPACK_ABI
