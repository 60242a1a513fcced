#pragma once

/// @file
/// `conversation`: who said what, whatever the file it was read from looked like.

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Who speaks in a message.
enum class chat_role : std::uint8_t {
  /// Instructions that stand above the conversation.
  system,
  user,
  /// The model that is trained.
  assistant,
  /// What a tool that the assistant called has returned.
  tool,
};

/// "system", "user", "assistant" or "tool".
[[nodiscard]] constexpr const char* to_string(chat_role role) noexcept {
  switch (role) {
    case chat_role::system:
      return "system";
    case chat_role::user:
      return "user";
    case chat_role::assistant:
      return "assistant";
    case chat_role::tool:
      return "tool";
  }
  return "?";
}

/// A call of a tool that a message asks for.
struct tool_call {
  std::string name;
  /// A JSON text, as it was written.
  std::string arguments;

  friend bool operator==(const tool_call&, const tool_call&) = default;
};

/// One turn of a conversation.
struct chat_message {
  chat_role role = chat_role::user;
  std::string text;
  /// What an assistant calls besides, in order.
  std::vector<tool_call> tool_calls = {};
  /// Whether its tokens may be targets; false for a turn that is context only, whatever `chat_loss`
  /// says.
  bool is_target = true;

  friend bool operator==(const chat_message&, const chat_message&) = default;
};

/// Messages in order, at least one.
struct conversation {
  std::vector<chat_message> messages;

  friend bool operator==(const conversation&, const conversation&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
