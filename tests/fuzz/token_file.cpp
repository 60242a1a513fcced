// Token files cut into documents: the cut is that of a loop over the tokens, and no saved cut is
// believed that does not cover the file.
//
// The first byte holds options, the second the end-of-text token.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/token_file.hpp>

#include "fuzz/fuzz.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack_test::fuzz_check;

std::vector<std::uint64_t> lengths_of(const lanepack::token_file_source& source) {
  std::vector<std::uint64_t> lengths;
  for (lanepack::record_id id = 0; id < source.size(); ++id) {
    lanepack::record_shape shape;
    source.shapes(std::span(&id, 1), std::span(&shape, 1));
    lengths.push_back(shape.tokens);
  }
  return lengths;
}

/// Where the tokens start: behind llm.c's header where there is one.
std::size_t data_offset(const std::string& bytes) {
  std::int32_t magic = 0;
  if (bytes.size() >= 4) std::memcpy(&magic, bytes.data(), 4);
  return magic == 20240520 || magic == 20240801 ? 1024 : 0;
}

void check_cut(const std::string& bytes, const lanepack::token_file_source& source,
               std::uint64_t end_of_text, lanepack::end_of_text_place place) {
  const std::size_t width = token_bytes(source.type());
  std::vector<std::uint64_t> expected;
  std::uint64_t open = 0;
  const auto close = [&] {
    if (open != 0) expected.push_back(open);
    open = 0;
  };
  for (std::size_t at = data_offset(bytes); at < bytes.size(); at += width) {
    std::uint64_t token = 0;
    std::memcpy(&token, bytes.data() + at, width);
    if (token == end_of_text && place == lanepack::end_of_text_place::first) close();
    ++open;
    if (token == end_of_text && place == lanepack::end_of_text_place::last) close();
  }
  close();
  fuzz_check(lengths_of(source) == expected, "the cut is that of a plain loop");
}

/// A saved cut with a valid checksum around any bytes.
void write_index(const std::string& path, const lanepack::cache_key& key,
                 const std::string& bytes) {
  lanepack::detail::cache_writer head;
  lanepack::detail::write_key(head, key);
  fuzz_check(head.save(path, lanepack::detail::documents_cache_kind), "the index is written");
  std::string file = lanepack_test::read_file(path);
  const std::size_t start = lanepack::detail::documents_cache_kind.size() + 1;
  const std::string payload = file.substr(start, file.size() - 16 - start) + bytes;
  const lanepack::digest128 digest =
      lanepack::detail::cache_digest(lanepack::detail::documents_cache_kind,
                                     std::as_bytes(std::span(payload.data(), payload.size())));
  lanepack_test::write_file(path, file.substr(0, start) + payload +
                                      lanepack_test::little_endian(digest.low) +
                                      lanepack_test::little_endian(digest.high));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const lanepack_test::scratch_dir dir;
  static const std::string path = dir.path("tokens.bin");
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  lanepack::token_file_options options;
  options.threads = 1;
  options.index_path = dir.path("no/such/place");

  if ((data[0] & 128) != 0) {
    // The bytes are a saved cut of a fixed file of five tokens.
    static const std::string fixed = dir.path("fixed.bin");
    if (!lanepack::identify_file(fixed)) lanepack_test::write_file(fixed, "\1\2\1\1\3");
    options.type = lanepack::token_type::u8;
    options.end_of_text = 1;
    const lanepack::token_file_source plain(fixed, options);
    options.index_path = dir.path("index");
    write_index(*options.index_path, plain.identity(), text);
    std::uint64_t tokens = 0;
    for (const std::uint64_t length : lengths_of(lanepack::token_file_source(fixed, options))) {
      tokens += length;
    }
    fuzz_check(tokens == 5, "the cut covers the file");
    return 0;
  }

  options.type = static_cast<lanepack::token_type>(data[0] & 7);
  if ((data[0] & 8) != 0) options.type = std::nullopt;
  options.end_of_text = data[1];
  options.place =
      (data[0] & 16) != 0 ? lanepack::end_of_text_place::first : lanepack::end_of_text_place::last;
  lanepack_test::write_file(path, text);
  try {
    const lanepack::token_file_source source(path, options);
    check_cut(text, source, data[1], *options.place);
    std::vector<std::int32_t> tokens;
    std::size_t at = data_offset(text);
    for (const std::uint64_t length : lengths_of(source)) {
      tokens.resize(length);
      const lanepack::record_read read{
          .id = 0, .first_token = 0, .tokens = tokens, .loss_mask = {}};
      if (at == data_offset(text)) source.read({&read, 1});
      at += length;
    }
  } catch (const lanepack::data_error& failure) {
    fuzz_check(failure.where().path == path, "the message names the file");
    fuzz_check(failure.where().byte_offset.has_value(), "the message names the byte");
  } catch (const lanepack::invalid_option& failure) {
    fuzz_check(failure.option() == "type", "only the type can be missing or contradict");
  }
  return 0;
}
