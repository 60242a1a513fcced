// MDS datasets: both ways of reading a shard agree, and every fault names file and byte.
//
// The first byte says what the rest is: an index, or a shard with columns that it chooses.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/json/mds.hpp>

#include "fuzz/fuzz.hpp"
#include "support/mds.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;

void read_all(const std::string& folder, const lanepack::mds_record_options& options) {
  const lanepack::shard_source source =
      lanepack::open_mds(folder, options, {.cache_index = false, .threads = 1});
  fuzz_check(source.size() < 1'000'000, "there are no more records than the file has room for");
  const lanepack::mds_dataset dataset(folder, {.threads = 1});
  fuzz_check(dataset.size() == source.size(), "as many samples as records");
  std::vector<std::int32_t> tokens;
  std::vector<std::byte> bytes;
  for (lanepack::record_id id = 0; id < source.size(); ++id) {
    lanepack::mds_sample sample;
    dataset.read({&id, 1}, {&sample, 1});
    lanepack::record_shape shape;
    source.shapes({&id, 1}, {&shape, 1});
    tokens.resize(shape.tokens);
    try {
      const lanepack::record_read read{id, 0, tokens, {}};
      source.read({&read, 1});
    } catch (const lanepack::data_error& failure) {
      fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
    }
    for (std::size_t p = 0; p < options.payloads.size(); ++p) {
      lanepack::payload_shape of;
      source.payload_shapes(p, {&id, 1}, {&of, 1});
      fuzz_check(of.bytes() < 1'000'000, "a payload is no larger than the file");
      bytes.resize(static_cast<std::size_t>(of.bytes()));
      const lanepack::payload_read read{id, p, bytes};
      source.read_payloads({&read, 1});
      const auto [found, numbers] = sample.numbers(options.payloads[p]);
      fuzz_check(found == of, "the same shape");
      fuzz_check(std::equal(numbers.begin(), numbers.end(), bytes.begin(), bytes.end()),
                 "the same bytes");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const lanepack_test::scratch_dir dir;
  static const std::string shard = dir.path("shard.0.mds");
  static const std::string index = dir.path("index.json");
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 255) {
    lanepack_test::write_file(index, text);
    try {
      static_cast<void>(lanepack::read_mds_index(dir.path()));
    } catch (const lanepack::data_error& failure) {
      fuzz_check(failure.where().path.starts_with(dir.path()), "the message names the file");
    }
    return 0;
  }
  constexpr std::array<const char*, 8> encodings = {
      "bytes", "ndarray", "ndarray:float32", "pil", "list[jpeg]", "list[pil]", "jpeg_array", "png"};
  lanepack::mds_record_options options;
  options.payloads = {"x"};
  options.bytes_type = lanepack::token_type::u16;
  if ((data[0] & 8) != 0) options.patches.payload = "x";
  std::vector<lanepack_test::mds_test_column> columns = {
      {"n", "uint8", 1}, {"tokens", (data[0] & 16) != 0 ? "ndarray" : "bytes", 0}};
  columns.push_back({"x", encodings[data[0] & 7U], 0});
  if ((data[0] & 32) != 0) {
    columns.push_back({"y", "bytes", 0});
    options.loss_mask = "y";
  }
  std::uint32_t samples = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, text.size()); ++i) {
    samples |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  lanepack_test::write_file(shard, text);
  lanepack_test::write_file(
      index, "{\"version\":2,\"shards\":[" +
                 lanepack_test::mds_shard_json(columns, "shard.0.mds", samples, text.size()) +
                 "]}");
  try {
    read_all(dir.path(), options);
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().path == shard || failure.where().path == index,
               "the message names the file");
    fuzz_check(failure.where().path == index || failure.where().byte_offset.has_value(),
               "the message names the byte");
  }
  return 0;
}
