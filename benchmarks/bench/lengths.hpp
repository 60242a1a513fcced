#pragma once

/// @file
/// Record lengths to measure with: of one size, or spread like those of real corpora.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>

namespace lanepack_bench {

namespace detail {

/// Quantiles of record lengths at these shares of a corpus.
inline constexpr std::array<double, 13> quantile_shares = {
    0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.9375, 0.96875, 0.992, 1};
/// Dialogues, mean 1,130 tokens.
inline constexpr std::array<std::uint32_t, 13> dialogue_quantiles = {
    149, 348, 443, 665, 855, 1040, 1235, 1460, 1838, 2150, 2493, 3103, 4624};
/// Short tasks with a tail of long ones, mean 250 tokens.
inline constexpr std::array<std::uint32_t, 13> task_quantiles = {
    29, 45, 54, 71, 88, 122, 195, 315, 501, 544, 1055, 2180, 4672};

inline std::uint32_t quantile(std::span<const std::uint32_t> of, double share) {
  std::size_t i = 1;
  while (i + 1 < quantile_shares.size() && quantile_shares[i] < share) ++i;
  const double width = quantile_shares[i] - quantile_shares[i - 1];
  const double part = (share - quantile_shares[i - 1]) / width;
  const double low = of[i - 1];
  return static_cast<std::uint32_t>(low + part * (static_cast<double>(of[i]) - low));
}

}  // namespace detail

/// Length of record `id`: "500" is always 500; "dialogues" and "tasks" are spread.
/// @throws lanepack::invalid_option  for any other name.
inline std::uint32_t record_length(std::string_view lengths, std::uint64_t id) {
  const double share =
      static_cast<double>(lanepack::counter_random({.seed = 7}, id) >> 11) * 0x1p-53;
  if (lengths == "dialogues") return detail::quantile(detail::dialogue_quantiles, share);
  if (lengths == "tasks") return detail::quantile(detail::task_quantiles, share);
  std::uint32_t value = 0;
  for (const char digit : lengths) {
    if (digit < '0' || digit > '9' || value > 100'000'000) value = 0;
    if (digit < '0' || digit > '9') break;
    value = value * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  if (value == 0) {
    lanepack::detail::throw_invalid_option("lengths", std::string(lengths),
                                           "a number of tokens, dialogues or tasks");
  }
  return value;
}

/// Lengths of records 0 to `records` - 1.
inline std::vector<std::uint32_t> record_lengths(std::string_view lengths, std::uint64_t records) {
  std::vector<std::uint32_t> out(static_cast<std::size_t>(records));
  for (std::size_t id = 0; id < out.size(); ++id) out[id] = record_length(lengths, id);
  return out;
}

}  // namespace lanepack_bench
