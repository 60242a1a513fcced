// Whole JSON Lines files: the index is that of a reader which takes line by line, whatever the
// chunks, and no index file, however damaged, is believed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/json/jsonl.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;

struct outcome {
  std::vector<lanepack::jsonl_line> lines;
  /// Line and byte of the first fault.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> fault;
  std::uint64_t fault_count = 0;
};

outcome read_line_by_line(std::string_view text) {
  outcome result;
  lanepack::token_line_parser parser;
  std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  std::uint32_t blank = 0;
  for (std::uint64_t number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      ++blank;
    } else if (!parser.parse(line)) {
      if (!result.fault) result.fault = {number, at + parser.fault().offset};
      ++result.fault_count;
    } else {
      result.lines.push_back({at, static_cast<std::uint32_t>(line.size()),
                              static_cast<std::uint32_t>(parser.tokens().size()),
                              static_cast<std::uint32_t>(parser.loss_tokens()), blank});
    }
    at = end + 1;
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("corpus.jsonl");
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  lanepack::jsonl_options options;
  options.threads = 1 + data[0] % 2;

  if (data[0] >= 128) {
    // The bytes are an index; of another file, as no checksum of random bytes fits.
    options.index_path = dir.path("index");
    lanepack_test::write_file(path, "{\"tokens\":[1,2]}\n");
    lanepack_test::write_file(options.index_path, text);
    const lanepack::jsonl_source source(path, options);
    fuzz_check(source.size() == 1 && source.index().tokens == 2, "the index is made again");
    return 0;
  }

  options.cache_index = false;
  options.chunk_bytes = 1 + data[0] / 2;
  lanepack_test::write_file(path, text);
  const outcome wanted = read_line_by_line(text);
  const lanepack::input_file file(path);
  try {
    const lanepack::jsonl_index index = scan_jsonl(file, options);
    fuzz_check(!wanted.fault, "a fault is found");
    fuzz_check(index.lines == wanted.lines, "the same lines");
  } catch (const lanepack::data_error& e) {
    fuzz_check(wanted.fault.has_value(), "no other fault is found");
    fuzz_check(e.where().line == wanted.fault->first, "the same line");
    fuzz_check(e.where().byte_offset == wanted.fault->second, "the same byte");
  }
  const lanepack::jsonl_problems problems = find_jsonl_problems(file, options, 3);
  fuzz_check(problems.count == wanted.fault_count, "as many problems");
  fuzz_check(problems.first.size() == std::min<std::uint64_t>(3, wanted.fault_count),
             "the problems are listed");
  if (wanted.fault) {
    fuzz_check(problems.first.front().where().line == wanted.fault->first, "the first comes first");
    return 0;
  }

  const lanepack::jsonl_source source(path, options);
  std::vector<std::int32_t> tokens;
  for (lanepack::record_id id = 0; id < source.size(); ++id) {
    tokens.resize(wanted.lines[id].tokens);
    const lanepack::record_read read{.id = id, .first_token = 0, .tokens = tokens, .loss_mask = {}};
    source.read({&read, 1});
    for (const std::int32_t token : tokens) fuzz_check(token >= 0, "a token is an id");
  }
  return 0;
}
