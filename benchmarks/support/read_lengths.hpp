#pragma once

/// @file
/// Numbers and corpora that a program is given as text.

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/progress.hpp"

namespace lanepack_programs {

/// A whole number, given as text.
/// @throws  lanepack::invalid_option
inline std::uint64_t parse_number(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    lanepack::detail::throw_invalid_option(option, lanepack::detail::quoted(text),
                                           "a whole number");
  }
  return value;
}

/// A corpus and its summary.
struct any_lengths {
  lanepack::any_source source;
  lanepack::corpus_summary summary;
};

/// Opens a corpus of any format; its summary is taken from beside it, or made and not kept where it
/// is cheap (length tables), with a progress bar.
inline any_lengths read_lengths(const std::string& path, lanepack::any_corpus_options options) {
  progress_bar bar("reading " + path);
  options.corpus.progress = bar.callback();
  options.corpus.summary = lanepack::summary_use::if_saved;
  lanepack::any_corpus corpus = lanepack::open_any_corpus(path, options);
  if (corpus.summary) return {std::move(corpus.source), std::move(*corpus.summary)};
  lanepack::corpus_summary summary = lanepack::summarize(
      corpus.source, {.threads = options.corpus.threads, .progress = bar.callback()});
  return {std::move(corpus.source), std::move(summary)};
}

}  // namespace lanepack_programs
