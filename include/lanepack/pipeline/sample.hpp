#pragma once

/// @file
/// `sample`: what travels from stage to stage until it is a record.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/segments.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What travels from stage to stage until it is a record: text at first, tokens at last.
struct sample {
  /// Text or bytes that have yet to become tokens; empty once they have.
  std::string text;
  /// What belongs together, for `group_consecutive`: the prompt of a rollout, say. It is no part of
  /// the record.
  std::string key;
  /// Ids in [0, 2^31).
  std::vector<std::int32_t> tokens;
  /// Empty where every token is to be predicted; else 1 or 0 for each token, as in `record_read`.
  std::vector<std::uint8_t> loss_mask;
  /// Tokens of each of several segments that travel as one record, in order, each at least 1; empty
  /// where there is but one. The first token of each but the first has loss mask 0.
  std::vector<std::uint64_t> segments;
};

/// Tokens and loss tokens of a sample as a record.
[[nodiscard]] inline record_shape shape_of(const sample& from) noexcept {
  record_shape shape;
  shape.tokens = from.tokens.size();
  if (from.loss_mask.empty()) {
    shape.loss_tokens = shape.tokens == 0 ? 0 : shape.tokens - 1;
  } else {
    // The first token of a record has nothing before it to be predicted from.
    for (std::size_t i = 1; i < from.loss_mask.size(); ++i) shape.loss_tokens += from.loss_mask[i];
  }
  return shape;
}

namespace detail {

/// Adds the segments of a sample.
inline void add_segments(const sample& from, segment_lists& out) {
  if (!from.segments.empty()) {
    out.add(from.segments);
    return;
  }
  const std::uint64_t tokens = from.tokens.size();
  out.add({&tokens, tokens == 0 ? std::size_t{0} : std::size_t{1}});
}

/// Bytes that a sample takes in memory, nearly.
[[nodiscard]] inline std::size_t bytes_of(const sample& from) noexcept {
  return sizeof(sample) + from.text.size() + from.key.size() +
         from.tokens.size() * sizeof(std::int32_t) + from.loss_mask.size() +
         from.segments.size() * sizeof(std::uint64_t);
}

[[nodiscard]] inline std::size_t bytes_of(const std::vector<sample>& samples) noexcept {
  std::size_t bytes = sizeof(sample);
  for (const sample& each : samples) bytes += bytes_of(each);
  return bytes;
}

/// Gives a sample a loss mask in full, so that parts of it can be set.
inline void fill_loss_mask(sample& to) {
  if (to.loss_mask.empty()) to.loss_mask.assign(to.tokens.size(), 1);
}

/// What is wrong with a sample that is to be a record: the value found and the value expected.
[[nodiscard]] inline std::optional<std::string> fault_of(const sample& from) {
  const std::size_t tokens = from.tokens.size();
  if (!from.text.empty() && tokens == 0) {
    return "found " + std::to_string(from.text.size()) +
           " bytes of text without tokens, expected a stage such as tokenize";
  }
  if (tokens >> 32 != 0) {
    return "found " + std::to_string(tokens) + " tokens, expected at most 4294967295";
  }
  if (!from.loss_mask.empty() && from.loss_mask.size() != tokens) {
    return "found a loss mask of " + std::to_string(from.loss_mask.size()) +
           " values, expected none or " + std::to_string(tokens) + ", one for each token";
  }
  for (const std::uint8_t value : from.loss_mask) {
    if (value > 1) return "found loss mask " + std::to_string(value) + ", expected 0 or 1";
  }
  for (const std::int32_t token : from.tokens) {
    if (token < 0) {
      return "found token " + std::to_string(token) + ", expected an id in [0, 2147483647]";
    }
  }
  const std::uint64_t sum =
      std::accumulate(from.segments.begin(), from.segments.end(), std::uint64_t{0});
  if (!from.segments.empty() && sum != tokens) {
    return "found segments of " + std::to_string(sum) + " tokens together, expected " +
           std::to_string(tokens);
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < from.segments.size(); ++i) {
    if (from.segments[i] == 0) {
      return "found no token in segment " + std::to_string(i) + ", expected at least 1";
    }
    if (i != 0 && (from.loss_mask.empty() || from.loss_mask[first] != 0)) {
      return "found loss mask 1 at the first token of segment " + std::to_string(i) +
             ", expected 0: nothing in front of it belongs to it";
    }
    first += static_cast<std::size_t>(from.segments[i]);
  }
  return std::nullopt;
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
