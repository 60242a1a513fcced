// Saved pipeline indexes: whatever a file with a valid checksum holds, what is loaded can be asked
// anything, saved again, and is then the same.

#include <lanepack/pipeline/count_index.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lanepack_test::fuzz_check;
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("index");
  const std::string payload(reinterpret_cast<const char*>(data), size);
  const lanepack::digest128 digest = lanepack::detail::cache_digest(
      lanepack::detail::count_index_kind, std::as_bytes(std::span(payload.data(), payload.size())));
  lanepack_test::write_file(path, std::string(lanepack::detail::count_index_kind) + "\n" +
                                      lanepack_test::little_endian(std::uint64_t{payload.size()}) +
                                      payload + lanepack_test::little_endian(digest.low) +
                                      lanepack_test::little_endian(digest.high));
  const auto loaded = lanepack::count_index::load(path);
  if (!loaded) return 0;
  for (lanepack::record_id record = 0; record < loaded->records(); ++record) {
    const lanepack::record_id input = loaded->input_of(record);
    fuzz_check(loaded->first_record(input) <= record && record < loaded->first_record(input + 1),
               "a record is its input's");
    const lanepack::record_shape shape = loaded->shape(record);
    fuzz_check(shape.tokens == 0 ? shape.loss_tokens == 0 : shape.loss_tokens < shape.tokens,
               "the first token is not predicted");
    lanepack::segment_lists segments;
    loaded->segments(record, segments);
    std::uint64_t tokens = 0;
    for (const std::uint64_t length : segments[0]) {
      fuzz_check(length != 0, "a segment has tokens");
      tokens += length;
    }
    fuzz_check(tokens == shape.tokens, "segments have all tokens");
    fuzz_check(segments[0].size() <= loaded->most_segments(), "and no more than said");
  }
  for (lanepack::record_id input = 0; input <= loaded->inputs(); ++input) {
    fuzz_check(loaded->state_before(input).replay <= input, "a state does not reach back too far");
  }
  fuzz_check(loaded->save(path), "it can be saved");
  fuzz_check(lanepack::count_index::load(path) == loaded, "and is the same again");
  return 0;
}
