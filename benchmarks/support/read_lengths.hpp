#pragma once

/// @file
/// Corpora that a program is given by their paths.

#include <string>
#include <utility>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/progress.hpp"

namespace lanepack_programs {

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
