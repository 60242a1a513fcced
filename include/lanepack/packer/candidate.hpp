#pragma once

/// @file
/// A record that waits to be packed, and the packs that a policy forms.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A record that arrived at a packer.
struct candidate {
  record_ref record;
  /// Estimated work, at most `max_record_cost`.
  std::uint64_t cost = 0;
  /// Tokens that will be delivered (after truncation, before padding).
  std::uint64_t tokens = 0;
  /// Tokens of those that are predicted.
  std::uint64_t loss_tokens = 0;
  /// Place in the arrival order of its stream; ties are broken by it, lower first.
  std::uint64_t arrival = 0;
  /// Earliest step that the record could have been in: the step at which it was admitted.
  step_index admitted = 0;
  record_role role = record_role::regular;
};

/// Packs in order, stored flat.
class pack_list {
 public:
  /// Packs in the list.
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }

  /// Records of pack `index`, in the order in which they are delivered.
  [[nodiscard]] std::span<const candidate> operator[](std::size_t index) const noexcept {
    LANEPACK_ASSERT(index < ends_.size());
    const std::size_t first = index == 0 ? 0 : ends_[index - 1];
    return std::span(records_).subspan(first, ends_[index] - first);
  }

  /// Adds a record to the pack that is being filled.
  void add(const candidate& record) {
    if (size_ < records_.size()) {
      records_[size_] = record;
    } else {
      records_.push_back(record);
    }
    ++size_;
  }
  /// Closes the pack that is being filled; the next `add` starts another.
  void close() { ends_.push_back(size_); }

  /// Adds packs of `records_per_pack` records each, for the caller to write one after the other.
  /// @pre     No pack is being filled.
  /// @return  Their records, unspecified so far; valid until more is added.
  [[nodiscard]] std::span<candidate> add_packs(std::size_t packs, std::size_t records_per_pack) {
    LANEPACK_ASSERT(size_ == (ends_.empty() ? 0 : ends_.back()));
    const std::size_t first = size_;
    for (std::size_t i = 0; i < packs; ++i) ends_.push_back(size_ += records_per_pack);
    if (records_.size() < size_) records_.resize(size_);
    return std::span(records_).subspan(first, size_ - first);
  }

  /// All records of all packs.
  [[nodiscard]] std::span<const candidate> records() const noexcept {
    return std::span(records_).first(size_);
  }

  /// Empties the list and keeps its memory.
  void clear() noexcept {
    size_ = 0;
    ends_.clear();
  }

 private:
  /// The first `size_` are in the list; the others are kept as they are.
  std::vector<candidate> records_;
  std::size_t size_ = 0;
  std::vector<std::size_t> ends_;
};

}  // namespace lanepack::inline LANEPACK_ABI
