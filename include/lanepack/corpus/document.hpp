#pragma once

/// @file
/// The `document_source` concept: a corpus whose records have yet to be made, out of text or bytes.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Documents in a fixed order, with random access: what a pipeline makes records from.
///
/// Semantic requirements on a model:
/// - const members may be called by any number of threads at once;
/// - `size()` and `fingerprint()` never change for the life of the object;
/// - `read(ids, out)` replaces `out[i]` by the bytes of document `ids[i]` (same length), in any
///   order of reading; throws data_error with path, byte offset and document number where one
///   cannot be delivered, and the contents of `out` are then unspecified;
/// - `sizes(ids, out)` writes the bytes of each document, or a bound from above, without reading
///   it: what a reader must have room for;
/// - an id that is not in the corpus is a state_error;
/// - `fingerprint()` depends on format and index (sizes, offsets), not on the path;
/// - `describe()` is one line for people: format, path, count.
template <class Source>
concept document_source = requires(const Source& source, std::span<const record_id> ids,
                                   std::span<std::string> documents,
                                   std::span<std::uint64_t> sizes) {
  { source.size() } -> std::same_as<std::uint64_t>;
  source.read(ids, documents);
  source.sizes(ids, sizes);
  { source.fingerprint() } -> std::same_as<digest128>;
  { source.describe() } -> std::same_as<std::string>;
};

}  // namespace lanepack::inline LANEPACK_ABI
