#pragma once

/// @file
/// The rules by which records are put into micro-batches, and their names.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How records are put into micro-batches.
enum class micro_batch_rule : std::uint8_t {
  /// Largest first, into the fullest micro-batch that has room.
  best_fit_decreasing,
  /// Largest first, into the first micro-batch that has room.
  first_fit_decreasing,
  /// Modified first fit decreasing as published by Johnson and Garey.
  mffd_johnson_garey,
  /// Modified first fit decreasing as NeMo-RL ships it.
  mffd_nemo,
  /// Rows padded to the longest of the micro-batch: rows x longest is bounded, not the sum.
  padded_rows,
  /// As few micro-batches as the tight rules find, of nearly equal cost: for ranks that wait for
  /// each other in every micro-batch.
  level,
};

/// A rule and the name that programs and configuration files use for it.
struct named_micro_batch_rule {
  micro_batch_rule rule;
  std::string_view name;
};

namespace detail {

inline constexpr std::array micro_batch_rule_table{
    named_micro_batch_rule{micro_batch_rule::best_fit_decreasing, "best_fit_decreasing"},
    named_micro_batch_rule{micro_batch_rule::first_fit_decreasing, "first_fit_decreasing"},
    named_micro_batch_rule{micro_batch_rule::mffd_johnson_garey, "mffd_johnson_garey"},
    named_micro_batch_rule{micro_batch_rule::mffd_nemo, "mffd_nemo"},
    named_micro_batch_rule{micro_batch_rule::padded_rows, "padded_rows"},
    named_micro_batch_rule{micro_batch_rule::level, "level"},
};

}  // namespace detail

/// All rules with their names.
[[nodiscard]] constexpr std::span<const named_micro_batch_rule> micro_batch_rules() noexcept {
  return detail::micro_batch_rule_table;
}

/// Name of a rule.
[[nodiscard]] constexpr std::string_view to_string(micro_batch_rule rule) noexcept {
  for (const named_micro_batch_rule& entry : micro_batch_rules()) {
    if (entry.rule == rule) return entry.name;
  }
  return "unknown";
}

/// The rule called `name`.
/// @throws invalid_option if there is none; the message lists those that exist.
[[nodiscard]] inline micro_batch_rule micro_batch_rule_named(std::string_view name) {
  std::string names;
  for (const named_micro_batch_rule& entry : micro_batch_rules()) {
    if (entry.name == name) return entry.rule;
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  detail::throw_invalid_option("micro_batch_rule", detail::quoted(name), "one of " + names);
}

}  // namespace lanepack::inline LANEPACK_ABI
