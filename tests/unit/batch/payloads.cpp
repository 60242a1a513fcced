#include <lanepack/batch/payloads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

std::shared_ptr<const std::vector<std::string>> names_of(std::vector<std::string> names) {
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

/// Memory that starts at a multiple of 64.
struct aligned_slab {
  explicit aligned_slab(std::size_t size) : words(size / 8 + 16) {
    auto* const first = reinterpret_cast<std::byte*>(words.data());
    const std::size_t over = reinterpret_cast<std::uintptr_t>(first) % 64;
    bytes = std::span(first + (over == 0 ? 0 : 64 - over), size);
    std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  }
  std::vector<std::uint64_t> words;
  std::span<std::byte> bytes;
};

}  // namespace

TEST_CASE("batch: payloads lie behind the tokens without gaps", "[batch]") {
  // Three records: patches of 2 x 3, 0 x 3 and 1 x 3 numbers; images of 5, 7 and 0 bytes.
  const payload_layout layout(names_of({"patches", "image"}),
                              {{payload_type::f16, {2, 3}},
                               {payload_type::f16, {0, 3}},
                               {payload_type::f16, {1, 3}},
                               {payload_type::u8, {5}},
                               {payload_type::u8, {7}},
                               {payload_type::u8, {0}}},
                              3, 100);
  // 128: offsets of patches (32 bytes), 192: 18 bytes, 256: offsets, 320: 12 bytes, 384: the end.
  REQUIRE(layout.slab_bytes() == 384);
  REQUIRE(layout.payloads() == 2);
  REQUIRE(layout.slab_bytes() <= 128 + payload_layout::slab_bytes_bound(2, 18 + 12, 3));
  aligned_slab slab(384);
  const std::vector<std::span<std::byte>> spans = layout.spans(slab.bytes);
  REQUIRE(spans.size() == 6);
  const std::vector<std::size_t> sizes = {12, 0, 6, 5, 7, 0};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    REQUIRE(spans[i].size() == sizes[i]);
    std::fill(spans[i].begin(), spans[i].end(), static_cast<std::byte>(i));
  }
  const batch_payloads payloads = layout.complete(slab.bytes);
  REQUIRE(payloads.size() == 2);
  REQUIRE_FALSE(payloads.find("token"));
  const payload_view patches = *payloads.find("patches");
  REQUIRE(patches.name() == "patches");
  REQUIRE(patches.records() == 3);
  REQUIRE(patches.bytes().data() == slab.bytes.data() + 192);
  REQUIRE(patches.bytes().size() == 18);
  REQUIRE(std::vector<std::uint64_t>(patches.offsets().begin(), patches.offsets().end()) ==
          std::vector<std::uint64_t>{0, 12, 12, 18});
  REQUIRE(patches.shape(2) == payload_shape(payload_type::f16, {1, 3}));
  REQUIRE(patches.bytes(2)[0] == std::byte{2});
  const payload_view image = payloads[1];
  REQUIRE(image.bytes(1).size() == 7);
  REQUIRE(image.bytes(1)[6] == std::byte{4});
  REQUIRE(image.bytes(2).empty());
  // What lies in front is left alone.
  REQUIRE(std::all_of(slab.bytes.begin(), slab.bytes.begin() + 128,
                      [](std::byte value) { return value == std::byte{0xee}; }));

  aligned_slab copy(384);
  std::memcpy(copy.bytes.data(), slab.bytes.data(), 384);
  const payload_view there = *payloads.over(copy.bytes.data()).find("image");
  REQUIRE(there.bytes().data() == copy.bytes.data() + 320);
  REQUIRE(there.offsets()[2] == 12);
}

TEST_CASE("batch: a layout without payloads takes nothing", "[batch]") {
  const payload_layout none;
  REQUIRE(none.slab_bytes() == 0);
  REQUIRE(none.complete({}).empty());
  REQUIRE(none.spans({}).empty());
}

TEST_CASE(
    "batch: payloads refuse a slab that is too small or not aligned, and what no memory holds",
    "[batch]") {
  const payload_layout layout(names_of({"image"}), {{payload_type::u8, {5}}}, 1, 0);
  REQUIRE(layout.slab_bytes() == 128);
  aligned_slab slab(192);
  REQUIRE_THROWS_AS(layout.spans(slab.bytes.first(127)), state_error);
  REQUIRE_THROWS_AS(layout.complete(slab.bytes.subspan(1, 130)), state_error);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  REQUIRE_THROWS_AS(payload_layout(names_of({"image"}),
                                   {{payload_type::u8, {huge}}, {payload_type::f64, {huge}}}, 2, 0),
                    invalid_option);
}
