// The program of both consumer projects: it uses the library and compares the header's version with
// the one that CMake found.

#include <cstdio>
#include <cstring>
#include <span>

#include <lanepack/core/digest.hpp>
#include <lanepack/version.hpp>

int main() {
  lanepack::digest_builder builder;
  builder.text("lanepack");
  std::printf("lanepack %s, digest %s\n", LANEPACK_VERSION_STRING, builder.value().hex().c_str());
  return std::strcmp(LANEPACK_VERSION_STRING, LANEPACK_EXPECTED_VERSION) == 0 ? 0 : 1;
}
