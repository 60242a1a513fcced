#pragma once

/// @file
/// Small JSON files and typed access to their keys, with errors that name file and key.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_json_error(const std::string& path,
                                                        const std::string& what) {
  throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}}, what);
}

/// Refuses a text whose arrays and objects lie so deep in each other that printing them for an
/// error would use up the stack.
inline void check_json_depth(std::string_view text, const std::string& path) {
  constexpr std::size_t most = 512;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth <= most) continue;
      throw_data_error(
          {.path = path, .byte_offset = i, .record = {}, .line = {}},
          "found arrays and objects more than " + std::to_string(most) + " deep, expected fewer");
    } else if ((c == ']' || c == '}') && depth != 0) {
      --depth;
    }
  }
}

/// Parses a whole JSON text.
/// @throws data_error  It is not JSON, or too deep; with the byte offset. An object has a key
/// twice.
[[nodiscard]] inline nlohmann::json parse_json(std::string_view text, const std::string& path) {
  check_json_depth(text, path);
  using event = nlohmann::json::parse_event_t;
  using handler = nlohmann::json::error_handler_t;
  try {
    std::vector<std::set<std::string>> keys;
    return nlohmann::json::parse(text, [&](int, event kind, nlohmann::json& value) {
      if (kind == event::object_start) keys.emplace_back();
      if (kind == event::object_end) keys.pop_back();
      if (kind == event::key && !keys.back().insert(value.get<std::string>()).second) {
        throw_json_error(path, "key " + value.dump(-1, ' ', true, handler::replace) +
                                   " is there twice in an object, expected once");
      }
      return true;
    });
  } catch (const nlohmann::json::parse_error& e) {
    const std::uint64_t offset = e.byte == 0 ? 0 : e.byte - 1;
    throw_data_error({.path = path, .byte_offset = offset, .record = {}, .line = {}},
                     std::string("malformed JSON: ") + e.what());
  } catch (const nlohmann::json::exception& e) {
    throw_json_error(path, std::string("malformed JSON: ") + e.what());
  }
}

/// The bytes of a small file.
/// @throws data_error  It cannot be read, or is larger than 64 MiB.
[[nodiscard]] inline std::string read_json_text(const std::string& path) {
  constexpr std::uint64_t most = std::uint64_t{1} << 26;
  const input_file file(path);
  if (file.size() > most) {
    throw_json_error(path, "found " + std::to_string(file.size()) +
                               " bytes, expected a JSON document of at most " +
                               std::to_string(most));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// One object of a JSON document. A key whose value is null counts as absent.
class json_object {
 public:
  /// @param prefix  What leads to the object, as `text_config.`; empty for the document's top.
  json_object(const nlohmann::json& value, std::string path, std::string prefix = {})
      : value_(&value), path_(std::move(path)), prefix_(std::move(prefix)) {
    if (!value.is_object()) {
      throw_json_error(path_, (prefix_.empty() ? std::string() : "key \"" + name("") + "\": ") +
                                  "found " + shown(value) + ", expected an object");
    }
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const nlohmann::json& value() const noexcept { return *value_; }

  [[nodiscard]] const nlohmann::json* find(const char* key) const {
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
  }

  [[nodiscard]] bool has(const char* key) const { return find(key) != nullptr; }

  /// The first of `keys` that is there.
  [[nodiscard]] const char* first_of(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (has(key)) return key;
    }
    return nullptr;
  }

  [[nodiscard]] std::optional<json_object> object(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    return json_object(*found, path_, prefix_ + key + ".");
  }

  /// A whole number of at least `least`.
  [[nodiscard]] std::optional<std::uint64_t> number(const char* key,
                                                    std::uint64_t least = 0) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() < least) {
      fail(key, "an integer of at least " + std::to_string(least));
    }
    return found->get<std::uint64_t>();
  }

  /// The first of `keys` that is there, as a whole number of at least `least`.
  [[nodiscard]] std::optional<std::uint64_t> number(std::initializer_list<const char*> keys,
                                                    std::uint64_t least = 0) const {
    const char* key = first_of(keys);
    return key == nullptr ? std::nullopt : number(key, least);
  }

  /// As `number`, of a key that must be there.
  [[nodiscard]] std::uint64_t required(std::initializer_list<const char*> keys,
                                       std::uint64_t least = 0) const {
    const auto found = number(keys, least);
    if (!found) throw_missing(keys, "an integer of at least " + std::to_string(least));
    return *found;
  }

  [[nodiscard]] std::optional<bool> flag(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_boolean()) fail(key, "true or false");
    return found->get<bool>();
  }

  [[nodiscard]] std::optional<std::string> text(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) fail(key, "a string");
    return found->get<std::string>();
  }

  [[nodiscard]] std::optional<std::vector<std::uint64_t>> numbers(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_array()) fail(key, "an array of integers");
    std::vector<std::uint64_t> values;
    for (const nlohmann::json& element : *found) {
      if (!element.is_number_unsigned()) fail(key, "an array of integers of at least 0");
      values.push_back(element.get<std::uint64_t>());
    }
    return values;
  }

  [[nodiscard]] std::optional<std::vector<std::string>> texts(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_array()) fail(key, "an array of strings");
    std::vector<std::string> values;
    for (const nlohmann::json& element : *found) {
      if (!element.is_string()) fail(key, "an array of strings");
      values.push_back(element.get<std::string>());
    }
    return values;
  }

  /// Throws that `key` has a value that cannot be used.
  [[noreturn]] LANEPACK_COLD void fail(const char* key, const std::string& expected) const {
    const nlohmann::json* found = find(key);
    throw_json_error(path_, "key \"" + name(key) + "\": found " +
                                (found == nullptr ? std::string("nothing") : shown(*found)) +
                                ", expected " + expected);
  }

 private:
  [[nodiscard]] std::string name(const char* key) const {
    std::string full = prefix_ + key;
    if (!full.empty() && full.back() == '.') full.pop_back();
    return full;
  }

  static std::string shown(const nlohmann::json& value) {
    using handler = nlohmann::json::error_handler_t;
    std::string text = value.dump(-1, ' ', true, handler::replace);
    constexpr std::size_t most = 60;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
  }

  [[noreturn]] LANEPACK_COLD void throw_missing(std::initializer_list<const char*> keys,
                                                const std::string& expected) const {
    std::string names;
    for (const char* key : keys) {
      if (!names.empty()) names += " or ";
      names += "\"" + name(key) + "\"";
    }
    throw_json_error(path_, "found no key " + names + ", expected " + expected);
  }

  const nlohmann::json* value_;
  std::string path_;
  std::string prefix_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
