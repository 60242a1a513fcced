#pragma once

/// @file
/// `record_domain`: the feasible records of a corpus, numbered without gaps.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/permutation.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The records of a corpus that may be emitted, numbered densely in ascending order of their ids.
///
/// Copies share the table of excluded ids.
/// @complexity     Memory 10 bytes an excluded record; `id` O(1) where those are spread evenly and
///                 O(log excluded) at worst, `index` O(log excluded).
/// @thread_safety  Const members may be called by any number of threads.
class record_domain {
 public:
  /// All records of a corpus of `size` records.
  /// @throws invalid_option  where `size` is above 2^63.
  explicit record_domain(std::uint64_t size) : corpus_size_(checked(size)) {}

  /// The records of a corpus of `size` records that are not in `excluded`.
  /// @param excluded  Ids in ascending order, each once, below `size`.
  /// @throws invalid_option  where that does not hold, or `size` is above 2^63.
  record_domain(std::uint64_t size, std::vector<record_id> excluded) : record_domain(size) {
    for (std::size_t i = 0; i < excluded.size(); ++i) {
      if (excluded[i] >= size || (i != 0 && excluded[i] <= excluded[i - 1])) {
        detail::throw_invalid_option(
            "excluded[" + std::to_string(i) + "]", std::to_string(excluded[i]),
            "ids in ascending order, each once, below " + std::to_string(size));
      }
    }
    if (excluded.empty()) return;
    table_ = std::make_shared<const table>(size - excluded.size(), std::move(excluded));
  }

  /// Number of feasible records.
  [[nodiscard]] std::uint64_t size() const noexcept { return corpus_size_ - excluded_count(); }
  /// Number of records in the corpus, feasible or not.
  [[nodiscard]] std::uint64_t corpus_size() const noexcept { return corpus_size_; }
  /// Number of records that are left out.
  [[nodiscard]] std::uint64_t excluded_count() const noexcept {
    return table_ == nullptr ? 0 : table_->before.size();
  }

  /// The id of feasible record number `index`.
  /// @pre  `index < size()`.
  [[nodiscard]] record_id id(std::uint64_t index) const noexcept {
    LANEPACK_ASSERT(index < size());
    return table_ == nullptr ? index : index + table_->up_to(index);
  }

  /// Replaces feasible numbers by their ids.
  /// @pre  Every number is below `size()`.
  void to_ids(std::span<std::uint64_t> indices) const noexcept {
    if (table_ == nullptr) return;
    const table& excluded = *table_;
    for (std::uint64_t& index : indices) index += excluded.up_to(index);
  }

  /// The dense number of record `id`, or nullopt where it is excluded or not in the corpus.
  [[nodiscard]] std::optional<std::uint64_t> index(record_id id) const noexcept {
    if (id >= corpus_size_) return std::nullopt;
    if (table_ == nullptr) return id;
    const std::size_t below = excluded_below(id);
    const std::vector<std::uint64_t>& before = table_->before;
    if (below < before.size() && before[below] + below == id) return std::nullopt;
    return id - below;
  }

  /// The records with ids from `first` on, `records` of them, as a domain of their own that numbers
  /// them from 0.
  /// @pre         `first + records <= corpus_size()`.
  /// @complexity  O(log excluded), and of those in the slice.
  [[nodiscard]] record_domain slice(record_id first, std::uint64_t records) const {
    LANEPACK_ASSERT(records <= corpus_size_ && first <= corpus_size_ - records);
    std::vector<record_id> excluded;
    if (table_ != nullptr) {
      const std::vector<std::uint64_t>& before = table_->before;
      for (std::size_t i = excluded_below(first);
           i < before.size() && before[i] + i < first + records; ++i) {
        excluded.push_back(before[i] + i - first);
      }
    }
    return {records, std::move(excluded)};
  }

  /// True if record `id` may be emitted.
  [[nodiscard]] bool contains(record_id id) const noexcept { return index(id).has_value(); }

 private:
  struct table {
    table(std::uint64_t feasible, std::vector<record_id> excluded) : before(std::move(excluded)) {
      for (std::size_t i = 0; i < before.size(); ++i) before[i] -= i;
      if (feasible == 0) return;
      while (((feasible - 1) >> shift) > before.size() / 4) ++shift;
      const std::size_t buckets = static_cast<std::size_t>((feasible - 1) >> shift) + 1;
      starts.reserve(buckets + 1);
      std::size_t place = 0;
      for (std::size_t bucket = 0; bucket <= buckets; ++bucket) {
        while (place < before.size() && (before[place] >> shift) < bucket) ++place;
        starts.push_back(place);
      }
    }

    /// Number of words that are at most `index`.
    [[nodiscard]] std::uint64_t up_to(std::uint64_t index) const noexcept {
      const auto bucket = static_cast<std::size_t>(index >> shift);
      std::size_t first = starts[bucket];
      std::size_t count = starts[bucket + 1] - first;
      while (count != 0) {
        // Without a branch: the outcome cannot be predicted in a shuffled order.
        const std::size_t half = (count + 1) / 2;
        first += half * static_cast<std::size_t>(before[first + half - 1] <= index);
        count -= half;
      }
      return first;
    }

    /// Number of feasible records before each excluded one.
    std::vector<std::uint64_t> before;
    /// Number of those words before each bucket of 2^shift indices.
    std::vector<std::uint64_t> starts;
    unsigned shift = 0;
  };

  /// Number of excluded ids below `id`; there is a table.
  [[nodiscard]] std::size_t excluded_below(record_id id) const noexcept {
    // A stored word plus its place is the excluded id.
    const std::vector<std::uint64_t>& before = table_->before;
    std::size_t first = 0;
    std::size_t count = before.size();
    while (count != 0) {
      const std::size_t half = count / 2;
      const bool past = before[first + half] + (first + half) < id;
      first += past ? half + 1 : 0;
      count = past ? count - half - 1 : half;
    }
    return first;
  }

  static std::uint64_t checked(std::uint64_t size) {
    if (size > max_permutation_size) {
      detail::throw_invalid_option("records", std::to_string(size), "at most 2^63");
    }
    return size;
  }

  std::uint64_t corpus_size_;
  std::shared_ptr<const table> table_;
};

}  // namespace lanepack::inline LANEPACK_ABI
