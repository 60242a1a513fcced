#pragma once

/// @file
/// `chat_line_parser`: one line of a JSON Lines file to a conversation.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/chat/conversation.hpp>
#include <lanepack/chat/encoder.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/json/text_line.hpp>
#include <lanepack/json/token_line.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a line says who said what.
enum class chat_shape : std::uint8_t {
  /// By the key that the line has.
  automatic,
  /// OpenAI: `messages` of `role` and `content`.
  messages,
  /// ShareGPT: `conversations` of `from` and `value`.
  conversations,
  /// Alpaca: `instruction`, `input` and `output`.
  alpaca,
};

/// What becomes of a line with parts that `chat_template` does not write down: a list of tools, or
/// what an assistant thought before it answered.
enum class chat_extras : std::uint8_t {
  /// It is a fault: the model would learn to call tools that it was never told of.
  refuse,
  /// They are left out.
  ignore,
};

/// Reads lines of JSON Lines files with a conversation each, in one of three shapes:
///
/// - `{"messages": [{"role": "user", "content": "..."}, ...]}`. A content is a string, an array of
///   parts `{"type": "text", "text": "..."}`, which are joined, or null beside calls. Calls are
///   `tool_calls` of `function` objects, or one `function_call`, with `name` and `arguments` (a
///   JSON text, or the value itself). `"weight": 0` makes a message context only.
/// - `{"conversations": [{"from": "human", "value": "..."}, ...]}`.
/// - `{"instruction": "...", "input": "...", "output": "..."}`, the instruction and, after a
///   newline, an input that is not empty being the user's text; before it the pairs of `history`.
///
/// A `system` at the top is the first message of a conversation that does not begin with one. Roles
/// of the first two shapes: `system` and `developer`; `user` and `human`; `assistant`, `gpt` and
/// `function_call`; `tool`, `function`, `observation` and `ipython`. A key with a null counts as
/// absent. `tools` and `functions` of a line and `reasoning_content`, `reasoning` and `thinking` of
/// a message are `chat_extras` unless they are empty; all other keys are checked to be JSON and
/// ignored.
/// @complexity  O(bytes of the line).
/// @thread_safety  None: one thread per object.
class chat_line_parser {
 public:
  explicit chat_line_parser(chat_shape shape = chat_shape::automatic,
                            chat_extras extras = chat_extras::refuse)
      : shape_(shape), extras_(extras) {}

  /// Reads one line, with or without its end. Returns false and sets `fault()` if it is not JSON or
  /// not such an object.
  [[nodiscard]] bool parse(std::string_view line) {
    detail::json_value_reader reader(line);
    conversation_.messages.clear();
    if (read(reader)) return true;
    fault_ = std::move(reader.cursor().fault());
    return false;
  }

  /// The line that was parsed last.
  [[nodiscard]] const conversation& value() const noexcept { return conversation_; }
  /// What is wrong with the line that was parsed last.
  [[nodiscard]] const token_line_fault& fault() const noexcept { return fault_; }

 private:
  using reader_type = detail::json_value_reader;

  enum key_number : std::size_t {
    messages,
    conversations,
    instruction,
    input,
    output,
    system,
    history,
    tools,
    functions
  };
  static constexpr std::array<std::string_view, 9> keys = {
      "messages", "conversations", "instruction", "input",    "output",
      "system",   "history",       "tools",       "functions"};

  /// Where the values of known keys lie in the line.
  using places = std::array<std::size_t, keys.size()>;
  static constexpr std::size_t absent = std::string_view::npos;

  /// Notes where the values of `wanted` keys begin, unless they are null, and walks over all.
  template <std::size_t Count>
  static bool note(reader_type& reader, std::string_view key, std::size_t key_offset,
                   std::size_t value, const std::string& name,
                   const std::array<std::string_view, Count>& wanted,
                   std::array<std::size_t, Count>& found, unsigned& seen) {
    for (std::size_t i = 0; i < Count; ++i) {
      if (key != wanted[i]) continue;
      if ((seen >> i & 1) != 0) {
        return reader.fail_at(key_offset, (name.empty() ? name : name + ": ") + "key \"" +
                                              std::string(key) +
                                              "\" is there twice, expected once");
      }
      seen |= 1U << i;
      if (reader.cursor().text()[value] != 'n') found[i] = value;
    }
    return true;
  }

  /// Walks over an object and notes where the values of its `wanted` keys begin.
  template <std::size_t Count>
  static bool members(reader_type& reader, const std::string& name,
                      const std::array<std::string_view, Count>& wanted,
                      std::array<std::size_t, Count>& found) {
    if (!reader.is('{')) return reader.fail(name, "an object");
    found.fill(absent);
    unsigned seen = 0;
    return walk_json_object(reader.cursor(), [&](std::string_view key, std::size_t offset) {
      const std::size_t value = reader.cursor().position();
      return reader.cursor().value() && note(reader, key, offset, value, name, wanted, found, seen);
    });
  }

  bool read(reader_type& reader) {
    places found;
    found.fill(absent);
    unsigned seen = 0;
    if (!reader.top([&](std::string_view key, std::size_t offset, std::size_t value) {
          return note(reader, key, offset, value, {}, keys, found, seen);
        })) {
      return false;
    }
    for (const key_number each : {tools, functions}) {
      if (!check_extra(reader, std::string(keys[each]), found[each])) return false;
    }
    std::optional<key_number> shape;
    if (!choose(reader, found, shape)) return false;
    if (*shape == instruction ? !read_alpaca(reader, found) : !read_list(reader, found, *shape)) {
      return false;
    }
    return add_system(reader, found);
  }

  /// Fails where there is something that no template writes down.
  /// @param offset  Of its value, or `absent`.
  bool check_extra(reader_type& reader, const std::string& name, std::size_t offset) const {
    if (offset == absent || extras_ == chat_extras::ignore) return true;
    const std::string_view text = reader.cursor().text();
    const char last = text[offset] == '[' ? ']' : text[offset] == '{' ? '}' : '"';
    if (text[text.find_first_not_of(" \t\r\n", offset + 1)] == last) return true;
    return reader.fail_at(offset, name +
                                      ": found something that no template here writes down, "
                                      "expected nothing, or that it is to be ignored");
  }

  bool choose(reader_type& reader, const places& found, std::optional<key_number>& chosen) const {
    constexpr std::array<key_number, 3> shapes = {messages, conversations, instruction};
    if (shape_ != chat_shape::automatic) {
      chosen = shapes[static_cast<std::size_t>(shape_) - 1];
      if (found[*chosen] != absent) return true;
      return reader.fail_at(0, "found no key \"" + std::string(keys[*chosen]) + "\", expected it");
    }
    for (const key_number each : shapes) {
      if (found[each] == absent) continue;
      if (chosen) {
        return reader.fail_at(found[each], "found both \"" + std::string(keys[*chosen]) +
                                               "\" and \"" + std::string(keys[each]) +
                                               "\", expected one of them, or an option that says "
                                               "which to read");
      }
      chosen = each;
    }
    if (chosen) return true;
    return reader.fail_at(0,
                          "found no conversation, expected key \"messages\", \"conversations\" or "
                          "\"instruction\"");
  }

  bool add_system(reader_type& reader, const places& found) {
    auto& list = conversation_.messages;
    if (found[system] == absent || (!list.empty() && list[0].role == chat_role::system))
      return true;
    reader.cursor().seek(found[system]);
    std::string text;
    if (!reader.text("system", text)) return false;
    if (!text.empty()) {
      list.insert(list.begin(), chat_message{.role = chat_role::system, .text = std::move(text)});
    }
    return true;
  }

  bool read_alpaca(reader_type& reader, const places& found) {
    const auto text_of = [&](key_number key, std::string& out) {
      reader.cursor().seek(found[key]);
      return reader.text(keys[key], out);
    };
    if (found[history] != absent && !read_history(reader, found[history])) return false;
    chat_message user;
    chat_message answer{.role = chat_role::assistant, .text = {}};
    if (!text_of(instruction, user.text)) return false;
    if (std::string more; found[input] != absent) {
      if (!text_of(input, more)) return false;
      if (!more.empty()) user.text += "\n" + more;
    }
    if (found[output] == absent)
      return reader.fail_at(0, "found no key \"output\", expected a text");
    if (!text_of(output, answer.text)) return false;
    conversation_.messages.push_back(std::move(user));
    conversation_.messages.push_back(std::move(answer));
    return true;
  }

  bool read_history(reader_type& reader, std::size_t offset) {
    reader.cursor().seek(offset);
    if (!reader.is('[')) return reader.fail("history", "an array of pairs of texts");
    return walk_json_array(reader.cursor(), [&](std::size_t pair) {
      const std::string name = "history[" + std::to_string(pair) + "]";
      if (!reader.is('[')) return reader.fail(name, "a pair of texts");
      const std::size_t start = reader.cursor().position();
      std::size_t count = 0;
      if (!walk_json_array(reader.cursor(), [&](std::size_t i) {
            count = i + 1;
            chat_message message;
            message.role = i == 0 ? chat_role::user : chat_role::assistant;
            if (!reader.text(name + "[" + std::to_string(i) + "]", message.text)) return false;
            conversation_.messages.push_back(std::move(message));
            return true;
          })) {
        return false;
      }
      return count == 2 || reader.fail_at(start, name + ": found " + std::to_string(count) +
                                                     " texts, expected 2");
    });
  }

  bool read_list(reader_type& reader, const places& found, key_number shape) {
    reader.cursor().seek(found[shape]);
    const std::string name(keys[shape]);
    if (!reader.is('[')) return reader.fail(name, "an array of messages");
    if (!walk_json_array(reader.cursor(), [&](std::size_t i) {
          return read_message(reader, name + "[" + std::to_string(i) + "]", shape);
        })) {
      return false;
    }
    if (!conversation_.messages.empty()) return true;
    return reader.fail_at(found[shape], name + ": found no message, expected at least one");
  }

  bool read_message(reader_type& reader, const std::string& name, key_number shape) {
    // Some files have the keys of one shape in the list of the other.
    enum : std::size_t { role, from, content, said, calls, function_call, weight, reasoning };
    constexpr std::array<std::string_view, 10> wanted = {
        "role",   "from",      "content",           "value",   "tool_calls", "function_call",
        "weight", "reasoning", "reasoning_content", "thinking"};
    std::array<std::size_t, wanted.size()> found;
    const std::size_t start = reader.cursor().position();
    if (!members(reader, name, wanted, found)) return false;
    const std::size_t end = reader.cursor().position();
    for (std::size_t key = reasoning; key < wanted.size(); ++key) {
      if (!check_extra(reader, name + "." + std::string(wanted[key]), found[key])) return false;
    }
    const auto has = [&](std::size_t key) {
      if (found[key] != absent) reader.cursor().seek(found[key]);
      return found[key] != absent;
    };
    const auto name_of = [&](std::size_t key) { return name + "." + std::string(wanted[key]); };
    const auto missing = [&](std::size_t key) {
      return reader.fail_at(
          start, name + ": found no key \"" + std::string(wanted[key]) + "\", expected it");
    };
    const bool is_sharegpt = shape == conversations;
    const std::size_t own_role = is_sharegpt ? from : role;
    const std::size_t own_text = is_sharegpt ? said : content;
    const std::size_t role_key = found[own_role] != absent ? own_role : role + from - own_role;
    const std::size_t text_key = found[own_text] != absent ? own_text : content + said - own_text;
    chat_message message;
    if (!has(role_key)) return missing(own_role);
    if (!read_role(reader, name_of(role_key), message.role)) return false;
    if (has(calls) && !read_calls(reader, name_of(calls), message)) return false;
    if (has(function_call) && !read_call(reader, name_of(function_call), message, false)) {
      return false;
    }
    if (has(text_key)) {
      if (!read_content(reader, name_of(text_key), message.text)) return false;
    } else if (message.tool_calls.empty()) {
      return missing(own_text);
    }
    if (has(weight) && !read_weight(reader, name_of(weight), message)) return false;
    reader.cursor().seek(end);
    conversation_.messages.push_back(std::move(message));
    return true;
  }

  bool read_role(reader_type& reader, const std::string& name, chat_role& role) {
    const std::size_t start = reader.cursor().position();
    std::string text;
    if (!reader.text(name, text)) return false;
    constexpr std::array<std::pair<std::string_view, chat_role>, 11> roles = {{
        {"system", chat_role::system},
        {"developer", chat_role::system},
        {"user", chat_role::user},
        {"human", chat_role::user},
        {"assistant", chat_role::assistant},
        {"gpt", chat_role::assistant},
        {"function_call", chat_role::assistant},
        {"tool", chat_role::tool},
        {"function", chat_role::tool},
        {"observation", chat_role::tool},
        {"ipython", chat_role::tool},
    }};
    for (const auto& [known, value] : roles) {
      if (text != known) continue;
      role = value;
      return true;
    }
    reader.cursor().seek(start);
    return reader.fail(name, "system, user, assistant or tool (human, gpt, ...)");
  }

  bool read_content(reader_type& reader, const std::string& name, std::string& out) {
    if (reader.is('"')) return reader.text(name, out);
    if (!reader.is('[')) return reader.fail(name, "a string or an array of text parts");
    return walk_json_array(reader.cursor(), [&](std::size_t i) {
      return read_part(reader, name + "[" + std::to_string(i) + "]", out);
    });
  }

  bool read_part(reader_type& reader, const std::string& name, std::string& out) {
    constexpr std::array<std::string_view, 2> wanted = {"type", "text"};
    std::array<std::size_t, 2> found;
    const std::size_t start = reader.cursor().position();
    if (!members(reader, name, wanted, found)) return false;
    const std::size_t end = reader.cursor().position();
    std::string text;
    if (found[0] != absent) {
      reader.cursor().seek(found[0]);
      if (!reader.text(name + ".type", text)) return false;
      if (text != "text") {
        reader.cursor().seek(found[0]);
        return reader.fail(name + ".type", "\"text\"");
      }
    }
    if (found[1] == absent) {
      return reader.fail_at(start, name + ": found no key \"text\", expected a text");
    }
    reader.cursor().seek(found[1]);
    if (!reader.text(name + ".text", text)) return false;
    out += text;
    reader.cursor().seek(end);
    return true;
  }

  bool read_calls(reader_type& reader, const std::string& name, chat_message& message) {
    if (!reader.is('[')) return reader.fail(name, "an array of calls");
    return walk_json_array(reader.cursor(), [&](std::size_t i) {
      return read_call(reader, name + "[" + std::to_string(i) + "]", message, true);
    });
  }

  /// @param may_wrap  Whether the call may be the value of the object's key `function`.
  bool read_call(reader_type& reader, const std::string& name, chat_message& message,
                 bool may_wrap) {
    constexpr std::array<std::string_view, 3> wanted = {"name", "arguments", "function"};
    std::array<std::size_t, 3> found;
    const std::size_t start = reader.cursor().position();
    if (!members(reader, name, wanted, found)) return false;
    const std::size_t end = reader.cursor().position();
    if (may_wrap && found[0] == absent && found[2] != absent) {
      reader.cursor().seek(found[2]);
      if (!read_call(reader, name + ".function", message, false)) return false;
      reader.cursor().seek(end);
      return true;
    }
    if (found[0] == absent) {
      return reader.fail_at(start, name + ": found no key \"name\", expected it");
    }
    tool_call call{.name = {}, .arguments = "{}"};
    reader.cursor().seek(found[0]);
    if (!reader.text(name + ".name", call.name)) return false;
    if (found[1] != absent) {
      reader.cursor().seek(found[1]);
      if (reader.is('"')) {
        if (!reader.text(name + ".arguments", call.arguments)) return false;
      } else {
        if (!reader.cursor().value()) return false;
        call.arguments =
            reader.cursor().text().substr(found[1], reader.cursor().position() - found[1]);
      }
    }
    message.tool_calls.push_back(std::move(call));
    reader.cursor().seek(end);
    return true;
  }

  static bool read_weight(reader_type& reader, const std::string& name, chat_message& message) {
    const std::size_t start = reader.cursor().position();
    if (!reader.cursor().value()) return false;
    const std::string_view text =
        reader.cursor().text().substr(start, reader.cursor().position() - start);
    if (text == "0" || text == "0.0" || text == "1" || text == "1.0") {
      message.is_target = text[0] == '1';
      return true;
    }
    reader.cursor().seek(start);
    return reader.fail(name, "0 or 1");
  }

  chat_shape shape_;
  chat_extras extras_;
  conversation conversation_;
  token_line_fault fault_;
};

/// Appends the tokens of the conversation in a line, and for each of them 1 where it is to be
/// predicted: a stage from documents to records.
/// @throws data_error  The line has no conversation, or none that the template can have; with the
///                     byte of the line.
/// @thread_safety  Any number of threads.
inline void encode_chat_line(std::string_view line, const chat_encoder& encoder,
                             std::vector<std::int32_t>& tokens,
                             std::vector<std::uint8_t>& loss_mask,
                             chat_shape shape = chat_shape::automatic,
                             chat_extras extras = chat_extras::refuse) {
  chat_line_parser parser(shape, extras);
  if (!parser.parse(line)) {
    detail::throw_data_error(
        {.path = {}, .byte_offset = parser.fault().offset, .record = {}, .line = {}},
        parser.fault().what);
  }
  encoder.encode(parser.value(), tokens, loss_mask);
}

}  // namespace lanepack::inline LANEPACK_ABI
