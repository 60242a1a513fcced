#pragma once

/// @file
/// A table in plain text.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "support/terminal.hpp"

namespace lanepack_programs {

/// Collects rows of text and prints them in aligned columns.
class text_table {
 public:
  /// On which side of its column a cell stands.
  enum class align { left, right };

  /// @param headings  One per column; the first column is aligned left and the others right unless
  ///                  `set_align` says otherwise.
  explicit text_table(std::vector<std::string> headings)
      : headings_(std::move(headings)), alignment_(headings_.size(), align::right) {
    if (!alignment_.empty()) alignment_[0] = align::left;
  }

  void set_align(std::size_t column, align side) { alignment_.at(column) = side; }

  /// Adds a row; missing cells are empty, cells beyond the headings are dropped.
  void add_row(std::vector<std::string> cells) {
    cells.resize(headings_.size());
    rows_.push_back(std::move(cells));
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_.size(); }

  /// The table, a line below the headings, every line ended.
  [[nodiscard]] std::string text(const text_style& style = {}) const {
    std::vector<std::size_t> widths;
    for (const std::string& heading : headings_) widths.push_back(columns_of(heading));
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        widths[i] = std::max(widths[i], columns_of(row[i]));
      }
    }
    std::string out;
    append(out, headings_, widths);
    std::string rule;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i != 0) rule += "  ";
      for (std::size_t c = 0; c < widths[i]; ++c) rule += style.unicode ? "\u2500" : "-";
    }
    out += rule + "\n";
    for (const auto& row : rows_) append(out, row, widths);
    return out;
  }

 private:
  void append(std::string& out, const std::vector<std::string>& cells,
              const std::vector<std::size_t>& widths) const {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) line += "  ";
      const std::string blank(widths[i] - columns_of(cells[i]), ' ');
      line += alignment_[i] == align::left ? cells[i] + blank : blank + cells[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }

  std::vector<std::string> headings_;
  std::vector<align> alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lanepack_programs
