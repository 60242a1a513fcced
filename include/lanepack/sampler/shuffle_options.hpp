#pragma once

/// @file
/// The ways to shuffle an epoch, and their names.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What is permuted in an epoch.
enum class shuffle_kind : std::uint8_t {
  /// Nothing: every epoch is in the order of the corpus.
  none,
  /// All records.
  full,
  /// Blocks of contiguous records, then the records inside groups of blocks.
  block,
};

/// "none", "full" or "block".
[[nodiscard]] inline std::string to_string(shuffle_kind kind) {
  switch (kind) {
    case shuffle_kind::none:
      return "none";
    case shuffle_kind::full:
      return "full";
    case shuffle_kind::block:
      return "block";
  }
  return "?";
}

/// The shuffle of that name.
/// @throws invalid_option  for any other text.
[[nodiscard]] inline shuffle_kind parse_shuffle_kind(std::string_view text) {
  for (const shuffle_kind kind : {shuffle_kind::none, shuffle_kind::full, shuffle_kind::block}) {
    if (text == to_string(kind)) return kind;
  }
  detail::throw_invalid_option("shuffle", detail::quoted(text), "none, full or block");
}

/// How an epoch is shuffled.
struct shuffle_options {
  shuffle_kind kind = shuffle_kind::full;
  /// Contiguous records that a `block` shuffle keeps together, at least 1; the unit of large reads.
  std::uint64_t block_records = 1024;
  /// Blocks among which a `block` shuffle mixes records, at least 1; files are open at so many
  /// places at once, and records are mixed as far as `block_records * group_blocks`.
  std::uint64_t group_blocks = 64;

  friend bool operator==(const shuffle_options&, const shuffle_options&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
