#pragma once

/// @file
/// How the vision patches of a record are counted.

#include <cstdint>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/corpus/image_size.hpp>
#include <lanepack/corpus/payload.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a patch is counted from.
enum class patch_source : std::uint8_t {
  /// From the pixels of an image: encoded ones by the size in their header, arrays by their first
  /// two extents, height and width.
  pixels,
  /// Rows of an array of patches: its first extent.
  rows,
};

/// How vision patches are counted from a payload.
struct patch_options {
  /// Name of the payload; empty: records have no patches.
  std::string payload = {};
  patch_source from = patch_source::pixels;
  /// Pixels on a side of a patch, at least 1.
  std::uint32_t patch_pixels = 14;
  /// Patches on a side that are merged into one token, at least 1; width and height are rounded up
  /// to whole groups of merged patches, as models resize them.
  std::uint32_t merge = 1;

  friend bool operator==(const patch_options&, const patch_options&) = default;
};

/// Checks patch options.
/// @throws  invalid_option naming the field.
inline void validate(const patch_options& options) {
  if (options.patch_pixels == 0) {
    detail::throw_invalid_option("patches.patch_pixels", "0", "at least 1");
  }
  if (options.merge == 0) detail::throw_invalid_option("patches.merge", "0", "at least 1");
}

/// Patches of an image: width and height are rounded up to multiples of `patch_pixels x merge`.
[[nodiscard]] inline std::uint64_t patches_of(const image_size& image,
                                              const patch_options& options) noexcept {
  const std::uint64_t group = saturating_mul(options.patch_pixels, options.merge);
  const std::uint64_t columns = saturating_mul(ceil_div(image.width, group), options.merge);
  const std::uint64_t rows = saturating_mul(ceil_div(image.height, group), options.merge);
  return saturating_mul(columns, rows);
}

/// Patches of an array that is an image or holds patches; 0 where it has no numbers.
[[nodiscard]] inline std::uint64_t patches_of(const payload_shape& shape,
                                              const patch_options& options) noexcept {
  if (shape.numbers() == 0 || shape.dimensions == 0) return 0;
  if (options.from == patch_source::rows) return shape.extents[0];
  const std::uint64_t width = shape.dimensions > 1 ? shape.extents[1] : 1;
  return patches_of(image_size{.width = width, .height = shape.extents[0]}, options);
}

}  // namespace lanepack::inline LANEPACK_ABI
