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
/// @complexity     Memory 8 bytes an excluded record; `id` and `index` O(log excluded), O(1) where
///                 nothing is excluded.
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
    // What is stored is the number of feasible records before each excluded one: the search for a
    // dense number then compares stored words only.
    for (std::size_t i = 0; i < excluded.size(); ++i) excluded[i] -= i;
    before_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(excluded));
  }

  /// Number of feasible records.
  [[nodiscard]] std::uint64_t size() const noexcept { return corpus_size_ - excluded_count(); }
  /// Number of records in the corpus, feasible or not.
  [[nodiscard]] std::uint64_t corpus_size() const noexcept { return corpus_size_; }
  /// Number of records that are left out.
  [[nodiscard]] std::uint64_t excluded_count() const noexcept {
    return before_ == nullptr ? 0 : before_->size();
  }

  /// The id of feasible record number `index`.
  /// @pre  `index < size()`.
  [[nodiscard]] record_id id(std::uint64_t index) const noexcept {
    LANEPACK_ASSERT(index < size());
    return before_ == nullptr ? index : index + excluded_up_to(index);
  }

  /// Replaces feasible numbers by their ids.
  /// @pre  Every number is below `size()`.
  void to_ids(std::span<std::uint64_t> indices) const noexcept {
    if (before_ == nullptr) return;
    for (std::uint64_t& index : indices) index += excluded_up_to(index);
  }

  /// The dense number of record `id`, or nullopt where it is excluded or not in the corpus.
  [[nodiscard]] std::optional<std::uint64_t> index(record_id id) const noexcept {
    if (id >= corpus_size_) return std::nullopt;
    if (before_ == nullptr) return id;
    // Excluded ids below or at `id`: the stored word plus its place is the excluded id.
    std::size_t first = 0;
    std::size_t count = before_->size();
    while (count != 0) {
      const std::size_t half = count / 2;
      const bool past = (*before_)[first + half] + (first + half) <= id;
      first += past ? half + 1 : 0;
      count = past ? count - half - 1 : half;
    }
    if (first != 0 && (*before_)[first - 1] + (first - 1) == id) return std::nullopt;
    return id - first;
  }

  /// True if record `id` may be emitted.
  [[nodiscard]] bool contains(record_id id) const noexcept { return index(id).has_value(); }

 private:
  static std::uint64_t checked(std::uint64_t size) {
    if (size > max_permutation_size) {
      detail::throw_invalid_option("records", std::to_string(size), "at most 2^63");
    }
    return size;
  }

  /// Number of stored words that are at most `index`.
  [[nodiscard]] std::uint64_t excluded_up_to(std::uint64_t index) const noexcept {
    const std::uint64_t* base = before_->data();
    std::size_t count = before_->size();
    // Without branches: the outcome of a comparison cannot be predicted in a shuffled order.
    while (count > 1) {
      const std::size_t half = count / 2;
      base += half * static_cast<std::size_t>(base[half - 1] <= index);
      count -= half;
    }
    return static_cast<std::uint64_t>(base - before_->data()) + (*base <= index ? 1 : 0);
  }

  std::uint64_t corpus_size_;
  std::shared_ptr<const std::vector<std::uint64_t>> before_;
};

}  // namespace lanepack::inline LANEPACK_ABI
