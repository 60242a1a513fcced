#pragma once

/// @file
/// A declared length histogram in JSON: what the records of a stream are said to be.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/corpus/length_histogram.hpp>
#include <lanepack/json/object.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Reads `{"lengths": [[tokens, count], ...]}`: `count` records of `tokens` tokens each, in any
/// order. Only proportions matter, so counts may be of a sample.
/// @param path  Named in errors.
/// @return  A bucket for every pair, for `costs_of_lengths`.
/// @throws data_error  It is not that: another key, a pair that is not two whole numbers, a length
///                     above 2^40, more than 2^56 records or 2^63 tokens in all, or no record.
[[nodiscard]] inline std::vector<length_bucket> parse_length_histogram(
    std::string_view text, const std::string& path = {}) {
  constexpr std::uint64_t most_tokens = std::uint64_t{1} << 40;
  constexpr std::uint64_t most_records = std::uint64_t{1} << 56;
  constexpr std::uint64_t most_tokens_in_all = std::uint64_t{1} << 63;
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  const nlohmann::json document = detail::parse_json(text, path);
  const detail::json_object top(document, path);
  for (const auto& item : top.value().items()) {
    if (item.key() != "lengths") top.fail(item.key().c_str(), "no key but \"lengths\"");
  }
  const nlohmann::json* const lengths = top.find("lengths");
  if (lengths == nullptr || !lengths->is_array()) {
    top.fail("lengths", "an array of pairs [tokens, count]");
  }
  std::vector<length_bucket> buckets;
  buckets.reserve(lengths->size());
  std::uint64_t records = 0;
  std::uint64_t tokens_in_all = 0;
  for (std::size_t i = 0; i < lengths->size(); ++i) {
    const nlohmann::json& pair = (*lengths)[i];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        !pair[1].is_number_unsigned() || pair[0].get<std::uint64_t>() > most_tokens) {
      detail::throw_json_error(path, "key \"lengths\", pair " + std::to_string(i) + ": found " +
                                         pair.dump(-1, ' ', true, replace).substr(0, 60) +
                                         ", expected [tokens, count], whole numbers with at most "
                                         "2^40 tokens");
    }
    const auto tokens = pair[0].get<std::uint64_t>();
    const auto count = pair[1].get<std::uint64_t>();
    records = saturating_add(records, count);
    tokens_in_all = saturating_add(tokens_in_all, saturating_mul(tokens, count));
    if (records > most_records || tokens_in_all > most_tokens_in_all) {
      detail::throw_json_error(path, "found more than 2^56 records or 2^63 tokens up to pair " +
                                         std::to_string(i) +
                                         ", expected fewer: only proportions matter");
    }
    buckets.push_back({.first = tokens,
                       .last = tokens,
                       .records = count,
                       .tokens = saturating_mul(tokens, count)});
  }
  if (records == 0) {
    detail::throw_json_error(path, "found a histogram without records, expected at least one");
  }
  return buckets;
}

/// Reads such a file.
/// @throws data_error  As `parse_length_histogram`, or the file cannot be read.
[[nodiscard]] inline std::vector<length_bucket> read_length_histogram(const std::string& path) {
  return parse_length_histogram(detail::read_json_text(path), path);
}

}  // namespace lanepack::inline LANEPACK_ABI
