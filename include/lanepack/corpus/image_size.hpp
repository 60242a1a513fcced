#pragma once

/// @file
/// Width and height of an encoded image, from its header alone: PNG and JPEG.
///
/// Sources: W3C, "Portable Network Graphics (PNG) Specification", 5.2 and 11.2.2; ITU-T T.81,
/// "Digital compression and coding of continuous-tone still images", annex B.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Pixels of an image.
struct image_size {
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  friend bool operator==(const image_size&, const image_size&) = default;
};

namespace detail {

/// An image header that cannot be read.
struct image_fault {
  /// Byte of the image.
  std::uint64_t offset = 0;
  std::string what;
};

/// The number that `bytes` hold, most significant byte first.
[[nodiscard]] inline std::uint64_t big_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (const std::byte part : bytes) value = value << 8 | std::to_integer<std::uint64_t>(part);
  return value;
}

/// Walks through the header of an image of `bytes` bytes, of which `view(offset, count)` shows
/// parts.
/// @throws image_fault  It is neither PNG nor JPEG, or ends too early.
template <class View>
image_size read_image_size(std::uint64_t bytes, View&& view) {
  const auto part = [&](std::uint64_t offset, std::size_t count) -> std::span<const std::byte> {
    if (offset > bytes || count > bytes - offset) {
      throw image_fault{std::min(offset, bytes),
                        "the image ends in its header, after " + std::to_string(bytes) + " bytes"};
    }
    return view(offset, count);
  };
  const auto checked = [](image_size size, std::uint64_t offset) {
    if (size.width != 0 && size.height != 0) return size;
    throw image_fault{offset, "found an image of " + std::to_string(size.width) + " x " +
                                  std::to_string(size.height) + " pixels, expected at least 1 x 1"};
  };
  constexpr std::array<unsigned char, 16> png = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a,
                                                 0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  if (bytes >= png.size() && std::memcmp(part(0, png.size()).data(), png.data(), png.size()) == 0) {
    const std::span<const std::byte> size = part(png.size(), 8);
    return checked({big_endian(size.first(4)), big_endian(size.subspan(4))}, png.size());
  }
  if (bytes < 3 || big_endian(part(0, 3)) != 0xffd8ff) {
    std::string found = bytes == 0 ? "no byte" : "the bytes";
    constexpr std::array<char, 16> digits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                             '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
    for (const std::byte byte :
         part(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 8)))) {
      const auto value = std::to_integer<unsigned>(byte);
      found += {' ', digits[value >> 4], digits[value & 15]};
    }
    throw image_fault{0, "found " + found + ", expected a PNG or JPEG image"};
  }
  // Segments follow each other up to the frame's, which holds the size.
  std::uint64_t at = 2;
  while (true) {
    std::span<const std::byte> marker = part(at, 2);
    if (marker[0] != std::byte{0xff}) {
      throw image_fault{at, "found byte " + std::to_string(std::to_integer<unsigned>(marker[0])) +
                                ", expected the 255 of a JPEG marker"};
    }
    const auto code = std::to_integer<unsigned>(marker[1]);
    if (code == 0xff) {  // A marker may be preceded by any number of 255.
      ++at;
      continue;
    }
    at += 2;
    // TEM and the restart markers stand alone.
    if (code == 0x01 || (code >= 0xd0 && code <= 0xd7)) continue;
    const bool frame = code >= 0xc0 && code <= 0xcf && code != 0xc4 && code != 0xc8 && code != 0xcc;
    if (code == 0x00 || code == 0xd8 || code == 0xd9 || code == 0xda) {
      throw image_fault{at - 2, "found JPEG marker " + std::to_string(code) +
                                    ", expected that of a frame before it"};
    }
    const std::uint64_t length = big_endian(part(at, 2));
    if (length < (frame ? 8U : 2U)) {
      throw image_fault{
          at, "found a JPEG segment of " + std::to_string(length) + " bytes, expected more"};
    }
    if (frame) {
      const std::span<const std::byte> size = part(at + 3, 4);
      return checked({big_endian(size.subspan(2)), big_endian(size.first(2))}, at + 3);
    }
    at += length;
  }
}

}  // namespace detail

/// Width and height of a PNG or JPEG image, which is not decoded. An orientation in its metadata is
/// left alone.
/// @param image  The image, or as much of it as holds the header.
/// @throws data_error  It is another kind of image, or its header is cut short; with the byte.
/// @complexity  O(segments in front of the frame).
[[nodiscard]] inline image_size image_size_of(std::span<const std::byte> image) {
  try {
    return detail::read_image_size(image.size(), [&](std::uint64_t offset, std::size_t count) {
      return image.subspan(static_cast<std::size_t>(offset), count);
    });
  } catch (const detail::image_fault& fault) {
    detail::throw_data_error(
        {.path = "image", .byte_offset = fault.offset, .record = {}, .line = {}}, fault.what);
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
