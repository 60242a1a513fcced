#pragma once

/// @file
/// Packs as lists of sort keys: what the parts of a policy that plans all lanes hand to each other.

#include <cstdint>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI::detail {

/// Packs of equally many records in the order in which they were formed.
struct formed_packs {
  /// Descending keys of the records, pack by pack.
  std::vector<std::uint64_t> keys;
  /// Cost of every pack.
  std::vector<std::uint64_t> costs;
  /// Tokens of every pack, where tokens are limited.
  std::vector<std::uint64_t> tokens;

  void clear() noexcept {
    keys.clear();
    costs.clear();
    tokens.clear();
  }
};

}  // namespace lanepack::inline LANEPACK_ABI::detail
