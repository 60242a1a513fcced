// Lines of conversations and of texts: what is accepted is JSON and comes out as nlohmann/json
// reads it, what is refused is named; a conversation that was read is rendered.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/chat/encoder.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/json/chat_line.hpp>
#include <lanepack/json/text_line.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using json = nlohmann::json;
using lanepack_test::fuzz_check;

void check_fault(const lanepack::token_line_fault& fault, std::string_view line) {
  fuzz_check(fault.offset <= line.size(), "the fault lies in the line");
  fuzz_check(!fault.what.empty(), "the fault has a text");
}

/// Bytes as text of the tokens, which have no special ones here.
void check_rendering(const lanepack::conversation& from) {
  lanepack::chat_options options;
  options.format = lanepack::chat_template::plain;
  for (const auto loss : {lanepack::chat_loss::assistant, lanepack::chat_loss::all}) {
    options.loss = loss;
    const lanepack::chat_encoder encoder(lanepack::byte_level_tokenizer{}, options);
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> mask;
    encoder.encode(from, tokens, mask);
    fuzz_check(tokens.size() == mask.size(), "a mark for each token");
    fuzz_check(encoder.tokenizer().decode(tokens) == lanepack::chat_text(from, options),
               "the tokens are the text");
  }
  options.format = lanepack::chat_template::chatml;
  static_cast<void>(lanepack::chat_text(from, options));
  options.format = lanepack::chat_template::llama3;
  try {
    static_cast<void>(lanepack::chat_text(from, options));
  } catch (const lanepack::data_error&) {
    // Two calls in a message.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A copy of the exact size, so that a sanitizer sees a read past the end.
  const std::vector<char> exact(data + 1, data + size);
  const std::string_view line(exact.data(), exact.size());
  const bool is_json = json::accept(line);
  // It takes a NUL for the end of the text, passes over a byte order mark, and does not read on
  // after numbers beyond doubles.
  const bool comparable =
      line.find('\0') == std::string_view::npos && !line.starts_with("\xef\xbb\xbf");

  lanepack::text_line_parser texts;
  if (texts.parse(line)) {
    if (comparable && is_json) {
      fuzz_check(json::parse(line)["text"] == texts.text(), "the same text");
    }
  } else {
    check_fault(texts.fault(), line);
  }
  lanepack::chat_line_parser chats(static_cast<lanepack::chat_shape>(data[0] & 3));
  if (chats.parse(line)) {
    fuzz_check(!chats.value().messages.empty(), "a conversation has messages");
    check_rendering(chats.value());
  } else {
    check_fault(chats.fault(), line);
    const bool malformed = std::string_view(chats.fault().what).starts_with("malformed JSON");
    fuzz_check(!comparable || !malformed || !is_json, "only what is not JSON is called malformed");
  }
  return 0;
}
