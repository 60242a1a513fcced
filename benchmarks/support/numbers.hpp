#pragma once

/// @file
/// Numbers on the command line: read strictly, and refused with what was typed and what may stand
/// there.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lanepack/core/error.hpp>

namespace lanepack_programs {

/// The number that a text of decimal digits stands for, or nullopt. A sign, a base or a zero in
/// front, which other programs take for octal, is not accepted, nor what 64 bits do not hold.
inline std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

/// The numbers that an option accepts.
struct number_range {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] std::string expected() const {
    return "a decimal integer from " + std::to_string(least) + " to " + std::to_string(most);
  }
};

/// A whole number that stands in an option's text.
/// @throws  lanepack::invalid_option
inline std::uint64_t parse_number(const std::string& option, const std::string& text,
                                  number_range range = {}) {
  const std::optional<std::uint64_t> value = parse_decimal(text);
  if (!value || *value < range.least || *value > range.most) {
    lanepack::detail::throw_invalid_option(option, lanepack::detail::quoted(text),
                                           range.expected());
  }
  return *value;
}

/// Accepts the whole numbers of a range. CLI11's own conversion takes signs, other bases and
/// numbers beyond 64 bits, which wrap.
inline CLI::Validator whole_number(number_range range) {
  return CLI::Validator(
      [range](std::string& text) {
        const std::optional<std::uint64_t> value = parse_decimal(text);
        if (value && *value >= range.least && *value <= range.most) return std::string();
        return "found " + lanepack::detail::quoted(text) + ", expected " + range.expected();
      },
      std::string());
}

/// Accepts decimal fractions of at least 0; neither signs nor hexadecimal, infinite or undefined
/// numbers.
inline CLI::Validator decimal_fraction() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::string_view accepted = "0123456789.eE+-";
        const bool starts_well =
            !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
        if (starts_well && text.find_first_not_of(accepted) == std::string::npos) {
          char* end = nullptr;
          const double value = std::strtod(text.c_str(), &end);
          if (end == text.c_str() + text.size() && std::isfinite(value)) return std::string();
        }
        return "found " + lanepack::detail::quoted(text) +
               ", expected a decimal number of at least 0, as 1.5";
      },
      std::string());
}

namespace detail {

template <class Number>
struct element_of {
  using type = Number;
};
template <class Number>
struct element_of<std::optional<Number>> {
  using type = Number;
};
template <class Number>
struct element_of<std::vector<Number>> {
  using type = Number;
};

}  // namespace detail

/// Adds an option that is an integer of at least 0, an optional one or a list of them.
template <class Variable>
CLI::Option* add_number(CLI::App& app, const std::string& name, Variable& variable,
                        const std::string& description, number_range range = {}) {
  using element = typename detail::element_of<Variable>::type;
  static_assert(std::numeric_limits<element>::is_integer);
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<element>::max());
  range.most = std::min(range.most, largest);
  return app.add_option(name, variable, description)->check(whole_number(range));
}

/// Adds an option that is a fraction.
inline CLI::Option* add_fraction(CLI::App& app, const std::string& name, double& variable,
                                 const std::string& description) {
  return app.add_option(name, variable, description)->check(decimal_fraction());
}

}  // namespace lanepack_programs
