#pragma once

/// @file
/// How an epoch is shuffled: not at all, all records, or blocks of contiguous records.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/permutation.hpp>
#include <lanepack/sampler/shuffle_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A bijection on [0, n) that permutes blocks of contiguous records and then the records inside
/// groups of `group_blocks` consecutive blocks of that order.
///
/// So the positions of one group read `group_blocks` contiguous ranges of the corpus and nothing
/// else. The last block may be short and the last group may have fewer blocks; both are ordinary
/// blocks and groups otherwise.
/// @complexity     Memory O(1), time O(1) a position: two permutations. A new group costs about
///                 0.1 us more, so neighbouring positions should be asked for together.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Integers only: a pure function of n, the options, the seed and the epoch.
class block_permutation {
 public:
  /// @param size     Number of records, 0 to 2^63.
  /// @param options  Sizes of blocks and groups; `kind` is not looked at.
  /// @param key      Seed, epoch and lane; the stages are the permutation's own.
  /// @throws invalid_option  where `size` is larger, or a block or a group would be empty.
  block_permutation(std::uint64_t size, const shuffle_options& options, random_key key)
      : size_(checked_size(size, options)),
        block_(
            std::clamp(options.block_records, std::uint64_t{1}, std::max<std::uint64_t>(size, 1))),
        blocks_(ceil_div(size, block_.divisor()), with_stage(key, random_stage::block_order)),
        group_slots_(saturating_mul(block_.divisor(), options.group_blocks)),
        slots_(blocks_.size() * block_.divisor()),
        group_grid_(std::min(group_slots_, size)),
        group_key_(with_stage(key, random_stage::group_order)) {
    if (size_ == 0) return;
    hole_ = slots_ - size_;
    hole_slot_ = (blocks_.position_of(blocks_.size() - 1) + 1) * block_.divisor() - hole_;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// The record at `position`.
  /// @pre  `position < size()`.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const noexcept {
    apply(std::span(&position, 1), std::span(&position, 1));
    return position;
  }

  /// The position of `record`: the inverse of `operator()`.
  /// @pre  `record < size()`.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t record) const noexcept {
    LANEPACK_ASSERT(record < size_);
    const auto [block, offset] = block_(record);
    const std::uint64_t mixed =
        position_of_slot(blocks_.position_of(block) * block_.divisor() + offset);
    const group here = group_at(mixed);
    return here.first + here.order.position_of(mixed - here.first);
  }

  /// Writes the record at `positions[i]` to `out[i]`; the two may be the same memory.
  /// @pre  Every position is below `size()`; both spans have the same length.
  void apply(std::span<const std::uint64_t> positions,
             std::span<std::uint64_t> out) const noexcept {
    LANEPACK_ASSERT(positions.size() == out.size());
    std::optional<group> here;
    std::array<std::uint64_t, 128> offsets;
    while (!positions.empty()) {
      const std::size_t count = std::min(positions.size(), offsets.size());
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t position = positions[i];
        LANEPACK_ASSERT(position < size_);
        if (!here || position < here->first || position >= here->end) here = group_at(position);
        const std::uint64_t mixed = here->first + here->order(position - here->first);
        const auto [block, offset] = block_(slot_of_position(mixed));
        out[i] = block;
        offsets[i] = offset;
      }
      const std::span<std::uint64_t> blocks = out.first(count);
      blocks_.apply(blocks, blocks);
      for (std::size_t i = 0; i < count; ++i) out[i] = out[i] * block_.divisor() + offsets[i];
      positions = positions.subspan(count);
      out = out.subspan(count);
    }
  }

 private:
  // With the short block padded to a full one, the permuted blocks lie at multiples of the block
  // size: the places of that row are slots, and the padding is the hole in it.
  struct group {
    std::uint64_t first;
    std::uint64_t end;
    keyed_permutation order;
  };

  static std::uint64_t checked_size(std::uint64_t size, const shuffle_options& options) {
    if (size > max_permutation_size) {
      detail::throw_invalid_option("records", std::to_string(size), "at most 2^63");
    }
    if (to_string(options.kind) == "?") {
      detail::throw_invalid_option("shuffle", std::to_string(static_cast<unsigned>(options.kind)),
                                   "one of its named values");
    }
    if (options.block_records == 0) {
      detail::throw_invalid_option("block_records", "0", "at least 1");
    }
    if (options.group_blocks == 0) detail::throw_invalid_option("group_blocks", "0", "at least 1");
    return size;
  }

  static random_key with_stage(random_key key, std::uint32_t stage) noexcept {
    key.stage = stage;
    return key;
  }

  [[nodiscard]] std::uint64_t slot_of_position(std::uint64_t position) const noexcept {
    return position + (position >= hole_slot_ ? hole_ : 0);
  }

  /// `slot` is not inside the hole.
  [[nodiscard]] std::uint64_t position_of_slot(std::uint64_t slot) const noexcept {
    return slot - (slot > hole_slot_ ? hole_ : 0);
  }

  [[nodiscard]] group group_at(std::uint64_t position) const noexcept {
    const std::uint64_t number = slot_of_position(position) / group_slots_;
    const std::uint64_t first_slot = number * group_slots_;
    const std::uint64_t end_slot = std::min(saturating_add(first_slot, group_slots_), slots_);
    const std::uint64_t first = position_of_slot(first_slot);
    const std::uint64_t end = position_of_slot(end_slot);
    const std::uint64_t records = end - first;
    return {first, end,
            keyed_permutation(
                records == group_grid_.size ? group_grid_ : detail::permutation_grid(records),
                group_key_, number)};
  }

  std::uint64_t size_;
  detail::fixed_divider block_;
  keyed_permutation blocks_;
  std::uint64_t group_slots_;
  std::uint64_t slots_;
  detail::permutation_grid group_grid_;
  random_key group_key_;
  std::uint64_t hole_ = 0;
  std::uint64_t hole_slot_ = 0;
};

/// The order of one epoch that `shuffle_options` ask for: a bijection from positions to [0, n).
/// @complexity     Memory O(1), time O(1) a position.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Integers only: a pure function of n, the options, the seed and the epoch.
class epoch_shuffle {
 public:
  /// @param size  Number of records, 0 to 2^63.
  /// @throws invalid_option  as `keyed_permutation` and `block_permutation`.
  epoch_shuffle(std::uint64_t size, const shuffle_options& options, std::uint64_t seed,
                epoch_index epoch)
      : size_(size), order_(make(size, options, {seed, epoch, random_stage::record_order, 0})) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Writes the record at `positions[i]` to `out[i]`; the two may be the same memory.
  /// @pre  Every position is below `size()`; both spans have the same length.
  void apply(std::span<const std::uint64_t> positions,
             std::span<std::uint64_t> out) const noexcept {
    if (const auto* full = std::get_if<keyed_permutation>(&order_)) {
      full->apply(positions, out);
    } else if (const auto* block = std::get_if<block_permutation>(&order_)) {
      block->apply(positions, out);
    } else if (positions.data() != out.data()) {
      std::copy(positions.begin(), positions.end(), out.begin());
    }
  }

  /// The position of `record`: the inverse of `apply`.
  /// @pre  `record < size()`.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t record) const noexcept {
    if (const auto* full = std::get_if<keyed_permutation>(&order_)) {
      return full->position_of(record);
    }
    if (const auto* block = std::get_if<block_permutation>(&order_)) {
      return block->position_of(record);
    }
    return record;
  }

 private:
  using any_order = std::variant<std::monostate, keyed_permutation, block_permutation>;

  static any_order make(std::uint64_t size, const shuffle_options& options, const random_key& key) {
    switch (options.kind) {
      case shuffle_kind::none:
        return std::monostate{};
      case shuffle_kind::full:
        return keyed_permutation(size, key);
      case shuffle_kind::block:
        return block_permutation(size, options, key);
    }
    detail::throw_invalid_option("shuffle", std::to_string(static_cast<int>(options.kind)),
                                 "none, full or block");
  }

  std::uint64_t size_;
  any_order order_;
};

}  // namespace lanepack::inline LANEPACK_ABI
