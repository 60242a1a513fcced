#pragma once

/// @file
/// Checksummed files for results that can be made again: a damaged or missing one is no error.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/cache_key.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Digest that ends a cache file.
inline digest128 cache_digest(std::string_view kind, std::span<const std::byte> payload) {
  digest_builder digest;
  digest.text(std::string(kind));
  digest.bytes(payload);
  return digest.value();
}

/// Gathers the payload of a cache file. All numbers are little-endian.
///
/// Layout: kind, a newline, bytes of the payload (64 bits), payload, digest of kind and payload
/// (low and high 64 bits).
class cache_writer {
 public:
  void number(std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) payload_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  /// Seven bits a byte, the lowest first, the top bit set in all bytes but the last.
  void small_number(std::uint64_t value) {
    for (; value >= 128; value >>= 7) payload_.push_back(static_cast<std::byte>(value | 128));
    payload_.push_back(static_cast<std::byte>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    const auto bytes = std::as_bytes(std::span(value.data(), value.size()));
    payload_.insert(payload_.end(), bytes.begin(), bytes.end());
  }

  /// Writes the file atomically; false where that is not possible.
  bool save(const std::string& path, std::string_view kind) const {
    const digest128 digest = cache_digest(kind, payload_);
    const auto head = std::string(kind) + "\n";
    std::array<std::byte, 8> size;
    std::array<std::byte, 16> tail;
    for (std::size_t i = 0; i < 8; ++i) {
      size[i] = static_cast<std::byte>(std::uint64_t{payload_.size()} >> (8 * i));
      tail[i] = static_cast<std::byte>(digest.low >> (8 * i));
      tail[8 + i] = static_cast<std::byte>(digest.high >> (8 * i));
    }
    try {
      output_file file(path);
      file.append(std::as_bytes(std::span(head.data(), head.size())));
      file.append(size);
      file.append(payload_);
      file.append(tail);
      file.commit();
      return true;
    } catch (const data_error&) {
      return false;
    }
  }

 private:
  std::vector<std::byte> payload_;
};

/// Reads a cache file back. Where the file is missing, damaged or of another kind, and after a read
/// past its end, `good` is false and all reads give zeros.
class cache_reader {
 public:
  cache_reader(const std::string& path, std::string_view kind) {
    if (!identify_file(path)) return;
    try {
      const input_file file(path);
      const std::size_t head_bytes = kind.size() + 1 + size_bytes;
      if (file.size() < head_bytes + tail_bytes) return;
      bytes_.resize(head_bytes);
      file.read_at(0, bytes_);
      if (std::memcmp(bytes_.data(), kind.data(), kind.size()) != 0 ||
          bytes_[kind.size()] != std::byte{'\n'}) {
        return;
      }
      // The rest is read only where it is as long as it says: a file that has grown by accident may
      // be larger than the memory.
      if (number_at(kind.size() + 1) != file.size() - head_bytes - tail_bytes) return;
      bytes_.resize(static_cast<std::size_t>(file.size()));
      file.read_at(head_bytes, std::span(bytes_).subspan(head_bytes));
      position_ = head_bytes;
    } catch (const data_error&) {
      return;
    }
    end_ = bytes_.size() - tail_bytes;
    const digest128 saved{number_at(end_), number_at(end_ + 8)};
    good_ = saved == cache_digest(kind, std::span(bytes_).subspan(position_, end_ - position_));
  }

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return position_ == end_; }

  std::uint64_t number() {
    if (!has(8)) return 0;
    position_ += 8;
    return number_at(position_ - 8);
  }

  std::uint64_t small_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; has(1); shift += 7) {
      const auto part = std::to_integer<std::uint64_t>(bytes_[position_++]);
      if (shift > 63 || (shift == 63 && part > 1)) break;
      value |= (part & 127) << shift;
      if (part < 128) return value;
    }
    good_ = false;
    return 0;
  }

  std::string text() {
    const std::uint64_t size = number();
    if (!has(size)) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + position_,
                      static_cast<std::size_t>(size));
    position_ += static_cast<std::size_t>(size);
    return value;
  }

 private:
  static constexpr std::size_t size_bytes = 8;
  static constexpr std::size_t tail_bytes = 16;

  [[nodiscard]] std::uint64_t number_at(std::size_t at) const {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes_[at + i]) << (8 * i);
    }
    return value;
  }

  bool has(std::uint64_t count) {
    if (!good_ || count > end_ - position_) good_ = false;
    return good_;
  }

  std::vector<std::byte> bytes_;
  std::size_t position_ = 0;
  std::size_t end_ = 0;
  bool good_ = false;
};

inline void write_key(cache_writer& out, const cache_key& key) {
  out.text(key.variant);
  out.number(key.files.size());
  for (const file_identity& file : key.files) {
    out.number(file.size);
    out.number(static_cast<std::uint64_t>(file.mtime_ns));
  }
}

/// True where the key that `in` holds is `key`.
inline bool read_key(cache_reader& in, const cache_key& key) {
  if (in.text() != key.variant || in.number() != key.files.size()) return false;
  for (const file_identity& file : key.files) {
    if (in.number() != file.size) return false;
    if (in.number() != static_cast<std::uint64_t>(file.mtime_ns)) return false;
  }
  return in.good();
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
