// Saved summaries: whatever a file with a valid checksum holds, what is loaded can be saved again
// and is then the same.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/corpus/summarize.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("summary");
  // The key of no files and no variant is sixteen zeros.
  const std::string payload =
      std::string(16, '\0') + std::string(reinterpret_cast<const char*>(data), size);
  const lanepack::digest128 digest =
      lanepack::detail::cache_digest(lanepack::detail::summary_cache_kind,
                                     std::as_bytes(std::span(payload.data(), payload.size())));
  lanepack_test::write_file(path, std::string(lanepack::detail::summary_cache_kind) + "\n" +
                                      lanepack_test::little_endian(std::uint64_t{payload.size()}) +
                                      payload + lanepack_test::little_endian(digest.low) +
                                      lanepack_test::little_endian(digest.high));
  const auto loaded = lanepack::load_summary(path, {});
  if (!loaded) return 0;
  fuzz_check(loaded->histogram.records() == loaded->records, "every record has a length");
  static_cast<void>(loaded->ids_above(100));
  if (loaded->records != 0) static_cast<void>(loaded->histogram.quantile(1, 2));
  fuzz_check(lanepack::save_summary(path, {}, *loaded), "it can be saved");
  fuzz_check(lanepack::load_summary(path, {}) == loaded, "and is the same again");
  return 0;
}
