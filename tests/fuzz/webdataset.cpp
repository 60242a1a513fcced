// WebDataset shards: members lie in the archive one behind the other, records are made of them, and
// every fault names file and byte.
//
// The first byte holds options: among them that the checksums of headers are made right, so that
// what lies behind them is reached.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/webdataset.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"
#include "support/tar.hpp"

namespace {

using lanepack_test::fuzz_check;

void correct_checksums(std::string& archive) {
  for (std::size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive.compare(at + 257, 5, "ustar") != 0) continue;
    archive.replace(at + 148, 8, 8, ' ');
    std::uint64_t sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(archive[i]);
    archive.replace(at + 148, 8, lanepack_test::octal(sum, 7) + " ");
  }
}

void read_all(const std::string& path, const lanepack::webdataset_options& options) {
  const lanepack::shard_source source =
      lanepack::open_webdataset({path}, options, {.cache_index = false, .threads = 1});
  const std::uint64_t archive_bytes = source.files().identities()[0].size;
  std::vector<std::int32_t> tokens;
  std::vector<std::byte> bytes;
  for (lanepack::record_id id = 0; id < source.size(); ++id) {
    lanepack::record_shape shape;
    source.shapes({&id, 1}, {&shape, 1});
    fuzz_check(shape.tokens <= archive_bytes, "there is room for the tokens");
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
      fuzz_check(of.bytes() <= archive_bytes, "there is room for the payload");
      bytes.resize(static_cast<std::size_t>(of.bytes()));
      const lanepack::payload_read read{id, p, bytes};
      source.read_payloads({&read, 1});
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("a.tar");
  std::string archive(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) correct_checksums(archive);
  lanepack_test::write_file(path, archive);
  try {
    const lanepack::input_file file(path);
    lanepack::tar_reader reader(file);
    std::uint64_t end = 0;
    while (const std::optional<lanepack::tar_member> member = reader.next()) {
      fuzz_check(member->header_offset >= end && member->offset == member->header_offset + 512,
                 "a member lies behind the one before");
      end = member->offset + member->bytes;
      fuzz_check(end <= archive.size(), "a member lies in the archive");
    }
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
  }
  lanepack::webdataset_options options;
  options.tokens = (data[0] & 2) != 0 ? "npy" : "bin";
  options.numbers_type = lanepack::token_type::u16;
  if ((data[0] & 4) != 0) options.loss_mask = "mask";
  options.payloads = {"x.npy", "jpg"};
  if ((data[0] & 8) != 0) options.patches.payload = (data[0] & 16) != 0 ? "x.npy" : "jpg";
  try {
    read_all(path, options);
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().path == path, "the message names the file");
    fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
  }
  return 0;
}
