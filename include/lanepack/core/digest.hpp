#pragma once

/// @file
/// 128-bit digests of plans, packs and files.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A 128-bit digest; compares and prints as one number, `high` first.
struct digest128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const digest128&, const digest128&) = default;

  /// 32 lower-case hexadecimal digits, `high` first.
  [[nodiscard]] std::string hex() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string text(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
      text[15 - i] = digits[(high >> (4 * i)) & 15];
      text[31 - i] = digits[(low >> (4 * i)) & 15];
    }
    return text;
  }
};

/// Digests a stream of bytes: MurmurHash3_x64_128 by Austin Appleby (public domain), computed over
/// little-endian words on every machine. `digest` equals the one-shot hash of all bytes fed so far;
/// how they were split over calls does not matter. Not cryptographic.
/// @complexity  O(bytes), several bytes a cycle; the state is 56 bytes.
/// @thread_safety  None: one thread per object.
class digest_builder {
 public:
  explicit digest_builder(std::uint32_t seed = 0) noexcept : h1_(seed), h2_(seed) {}

  /// Feeds bytes as they lie in memory.
  void bytes(std::span<const std::byte> data) noexcept {
    if (data.empty()) return;
    total_ += data.size();
    if (pending_size_ != 0) {
      const std::size_t taken = std::min(data.size(), block_bytes - pending_size_);
      std::memcpy(pending_.data() + pending_size_, data.data(), taken);
      pending_size_ += taken;
      data = data.subspan(taken);
      if (pending_size_ < block_bytes) return;
      block(pending_.data());
      pending_size_ = 0;
    }
    while (data.size() >= block_bytes) {
      block(data.data());
      data = data.subspan(block_bytes);
    }
    if (!data.empty()) std::memcpy(pending_.data(), data.data(), data.size());
    pending_size_ = data.size();
  }

  /// Feeds an integer as 8 little-endian bytes.
  void number(std::uint64_t value) noexcept {
    std::array<std::byte, 8> buffer;
    for (std::size_t i = 0; i < 8; ++i) buffer[i] = static_cast<std::byte>(value >> (8 * i));
    bytes(buffer);
  }

  /// Feeds a text with its length in front, so that neighbours cannot run together.
  void text(const std::string& value) noexcept {
    number(value.size());
    bytes(std::as_bytes(std::span(value.data(), value.size())));
  }

  /// Feeds another digest.
  void digest(const digest128& value) noexcept {
    number(value.low);
    number(value.high);
  }

  /// The digest of all bytes fed so far; feeding may go on afterwards.
  [[nodiscard]] digest128 value() const noexcept {
    std::uint64_t h1 = h1_;
    std::uint64_t h2 = h2_;
    if (pending_size_ != 0) {
      std::array<std::byte, block_bytes> tail{};
      std::memcpy(tail.data(), pending_.data(), pending_size_);
      if (pending_size_ > 8) h2 ^= rotate(word(tail.data() + 8) * c2, 33) * c1;
      h1 ^= rotate(word(tail.data()) * c1, 31) * c2;
    }
    h1 ^= total_;
    h2 ^= total_;
    h1 += h2;
    h2 += h1;
    h1 = finalize(h1);
    h2 = finalize(h2);
    h1 += h2;
    h2 += h1;
    return {h1, h2};
  }

 private:
  static constexpr std::size_t block_bytes = 16;
  static constexpr std::uint64_t c1 = 0x87c37b91114253d5;
  static constexpr std::uint64_t c2 = 0x4cf5ad432745937f;

  static std::uint64_t rotate(std::uint64_t value, unsigned bits) noexcept {
    return (value << bits) | (value >> (64 - bits));
  }

  static std::uint64_t word(const std::byte* data) noexcept {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(data[i]) << (8 * i);
    }
    return value;
  }

  static std::uint64_t finalize(std::uint64_t value) noexcept {
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccd;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53;
    value ^= value >> 33;
    return value;
  }

  void block(const std::byte* data) noexcept {
    h1_ ^= rotate(word(data) * c1, 31) * c2;
    h1_ = rotate(h1_, 27) + h2_;
    h1_ = h1_ * 5 + 0x52dce729;
    h2_ ^= rotate(word(data + 8) * c2, 33) * c1;
    h2_ = rotate(h2_, 31) + h1_;
    h2_ = h2_ * 5 + 0x38495ab5;
  }

  std::uint64_t h1_;
  std::uint64_t h2_;
  std::uint64_t total_ = 0;
  std::array<std::byte, block_bytes> pending_{};
  std::size_t pending_size_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
