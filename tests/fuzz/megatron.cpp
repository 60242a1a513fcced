// Megatron-LM corpora: all ways of reading agree, and what is read is what the bytes say.
//
// The first byte holds options, the next two the size of the .idx; the rest are .idx and .bin.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/megatron.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;
using records = std::vector<std::vector<std::int32_t>>;

std::optional<records> records_of(const std::string& prefix,
                                  const lanepack::megatron_options& options) {
  try {
    const lanepack::megatron_source source(prefix, options);
    fuzz_check(source.size() < 1'000'000, "there are no more records than the file has room for");
    std::vector<lanepack::record_id> ids(source.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    std::vector<lanepack::record_shape> shapes(ids.size());
    source.shapes(ids, shapes);
    std::uint64_t tokens = 0;
    for (const auto& shape : shapes) tokens += shape.tokens;
    fuzz_check(tokens < 1'000'000, "there are no more tokens than the file has room for");
    records all(ids.size());
    std::vector<lanepack::record_read> reads;
    for (std::size_t i = ids.size(); i-- > 0;) {
      all[i].resize(shapes[i].tokens);
      reads.push_back({i, 0, all[i], {}});
    }
    source.read(reads);
    for (const auto& record : all) {
      for (const std::int32_t token : record) fuzz_check(token >= 0, "a token is an id");
    }
    static_cast<void>(source.fingerprint());
    return all;
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().path.starts_with(prefix), "the message names the file");
    fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  static const lanepack_test::scratch_dir dir;
  static const std::string prefix = dir.path("corpus");
  const std::size_t index_bytes =
      std::min<std::size_t>(size - 3, data[1] + 256 * std::size_t{data[2]});
  const char* text = reinterpret_cast<const char*>(data) + 3;
  const std::string bin(text + index_bytes, size - 3 - index_bytes);
  lanepack_test::write_file(prefix + ".idx", std::string(text, index_bytes));
  lanepack_test::write_file(prefix + ".bin", bin);

  lanepack::megatron_options options;
  options.threads = 1;
  options.allow_longer_bin = (data[0] & 1) != 0;
  if ((data[0] & 2) != 0) options.record = lanepack::megatron_record::document;
  if ((data[0] & 4) != 0) options.pointers = lanepack::megatron_pointers::recomputed;
  const auto first = records_of(prefix, options);
  options.index_cache_bytes = 0;
  const auto uncached = records_of(prefix, options);
  options.access = lanepack::file_access::mapped;
  options.index_access = lanepack::file_access::mapped;
  fuzz_check(records_of(prefix, options) == uncached, "the same from mapped files");
  // A cached block is checked as a whole, entries that no record needs among them.
  if (!first) return 0;
  fuzz_check(uncached == first, "the same without a cache");

  // Records follow each other without gaps from the first byte of the .bin.
  const lanepack::token_type type = lanepack::megatron_source(prefix, options).type();
  std::size_t at = 0;
  for (const auto& record : *first) {
    for (const std::int32_t token : record) {
      std::uint64_t stored = 0;
      std::memcpy(&stored, bin.data() + at, token_bytes(type));
      fuzz_check(stored == static_cast<std::uint64_t>(token), "a token is what the file holds");
      at += token_bytes(type);
    }
  }
  fuzz_check(options.allow_longer_bin ? at <= bin.size() : at == bin.size(),
             "no token is left over");
  return 0;
}
