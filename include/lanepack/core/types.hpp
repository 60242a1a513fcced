#pragma once

/// @file
/// The vocabulary that every stage shares: indices, record references and record shapes.

#include <compare>
#include <cstdint>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Number of a record in its corpus, in [0, size).
using record_id = std::uint64_t;
/// Number of a pass over the corpus, from 0.
using epoch_index = std::uint64_t;
/// Number of an optimizer step, from 0.
using step_index = std::uint64_t;
/// Number of a lane, in [0, L).
using lane_index = std::uint32_t;
/// Number of a data-parallel rank, in [0, W).
using rank_index = std::uint32_t;

/// What identifies a record within a run: the pass over the corpus and the record's number in it.
struct record_ref {
  epoch_index epoch = 0;
  record_id id = 0;

  friend auto operator<=>(const record_ref&, const record_ref&) = default;
};

/// Why a record stands where it stands, where it is not simply its turn.
enum class record_role : std::uint8_t {
  /// Its turn in the epoch's order.
  regular,
  /// A repetition from the start of the epoch's order that fills the last step (rule `pad`).
  repeated,
  /// Fills the last step of a finite run and is read with loss mask 0 (rule `finite`).
  masked,
};

/// "regular", "repeated" or "masked".
[[nodiscard]] constexpr const char* to_string(record_role role) noexcept {
  switch (role) {
    case record_role::regular:
      return "regular";
    case record_role::repeated:
      return "repeated";
    case record_role::masked:
      return "masked";
  }
  return "?";
}

/// What an estimator sees of a record: counts, no payload.
struct record_shape {
  /// Tokens of the record.
  std::uint64_t tokens = 0;
  /// Tokens that are predicted, i.e. labels other than -100 after the shift inside the record.
  std::uint64_t loss_tokens = 0;
  /// Vision patches.
  std::uint64_t patches = 0;

  friend bool operator==(const record_shape&, const record_shape&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
