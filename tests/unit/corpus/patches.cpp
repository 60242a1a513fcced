#include <lanepack/corpus/patches.hpp>

#include <cstdint>
#include <limits>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("patches: sides are rounded up to groups of merged patches", "[corpus]") {
  const patch_options plain{.payload = "image"};
  // 28 x 29 pixels are 2 x 3 patches of 14, in groups of 2 x 2 patches 2 x 4.
  REQUIRE(patches_of(image_size{28, 29}, plain) == 6);
  REQUIRE(patches_of(image_size{28, 29}, {.payload = "image", .merge = 2}) == 8);
  REQUIRE(patches_of(image_size{1, 1}, {.payload = "image", .patch_pixels = 16, .merge = 2}) == 4);
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  REQUIRE(patches_of(image_size{most, most}, {.payload = "image", .patch_pixels = 1}) == most);
}

TEST_CASE("patches: arrays are images or hold patches", "[corpus]") {
  const payload_shape image(payload_type::u8, {30, 14, 3});
  REQUIRE(patches_of(image, {.payload = "image"}) == 3);
  REQUIRE(patches_of(image, {.payload = "image", .from = patch_source::rows}) == 30);
  REQUIRE(patches_of(payload_shape(), {.payload = "image"}) == 0);
  REQUIRE(patches_of(payload_shape(payload_type::f32, {}), {.payload = "image"}) == 0);
}

TEST_CASE("patches: options are checked", "[corpus]") {
  REQUIRE_NOTHROW(validate(patch_options{}));
  REQUIRE_THROWS_AS(validate(patch_options{.patch_pixels = 0}), invalid_option);
  REQUIRE_THROWS_AS(validate(patch_options{.merge = 0}), invalid_option);
}
