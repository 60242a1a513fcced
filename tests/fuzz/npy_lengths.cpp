// Length tables in NumPy's format: both ways of reading agree, and no file is believed whose size
// is not what its header says.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/lengths.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;

std::optional<std::vector<lanepack::record_shape>> shapes_of(const std::string& path,
                                                             lanepack::file_access access) {
  try {
    const auto source = lanepack::length_source::from_npy(path, access);
    std::vector<lanepack::record_id> ids(source.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    std::vector<lanepack::record_shape> shapes(ids.size());
    source.shapes(ids, shapes);
    static_cast<void>(source.fingerprint());
    return shapes;
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().path == path, "the message names the file");
    fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("lengths.npy");
  lanepack_test::write_file(path, std::string(reinterpret_cast<const char*>(data), size));
  const auto positioned = shapes_of(path, lanepack::file_access::positioned);
  const auto mapped = shapes_of(path, lanepack::file_access::mapped);
  fuzz_check(positioned == mapped, "both ways of reading agree");
  if (positioned) {
    const lanepack::input_file file(path);
    const lanepack::npy_header header = read_npy_header(file);
    fuzz_check(header.count == positioned->size(), "as many lengths as the header says");
    fuzz_check(header.data_offset + header.count * token_bytes(header.type) == size,
               "the file is as long as the header says");
  }
  return 0;
}
