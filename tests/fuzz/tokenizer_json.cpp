// tokenizer.json: whatever the text, a tokenizer that keeps its contract or a data_error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/json/tokenizer_json.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using lanepack_test::fuzz_check;

/// The 256 bytes as tokens, which no mutation should have to find.
std::string with_byte_tokens(std::string_view text) {
  constexpr std::string_view mark = "@BYTES@";
  const std::size_t place = text.find(mark);
  if (place == std::string_view::npos) return std::string(text);
  std::string tokens;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    std::string name;
    lanepack::detail::append_utf8(name, is_itself ? byte : next++);
    if (name == "\"" || name == "\\") name.insert(0, "\\");
    tokens += (byte == 0 ? "\"" : ",\"") + name + "\":" + std::to_string(byte);
  }
  return std::string(text.substr(0, place)) + tokens +
         std::string(text.substr(place + mark.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A tokenizer, and behind a NUL a text for it.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(all.find('\0'), all.size());
  const std::string_view text = all.substr(std::min(cut + 1, all.size()));
  try {
    const lanepack::tokenizer_json read =
        lanepack::parse_tokenizer_json(with_byte_tokens(all.substr(0, cut)));
    const lanepack::byte_pair_encoding& tokenizer = read.tokenizer;
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, ids);
    for (const std::int32_t id : ids) {
      fuzz_check(id >= 0 && static_cast<std::uint64_t>(id) < tokenizer.vocabulary_size(),
                 "ids are below the vocabulary's size");
    }
    const std::string decoded = tokenizer.decode(ids);
    const auto& added = tokenizer.added_tokens();
    const bool strips = std::any_of(added.begin(), added.end(), [](const auto& token) {
      return token.strip_left || token.strip_right;
    });
    const lanepack::byte_pair_options& options = tokenizer.options();
    if (!strips && !options.add_prefix_space &&
        options.normalization == lanepack::text_normalization::none) {
      fuzz_check(decoded == text, "decoding gives the text back");
    }
    for (const auto& token : added) {
      fuzz_check(tokenizer.special_token(token.text) == token.id, "added tokens are found by name");
    }
  } catch (const lanepack::data_error&) {
  }
  return 0;
}
