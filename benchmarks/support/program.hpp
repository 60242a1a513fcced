#pragma once

/// @file
/// What every program does the same way: arguments, exit codes and error messages.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <lanepack/core/error.hpp>
#include <lanepack/version.hpp>

#include "support/numbers.hpp"
#include "support/output.hpp"

namespace lanepack_programs {

/// Exit status of a program.
enum class exit_code : int {
  ok = 0,
  /// Anything that is neither bad usage nor bad data: no memory, no space, a broken pipe.
  failure = 1,
  /// The arguments, or options made from them, cannot work.
  bad_usage = 2,
  /// A file or a record is not what its format says, or cannot be read.
  bad_data = 3,
};

/// The arguments of a program and the parser that its body describes.
class command_line {
 public:
  command_line(int argc, const char* const* argv)
      : argc_(argc), argv_(argv), app_(std::string(), file_name(argc > 0 ? argv[0] : "lanepack")) {
    app_.set_version_flag("--version", std::string(LANEPACK_VERSION_STRING));
    app_.option_defaults()->always_capture_default();
    app_.get_formatter()->column_width(34);
  }

  /// The CLI11 parser, to add options to.
  [[nodiscard]] CLI::App& app() noexcept { return app_; }
  /// Name under which the program was started, without folders.
  [[nodiscard]] std::string name() const { return app_.get_name(); }

  /// Sets what `--help` says: one paragraph about the program, and a command that works.
  void describe(const std::string& description, const std::string& example) {
    app_.description(wrapped(description));
    app_.footer("\nExample:\n  " + example);
  }

  /// Fills the variables bound to the options. Leaves through `run_program` on `--help`,
  /// `--version` and bad usage, so call it inside the body.
  void parse() {
    hide_void_defaults();
    app_.parse(argc_, argv_);
  }

 private:
  static std::string file_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
  }

  /// What must be given has no default, and an empty list is none.
  void hide_void_defaults() {
    for (CLI::Option* option : app_.get_options()) {
      const std::string& shown = option->get_default_str();
      if (option->get_required() || shown == "[]" || shown == "\"\"") option->default_str("");
    }
  }

  /// Breaks text between words so that it fits 80 columns.
  static std::string wrapped(const std::string& text) {
    std::string out;
    std::size_t column = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      const std::size_t word = end - at;
      if (column != 0 && column + 1 + word > 80) {
        out += '\n';
        column = 0;
      }
      if (column != 0) {
        out += ' ';
        ++column;
      }
      out += text.substr(at, word);
      column += word;
      at = end + 1;
    }
    return out;
  }

  int argc_;
  const char* const* argv_;
  CLI::App app_;
};

/// Accepts the keys of `choices`.
template <class Map>
CLI::Validator one_of(const Map& choices) {
  std::string names;
  for (const auto& choice : choices) names += (names.empty() ? "" : ", ") + choice.first;
  return CLI::Validator(
      [choices, names](std::string& text) {
        if (choices.count(text) != 0) return std::string();
        return "found " + lanepack::detail::quoted(text) + ", expected one of " + names;
      },
      std::string());
}

/// Prints `program: message` to stderr; further lines of the message are indented.
inline void print_error(const std::string& program, std::string_view message) {
  std::string text = program + ": ";
  for (const char c : message) {
    text += c;
    if (c == '\n') text += "  ";
  }
  text += '\n';
  std::fputs(text.c_str(), stderr);
}

/// Runs `body(command_line&)`, which returns an `exit_code`, and turns what it throws into a
/// message on stderr and an exit status. For use as the whole of `main`.
template <class Body>
int run_program(int argc, const char* const* argv, Body&& body) {
  std::string name = "lanepack";
  exit_code code = exit_code::failure;
  try {
    command_line line(argc, argv);
    name = line.name();
    try {
      code = body(line);
    } catch (const CLI::CallForHelp&) {
      print(line.app().help());
      code = exit_code::ok;
    } catch (const CLI::CallForAllHelp&) {
      print(line.app().help("", CLI::AppFormatMode::All));
      code = exit_code::ok;
    } catch (const CLI::CallForVersion&) {
      print(LANEPACK_VERSION_STRING "\n");
      code = exit_code::ok;
    } catch (const CLI::ParseError& e) {
      print_error(name, e.what() + ("\n`" + name + " --help` lists the options."));
      code = exit_code::bad_usage;
    }
    // A full disk or a closed pipe shows at the latest here; results that nobody got are no
    // success, while bad data stays what it is.
    try {
      flush_output();
    } catch (const output_error&) {
      if (code == exit_code::ok) throw;
    }
  } catch (const lanepack::invalid_option& e) {
    print_error(name, e.what());
    code = exit_code::bad_usage;
  } catch (const lanepack::data_error& e) {
    print_error(name, e.what());
    code = exit_code::bad_data;
  } catch (const std::bad_alloc&) {
    code = exit_code::failure;
    print_error(name, "out of memory");
  } catch (const std::exception& e) {
    code = exit_code::failure;
    print_error(name, e.what());
  }
  return static_cast<int>(code);
}

}  // namespace lanepack_programs
