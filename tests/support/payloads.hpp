#pragma once

// Corpora whose records carry payloads, and what a test expects of them.

#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/payload.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "support/corpora.hpp"
#include "support/gen.hpp"

namespace lanepack_test {

/// Byte `index` of a payload of record `id`.
inline std::byte expected_byte(std::size_t payload, std::uint64_t id, std::uint64_t index) {
  return static_cast<std::byte>((id * 37 + index * 11 + payload * 101 + 5) % 251);
}

inline bool is_expected_payload(std::span<const std::byte> bytes, std::size_t payload,
                                std::uint64_t id) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != expected_byte(payload, id, i)) return false;
  }
  return true;
}

/// Type and extents of a payload of a record of `corpus_with_payloads`: 0 is an encoded image of
/// `image_bytes[id]` bytes, 1 a number of rows of three 64-bit numbers.
inline lanepack::payload_shape expected_payload_shape(
    std::size_t payload, std::uint64_t id, const std::vector<std::uint64_t>& image_bytes) {
  if (payload == 0) return {lanepack::payload_type::u8, {image_bytes[id]}};
  return {lanepack::payload_type::i64, {image_bytes[id] == 0 ? 0 : id % 3, 3}};
}

/// As `corpus_of`, with the payloads "image" and "grid" and a patch for every 10 bytes of image.
inline lanepack::memory_source corpus_with_payloads(const std::vector<std::uint64_t>& lengths,
                                                    const std::vector<std::uint64_t>& image_bytes) {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint64_t> patches;
  std::vector<lanepack::memory_payload> payloads(2);
  payloads[0].name = "image";
  payloads[1].name = "grid";
  for (std::uint64_t id = 0; id < lengths.size(); ++id) {
    for (std::uint64_t i = 0; i < lengths[id]; ++i) tokens.push_back(expected_token(id, i));
    offsets.push_back(tokens.size());
    patches.push_back(image_bytes[id] / 10);
    for (std::size_t p = 0; p < payloads.size(); ++p) {
      const lanepack::payload_shape shape = expected_payload_shape(p, id, image_bytes);
      payloads[p].shapes.push_back(shape);
      for (std::uint64_t i = 0; i < shape.bytes(); ++i) {
        payloads[p].bytes.push_back(expected_byte(p, id, i));
      }
    }
  }
  return {std::move(tokens), std::move(offsets), {}, std::move(patches), std::move(payloads)};
}

/// Most records have a small image, some none, few a large one.
inline std::vector<std::uint64_t> random_image_bytes(gen& random, std::size_t records) {
  std::vector<std::uint64_t> bytes(records);
  for (std::uint64_t& count : bytes) count = random.one_in(4) ? 0 : random.heavy_tailed(10);
  return bytes;
}

}  // namespace lanepack_test
