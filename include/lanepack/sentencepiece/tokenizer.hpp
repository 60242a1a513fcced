#pragma once

/// @file
/// Tokenizers of the library SentencePiece.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sentencepiece_processor.h>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A SentencePiece model (unigram or BPE); models `tokenizer`. Copies share the model.
///
/// The library normalizes text as the model says and takes invalid UTF-8 for U+FFFD, so decoding
/// need not give the text back. Control pieces are never found in text; user-defined ones are.
/// @complexity  As the library's; the ids of a text are copied once.
/// @thread_safety  Const members may be called by any number of threads.
class sentencepiece_tokenizer {
 public:
  /// Reads a `.model` file.
  /// @throws data_error  It cannot be read or is no model.
  explicit sentencepiece_tokenizer(const std::string& path) {
    auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
    check(processor->Load(path), path);
    processor_ = std::move(processor);
  }

  /// @throws data_error  The library reports an error.
  void encode(std::string_view text, std::vector<std::int32_t>& out) const {
    std::vector<int> ids;
    check(processor_->Encode(text, &ids), {});
    out.insert(out.end(), ids.begin(), ids.end());
  }

  /// Text of the ids; control pieces have none.
  /// @throws state_error  An id is that of no piece.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const {
    for (const std::int32_t id : ids) {
      if (id < 0 || static_cast<std::uint64_t>(id) >= vocabulary_size()) {
        detail::throw_unknown_token(id, vocabulary_size());
      }
    }
    std::string text;
    check(processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text), {});
    return text;
  }

  [[nodiscard]] std::uint64_t vocabulary_size() const {
    return static_cast<std::uint64_t>(processor_->GetPieceSize());
  }

  /// Id of a control piece, such as `<s>`.
  [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view text) const {
    const int id = processor_->PieceToId(text);
    // The library gives the id of the unknown piece for any other text.
    if (!processor_->IsControl(id) || processor_->IdToPiece(id) != text) return std::nullopt;
    return id;
  }

  /// The library's own object, for what has no place in the concept.
  [[nodiscard]] const sentencepiece::SentencePieceProcessor& processor() const noexcept {
    return *processor_;
  }

 private:
  static void check(const sentencepiece::util::Status& status, const std::string& path) {
    if (status.ok()) return;
    detail::throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                             std::string("SentencePiece: ") + status.ToString());
  }

  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
};

static_assert(tokenizer<sentencepiece_tokenizer>);

}  // namespace lanepack::inline LANEPACK_ABI
