#pragma once

/// @file
/// `record_chunk`: the part of a record that a micro-batch holds.

#include <algorithm>
#include <cstdint>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The part of a record that a micro-batch holds; a whole record is chunk 0 of 1.
struct record_chunk {
  /// Number of the chunk in its record.
  std::uint32_t index = 0;
  /// Chunks of the record, at least 1.
  std::uint32_t count = 1;
  /// Tokens of the record before this chunk: what its attention looks back on.
  std::uint64_t prefix_tokens = 0;
  /// Tokens of the chunk.
  std::uint64_t tokens = 0;

  /// Whether the record ends with it.
  [[nodiscard]] constexpr bool last() const noexcept { return index + 1 == count; }

  friend bool operator==(const record_chunk&, const record_chunk&) = default;
};

/// Chunk `index` of a record of `tokens` tokens cut into `count`, all of nearly the same size: each
/// but the last is a multiple of `multiple`, and they differ by at most one multiple.
/// @pre  1 <= count <= tokens / multiple, rounded up; index < count.
[[nodiscard]] constexpr record_chunk chunk_of(std::uint64_t tokens, std::uint32_t count,
                                              std::uint32_t index, std::uint64_t multiple) {
  const std::uint64_t units = ceil_div(tokens, multiple);
  const std::uint64_t base = units / count;
  const std::uint64_t longer = units % count;
  const std::uint64_t first = (base * index + std::min<std::uint64_t>(index, longer)) * multiple;
  const std::uint64_t size = (base + (index < longer ? 1 : 0)) * multiple;
  return {.index = index,
          .count = count,
          .prefix_tokens = first,
          .tokens = std::min(size, tokens - first)};
}

}  // namespace lanepack::inline LANEPACK_ABI
