#pragma once

/// @file
/// `source_part`: a named range of the records of a corpus that was put together from others.

#include <cstdint>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A named range of the records of a corpus that was put together from others.
struct source_part {
  /// Not empty, and no other part's.
  std::string name;
  /// Id of its first record in the whole corpus.
  record_id first = 0;
  std::uint64_t records = 0;
  /// Fingerprint of the part's own source.
  digest128 fingerprint;

  friend bool operator==(const source_part&, const source_part&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
