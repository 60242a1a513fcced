// Prints digests of byte streams that were fed in pieces of different sizes.

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>

#include <lanepack/core/digest.hpp>

int main() {
  std::array<std::byte, 1000> data;
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256);

  for (const std::size_t piece : {1u, 3u, 16u, 17u, 1000u}) {
    lanepack::digest_builder builder;
    for (std::size_t at = 0; at < data.size(); at += piece) {
      builder.bytes(std::span(data).subspan(at, std::min(piece, data.size() - at)));
    }
    builder.number(piece);
    builder.text("lanepack");
    std::printf("digest/pieces_of_%zu %s\n", piece, builder.value().hex().c_str());
  }
}
