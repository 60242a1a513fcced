#pragma once

/// @file
/// Documents to tokens, as a conversion is asked to.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/chat/encoder.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/json/chat_line.hpp>
#include <lanepack/json/text_line.hpp>
#include <lanepack/json/token_line.hpp>
#include <lanepack/json/tokenizer_json.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>
#include <lanepack/tokenizer/byte_level.hpp>
#if defined(LANEPACK_CONVERT_SENTENCEPIECE)
#include <lanepack/sentencepiece/tokenizer.hpp>
#endif

#include "convert/options.hpp"
#include "support/numbers.hpp"

namespace lanepack_programs {

/// Reads the tokenizer that an option names.
inline lanepack::any_tokenizer open_tokenizer(const convert_options& options) {
  const std::string& name = options.tokenizer;
  if (name == "bytes") {
    lanepack::byte_level_options bytes;
    if (options.append_eot) bytes.end_of_text = 256;
    return lanepack::byte_level_tokenizer(bytes);
  }
  if (name.ends_with(".model")) {
#if defined(LANEPACK_CONVERT_SENTENCEPIECE)
    return lanepack::sentencepiece_tokenizer(name);
#else
    lanepack::detail::throw_invalid_option(
        "--tokenizer", lanepack::detail::quoted(name),
        "bytes or a tokenizer.json: this program was built without SentencePiece");
#endif
  }
  return lanepack::read_tokenizer_json(name).tokenizer;
}

/// Digest of the file of a tokenizer; nullopt where there is none.
inline std::optional<std::string> tokenizer_digest(const std::string& name) {
  if (name.empty() || name == "bytes") return std::nullopt;
  lanepack::digest_builder digest;
  digest.bytes(lanepack::read_whole_file(name));
  return digest.value().hex();
}

/// The id of the token that ends a document.
inline std::int32_t find_eot(const lanepack::any_tokenizer& tokenizer, const std::string& wanted) {
  if (!wanted.empty()) {
    if (const auto id = tokenizer.special_token(wanted)) return *id;
    const std::optional<std::uint64_t> id = parse_decimal(wanted);
    if (id && *id < tokenizer.vocabulary_size()) return static_cast<std::int32_t>(*id);
    lanepack::detail::throw_invalid_option(
        "--eot", lanepack::detail::quoted(wanted),
        "a special token of the tokenizer as it is spelled, or an id below " +
            std::to_string(tokenizer.vocabulary_size()));
  }
  std::string names;
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    if (const auto id = tokenizer.special_token(name)) return *id;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  lanepack::detail::throw_invalid_option("--append-eot", "a tokenizer without any of " + names,
                                         "--eot with the token or the id that ends a document");
}

/// What lines of JSON Lines hold, judged by one of them.
struct line_kind {
  document_kind kind = document_kind::text_line;
  /// For tokens: whether the line marks which are targets.
  bool has_mask = false;
};

/// @throws lanepack::data_error  It is none of the known kinds, or of more than one.
inline line_kind judge_line(std::string_view line, const lanepack::data_location& where,
                            const convert_options& options) {
  std::vector<document_kind> fitting;
  std::string why;
  lanepack::text_line_parser text(options.text_field);
  lanepack::token_line_parser tokens({.token_key = options.token_key, .targets = {}});
  lanepack::chat_line_parser chat(options.shape, options.extras);
  line_kind kind;
  if (text.parse(line)) {
    fitting.push_back(document_kind::text_line);
  } else {
    why += "\n--content text: " + text.fault().what;
  }
  if (tokens.parse(line)) {
    fitting.push_back(document_kind::token_line);
    kind.has_mask = tokens.marks_targets();
  } else {
    why += "\n--content tokens: " + tokens.fault().what;
  }
  if (chat.parse(line)) {
    fitting.push_back(document_kind::chat_line);
  } else {
    why += "\n--content chat: " + chat.fault().what;
  }
  if (fitting.size() == 1) {
    kind.kind = fitting[0];
    return kind;
  }
  if (fitting.empty()) {
    throw lanepack::data_error(where, "found a line that is no text, no tokens and no chat" + why);
  }
  throw lanepack::data_error(
      where,
      "found a line that can be read in several ways, expected --content text, tokens or chat");
}

/// What became of the documents of a part.
struct convert_counts {
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;
  std::uint64_t bad_lines = 0;
  /// Left out because they were too short or too long.
  std::uint64_t short_documents = 0;
  std::uint64_t long_documents = 0;
  /// Cut short, or cut into several.
  std::uint64_t cut_documents = 0;

  convert_counts& operator+=(const convert_counts& other) {
    documents += other.documents;
    tokens += other.tokens;
    loss_tokens += other.loss_tokens;
    bad_lines += other.bad_lines;
    short_documents += other.short_documents;
    long_documents += other.long_documents;
    cut_documents += other.cut_documents;
    return *this;
  }
};

/// What every thread needs to know to turn documents into tokens.
struct encode_plan {
  document_kind kind = document_kind::text;
  /// Whether `token_bytes` have a loss mask.
  bool has_mask = false;
  bool writes_mask = false;
  lanepack::token_type type = lanepack::token_type::i32;
  std::optional<lanepack::any_tokenizer> tokenizer;
  std::optional<lanepack::chat_encoder> chat;
  std::optional<std::int32_t> eot;
};

/// Turns documents into tokens.
/// @thread_safety  None: one thread per object.
class document_encoder {
 public:
  document_encoder(const convert_options& options, const encode_plan& plan)
      : options_(options),
        plan_(plan),
        text_(options.text_field),
        tokens_line_({.token_key = options.token_key, .targets = {}}),
        chat_(options.shape, options.extras) {}

  /// Replaces `tokens()` and `loss_mask()` by those of a document.
  /// @throws lanepack::data_error  With the byte of the document.
  void encode(std::string_view document) {
    tokens_.clear();
    mask_.clear();
    switch (plan_.kind) {
      case document_kind::text:
        if (const std::size_t zero = document.find('\0'); zero != std::string_view::npos) {
          fail({zero, "found a byte 0, expected text"});
        }
        plan_.tokenizer->encode(document, tokens_);
        break;
      case document_kind::text_line:
        if (!text_.parse(document)) fail(text_.fault());
        plan_.tokenizer->encode(text_.text(), tokens_);
        break;
      case document_kind::token_line:
        encode_tokens(document);
        break;
      case document_kind::chat_line:
        if (!chat_.parse(document)) fail(chat_.fault());
        plan_.chat->encode(chat_.value(), tokens_, mask_);
        break;
      case document_kind::token_bytes:
        take_tokens(document);
        break;
    }
    if (plan_.eot) {
      // In a conversation the end of the document is nobody's turn.
      const bool is_target =
          plan_.kind != document_kind::chat_line || options_.chat.loss == lanepack::chat_loss::all;
      mask_.resize(tokens_.size(), 1);
      mask_.push_back(is_target ? 1 : 0);
      tokens_.push_back(*plan_.eot);
    }
    mask_.resize(tokens_.size(), 1);
    const std::int32_t largest = lanepack::max_token_id(plan_.type);
    const auto too_large = std::find_if(tokens_.begin(), tokens_.end(),
                                        [&](std::int32_t token) { return token > largest; });
    if (too_large != tokens_.end()) {
      fail({0, "found token " + std::to_string(*too_large) + ", expected at most " +
                   std::to_string(largest) + " for the type " +
                   std::string(lanepack::token_type_name(plan_.type))});
    }
  }

  [[nodiscard]] const std::vector<std::int32_t>& tokens() const noexcept { return tokens_; }
  [[nodiscard]] const std::vector<std::uint8_t>& loss_mask() const noexcept { return mask_; }

 private:
  [[noreturn]] static void fail(const lanepack::token_line_fault& fault) {
    throw lanepack::data_error({.path = {}, .byte_offset = fault.offset, .record = {}, .line = {}},
                               fault.what);
  }

  void take_tokens(std::string_view document) {
    tokens_.resize(document.size() / (sizeof(std::int32_t) + (plan_.has_mask ? 1 : 0)));
    if (tokens_.empty()) return;
    const std::size_t bytes = tokens_.size() * sizeof(std::int32_t);
    std::memcpy(tokens_.data(), document.data(), bytes);
    if (!plan_.has_mask) return;
    mask_.resize(tokens_.size());
    std::memcpy(mask_.data(), document.data() + bytes, mask_.size());
  }

  void encode_tokens(std::string_view document) {
    if (!tokens_line_.parse(document)) fail(tokens_line_.fault());
    tokens_.assign(tokens_line_.tokens().begin(), tokens_line_.tokens().end());
    mask_.resize(tokens_.size());
    tokens_line_.copy_loss_mask(0, mask_);
    if (!plan_.writes_mask && !options_.loss_mask &&
        std::find(mask_.begin(), mask_.end(), 0) != mask_.end()) {
      fail({0,
            "found tokens that are no targets, expected none as in the first line: --loss-mask yes "
            "writes a loss mask, --loss-mask no makes all tokens targets"});
    }
  }

  const convert_options& options_;
  const encode_plan& plan_;
  lanepack::text_line_parser text_;
  lanepack::token_line_parser tokens_line_;
  lanepack::chat_line_parser chat_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> mask_;
};

}  // namespace lanepack_programs
