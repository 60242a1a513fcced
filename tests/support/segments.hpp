#pragma once

// A corpus whose records are several segments.

#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/segments.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>

#include "support/corpora.hpp"

namespace lanepack_test {

/// Tokens of `corpus_of`, where record i is cut into `lists[i]`; a model that somebody else might
/// write.
class segmented_corpus {
 public:
  explicit segmented_corpus(std::vector<std::vector<std::uint64_t>> lists,
                            std::optional<std::uint64_t> bad_record = std::nullopt)
      : lists_(std::move(lists)), bad_record_(bad_record), tokens_(tokens_of(lists_)) {
    for (const std::vector<std::uint64_t>& list : lists_) {
      most_ = std::max<std::uint64_t>(most_, list.size());
    }
  }

  [[nodiscard]] std::uint64_t size() const { return tokens_.size(); }
  [[nodiscard]] lanepack::source_traits traits() const { return tokens_.traits(); }
  void shapes(std::span<const lanepack::record_id> ids,
              std::span<lanepack::record_shape> out) const {
    tokens_.shapes(ids, out);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out[i].loss_tokens -= lists_[ids[i]].size() - 1;
    }
  }
  void read(std::span<const lanepack::record_read> reads) const {
    for (const lanepack::record_read& read : reads) {
      if (read.id == bad_record_ && read.first_token != 0) {
        throw lanepack::data_error({.record = read.id}, "found a bad segment, expected a good one");
      }
    }
    tokens_.read(reads);
  }
  [[nodiscard]] lanepack::digest128 fingerprint() const { return tokens_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return "segmented " + tokens_.describe(); }
  [[nodiscard]] std::uint64_t most_segments() const { return most_; }
  void segments(std::span<const lanepack::record_id> ids, lanepack::segment_lists& out) const {
    for (const lanepack::record_id id : ids) out.add(lists_[id]);
  }

 private:
  static lanepack::memory_source tokens_of(const std::vector<std::vector<std::uint64_t>>& lists) {
    std::vector<std::uint64_t> lengths;
    for (const std::vector<std::uint64_t>& list : lists) {
      lengths.push_back(std::accumulate(list.begin(), list.end(), std::uint64_t{0}));
    }
    return corpus_of(lengths);
  }

  std::vector<std::vector<std::uint64_t>> lists_;
  std::optional<std::uint64_t> bad_record_;
  lanepack::memory_source tokens_;
  std::uint64_t most_ = 1;
};

static_assert(lanepack::segmented_source<segmented_corpus>);

}  // namespace lanepack_test
