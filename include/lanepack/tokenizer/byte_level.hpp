#pragma once

/// @file
/// The tokenizer without a vocabulary: a token a byte.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a `byte_level_tokenizer` has beside the bytes.
struct byte_level_options {
  /// Id of the end of a text, at least 256; none by default.
  std::optional<std::int32_t> end_of_text = std::nullopt;
  /// How it is spelled.
  std::string end_of_text_spelling = "<|endoftext|>";
};

/// Tokens 0 to 255 are the bytes; models `tokenizer`. Every text is exactly as long as its bytes.
/// @complexity  O(bytes).
/// @thread_safety  Const members may be called by any number of threads.
class byte_level_tokenizer {
 public:
  /// @throws invalid_option  `end_of_text` is the id of a byte, or its spelling is empty.
  explicit byte_level_tokenizer(byte_level_options options = {}) : options_(std::move(options)) {
    if (!options_.end_of_text) return;
    if (*options_.end_of_text < bytes ||
        *options_.end_of_text == std::numeric_limits<std::int32_t>::max()) {
      detail::throw_invalid_option("end_of_text", std::to_string(*options_.end_of_text),
                                   "an id from 256 to 2147483646");
    }
    if (options_.end_of_text_spelling.empty()) {
      detail::throw_invalid_option("end_of_text_spelling", "an empty text", "a spelling");
    }
  }

  [[nodiscard]] const byte_level_options& options() const noexcept { return options_; }

  void encode(std::string_view text, std::vector<std::int32_t>& out) const {
    const std::size_t before = out.size();
    out.resize(before + text.size());
    std::int32_t* const ids = out.data() + before;
    for (std::size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<unsigned char>(text[i]);
  }

  /// @throws state_error  An id is neither a byte's nor `end_of_text`.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      if (id >= 0 && id < bytes) {
        text.push_back(static_cast<char>(static_cast<unsigned char>(id)));
      } else if (options_.end_of_text && id == *options_.end_of_text) {
        text += options_.end_of_text_spelling;
      } else {
        detail::throw_unknown_token(id, vocabulary_size());
      }
    }
    return text;
  }

  /// 256, or one more than `end_of_text`.
  [[nodiscard]] std::uint64_t vocabulary_size() const noexcept {
    return static_cast<std::uint64_t>(options_.end_of_text.value_or(bytes - 1)) + 1;
  }

  [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view text) const {
    if (text != options_.end_of_text_spelling) return std::nullopt;
    return options_.end_of_text;
  }

 private:
  static constexpr std::int32_t bytes = 256;

  byte_level_options options_;
};

static_assert(tokenizer<byte_level_tokenizer>);

}  // namespace lanepack::inline LANEPACK_ABI
