#pragma once

/// @file
/// The exceptions that lanepack throws, and the cold helpers that build their messages.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Base of every exception that lanepack itself throws.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An option has a value that cannot work; thrown by constructors only.
class invalid_option : public error {
 public:
  /// @param option    Name of the field or flag.
  /// @param found     The value found, as text.
  /// @param expected  What would have been accepted, as text.
  invalid_option(std::string option, std::string found, std::string expected)
      : error(option + ": found " + found + ", expected " + expected),
        option_(std::move(option)),
        found_(std::move(found)),
        expected_(std::move(expected)) {}

  [[nodiscard]] const std::string& option() const noexcept { return option_; }
  [[nodiscard]] const std::string& found() const noexcept { return found_; }
  [[nodiscard]] const std::string& expected() const noexcept { return expected_; }

 private:
  std::string option_;
  std::string found_;
  std::string expected_;
};

/// Where in the data a fault was found.
struct data_location {
  /// Path of the file; empty for data that was never in a file.
  std::string path = {};
  /// Byte offset in that file.
  std::optional<std::uint64_t> byte_offset = std::nullopt;
  /// Record number.
  std::optional<std::uint64_t> record = std::nullopt;
  /// Line number from 1, for line-based formats.
  std::optional<std::uint64_t> line = std::nullopt;
};

/// A file or a record is not what its format says; also every failed read or write of a file.
class data_error : public error {
 public:
  /// @param where  Location; the parts that are present lead the message.
  /// @param what   What is wrong: the value found and the value expected.
  data_error(data_location where, const std::string& what)
      : error(describe(where) + what), where_(std::move(where)) {}

  [[nodiscard]] const data_location& where() const noexcept { return where_; }

 private:
  static std::string describe(const data_location& where) {
    std::string text = where.path;
    const auto part = [&text](const char* name, const std::optional<std::uint64_t>& value) {
      if (!value) return;
      if (!text.empty()) text += ", ";
      text += name + std::to_string(*value);
    };
    part("line ", where.line);
    part("byte ", where.byte_offset);
    part("record ", where.record);
    if (!text.empty()) text += ": ";
    return text;
  }

  data_location where_;
};

/// A file that was cut short, written to, replaced or removed after it was opened: none of its
/// records can be trusted any more.
class file_changed : public data_error {
 public:
  using data_error::data_error;
};

/// A call that the object's state or a saved state does not allow.
class state_error : public error {
 public:
  using error::error;
};

namespace detail {

/// `text` between single quotes, for messages.
[[nodiscard]] inline std::string quoted(std::string_view text) {
  return std::string("'").append(text).append("'");
}

[[noreturn]] LANEPACK_COLD inline void throw_invalid_option(std::string option, std::string found,
                                                            std::string expected) {
  throw invalid_option(std::move(option), std::move(found), std::move(expected));
}

[[noreturn]] LANEPACK_COLD inline void throw_data_error(data_location where,
                                                        const std::string& what) {
  throw data_error(std::move(where), what);
}

[[noreturn]] LANEPACK_COLD inline void throw_state_error(const std::string& what) {
  throw state_error(what);
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
