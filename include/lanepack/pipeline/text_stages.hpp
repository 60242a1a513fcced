#pragma once

/// @file
/// `text_stages`: the usual way from documents to records, as `lanepack-convert` goes it too.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What becomes of a document that is longer than a record may be.
enum class long_documents : std::uint8_t {
  /// Its first tokens are a record.
  truncate,
  /// It is left out.
  skip,
  /// It becomes several records.
  split,
};

/// Which documents become records, and how.
struct text_stage_options {
  /// Token behind each document; none by default.
  std::optional<std::int32_t> end = std::nullopt;
  /// Documents of fewer tokens are left out.
  std::uint64_t min_tokens = 1;
  /// Most tokens of a record, at least 1; any number by default.
  std::optional<std::uint64_t> max_tokens = std::nullopt;
  long_documents when_long = long_documents::truncate;
};

/// The stages that leave out what is too short and deal with what is too long.
/// @throws invalid_option  `max_tokens` is 0.
[[nodiscard]] inline std::vector<any_stage> length_stages(const text_stage_options& options) {
  std::vector<any_stage> stages;
  stages.emplace_back(filter(
      "at least " + std::to_string(options.min_tokens) + " tokens",
      [least = options.min_tokens](const sample& each) { return each.tokens.size() >= least; }));
  if (!options.max_tokens) return stages;
  const std::uint64_t most = *options.max_tokens;
  if (most == 0) detail::throw_invalid_option("max_tokens", "0", "at least 1");
  switch (options.when_long) {
    case long_documents::split:
      stages.emplace_back(split({.tokens = most}));
      break;
    case long_documents::skip:
      stages.emplace_back(
          filter("at most " + std::to_string(most) + " tokens",
                 [most](const sample& each) { return each.tokens.size() <= most; }));
      break;
    case long_documents::truncate:
      stages.emplace_back(
          map_samples("first " + std::to_string(most) + " tokens", [most](sample& each) {
            if (each.tokens.size() <= most) return;
            each.tokens.resize(static_cast<std::size_t>(most));
            if (!each.loss_mask.empty()) each.loss_mask.resize(each.tokens.size());
          }));
      break;
  }
  return stages;
}

/// The stages from texts to records: tokens, and as many of them as a record may have.
///
/// `lanepack-convert --count-index` makes the index of a pipeline of these stages, so that
/// `open_count_index` finds it.
/// @throws invalid_option  The token is negative, or `max_tokens` is 0.
[[nodiscard]] inline std::vector<any_stage> text_stages(any_tokenizer tokenizer,
                                                        const text_stage_options& options = {}) {
  std::vector<any_stage> stages;
  stages.emplace_back(tokenize(std::move(tokenizer), {.begin = {}, .end = options.end}));
  for (any_stage& each : length_stages(options)) stages.push_back(std::move(each));
  return stages;
}

}  // namespace lanepack::inline LANEPACK_ABI
