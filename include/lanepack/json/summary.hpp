#pragma once

/// @file
/// What the library knows of a corpus, as JSON.

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/corpus/summary.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Quantiles that are reported, as name, numerator and denominator.
struct reported_quantile {
  const char* name;
  std::uint64_t numerator;
  std::uint64_t denominator;
};

inline constexpr std::array<reported_quantile, 11> reported_quantiles = {{
    {"0", 0, 1},
    {"0.01", 1, 100},
    {"0.05", 1, 20},
    {"0.25", 1, 4},
    {"0.5", 1, 2},
    {"0.75", 3, 4},
    {"0.9", 9, 10},
    {"0.95", 19, 20},
    {"0.99", 99, 100},
    {"0.999", 999, 1000},
    {"1", 1, 1},
}};

}  // namespace detail

/// Writes the counts of a summary, the quantiles of the record lengths and the fingerprint as 32
/// hexadecimal digits. The histogram itself and the lists of records are left out.
inline void to_json(nlohmann::ordered_json& out, const corpus_summary& summary) {
  nlohmann::ordered_json quantiles = nlohmann::ordered_json::object();
  for (const detail::reported_quantile& wanted : detail::reported_quantiles) {
    quantiles[wanted.name] = wanted.numerator == wanted.denominator
                                 ? summary.max_tokens
                                 : summary.histogram.quantile(wanted.numerator, wanted.denominator);
  }
  out = nlohmann::ordered_json::object();
  out["records"] = summary.records;
  out["empty_records"] = summary.empty_records;
  out["tokens"] = summary.tokens;
  out["loss_tokens"] = summary.loss_tokens;
  out["patches"] = summary.patches;
  out["max_tokens"] = summary.max_tokens;
  out["length_quantiles"] = std::move(quantiles);
  out["fingerprint"] = summary.fingerprint.hex();
}

}  // namespace lanepack::inline LANEPACK_ABI
