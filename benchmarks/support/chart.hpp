#pragma once

/// @file
/// A bar chart in plain text.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "support/terminal.hpp"

namespace lanepack_programs {

/// One bar of a chart.
struct chart_bar {
  std::string label;
  /// Length of the bar, at least 0, in any unit.
  double value = 0.0;
  /// Printed behind the bar.
  std::string note;
};

/// The bars below one another, the longest as long as the line has room for, every line ended.
inline std::string bar_chart(const std::vector<chart_bar>& bars, const text_style& style) {
  std::size_t label_columns = 0;
  std::size_t note_columns = 0;
  double largest = 0.0;
  for (const chart_bar& bar : bars) {
    label_columns = std::max(label_columns, columns_of(bar.label));
    note_columns = std::max(note_columns, columns_of(bar.note));
    largest = std::max(largest, bar.value);
  }
  const std::size_t taken = label_columns + note_columns + 4;
  const std::size_t columns = style.width > taken + 8 ? style.width - taken : 8;
  std::string out;
  for (const chart_bar& bar : bars) {
    const double fraction = largest > 0.0 ? bar.value / largest : 0.0;
    const std::string drawn = horizontal_bar(fraction, columns, style);
    out += std::string(label_columns - columns_of(bar.label), ' ') + bar.label +
           (style.unicode ? " \u2502" : " |") + drawn + (drawn.empty() ? "" : " ") + bar.note +
           "\n";
  }
  return out;
}

}  // namespace lanepack_programs
