#pragma once

/// @file
/// The inner loops of the layouts: labels, loss masks and positions of one record.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lanepack/batch/layout_options.hpp>
#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

// Loops of a constant number of turns over memory that cannot overlap become vector code at -O2
// already, with any compiler.

template <std::size_t Count>
void position_block(std::int32_t* out, std::int32_t first) noexcept {
  for (std::int32_t k = 0; k < static_cast<std::int32_t>(Count); ++k) out[k] = first + k;
}

/// Writes `first`, `first` + 1, ...
inline void fill_positions(std::int32_t* positions, std::size_t count,
                           std::int32_t first = 0) noexcept {
  std::size_t i = 0;
  const auto value = [&]() noexcept { return first + static_cast<std::int32_t>(i); };
  for (; i + 64 <= count; i += 64) position_block<64>(positions + i, value());
  for (; i + 8 <= count; i += 8) position_block<8>(positions + i, value());
  for (; i < count; ++i) positions[i] = value();
}

inline void fill_value(std::int32_t* out, std::size_t count, std::int32_t value) noexcept {
  constexpr std::size_t block = 64;
  std::size_t i = 0;
  for (; i + block <= count; i += block) {
    for (std::size_t k = 0; k < block; ++k) out[i + k] = value;
  }
  for (; i < count; ++i) out[i] = value;
}

/// `shift_masked` for `Count` positions, a multiple of 8 up to 64.
template <std::size_t Count>
std::uint64_t shift_block(const std::int32_t* tokens, std::uint8_t* mask,
                          std::int32_t* labels) noexcept {
  std::array<std::uint8_t, Count> next;
  std::memcpy(next.data(), mask + 1, Count);
  for (std::size_t k = 0; k < Count; ++k) next[k] = static_cast<std::uint8_t>(next[k] != 0);
  std::memcpy(mask, next.data(), Count);
  if (labels != nullptr) {
    std::array<std::int32_t, Count> shifted;
    std::memcpy(shifted.data(), tokens + 1, sizeof(shifted));
    for (std::size_t k = 0; k < Count; ++k) {
      const auto keep = -static_cast<std::int32_t>(next[k]);
      shifted[k] = (shifted[k] & keep) | (ignored_label & ~keep);
    }
    std::memcpy(labels, shifted.data(), sizeof(shifted));
  }
  // Eight sums side by side in the bytes of a word; together they stay below 256.
  std::array<std::uint64_t, Count / 8> words;
  std::memcpy(words.data(), next.data(), Count);
  std::uint64_t sums = 0;
  for (const std::uint64_t word : words) sums += word;
  return (sums * 0x0101010101010101) >> 56;
}

/// Shifts a loss mask of `count` + 1 bytes by one and makes the labels that it selects:
/// `mask[i]` becomes 1 or 0 as `mask[i + 1]` is, and `labels[i]` becomes `tokens[i + 1]` or
/// `ignored_label`; `mask[count]` stays.
/// @param labels  May be null.
/// @return        The number of ones.
inline std::uint64_t shift_masked(const std::int32_t* tokens, std::uint8_t* mask,
                                  std::int32_t* labels, std::size_t count) noexcept {
  std::uint64_t ones = 0;
  std::size_t i = 0;
  const auto label = [&]() noexcept { return labels == nullptr ? nullptr : labels + i; };
  for (; i + 64 <= count; i += 64) ones += shift_block<64>(tokens + i, mask + i, label());
  for (; i + 16 <= count; i += 16) ones += shift_block<16>(tokens + i, mask + i, label());
  for (; i < count; ++i) {
    const bool wanted = mask[i + 1] != 0;
    mask[i] = wanted ? 1 : 0;
    ones += wanted ? 1 : 0;
    if (labels != nullptr) labels[i] = wanted ? tokens[i + 1] : ignored_label;
  }
  return ones;
}

/// The fields of one record in a slab; `labels`, `positions` and `mask` may be null.
struct record_fields {
  std::int32_t* tokens = nullptr;
  std::int32_t* labels = nullptr;
  std::int32_t* positions = nullptr;
  std::uint8_t* mask = nullptr;
};

/// What decides a record's labels and positions.
struct record_place {
  /// The mask was written by the reader.
  bool mask_given = false;
  /// The record counts no loss at all.
  bool silent = false;
  /// The token after the record's last one is predicted by it.
  bool predicts_next = false;
  /// Position of its first token.
  std::int32_t first_position = 0;
};

/// Completes one record: padding behind its tokens, labels, positions and loss mask.
/// @param length      Tokens of the record, at least 1.
/// @param padded      Tokens with padding.
/// @param next_token  The token that follows the record; used if `place.predicts_next`.
/// @return            Labels that count.
inline std::uint64_t complete_record(const record_fields& out, std::size_t length,
                                     std::size_t padded, std::int32_t pad_token,
                                     const record_place& place, std::int32_t next_token) noexcept {
  const std::size_t last = length - 1;
  std::uint64_t ones = 0;
  if (place.silent) {
    if (out.labels != nullptr) fill_value(out.labels, last, ignored_label);
    if (out.mask != nullptr) std::memset(out.mask, 0, last);
  } else if (place.mask_given) {
    ones = shift_masked(out.tokens, out.mask, out.labels, last);
  } else {
    ones = last;
    if (out.labels != nullptr && last != 0) {
      std::memcpy(out.labels, out.tokens + 1, last * sizeof(std::int32_t));
    }
    if (out.mask != nullptr) std::memset(out.mask, 1, last);
  }
  const bool predicts_next = place.predicts_next && !place.silent;
  ones += predicts_next ? 1 : 0;
  if (out.labels != nullptr) {
    out.labels[last] = predicts_next ? next_token : ignored_label;
    fill_value(out.labels + length, padded - length, ignored_label);
  }
  if (out.mask != nullptr) {
    out.mask[last] = predicts_next ? 1 : 0;
    std::memset(out.mask + length, 0, padded - length);
  }
  fill_value(out.tokens + length, padded - length, pad_token);
  if (out.positions != nullptr) fill_positions(out.positions, padded, place.first_position);
  return ones;
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
