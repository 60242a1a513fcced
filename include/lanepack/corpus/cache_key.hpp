#pragma once

/// @file
/// What a cached result was made from.

#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/file_access.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a cached result was made from; the cache is used only where it is the same again.
struct cache_key {
  /// The corpus files, in an order that the format fixes.
  std::vector<file_identity> files;
  /// Format and the options that change what a record is.
  std::string variant;

  friend bool operator==(const cache_key&, const cache_key&) = default;
};

}  // namespace lanepack::inline LANEPACK_ABI
