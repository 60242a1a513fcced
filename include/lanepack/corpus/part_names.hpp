#pragma once

/// @file
/// `part_names`: the parts of a corpus by name.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/corpus/source_part.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The parts of a corpus by name.
/// @complexity     Memory 8 bytes a part; a look-up O(log parts).
/// @thread_safety  Immutable.
class part_names {
 public:
  /// @param parts  At least one; they must outlive the object.
  explicit part_names(std::span<const source_part> parts) : parts_(parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) by_name_.push_back(i);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::uint64_t a, std::uint64_t b) { return name(a) < name(b); });
  }

  /// The number of the part of that name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view wanted) const noexcept {
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), wanted,
        [&](std::uint64_t part, std::string_view value) { return name(part) < value; });
    if (found == by_name_.end() || name(*found) != wanted) return std::nullopt;
    return static_cast<std::size_t>(*found);
  }

  /// A name that two parts have; nullopt where all differ.
  [[nodiscard]] std::optional<std::string> repeated() const {
    for (std::size_t i = 1; i < by_name_.size(); ++i) {
      if (name(by_name_[i]) == name(by_name_[i - 1])) return std::string(name(by_name_[i]));
    }
    return std::nullopt;
  }

  /// The first names in the order of bytes, for messages.
  [[nodiscard]] std::string listed() const {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(by_name_.size(), most); ++i) {
      if (i != 0) text += ", ";
      text += name(by_name_[i]);
    }
    if (by_name_.size() > most) {
      text += " or another of " + std::to_string(by_name_.size()) + " parts";
    }
    return text;
  }

 private:
  [[nodiscard]] std::string_view name(std::uint64_t part) const noexcept {
    return parts_[static_cast<std::size_t>(part)].name;
  }

  std::span<const source_part> parts_;
  std::vector<std::uint64_t> by_name_;
};

}  // namespace lanepack::inline LANEPACK_ABI
