#pragma once

/// @file
/// Blocks of an index, read when they are first needed and kept up to a limit.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Where a record's tokens lie.
struct token_extent {
  /// Token at which the record starts, counted from the first token of the file.
  std::uint64_t start = 0;
  /// Tokens of the record.
  std::uint64_t tokens = 0;

  friend bool operator==(const token_extent&, const token_extent&) = default;
};

namespace detail {

/// Extents of `record_block::records` neighbouring records in 4.5 bytes each.
struct record_block {
  static constexpr std::size_t records = 4096;
  static constexpr std::size_t stride = 64 / sizeof(std::uint32_t);

  /// Tokens of each record.
  alignas(64) std::array<std::uint32_t, records> lengths;
  /// Start of every record whose number in the block is a multiple of `stride`.
  std::array<std::uint64_t, records / stride> starts;

  [[nodiscard]] token_extent extent(std::size_t index) const noexcept {
    const std::size_t first = index / stride * stride;
    const auto begin = lengths.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = lengths.begin() + static_cast<std::ptrdiff_t>(index);
    return {std::accumulate(begin, end, starts[index / stride]), lengths[index]};
  }

  /// Fills `starts` for the first `count` records and returns the end of the last.
  std::uint64_t fill_starts(std::uint64_t start, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % stride == 0) starts[i / stride] = start;
      start += lengths[i];
    }
    return start;
  }
};

/// A table of blocks that appear one by one and then never change.
///
/// There is no eviction: records are drawn at random, so a block that is kept is worth as much as
/// any other.
/// @thread_safety  Any number of threads.
template <class Block>
class block_cache {
 public:
  /// @param blocks     Blocks of the index.
  /// @param max_bytes  Memory for blocks; more than that is not kept.
  block_cache(std::uint64_t blocks, std::uint64_t max_bytes)
      : table_(static_cast<std::size_t>(max_bytes >= sizeof(Block) ? blocks : 0)),
        holds_all_(max_bytes / sizeof(Block) >= blocks),
        left_(static_cast<std::int64_t>(
            std::min<std::uint64_t>(max_bytes / sizeof(Block), std::uint64_t{1} << 62))) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache() {
    for (const auto& entry : table_) delete entry.load(std::memory_order_relaxed);
  }

  /// True if no block will ever be turned away.
  [[nodiscard]] bool holds_all() const noexcept { return holds_all_; }

  /// The block, or nullptr where it is not kept.
  [[nodiscard]] const Block* find(std::uint64_t index) const noexcept {
    return index < table_.size() ? table_[index].load(std::memory_order_acquire) : nullptr;
  }

  /// The block, made by `load(block)` where it is not kept yet; nullptr where there is no room.
  template <class Load>
  const Block* find_or_load(std::uint64_t index, Load&& load) const {
    if (const Block* known = find(index)) return known;
    if (index >= table_.size() || left_.load(std::memory_order_relaxed) <= 0) return nullptr;
    auto block = std::make_unique<Block>();
    load(*block);
    if (left_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      left_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    const Block* expected = nullptr;
    if (table_[index].compare_exchange_strong(expected, block.get(), std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
      return block.release();
    }
    left_.fetch_add(1, std::memory_order_relaxed);
    return expected;
  }

 private:
  mutable std::vector<std::atomic<const Block*>> table_;
  bool holds_all_;
  mutable std::atomic<std::int64_t> left_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
