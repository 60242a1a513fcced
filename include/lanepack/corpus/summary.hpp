#pragma once

/// @file
/// `corpus_summary`: what a corpus holds in all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/length_histogram.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A record that a summary lists.
struct listed_record {
  record_id id = 0;
  std::uint64_t tokens = 0;

  friend bool operator==(const listed_record&, const listed_record&) = default;
};

/// What a corpus holds in all.
struct corpus_summary {
  std::uint64_t records = 0;
  /// Records without a token.
  std::uint64_t empty_records = 0;
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;
  std::uint64_t patches = 0;
  /// Tokens of the longest record; 0 for an empty corpus.
  std::uint64_t max_tokens = 0;
  length_histogram histogram;
  /// The longest records, longest first, lower id first among equals; all records of a small
  /// corpus.
  std::vector<listed_record> longest;
  /// The empty records with the lowest ids, ascending.
  std::vector<record_id> empty_ids;
  /// The source's fingerprint.
  digest128 fingerprint;
  /// Of the parts of a concatenated corpus, in their order, with ids that are the parts' own; not
  /// saved, as the parts have summaries to save. Empty for any other corpus.
  std::vector<corpus_summary> parts;

  /// Ids of the records longer than `capacity` tokens, ascending, or nullopt where the list of the
  /// longest does not reach so far down.
  /// @complexity  O(n log n) in the n ids returned.
  [[nodiscard]] std::optional<std::vector<record_id>> ids_above(std::uint64_t capacity) const {
    const bool complete = longest.size() == records;
    if (!complete && (longest.empty() || longest.back().tokens > capacity)) return std::nullopt;
    std::vector<record_id> ids;
    for (const listed_record& record : longest) {
      if (record.tokens <= capacity) break;
      ids.push_back(record.id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  friend bool operator==(const corpus_summary&, const corpus_summary&) = default;
};

/// How a source is read through.
struct scan_options {
  /// Threads at work, at least 1.
  unsigned threads = available_threads();
  /// Told the number of records read through.
  progress_callback progress = {};
};

/// How a summary is made.
struct summary_options {
  /// Threads at work, at least 1. The summary does not depend on it.
  unsigned threads = available_threads();
  /// Told the number of records read through.
  progress_callback progress = {};
  /// Longest records that are listed, 16 bytes each.
  std::size_t listed_longest = std::size_t{1} << 16;
  /// Empty records that are listed, 8 bytes each.
  std::size_t listed_empty = std::size_t{1} << 16;
};

}  // namespace lanepack::inline LANEPACK_ABI
