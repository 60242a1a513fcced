#pragma once

/// @file
/// `device_buffer`: memory of a backend that frees itself.

#include <cstddef>
#include <span>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/device/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Owns memory of one kind of a backend.
/// @thread_safety  As a pointer: the owner sees to it that no work uses the memory when it goes.
template <device_backend Backend>
class device_buffer {
 public:
  /// @param bytes  At least 1; contents are unspecified.
  /// @throws       The backend's error or std::bad_alloc.
  device_buffer(const Backend& backend, memory_kind kind, std::size_t bytes)
      : backend_(backend), kind_(kind), data_(backend.allocate(kind, bytes)), bytes_(bytes) {}

  device_buffer(device_buffer&& other) noexcept
      : backend_(other.backend_),
        kind_(other.kind_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  device_buffer& operator=(device_buffer&& other) noexcept = delete;

  ~device_buffer() {
    if (data_ != nullptr) backend_.deallocate(kind_, data_, bytes_);
  }

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] memory_kind kind() const noexcept { return kind_; }

  /// The memory as bytes; the host may touch them only where the kind is `staging`.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(data_), bytes_};
  }

 private:
  Backend backend_;
  memory_kind kind_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace lanepack::inline LANEPACK_ABI
