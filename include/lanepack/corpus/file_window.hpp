#pragma once

/// @file
/// A file that is looked through from front to back, a part at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/file.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Shows parts of a file; those that lie close to each other take one read.
/// @thread_safety  None: one thread per object.
class file_window {
 public:
  /// @param file  Must outlive the window.
  explicit file_window(const input_file& file) : file_(&file) {}

  [[nodiscard]] const input_file& file() const noexcept { return *file_; }

  /// Bytes [offset, offset + bytes) of the file; valid until the next call.
  /// @throws data_error  The file has no such range, or it cannot be read.
  [[nodiscard]] std::span<const std::byte> view(std::uint64_t offset, std::size_t bytes) {
    file_->check_range(offset, bytes);
    if (offset < first_ || offset - first_ > buffer_.size() ||
        bytes > buffer_.size() - (offset - first_)) {
      constexpr std::uint64_t read_ahead = std::uint64_t{1} << 16;
      const std::uint64_t wanted = std::max<std::uint64_t>(bytes, read_ahead);
      buffer_.resize(static_cast<std::size_t>(std::min(wanted, file_->size() - offset)));
      first_ = offset;
      file_->read_at(offset, buffer_);
    }
    return std::span<const std::byte>(buffer_).subspan(static_cast<std::size_t>(offset - first_),
                                                       bytes);
  }

 private:
  const input_file* file_;
  std::uint64_t first_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
