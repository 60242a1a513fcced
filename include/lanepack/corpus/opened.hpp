#pragma once

/// @file
/// What every format does once its source is open: find or make the summary.

#include <optional>
#include <string>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/open_options.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/summary.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

inline std::string summary_path_of(const std::string& path, const std::string& variant,
                                   const open_options& options) {
  return options.summary_path.value_or(default_summary_path(path, variant));
}

/// @param saved  A summary that was loaded already, or nullopt.
template <class Source>
opened_corpus opened(Source source, const std::string& path, corpus_format format,
                     const open_options& options,
                     std::optional<corpus_summary> saved = std::nullopt) {
  cache_key key = source.identity();
  std::string summary_path = summary_path_of(path, key.variant, options);
  any_source any(std::move(source));
  if (!saved && options.summary != summary_use::none) {
    saved = load_summary(summary_path, key);
    if (saved && options.verify_summary && saved->fingerprint != any.fingerprint()) saved.reset();
  }
  if (!saved && options.summary == summary_use::always) {
    saved = summarize(any, {.threads = options.threads, .progress = options.progress});
    save_summary(summary_path, key, *saved);
  }
  return {.source = std::move(any),
          .format = format,
          .key = std::move(key),
          .summary_path = std::move(summary_path),
          .summary = std::move(saved)};
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
