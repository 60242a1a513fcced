#pragma once

/// @file
/// `lane_ownership`: which lanes a rank owns.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/topology/world.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What to do where the world size does not divide the number of lanes.
enum class uneven_lanes : std::uint8_t {
  /// Refuse it: every rank has the same number of records a step.
  refuse,
  /// The first L mod W ranks own one lane more than the others.
  allow,
};

/// Consecutive lanes [first, last).
struct lane_range {
  lane_index first = 0;
  lane_index last = 0;

  [[nodiscard]] constexpr lane_index size() const noexcept { return last - first; }
  [[nodiscard]] constexpr bool contains(lane_index lane) const noexcept {
    return first <= lane && lane < last;
  }
  friend bool operator==(const lane_range&, const lane_range&) = default;
};

namespace detail {

/// All divisors of `value`, ascending.
[[nodiscard]] inline std::vector<std::uint32_t> divisors(std::uint32_t value) {
  std::vector<std::uint32_t> low;
  std::vector<std::uint32_t> high;
  for (std::uint32_t d = 1; d <= value / d; ++d) {
    if (value % d != 0) continue;
    low.push_back(d);
    if (d != value / d) high.push_back(value / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

/// `1, 2, 3, 4, 6, 12`, with the middle left out where there are many.
[[nodiscard]] inline std::string abbreviated(const std::vector<std::uint32_t>& values) {
  constexpr std::size_t most = 16;
  constexpr std::size_t each_end = 6;
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values.size() > most && i == each_end) {
      text += ", ...";
      i = values.size() - each_end;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return text;
}

}  // namespace detail

/// Shares L lanes out to W ranks in consecutive ranges, in order of rank.
/// @complexity     O(1) a call and in memory; a refusal takes O(sqrt(L)).
/// @thread_safety  Immutable: any number of threads.
class lane_ownership {
 public:
  /// @param lanes   L, at least W.
  /// @param where   This rank and W.
  /// @param uneven  Whether L need not be a multiple of W.
  /// @throws        invalid_option naming the world sizes that fit.
  lane_ownership(std::uint32_t lanes, const lanepack::world& where,
                 uneven_lanes uneven = uneven_lanes::refuse)
      : lanes_(lanes), world_(where) {
    validate(where);
    if (lanes == 0) detail::throw_invalid_option("lanes", "0", "at least 1");
    if (where.size > lanes) {
      detail::throw_invalid_option("world size", std::to_string(where.size),
                                   "at most one rank a lane, and there are " +
                                       std::to_string(lanes) + " lanes; " + fitting(lanes, where));
    }
    if (lanes % where.size != 0 && uneven == uneven_lanes::refuse) {
      detail::throw_invalid_option("world size", std::to_string(where.size),
                                   "a divisor of the " + std::to_string(lanes) +
                                       " lanes, unless uneven ownership is allowed; " +
                                       fitting(lanes, where));
    }
  }

  /// L.
  [[nodiscard]] std::uint32_t lanes() const noexcept { return lanes_; }
  /// This rank and W.
  [[nodiscard]] const lanepack::world& world() const noexcept { return world_; }
  /// Whether all ranks own the same number of lanes.
  [[nodiscard]] bool even() const noexcept { return lanes_ % world_.size == 0; }

  /// Lanes of this rank; never empty.
  [[nodiscard]] lane_range owned() const noexcept { return range(world_.rank); }

  /// Lanes of `rank`.
  /// @throws  invalid_option if `rank` is not below W.
  [[nodiscard]] lane_range owned_by(rank_index rank) const {
    if (rank >= world_.size) {
      detail::throw_invalid_option("rank", std::to_string(rank),
                                   "below " + std::to_string(world_.size));
    }
    return range(rank);
  }

  /// The rank that owns `lane`.
  /// @throws  invalid_option if `lane` is not below L.
  [[nodiscard]] rank_index owner(lane_index lane) const {
    if (lane >= lanes_) {
      detail::throw_invalid_option("lane", std::to_string(lane), "below " + std::to_string(lanes_));
    }
    const std::uint32_t base = lanes_ / world_.size;
    const std::uint32_t longer = lanes_ % world_.size;
    const std::uint32_t in_longer = longer * (base + 1);
    return lane < in_longer ? lane / (base + 1) : longer + (lane - in_longer) / base;
  }

 private:
  [[nodiscard]] lane_range range(rank_index rank) const noexcept {
    return {start(rank), start(rank + 1)};
  }

  [[nodiscard]] lane_index start(rank_index rank) const noexcept {
    const std::uint32_t longer = lanes_ % world_.size;
    return rank * (lanes_ / world_.size) + (rank < longer ? rank : longer);
  }

  static std::string fitting(std::uint32_t lanes, const lanepack::world& where) {
    const std::vector<std::uint32_t> sizes = detail::divisors(lanes);
    std::string text = "world sizes that fit: " + detail::abbreviated(sizes) + "; nearest ";
    std::uint32_t below = 1;
    for (const std::uint32_t size : sizes) {
      if (size < where.size) {
        below = size;
        continue;
      }
      return text + std::to_string(below) + " and " + std::to_string(size);
    }
    return text + std::to_string(below);
  }

  std::uint32_t lanes_;
  lanepack::world world_;
};

}  // namespace lanepack::inline LANEPACK_ABI
