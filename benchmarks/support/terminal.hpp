#pragma once

/// @file
/// What the terminal can show, and numbers as people read them.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lanepack_programs {

/// How text for people may look.
struct text_style {
  /// Characters of a line.
  std::size_t width = 80;
  /// Characters beyond ASCII are shown.
  bool unicode = false;
  /// A cursor can be moved, so that a line can be drawn again.
  bool is_terminal = false;
};

/// True where the locale of the environment (LC_ALL, LC_CTYPE, LANG) is UTF-8.
inline bool environment_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

/// The style that the stream behind `descriptor` (1 stdout, 2 stderr) can show. A file or a pipe
/// gets 80 columns.
inline text_style style_of(int descriptor) {
  text_style style;
  style.unicode = environment_is_utf8();
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  style.is_terminal = isatty(descriptor) == 1 && !dumb;
  if (style.is_terminal) {
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) style.width = size.ws_col;
  }
  return style;
}

/// Characters of a line of the stream behind `descriptor`: COLUMNS of the environment where it is a
/// number of at least 20, else the terminal's, else `otherwise`.
inline std::size_t line_width(int descriptor, std::size_t otherwise) {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::size_t width = std::strtoul(columns, nullptr, 10);
    if (width >= 20) return width;
  }
  const text_style style = style_of(descriptor);
  return style.is_terminal ? style.width : otherwise;
}

/// `value` with a comma between groups of three digits.
inline std::string with_commas(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

/// `value` with `decimals` digits after the point.
inline std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return std::string(buffer.data(), static_cast<std::size_t>(std::max(size, 0)));
}

/// `value` in at most three digits and a unit step of `base`: 1.5, 23.4, 512.
inline std::string scaled(double value, double base, const std::array<const char*, 6>& units) {
  std::size_t unit = 0;
  while (value >= base * 0.9995 && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fixed(value, decimals) + units[unit];
}

/// A count as `312`, `4.20k`, `1.50M`, `8.03G`.
inline std::string short_count(double value) {
  return scaled(value, 1000.0, {"", "k", "M", "G", "T", "P"});
}

/// A size as `312 B`, `4.20 KiB`, `1.50 GiB`.
inline std::string short_bytes(double value) {
  return scaled(value, 1024.0, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

/// A time as `0:07`, `12:34`, `3:25:45`.
inline std::string short_time(double seconds) {
  const auto total = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 3.6e9));
  const std::uint64_t hours = total / 3600;
  std::array<char, 48> buffer;
  if (hours == 0) {
    std::snprintf(buffer.data(), buffer.size(), "%llu:%02llu",
                  static_cast<unsigned long long>(total / 60),
                  static_cast<unsigned long long>(total % 60));
  } else {
    std::snprintf(buffer.data(), buffer.size(), "%llu:%02llu:%02llu",
                  static_cast<unsigned long long>(hours),
                  static_cast<unsigned long long>(total / 60 % 60),
                  static_cast<unsigned long long>(total % 60));
  }
  return buffer.data();
}

/// Columns that UTF-8 text takes where every code point takes one.
inline std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// A horizontal bar of `fraction` (0 to 1) of `columns` columns, in eighths of a column where the
/// style has the characters for it. Anything above 0 shows.
inline std::string horizontal_bar(double fraction, std::size_t columns, const text_style& style) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double exact = fraction * static_cast<double>(columns);
  std::string text;
  if (!style.unicode) {
    auto full = static_cast<std::size_t>(std::lround(exact));
    if (full == 0 && fraction > 0.0 && columns > 0) full = 1;
    return std::string(full, '#');
  }
  auto eighths = static_cast<std::size_t>(std::lround(exact * 8.0));
  if (eighths == 0 && fraction > 0.0 && columns > 0) eighths = 1;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "\u2588";
  static constexpr std::array<const char*, 8> part = {"",       "\u258f", "\u258e", "\u258d",
                                                      "\u258c", "\u258b", "\u258a", "\u2589"};
  return text + part[eighths % 8];
}

/// `text`, cut to at most `columns` code points.
inline std::string cut_to(std::string_view text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (starts && seen++ == columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

}  // namespace lanepack_programs
