#pragma once

/// @file
/// The `record_source` concept: what a corpus must offer to be sampled, planned and read.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// One record, or a part of one, to be read into memory that the caller owns.
struct record_read {
  /// The record wanted.
  record_id id = 0;
  /// First token wanted, from the record's start.
  std::uint64_t first_token = 0;
  /// Receives `tokens.size()` token ids; `first_token + tokens.size()` is at most the record's
  /// length.
  std::span<std::int32_t> tokens;
  /// Empty if the caller does not want it; else as long as `tokens`. Receives 1 where the token is
  /// to be predicted from those before it and 0 where it is context only. A source without masks
  /// writes 1 everywhere.
  std::span<std::uint8_t> loss_mask;
};

/// What a source can do, so that a program can refuse it before it starts.
struct source_traits {
  /// Tokens can be read; false for length tables.
  bool has_payload = true;
  /// The shape of any record is known without touching its payload.
  bool has_all_shapes = true;
  /// Some record has tokens that are not to be predicted, so `loss_mask` matters.
  bool has_loss_mask = false;
};

/// A corpus of records in a fixed order, with random access.
///
/// Semantic requirements on a model:
/// - const members may be called by any number of threads at once;
/// - `size()` and `fingerprint()` never change for the life of the object;
/// - `shapes(ids, out)` writes the shape of `ids[i]` to `out[i]` (same length) without reading
///   payload, in O(1) a record; throws data_error where the index is corrupt;
/// - `read(reads)` fills every span of every element, visits them in any order and joins neighbours
///   as it likes; throws data_error with path, byte offset and record number where a record cannot
///   be delivered, and the contents of all spans are then unspecified;
/// - an id that is not in the corpus, or a range that is not in the record, is a state_error;
/// - `fingerprint()` depends on format and index (lengths, offsets, sizes), not on the path;
/// - `describe()` is one line for people: format, path, count.
template <class Source>
concept record_source = requires(const Source& source, std::span<const record_id> ids,
                                 std::span<record_shape> shapes,
                                 std::span<const record_read> reads) {
  { source.size() } -> std::same_as<std::uint64_t>;
  { source.traits() } -> std::same_as<source_traits>;
  source.shapes(ids, shapes);
  source.read(reads);
  { source.fingerprint() } -> std::same_as<digest128>;
  { source.describe() } -> std::same_as<std::string>;
};

}  // namespace lanepack::inline LANEPACK_ABI
