#pragma once

/// @file
/// Reads of token ids out of one file, in any order, into memory of the caller.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A run of tokens in a file.
struct token_read {
  /// Byte at which the run starts.
  std::uint64_t offset = 0;
  /// Receives the token ids.
  std::span<std::int32_t> tokens;
  /// The record that the run belongs to, for messages.
  record_id record = 0;
};

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_bad_token(const input_file& file, token_type type,
                                                       const token_read& read,
                                                       std::size_t position) {
  const std::uint64_t offset = read.offset + position * token_bytes(type);
  std::array<std::byte, 8> stored{};
  file.read_at(offset, std::span(stored).first(token_bytes(type)));
  throw_data_error(
      {.path = file.path(), .byte_offset = offset, .record = read.record, .line = {}},
      "found token " + number_text(type, stored.data()) + ", expected an id in [0, 2147483647]");
}

/// Where the stored numbers wait inside the memory that receives the ids: at its end, so that they
/// can be widened in place from the front.
inline std::span<std::byte> stored_part(const token_read& read, std::size_t bytes_per_token) {
  return std::as_writable_bytes(read.tokens).last(read.tokens.size() * bytes_per_token);
}

/// Whether the stored numbers are ids as they are, if none is negative.
[[nodiscard]] inline bool stored_as_ids(token_type type) noexcept {
  return type == token_type::i32 || type == token_type::u32;
}

/// Copies 32-bit numbers and returns the position of the first that is negative, or `out.size()`.
inline std::size_t copy_ids(const std::byte* from, std::span<std::int32_t> out) noexcept {
  std::memcpy(out.data(), from, out.size_bytes());
  return first_negative(out);
}

/// Converts every run straight out of the mapped file.
inline void read_mapped_tokens(const input_file& file, token_type type,
                               std::span<const token_read> reads) {
  // A part is checked while it is in the innermost cache, and meanwhile the same part of the next
  // run comes near: runs lie far apart, so each would begin with waits for memory.
  constexpr std::size_t part_tokens = 256;
  constexpr std::size_t line = 64;
  const std::size_t bytes = token_bytes(type);
  const bool as_stored = stored_as_ids(type);
  for (const token_read& read : reads) file.check_range(read.offset, read.tokens.size() * bytes);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const token_read& read = reads[i];
    const token_read& following = reads[std::min(i + 1, reads.size() - 1)];
    const std::byte* const from = file.mapping() + read.offset;
    const std::byte* const next = file.mapping() + following.offset;
    const std::size_t next_bytes = following.tokens.size() * bytes;
    for (std::size_t begin = 0; begin < read.tokens.size(); begin += part_tokens) {
      const std::size_t near_end = std::min((begin + part_tokens) * bytes, next_bytes);
      for (std::size_t at = begin * bytes; at < near_end; at += line) __builtin_prefetch(next + at);
      const std::span<std::int32_t> out =
          read.tokens.subspan(begin, std::min(part_tokens, read.tokens.size() - begin));
      const std::byte* const stored = from + begin * bytes;
      const std::size_t good =
          as_stored ? copy_ids(stored, out) : decode_tokens_apart(type, stored, out);
      if (good != out.size()) throw_bad_token(file, type, read, begin + good);
    }
  }
}

inline void widen_in_place(const input_file& file, token_type type, const token_read& read) {
  const std::size_t good =
      stored_as_ids(type)
          ? first_negative(read.tokens)
          : decode_tokens(type, stored_part(read, token_bytes(type)).data(), read.tokens);
  if (good != read.tokens.size()) throw_bad_token(file, type, read, good);
}

/// Eight bytes a token do not fit into four, so they pass through a small buffer.
inline void read_wide_tokens(const input_file& file, token_type type, const token_read& read) {
  constexpr std::size_t block_tokens = 8192;
  std::vector<std::byte> buffer(std::min(block_tokens, read.tokens.size()) * token_bytes(type));
  for (std::size_t begin = 0; begin < read.tokens.size(); begin += block_tokens) {
    const std::span<std::int32_t> out =
        read.tokens.subspan(begin, std::min(block_tokens, read.tokens.size() - begin));
    const std::span<std::byte> stored = std::span(buffer).first(out.size() * token_bytes(type));
    file.read_at(read.offset + begin * token_bytes(type), stored);
    const std::size_t good = decode_tokens_apart(type, stored.data(), out);
    if (good != out.size()) throw_bad_token(file, type, read, begin + good);
  }
}

/// Adds the record that the failed byte belongs to, where that is known.
[[noreturn]] LANEPACK_COLD inline void rethrow_with_record(const data_error& failure,
                                                           std::span<const token_read> sorted) {
  data_location where = failure.where();
  if (where.record || !where.byte_offset || sorted.empty()) throw;
  const std::string text =
      std::string(failure.what()).substr(std::strlen(data_error(where, "").what()));
  auto at = std::upper_bound(
      sorted.begin(), sorted.end(), *where.byte_offset,
      [](std::uint64_t offset, const token_read& read) { return offset < read.offset; });
  // Back over empty records, which share their place with the one that follows.
  while (at != sorted.begin() &&
         (at == sorted.end() || at->tokens.empty() || at->offset > *where.byte_offset)) {
    --at;
  }
  where.record = at->record;
  if (dynamic_cast<const file_changed*>(&failure) != nullptr) {
    throw file_changed(std::move(where), text);
  }
  throw_data_error(std::move(where), text);
}

inline void sort_by_offset(std::span<token_read> reads) {
  const auto by_offset = [](const token_read& a, const token_read& b) {
    return a.offset < b.offset;
  };
  if (!std::is_sorted(reads.begin(), reads.end(), by_offset)) {
    std::sort(reads.begin(), reads.end(), by_offset);
  }
}

inline void read_sorted_tokens(const input_file& file, token_type type,
                               std::span<const token_read> reads) {
  const std::size_t bytes = token_bytes(type);
  if (bytes > sizeof(std::int32_t)) {
    for (const token_read& read : reads) read_wide_tokens(file, type, read);
  } else {
    std::vector<file_range> ranges(reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      ranges[i] = {reads[i].offset, stored_part(reads[i], bytes)};
    }
    file.read_ranges(ranges, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) widen_in_place(file, type, reads[i]);
    });
  }
}

}  // namespace detail

/// Reads every run and converts the numbers to ids while they are in the processor's caches: out of
/// a mapped file as they come, else sorted by offset and with neighbours joined.
/// @param reads  Their order is unspecified on return.
/// @throws data_error  A run is not in the file, a number is not in [0, 2^31), the file changed
///                     after it was opened, or a read failed.
/// @complexity  O(tokens + reads log reads).
/// @thread_safety  Any number of threads may read one file.
inline void read_tokens(const input_file& file, token_type type, std::span<token_read> reads) {
  try {
    if (file.mapping() != nullptr) {
      detail::read_mapped_tokens(file, type, reads);
    } else {
      detail::sort_by_offset(reads);
      detail::read_sorted_tokens(file, type, reads);
    }
    file.check_unchanged();
  } catch (const data_error& failure) {
    detail::sort_by_offset(reads);
    detail::rethrow_with_record(failure, reads);
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
