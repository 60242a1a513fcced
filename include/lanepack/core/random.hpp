#pragma once

/// @file
/// Counter-based random numbers: a pure function of (seed, epoch, stage, lane, index).

#include <array>
#include <cstdint>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Who draws: every use of random numbers has a stage of its own, so that no two share numbers.
namespace random_stage {
/// Permutation of all records of an epoch.
inline constexpr std::uint32_t record_order = 1;
/// Permutation of the blocks of an epoch.
inline constexpr std::uint32_t block_order = 2;
/// Permutation of the records inside a group of blocks.
inline constexpr std::uint32_t group_order = 3;
/// Records that tuning a policy draws for its virtual lanes.
inline constexpr std::uint32_t virtual_lanes = 4;
/// Order of the steps of a window that is planned for all lanes, and of the packs of a step.
inline constexpr std::uint32_t step_order = 5;
/// Which lane has which of the L positions of a mixture that arrive together.
inline constexpr std::uint32_t mixture_lanes = 6;
/// First stage that is free for the code of a user.
inline constexpr std::uint32_t user = 0x1'0000;
}  // namespace random_stage

/// What a stream of random numbers is keyed by; two keys that differ give unrelated streams.
struct random_key {
  std::uint64_t seed = 0;
  epoch_index epoch = 0;
  /// A `random_stage`.
  std::uint32_t stage = 0;
  /// 0 for what all lanes share.
  std::uint32_t lane = 0;

  friend bool operator==(const random_key&, const random_key&) = default;
};

/// The block function Philox4x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
/// as 1, 2, 3", SC 2011): a bijection of the counter for every key.
/// @complexity  O(1): 20 multiplications.
[[nodiscard]] constexpr std::array<std::uint64_t, 4> philox4x64(
    std::array<std::uint64_t, 4> counter, std::array<std::uint64_t, 2> key) noexcept {
  constexpr std::uint64_t multiplier0 = 0xd2e7470ee14c6c93;
  constexpr std::uint64_t multiplier1 = 0xca5a826395121157;
  constexpr std::uint64_t weyl0 = 0x9e3779b97f4a7c15;
  constexpr std::uint64_t weyl1 = 0xbb67ae8584caa73b;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t high0 = multiply_high(multiplier0, counter[0]);
    const std::uint64_t low0 = multiplier0 * counter[0];
    const std::uint64_t high1 = multiply_high(multiplier1, counter[2]);
    const std::uint64_t low1 = multiplier1 * counter[2];
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key[0] += weyl0;
    key[1] += weyl1;
  }
  return counter;
}

/// Four independent words of 64 random bits, at place (`index`, `part`) of the stream of `key`.
/// @complexity     O(1).
/// @thread_safety  Pure function.
/// @determinism    The same on every compiler and machine; the first word of part 0 is
///                 `counter_random(key, index)`.
[[nodiscard]] constexpr std::array<std::uint64_t, 4> counter_random_block(
    const random_key& key, std::uint64_t index, std::uint64_t part = 0) noexcept {
  const std::uint64_t place = (static_cast<std::uint64_t>(key.stage) << 32) | key.lane;
  return philox4x64({index, part, key.epoch, place}, {key.seed, 0});
}

/// 64 random bits: number `index` of the stream of `key`.
/// @complexity     O(1).
/// @thread_safety  Pure function.
/// @determinism    The same on every compiler and machine.
[[nodiscard]] constexpr std::uint64_t counter_random(const random_key& key,
                                                     std::uint64_t index) noexcept {
  return counter_random_block(key, index)[0];
}

/// Maps 64 random bits to [0, n): `bits * n / 2^64` (Lemire 2019, without rejection: the chance of
/// a value is off by less than 2^-64 in absolute terms). 0 where `n` is 0.
[[nodiscard]] constexpr std::uint64_t random_below(std::uint64_t bits, std::uint64_t n) noexcept {
  return multiply_high(bits, n);
}

}  // namespace lanepack::inline LANEPACK_ABI
