#pragma once

/// @file
/// Records of several segments: sequences that must stay together but do not attend to each other,
/// such as a chosen and a rejected answer or the rollouts of a prompt.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Tokens of the segments of several records, one record after the other.
class segment_lists {
 public:
  /// Records that were added.
  [[nodiscard]] std::size_t size() const noexcept { return first_.size() - 1; }
  /// Segments of all records.
  [[nodiscard]] std::size_t segments() const noexcept { return tokens_.size(); }
  /// Tokens of each segment of a record, in order.
  /// @pre  `record` is below `size()`.
  [[nodiscard]] std::span<const std::uint64_t> operator[](std::size_t record) const noexcept {
    return std::span(tokens_).subspan(first_[record], first_[record + 1] - first_[record]);
  }
  /// Of all records, one after the other.
  [[nodiscard]] std::span<const std::uint64_t> tokens() const noexcept { return tokens_; }

  /// Adds a record of these segments.
  void add(std::span<const std::uint64_t> segments) {
    tokens_.insert(tokens_.end(), segments.begin(), segments.end());
    first_.push_back(tokens_.size());
  }
  /// Adds a record's first `limit` tokens; a segment of which nothing is left is no segment.
  void add_first(std::span<const std::uint64_t> segments, std::uint64_t limit) {
    for (const std::uint64_t tokens : segments) {
      const std::uint64_t kept = std::min(tokens, limit);
      if (kept == 0) break;
      tokens_.push_back(kept);
      limit -= kept;
    }
    first_.push_back(tokens_.size());
  }
  void clear() noexcept {
    tokens_.clear();
    first_.resize(1);
  }

 private:
  std::vector<std::uint64_t> tokens_;
  std::vector<std::size_t> first_ = {0};
};

/// A `record_source` whose records may consist of several segments, each a sequence of its own to
/// attention: positions start again, no token predicts one of the next segment. They are delivered
/// in one micro-batch, in order.
///
/// Semantic requirements on a model, beside those of `record_source`:
/// - `most_segments()` is at least the number of segments of every record and never changes; 1
///   where every record is one sequence, 2^64 - 1 where nobody knows;
/// - `segments(ids, out)` adds to `out` for every id the tokens of its segments, each at least 1,
///   together the tokens of its shape (none for a record without tokens); like `shapes` without
///   reading payload and in O(segments), and it throws what `shapes` throws;
/// - the first token of a segment has loss mask 0, and `loss_tokens` does not count it.
template <class Source>
concept segmented_source = record_source<Source> &&
    requires(const Source& source, std::span<const record_id> ids, segment_lists& out) {
  { source.most_segments() } -> std::same_as<std::uint64_t>;
  source.segments(ids, out);
};

namespace detail {

/// Adds every record as one segment, with the tokens that its shape has.
template <class Source>
void add_whole_records(const Source& source, std::span<const record_id> ids, segment_lists& out) {
  std::vector<record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  for (const record_shape& shape : shapes) {
    out.add({&shape.tokens, shape.tokens == 0 ? std::size_t{0} : std::size_t{1}});
  }
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
