#pragma once

/// @file
/// `padded_layout`: the records of a micro-batch in rows of one width.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <lanepack/batch/fill.hpp>
#include <lanepack/batch/layout_options.hpp>
#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Fields of a padded slab.
struct padded_fields {
  slab_field tokens;
  slab_field labels;
  slab_field position_ids;
  slab_field lengths;
  slab_field loss_mask;
  std::size_t bytes = 0;
};

[[nodiscard]] inline padded_fields plan_padded(const layout_options& options, std::size_t rows,
                                               std::size_t tokens) noexcept {
  slab_plan plan;
  padded_fields fields;
  fields.tokens = plan.add<std::int32_t>(tokens);
  fields.labels = plan.add<std::int32_t>(options.labels ? tokens : 0);
  fields.position_ids = plan.add<std::int32_t>(options.position_ids ? tokens : 0);
  fields.lengths = plan.add<std::int32_t>(rows);
  fields.loss_mask =
      plan.add<std::uint8_t>(options.loss_mask || options.reads_loss_mask ? tokens : 0);
  fields.bytes = plan.bytes();
  return fields;
}

}  // namespace detail

/// A completed micro-batch in padded layout: matrices of `rows()` x `width()`, row by row, over a
/// slab.
/// @thread_safety  Immutable; the slab must outlive it.
class padded_view {
 public:
  padded_view() = default;

  /// Token ids.
  [[nodiscard]] std::span<const std::int32_t> tokens() const noexcept {
    return field<std::int32_t>(fields_.tokens);
  }
  /// What each position is to predict, or `ignored_label`; empty if not asked for.
  [[nodiscard]] std::span<const std::int32_t> labels() const noexcept {
    return field<std::int32_t>(fields_.labels);
  }
  /// Position in the row; empty if not asked for.
  [[nodiscard]] std::span<const std::int32_t> position_ids() const noexcept {
    return field<std::int32_t>(fields_.position_ids);
  }
  /// 1 where the label counts, else 0; empty if not asked for.
  [[nodiscard]] std::span<const std::uint8_t> loss_mask() const noexcept {
    return loss_mask_wanted_ ? field<std::uint8_t>(fields_.loss_mask)
                             : std::span<const std::uint8_t>{};
  }
  /// Tokens of each row that belong to its record.
  [[nodiscard]] std::span<const std::int32_t> lengths() const noexcept {
    return field<std::int32_t>(fields_.lengths);
  }

  /// Records.
  [[nodiscard]] std::size_t rows() const noexcept { return fields_.lengths.count; }
  /// Tokens of a row, padding included.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] const batch_counts& counts() const noexcept { return counts_; }

  /// Bytes of the slab that hold fields.
  [[nodiscard]] std::size_t slab_bytes() const noexcept { return fields_.bytes; }
  /// The same micro-batch in a copy of the slab that starts at `base`, on a device for instance.
  [[nodiscard]] padded_view over(const std::byte* base) const noexcept {
    padded_view copy = *this;
    copy.base_ = base;
    return copy;
  }

 private:
  friend class padded_layout;

  template <class T>
  [[nodiscard]] std::span<const T> field(const detail::slab_field& at) const noexcept {
    if (at.count == 0) return {};
    return {reinterpret_cast<const T*>(base_ + at.offset), at.count};
  }

  const std::byte* base_ = nullptr;
  detail::padded_fields fields_;
  batch_counts counts_;
  std::size_t width_ = 0;
  bool loss_mask_wanted_ = false;
};

/// Lays the records of one micro-batch out as rows of one width.
///
/// The width is the longest record rounded up to `record_multiple`, and further until
/// rows x width is a multiple of `total_multiple`. Used in two phases, as `thd_layout`. There is no
/// boundary between records in a row, so `boundary` has no effect.
/// @thread_safety  Const members may be called by any number of threads; `token_span`, `mask_span`
///                 of different records do not overlap.
class padded_layout {
 public:
  /// @param record_tokens  Tokens of each record, in the order of delivery, each at least 1.
  /// @throws  invalid_option if an option is not valid, there is no record, a record has no tokens
  ///          or rows x width would exceed 2^31 - 1 tokens.
  /// @complexity  O(records).
  padded_layout(const layout_options& options, std::span<const std::uint64_t> record_tokens)
      : options_(options) {
    validate(options_);
    if (record_tokens.empty()) {
      detail::throw_invalid_option("record_tokens", "no record", "at least 1 record");
    }
    const std::size_t rows = record_tokens.size();
    std::uint64_t longest = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      if (record_tokens[i] == 0) {
        detail::throw_invalid_option("record_tokens", "0 tokens for record " + std::to_string(i),
                                     "at least 1 token in every record of a micro-batch");
      }
      longest = std::max(longest, record_tokens[i]);
    }
    const std::uint64_t width = padded_width(options_, longest, rows);
    const std::uint64_t total = saturating_mul(width, rows);
    if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      detail::throw_invalid_option("record_tokens",
                                   "a micro-batch of " + std::to_string(rows) + " rows of " +
                                       std::to_string(width) + " tokens",
                                   "at most 2147483647 tokens with padding");
    }
    lengths_.reserve(rows);
    for (const std::uint64_t length : record_tokens) {
      lengths_.push_back(static_cast<std::int32_t>(length));
      counts_.tokens += length;
    }
    counts_.records = rows;
    counts_.padding_tokens = total - counts_.tokens;
    width_ = static_cast<std::size_t>(width);
    fields_ = detail::plan_padded(options_, rows, static_cast<std::size_t>(total));
  }

  /// Width of the rows of a micro-batch of `rows` records of which the longest has `longest`
  /// tokens.
  [[nodiscard]] static std::uint64_t padded_width(const layout_options& options,
                                                  std::uint64_t longest,
                                                  std::uint64_t rows) noexcept {
    const std::uint64_t total = options.total_multiple;
    const std::uint64_t multiple = std::lcm<std::uint64_t, std::uint64_t>(
        options.record_multiple, total / std::gcd(total, rows));
    return round_up(longest, multiple);
  }

  [[nodiscard]] const layout_options& options() const noexcept { return options_; }
  /// Records.
  [[nodiscard]] std::size_t rows() const noexcept { return lengths_.size(); }
  /// Tokens of a row, padding included.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  /// Bytes of a slab for this micro-batch.
  [[nodiscard]] std::size_t slab_bytes() const noexcept { return fields_.bytes; }

  /// Bytes that suffice for every micro-batch of at most `max_records` records and
  /// `capacity_tokens` tokens, rows x width with padding.
  [[nodiscard]] static std::size_t slab_bytes_bound(const layout_options& options,
                                                    std::uint64_t capacity_tokens,
                                                    std::uint64_t max_records) noexcept {
    const std::uint64_t tokens =
        std::min<std::uint64_t>(capacity_tokens, std::numeric_limits<std::int32_t>::max());
    return detail::plan_padded(options, static_cast<std::size_t>(std::min(max_records, tokens)),
                               static_cast<std::size_t>(tokens))
        .bytes;
  }

  /// Where the reader writes the tokens of a record.
  /// @param slab    At least `slab_bytes()` bytes, aligned to 4 bytes.
  /// @param record  Number of the record in this micro-batch, which is its row.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] std::span<std::int32_t> token_span(std::span<std::byte> slab,
                                                   std::size_t record) const {
    check_slab(slab);
    LANEPACK_ASSERT(record < rows());
    return {field<std::int32_t>(slab, fields_.tokens) + record * width_, length(record)};
  }

  /// Where the reader writes the loss mask of a record, before any shift; empty if
  /// `reads_loss_mask` is false.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] std::span<std::uint8_t> mask_span(std::span<std::byte> slab,
                                                  std::size_t record) const {
    check_slab(slab);
    LANEPACK_ASSERT(record < rows());
    if (!options_.reads_loss_mask) return {};
    return {field<std::uint8_t>(slab, fields_.loss_mask) + record * width_, length(record)};
  }

  /// Makes a record count no loss, whatever its mask says: it fills a step, or could not be read.
  void mask_record(std::size_t record) {
    LANEPACK_ASSERT(record < rows());
    if (silent_.empty()) silent_.resize(rows());
    silent_[record] = 1;
  }

  /// Says that the only record is a chunk of a longer one: positions go on after its prefix, and
  /// only the first chunk counts as a record.
  /// @pre  One record; prefix and padded tokens are at most 2^31 - 1 together.
  void place_chunk(const batch_chunk& chunk) {
    LANEPACK_ASSERT(rows() == 1);
    chunk_ = chunk;
  }

  /// Fills everything that the reader did not write, and shifts the loss mask. Once per slab.
  /// @throws  state_error if the slab is too small or not aligned.
  /// @complexity  O(rows x width), one pass.
  [[nodiscard]] padded_view complete(std::span<std::byte> slab) const {
    check_slab(slab);
    std::int32_t* const tokens = field<std::int32_t>(slab, fields_.tokens);
    std::int32_t* const labels = field<std::int32_t>(slab, fields_.labels);
    std::int32_t* const positions = field<std::int32_t>(slab, fields_.position_ids);
    std::uint8_t* const mask = field<std::uint8_t>(slab, fields_.loss_mask);

    padded_view view;
    view.counts_ = counts_;
    if (chunk_.prefix_tokens != 0) view.counts_.records = 0;
    for (std::size_t i = 0; i < rows(); ++i) {
      const std::size_t first = i * width_;
      const detail::record_fields out{
          .tokens = tokens + first,
          .labels = labels == nullptr ? nullptr : labels + first,
          .positions = positions == nullptr ? nullptr : positions + first,
          .mask = mask == nullptr ? nullptr : mask + first,
      };
      const detail::record_place place{
          .mask_given = options_.reads_loss_mask,
          .silent = !silent_.empty() && silent_[i] != 0,
          .predicts_next = chunk_.predicts_next,
          .first_position = static_cast<std::int32_t>(chunk_.prefix_tokens)};
      view.counts_.loss_tokens += detail::complete_record(
          out, length(i), width_, options_.pad_token, place, chunk_.next_token);
    }
    std::memcpy(field<std::int32_t>(slab, fields_.lengths), lengths_.data(),
                lengths_.size() * sizeof(std::int32_t));

    view.base_ = slab.data();
    view.fields_ = fields_;
    view.width_ = width_;
    view.loss_mask_wanted_ = options_.loss_mask;
    return view;
  }

 private:
  void check_slab(std::span<std::byte> slab) const {
    if (slab.size() < slab_bytes() ||
        reinterpret_cast<std::uintptr_t>(slab.data()) % alignof(std::int32_t) != 0) {
      throw_bad_slab(slab);
    }
  }

  [[noreturn]] LANEPACK_COLD void throw_bad_slab(std::span<std::byte> slab) const {
    detail::throw_state_error("slab: found " + std::to_string(slab.size()) +
                              " bytes, expected at least " + std::to_string(slab_bytes()) +
                              ", aligned to 4 bytes");
  }

  template <class T>
  [[nodiscard]] static T* field(std::span<std::byte> slab, const detail::slab_field& at) noexcept {
    return at.count == 0 ? nullptr : reinterpret_cast<T*>(slab.data() + at.offset);
  }

  [[nodiscard]] std::size_t length(std::size_t record) const noexcept {
    return static_cast<std::size_t>(lengths_[record]);
  }

  layout_options options_;
  std::vector<std::int32_t> lengths_;
  /// One byte a record once a record is masked, else empty.
  std::vector<std::uint8_t> silent_;
  detail::padded_fields fields_;
  batch_counts counts_;
  batch_chunk chunk_;
  std::size_t width_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
