#pragma once

/// @file
/// How the parts of a corpus are mixed: weights, when they change, and what happens at a part's
/// end.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a weight is a share of.
enum class mixture_unit : std::uint8_t {
  /// Of the records.
  records,
  /// Of the tokens, by the parts' mean lengths as they are delivered: exact over whole epochs of
  /// the parts, and near it over fewer records as far as those are like the rest.
  tokens,
};

/// What happens when a part has delivered all its epochs.
enum class part_end : std::uint8_t {
  /// Its next epoch follows; the number of its epochs does not matter.
  repeat,
  /// The run ends before the first step that would need another of its records.
  stop,
  /// Its weight goes to the others in proportion to theirs; the run ends where none is left.
  drop,
};

/// "records" or "tokens".
[[nodiscard]] constexpr const char* to_string(mixture_unit unit) noexcept {
  switch (unit) {
    case mixture_unit::records:
      return "records";
    case mixture_unit::tokens:
      return "tokens";
  }
  return "?";
}

/// "repeat", "stop" or "drop".
[[nodiscard]] constexpr const char* to_string(part_end rule) noexcept {
  switch (rule) {
    case part_end::repeat:
      return "repeat";
    case part_end::stop:
      return "stop";
    case part_end::drop:
      return "drop";
  }
  return "?";
}

/// The unit of that name.
/// @throws invalid_option  for any other text, with `option` as its name.
[[nodiscard]] inline mixture_unit parse_mixture_unit(std::string_view text,
                                                     const std::string& option = "unit") {
  for (const mixture_unit unit : {mixture_unit::records, mixture_unit::tokens}) {
    if (text == to_string(unit)) return unit;
  }
  detail::throw_invalid_option(option, detail::quoted(text), "records or tokens");
}

/// The rule of that name.
/// @throws invalid_option  for any other text, with `option` as its name.
[[nodiscard]] inline part_end parse_part_end(std::string_view text,
                                             const std::string& option = "rule") {
  for (const part_end rule : {part_end::repeat, part_end::stop, part_end::drop}) {
    if (text == to_string(rule)) return rule;
  }
  detail::throw_invalid_option(option, detail::quoted(text), "repeat, stop or drop");
}

/// The weight of a part relative to the other parts' weights.
struct part_weight {
  /// Name of the part.
  std::string part;
  /// Below 2^32; 0: none of its records.
  std::uint64_t weight = 0;

  friend bool operator==(const part_weight&, const part_weight&) = default;
};

/// Weights that hold from a step on.
struct mixture_phase {
  /// The first step whose arrivals are mixed so: 0 for the first phase, ascending for the others. A
  /// policy may put records that arrive in a step into steps around it, as far as its lookahead.
  step_index step = 0;
  /// Parts that are not named keep the weight that they had before, 0 before the first phase.
  std::vector<part_weight> weights = {};

  friend bool operator==(const mixture_phase&, const mixture_phase&) = default;
};

/// What happens at the end of one part.
struct part_end_rule {
  /// Name of the part.
  std::string part;
  part_end rule = part_end::repeat;
  /// Epochs after which `stop` or `drop` holds, at least 1.
  std::uint64_t epochs = 1;

  friend bool operator==(const part_end_rule&, const part_end_rule&) = default;
};

/// How the parts of a corpus are mixed.
struct mixture_options {
  /// At least one, the first at step 0.
  std::vector<mixture_phase> phases;
  /// What all weights are shares of.
  mixture_unit unit = mixture_unit::records;
  /// Parts that are not named repeat.
  std::vector<part_end_rule> ends = {};
};

}  // namespace lanepack::inline LANEPACK_ABI
