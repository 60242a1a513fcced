#pragma once

/// @file
/// Stages of a pipeline that take texts and conversations out of lines of JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/chat/encoder.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/json/chat_line.hpp>
#include <lanepack/json/text_line.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/text_stages.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_line_fault(const token_line_fault& fault) {
  throw_data_error({.path = {}, .byte_offset = fault.offset, .record = {}, .line = {}}, fault.what);
}

}  // namespace detail

/// Takes the text of one key out of each line of JSON Lines.
class text_of_lines {
 public:
  explicit text_of_lines(std::string key = "text") : key_(std::move(key)) {}

  /// @throws data_error  A line is no object with such a text; with the byte of the line.
  void apply(std::vector<sample>& samples) const {
    text_line_parser parser(key_);
    for (sample& each : samples) {
      if (!parser.parse(each.text)) detail::throw_line_fault(parser.fault());
      std::string text(parser.text());
      each.text = std::move(text);
    }
  }
  [[nodiscard]] std::string describe() const { return "text_of_lines(" + key_ + ")"; }

 private:
  std::string key_;
};

/// Turns lines of JSON Lines with conversations into tokens and a loss mask.
class chat_of_lines {
 public:
  /// @param end  Token behind each conversation; it is a target only where everything is.
  explicit chat_of_lines(chat_encoder encoder, chat_shape shape = chat_shape::automatic,
                         std::optional<std::int32_t> end = std::nullopt,
                         chat_extras extras = chat_extras::refuse)
      : encoder_(std::move(encoder)), shape_(shape), end_(end), extras_(extras) {
    if (end && *end < 0) {
      detail::throw_invalid_option("chat_of_lines", std::to_string(*end), "an id of at least 0");
    }
  }

  /// @throws data_error  A line has no conversation, or none that the template can have; with the
  ///                     byte of the line.
  void apply(std::vector<sample>& samples) const {
    for (sample& each : samples) {
      each.tokens.clear();
      each.loss_mask.clear();
      encode_chat_line(each.text, encoder_, each.tokens, each.loss_mask, shape_, extras_);
      if (end_) {
        each.tokens.push_back(*end_);
        each.loss_mask.push_back(encoder_.options().loss == chat_loss::all ? 1 : 0);
      }
      each.text = {};
    }
  }
  [[nodiscard]] std::string describe() const {
    const chat_options& options = encoder_.options();
    // What the tokenizer is, tokenize says in the same way.
    return "chat_of_lines(shape " + std::to_string(static_cast<unsigned>(shape_)) + ", template " +
           std::string(to_string(options.format)) + ", loss " +
           std::string(to_string(options.loss)) + ", default system " +
           (options.default_system ? detail::quoted(*options.default_system) : "none") +
           ", system prefix " + detail::quoted(options.system_prefix) +
           (options.begin_of_text ? "" : ", no begin of text") + ", end of turn " +
           detail::quoted(options.end_of_turn) + ", end " +
           (end_ ? std::to_string(*end_) : std::string("none")) +
           (extras_ == chat_extras::ignore ? ", extras ignored, " : ", ") +
           tokenize(encoder_.tokenizer()).describe() + ")";
  }

 private:
  chat_encoder encoder_;
  chat_shape shape_;
  std::optional<std::int32_t> end_;
  chat_extras extras_;
};

static_assert(stateless_stage<text_of_lines> && stateless_stage<chat_of_lines>);

/// As `text_stages`, for lines of JSON Lines with a text.
/// @throws  as `text_stages`.
[[nodiscard]] inline std::vector<any_stage> text_line_stages(any_tokenizer tokenizer,
                                                             const text_stage_options& options = {},
                                                             std::string key = "text") {
  std::vector<any_stage> stages;
  stages.emplace_back(text_of_lines(std::move(key)));
  for (any_stage& each : text_stages(std::move(tokenizer), options)) {
    stages.push_back(std::move(each));
  }
  return stages;
}

/// As `text_stages`, for lines of JSON Lines with a conversation.
/// @throws  as `text_stages`.
[[nodiscard]] inline std::vector<any_stage> chat_line_stages(
    chat_encoder encoder, const text_stage_options& options = {},
    chat_shape shape = chat_shape::automatic, chat_extras extras = chat_extras::refuse) {
  std::vector<any_stage> stages;
  stages.emplace_back(chat_of_lines(std::move(encoder), shape, options.end, extras));
  for (any_stage& each : length_stages(options)) stages.push_back(std::move(each));
  return stages;
}

}  // namespace lanepack::inline LANEPACK_ABI
