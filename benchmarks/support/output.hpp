#pragma once

/// @file
/// Results on standard output, which may be full, closed or a pipe that nobody reads any more.

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <lanepack/core/file.hpp>

namespace lanepack_programs {

/// Standard output cannot be written.
class output_error : public std::runtime_error {
 public:
  explicit output_error(int code)
      : std::runtime_error("standard output cannot be written: " +
                           lanepack::detail::system_message(code)) {}
};

/// Writes to standard output. A program that goes on after its results are lost may do so for ever.
/// @throws  output_error
inline void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  throw output_error(errno != 0 ? errno : EIO);
}

/// Writes what is buffered.
/// @throws  output_error
inline void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw output_error(errno != 0 ? errno : EIO);
}

/// JSON as text. Names of files need not be UTF-8; what is not is replaced.
/// @param indent  Spaces of a level; everything in one line if negative.
inline std::string json_text(const nlohmann::ordered_json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lanepack_programs
