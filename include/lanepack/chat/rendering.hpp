#pragma once

/// @file
/// `render_chat`: a conversation to the text and the special tokens of a model family's template.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/chat/conversation.hpp>
#include <lanepack/chat/options.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/unicode.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Whether Python's `str.strip`, which the `trim` of templates stands for, takes a character away.
constexpr bool is_trimmed(std::uint32_t value) noexcept {
  return (value >= 0x09 && value <= 0x0d) || (value >= 0x1c && value <= 0x20) || value == 0x85 ||
         value == 0xa0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200a) ||
         value == 0x2028 || value == 0x2029 || value == 0x202f || value == 0x205f ||
         value == 0x3000;
}

/// `text` without white space at its ends.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    const code_point point = decode_utf8(text.data(), text.data() + text.size());
    if (!is_trimmed(point.value)) break;
    text.remove_prefix(point.bytes);
  }
  while (!text.empty()) {
    std::size_t bytes = 1;
    while (bytes < std::min<std::size_t>(text.size(), 3) &&
           (static_cast<unsigned char>(text[text.size() - bytes]) & 0xc0) == 0x80) {
      ++bytes;
    }
    const char* const at = text.data() + text.size() - bytes;
    const code_point point = decode_utf8(at, at + bytes);
    if (!is_trimmed(point.value) || point.bytes != bytes) break;
    text.remove_suffix(bytes);
  }
  return text;
}

/// `text` as a JSON string, as Python's `json.dumps` writes it with `ensure_ascii=False`.
inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr std::string_view escaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t at = escaped.find(c); at != std::string_view::npos) {
      out += '\\';
      out += letters[at];
    } else if (byte < 0x20) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// A call as JSON; `key` names its arguments.
inline std::string tool_call_text(const tool_call& call, const char* key) {
  return "{\"name\": \"" + call.name + "\", \"" + key + "\": " + call.arguments + "}";
}

inline constexpr std::array<std::string_view, 2> chatml_tokens = {"<|im_start|>", "<|im_end|>"};
inline constexpr std::array<std::string_view, 4> llama3_tokens = {
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};

/// Walks over a conversation and hands its parts to a sink.
template <class Sink>
class chat_writer {
 public:
  chat_writer(const conversation& from, const chat_options& options, Sink& sink)
      : messages_(from.messages), options_(options), sink_(sink) {}

  void write() {
    if (messages_.empty()) {
      throw_data_error({}, "found a conversation without messages, expected at least one");
    }
    for (std::size_t i = messages_.size(); i > 0 && last_assistant_ == messages_.size(); --i) {
      if (messages_[i - 1].role == chat_role::assistant) last_assistant_ = i - 1;
    }
    if (options_.format == chat_template::llama3 && options_.begin_of_text) {
      special(llama3_tokens[0], options_.loss == chat_loss::all);
    }
    if (messages_[0].role != chat_role::system &&
        (options_.default_system || !options_.system_prefix.empty())) {
      message({.role = chat_role::system, .text = options_.default_system.value_or("")}, 0, true);
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      message(messages_[i], i, i == 0 && messages_[0].role == chat_role::system);
    }
  }

 private:
  void special(std::string_view token, bool is_target) { sink_.special(token, is_target); }
  void text(std::string_view part, bool is_target) {
    if (!part.empty()) sink_.text(part, is_target);
  }

  void message(const chat_message& from, std::size_t number, bool is_first_system) {
    const bool all = options_.loss == chat_loss::all && from.is_target;
    bool body = all;
    if (from.role == chat_role::assistant && from.is_target) {
      body = body || options_.loss == chat_loss::assistant ||
             (options_.loss == chat_loss::last_assistant && number == last_assistant_);
    }
    switch (options_.format) {
      case chat_template::chatml:
        return chatml(from, number, is_first_system, all, body);
      case chat_template::llama3:
        return llama3(from, is_first_system, all, body);
      case chat_template::plain:
        return plain(from, is_first_system, all, body);
    }
  }

  [[nodiscard]] bool is_tool(std::size_t number) const {
    return number < messages_.size() && messages_[number].role == chat_role::tool;
  }

  void chatml(const chat_message& from, std::size_t number, bool is_first_system, bool all,
              bool body) {
    if (from.role == chat_role::tool) {
      if (number == 0 || !is_tool(number - 1)) {
        special(chatml_tokens[0], all);
        text("user", all);
      }
      text("\n<tool_response>\n", all);
      text(from.text, all);
      text("\n</tool_response>", all);
      if (is_tool(number + 1)) return;
      special(chatml_tokens[1], all);
      text("\n", all);
      return;
    }
    special(chatml_tokens[0], all);
    text(to_string(from.role), all);
    text("\n", all);
    const bool is_assistant = from.role == chat_role::assistant;
    if (is_assistant) sink_.cut();
    if (is_first_system) text(options_.system_prefix, body);
    text(from.text, body);
    for (std::size_t i = 0; i < from.tool_calls.size(); ++i) {
      if (i != 0 || !from.text.empty()) text("\n", body);
      text("<tool_call>\n", body);
      text(tool_call_text(from.tool_calls[i], "arguments"), body);
      text("\n</tool_call>", body);
    }
    special(chatml_tokens[1], body);
    text("\n", all);
  }

  void llama3(const chat_message& from, bool is_first_system, bool all, bool body) {
    special(llama3_tokens[1], all);
    text(from.role == chat_role::tool ? "ipython" : to_string(from.role), all);
    special(llama3_tokens[2], all);
    text("\n\n", all);
    if (from.role == chat_role::assistant) sink_.cut();
    if (is_first_system) text(options_.system_prefix, body);
    if (from.role == chat_role::tool) {
      text(json_string(from.text), body);
    } else {
      text(trimmed(from.text), body);
    }
    if (from.tool_calls.size() > 1) {
      throw_data_error({}, "found " + std::to_string(from.tool_calls.size()) +
                               " tool calls in a message, expected at most 1 in the template "
                               "llama3");
    }
    if (!from.tool_calls.empty()) {
      if (!trimmed(from.text).empty()) text("\n", body);
      text(tool_call_text(from.tool_calls[0], "parameters"), body);
    }
    special(llama3_tokens[3], body);
  }

  void plain(const chat_message& from, bool is_first_system, bool all, bool body) {
    constexpr std::array<std::string_view, 4> names = {"System:", "User:", "Assistant:", "Tool:"};
    const bool is_assistant = from.role == chat_role::assistant;
    text(names[static_cast<std::size_t>(from.role)], all);
    if (is_assistant) sink_.cut();
    text(" ", body);
    if (is_first_system) text(options_.system_prefix, body);
    text(from.text, body);
    for (std::size_t i = 0; i < from.tool_calls.size(); ++i) {
      if (i != 0 || !from.text.empty()) text("\n", body);
      text(tool_call_text(from.tool_calls[i], "arguments"), body);
    }
    const bool ends_with_token = is_assistant && !options_.end_of_turn.empty();
    if (ends_with_token) special(options_.end_of_turn, body);
    text("\n", ends_with_token ? all : body);
    sink_.cut();
  }

  std::span<const chat_message> messages_;
  const chat_options& options_;
  Sink& sink_;
  std::size_t last_assistant_ = messages_.size();
};

/// Writes a conversation down as people would see it.
struct chat_text_sink {
  std::string out;

  void special(std::string_view token, bool) { out += token; }
  void text(std::string_view part, bool) { out += part; }
  void cut() {}
};

}  // namespace detail

/// The special tokens that a template places, as they are spelled.
[[nodiscard]] inline std::vector<std::string> special_tokens_of(const chat_options& options) {
  std::span<const std::string_view> tokens;
  if (options.format == chat_template::chatml) tokens = detail::chatml_tokens;
  if (options.format == chat_template::llama3) {
    tokens = std::span(detail::llama3_tokens).subspan(options.begin_of_text ? 0 : 1);
  }
  std::vector<std::string> all(tokens.begin(), tokens.end());
  if (options.format == chat_template::plain && !options.end_of_turn.empty()) {
    all.push_back(options.end_of_turn);
  }
  return all;
}

/// Hands the parts of a conversation to `sink`, in order: `special(token, is_target)`,
/// `text(part, is_target)`, and `cut()` where the parts before and after must not be tokenized
/// together, because at inference the model begins or ends there.
///
/// `chatml`, for each message, where a system message without text stands for its absence:
///
///     <|im_start|>ROLE\nTEXT<|im_end|>\n
///
/// An assistant's calls follow its text (after a newline, if it has one), each after the other with
/// a newline between: `<tool_call>\n{"name": "NAME", "arguments": ARGUMENTS}\n</tool_call>`. Tools
/// answer as the user, neighbours in one turn: `<|im_start|>user\n<tool_response>\nTEXT\n`
/// `</tool_response>\n<tool_response>\nTEXT\n</tool_response><|im_end|>\n`.
///
/// `llama3`, TEXT without white space at its ends:
///
///     <|begin_of_text|>
///     <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>     (no newline in between)
///
/// A tool's role is `ipython` and its text a JSON string; a message has at most one call, behind
/// its text and a newline where it has one: `{"name": "NAME", "parameters": ARGUMENTS}`.
///
/// `plain`, with System, User, Assistant and Tool for NAME:
///
///     NAME: TEXT\n
///     Assistant: TEXT<end_of_turn>\n
///
/// Calls follow as in `chatml`, without the tags. The newline that ends a turn of the assistant is
/// part of it where there is no `end_of_turn`.
///
/// @throws data_error  There is no message, or more calls than the template can have.
/// @complexity  O(bytes).
template <class Sink>
void render_chat(const conversation& from, const chat_options& options, Sink& sink) {
  detail::chat_writer<Sink>(from, options, sink).write();
}

/// A conversation as text, special tokens as they are spelled.
[[nodiscard]] inline std::string chat_text(const conversation& from, const chat_options& options) {
  detail::chat_text_sink sink;
  render_chat(from, options, sink);
  return std::move(sink.out);
}

}  // namespace lanepack::inline LANEPACK_ABI
