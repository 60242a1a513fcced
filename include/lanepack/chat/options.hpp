#pragma once

/// @file
/// How conversations are written down for a model.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The model family whose template a conversation is written in; `render_chat` has the exact texts.
enum class chat_template : std::uint8_t {
  /// ChatML as Qwen2 and Qwen2.5 have it, and without tools most models with `<|im_start|>`.
  chatml,
  /// Llama 3; with a `system_prefix` 3.1 to 3.3.
  llama3,
  /// Names and colons, for tokenizers without tokens for turns.
  plain,
};

/// "chatml", "llama3" or "plain".
[[nodiscard]] constexpr std::string_view to_string(chat_template value) noexcept {
  switch (value) {
    case chat_template::chatml:
      return "chatml";
    case chat_template::llama3:
      return "llama3";
    case chat_template::plain:
      return "plain";
  }
  return "?";
}

/// Which tokens of a conversation are to be predicted. The token that ends a turn belongs to it,
/// what stands before its text does not.
enum class chat_loss : std::uint8_t {
  /// The turns of the assistant.
  assistant,
  /// The last turn of the assistant.
  last_assistant,
  /// Everything, also what the template adds.
  all,
};

/// "assistant", "last" or "all".
[[nodiscard]] constexpr std::string_view to_string(chat_loss value) noexcept {
  switch (value) {
    case chat_loss::assistant:
      return "assistant";
    case chat_loss::last_assistant:
      return "last";
    case chat_loss::all:
      return "all";
  }
  return "?";
}

/// How conversations are written down.
struct chat_options {
  chat_template format = chat_template::chatml;
  chat_loss loss = chat_loss::assistant;
  /// The system message of a conversation that does not begin with one; none where absent. Qwen2.5
  /// was trained with "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.".
  std::optional<std::string> default_system = std::nullopt;
  /// Stands in front of the text of a first system message, and makes one where there is none, as
  /// the dates that Llama 3.1 was trained with.
  std::string system_prefix = {};
  /// llama3: begin with `<|begin_of_text|>`.
  bool begin_of_text = true;
  /// plain: special token behind each turn of the assistant, as `<|endoftext|>`; none where empty.
  std::string end_of_turn = {};
};

}  // namespace lanepack::inline LANEPACK_ABI
