#pragma once

/// @file
/// How a file is reached, and what tells one state of it from another.

#include <cstdint>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How the bytes of a file are reached.
enum class file_access : std::uint8_t {
  /// `pread` and `preadv`: a file that is cut short or an I/O error is an exception.
  positioned,
  /// The file is mapped into memory: fewer system calls, pages shared with other processes. For
  /// local files that nobody writes: where the file is cut short or its device fails while it is
  /// read, the process gets SIGBUS.
  mapped,
};

/// What tells one state of a file from another without reading it.
struct file_identity {
  /// Bytes.
  std::uint64_t size = 0;
  /// Time of the last change of its contents, nanoseconds since 1970.
  std::int64_t mtime_ns = 0;

  friend bool operator==(const file_identity&, const file_identity&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
