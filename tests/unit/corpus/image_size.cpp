#include <lanepack/corpus/image_size.hpp>

#include <span>
#include <string>

#include "support/catch.hpp"

using namespace lanepack;
using namespace std::string_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

image_size size_of(const std::string& bytes) {
  return image_size_of(std::as_bytes(std::span(bytes)));
}

const std::string png = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x01\x02\0\0\0\x05"s;

/// A segment of a JPEG image.
std::string segment(char code, const std::string& contents) {
  const std::size_t length = contents.size() + 2;
  return "\xff"s + code + static_cast<char>(length >> 8) + static_cast<char>(length & 255) +
         contents;
}

/// 8 bits, height, width, one component.
const std::string frame = "\x08\x01\x00\x00\x20\x01\x01\x11\x00"s;

}  // namespace

TEST_CASE("image_size: PNG and JPEG headers tell width and height", "[corpus]") {
  REQUIRE(size_of(png) == image_size{258, 5});
  REQUIRE(size_of("\xff\xd8"s + segment('\xc0', frame)) == image_size{32, 256});
  // Metadata, tables, padding and restart markers in front of a progressive frame.
  REQUIRE(size_of("\xff\xd8"s + segment('\xe1', std::string(65533, 'x')) +
                  segment('\xdb', "tables") + segment('\xc4', "not a frame") + "\xff\xd0\xff\xff"s +
                  segment('\xc2', frame)) == image_size{32, 256});
}

TEST_CASE("image_size: what is cut short or no image is an error with its byte", "[corpus]") {
  REQUIRE_THROWS_WITH(size_of(""), ContainsSubstring("byte 0: found no byte"));
  REQUIRE_THROWS_WITH(size_of("GIF89a..."),
                      ContainsSubstring("byte 0: found the bytes 47 49 46 38 39 61 2e 2e"));
  REQUIRE_THROWS_WITH(size_of(png.substr(0, 23)),
                      ContainsSubstring("byte 16: the image ends in its header, after 23 bytes"));
  REQUIRE_THROWS_WITH(size_of(png.substr(0, 16) + std::string(8, '\0')),
                      ContainsSubstring("byte 16: found an image of 0 x 0 pixels"));
  REQUIRE_THROWS_WITH(size_of("\xff\xd8\xff"s), ContainsSubstring("byte 2: the image ends"));
  REQUIRE_THROWS_WITH(size_of("\xff\xd8\xff\xe0\0\x01"s),
                      ContainsSubstring("byte 4: found a JPEG segment of 1 bytes"));
  REQUIRE_THROWS_WITH(size_of("\xff\xd8\xff\xe0\0\x02x."s),
                      ContainsSubstring("byte 6: found byte 120, expected the 255"));
  REQUIRE_THROWS_WITH(size_of("\xff\xd8\xff\xda\0\x02"s),
                      ContainsSubstring("found JPEG marker 218"));
  REQUIRE_THROWS_WITH(size_of("\xff\xd8\xff\xe0\xff\xff"s),
                      ContainsSubstring("byte 6: the image ends"));
}
