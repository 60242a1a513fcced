#pragma once

/// @file
/// How many records the steps of a run take, where epochs end, and what comes of that in all.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What happens where the records of an epoch do not fill a whole number of steps.
enum class epoch_end : std::uint8_t {
  /// The records left over at the end of every epoch are dropped; lanes drain there.
  drop_last,
  /// The last step of every epoch is filled by records from the start of that epoch's order, over
  /// again where an epoch is smaller than a step; lanes drain there.
  pad,
  /// The next epoch goes on in the same step; lanes never drain.
  continue_epochs,
  /// As `pad`, but the filling records are read with loss mask 0: for evaluation.
  finite,
};

/// "drop_last", "pad", "continue" or "finite".
[[nodiscard]] inline std::string to_string(epoch_end rule) {
  switch (rule) {
    case epoch_end::drop_last:
      return "drop_last";
    case epoch_end::pad:
      return "pad";
    case epoch_end::continue_epochs:
      return "continue";
    case epoch_end::finite:
      return "finite";
  }
  return "?";
}

/// The rule of that name.
/// @throws invalid_option  for any other text.
[[nodiscard]] inline epoch_end parse_epoch_end(std::string_view text) {
  for (const epoch_end rule :
       {epoch_end::drop_last, epoch_end::pad, epoch_end::continue_epochs, epoch_end::finite}) {
    if (text == to_string(rule)) return rule;
  }
  detail::throw_invalid_option("epoch_end", detail::quoted(text),
                               "drop_last, pad, continue or finite");
}

/// From `step` on, every pack has `records_per_pack` records.
struct pack_size_change {
  /// At least 1.
  step_index step = 1;
  /// At least 1.
  std::uint32_t records_per_pack = 1;

  friend bool operator==(const pack_size_change&, const pack_size_change&) = default;
};

/// The steps `first` to `last`, without `last`.
struct step_range {
  step_index first = 0;
  /// Greater than `first`.
  step_index last = 0;

  friend bool operator==(const step_range&, const step_range&) = default;
};

/// What a step takes and how long a run is.
struct schedule_options {
  /// Lanes of the run (L), at least 1; fixed for its life.
  std::uint32_t lanes = 1;
  /// Records of a pack (b) from step 0 on, at least 1; a step takes L x b records.
  std::uint32_t records_per_pack = 1;
  /// Later pack sizes, by ascending step; also inside an epoch.
  std::vector<pack_size_change> changes = {};
  /// What happens where an epoch's records do not fill a whole number of steps.
  epoch_end rule = epoch_end::drop_last;
  /// Epochs of the run, at least 1. Without `epochs` and `steps`, a run under `continue_epochs` is
  /// endless and any other has one epoch.
  std::optional<std::uint64_t> epochs = std::nullopt;
  /// Steps of the run, at least 1; the run ends at whichever of `epochs` and `steps` is first.
  std::optional<std::uint64_t> steps = std::nullopt;
  /// Steps that are planned but neither read nor emitted, in any order; they keep their numbers
  /// and use up their records.
  std::vector<step_range> skip_steps = {};
};

/// What the steps of a run emit in all, skipped steps included.
struct schedule_counts {
  /// Records in their turn.
  std::uint64_t regular = 0;
  /// Records that fill the last steps of epochs under `pad`.
  std::uint64_t repeated = 0;
  /// Records that fill the last steps of epochs under `finite`.
  std::uint64_t masked = 0;
  /// Records of finished epochs that no step takes, under `drop_last`; under `continue_epochs` the
  /// records left over where `epochs` ends the run.
  std::uint64_t dropped = 0;

  friend bool operator==(const schedule_counts&, const schedule_counts&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
