#pragma once

/// @file
/// `thd_layout`: the records of a micro-batch in one row, with `cu_seqlens`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

/// Fields of a THD slab.
struct thd_fields {
  slab_field tokens;
  slab_field labels;
  slab_field position_ids;
  slab_field cu_seqlens;
  slab_field cu_seqlens_padded;
  slab_field loss_mask;
  std::size_t bytes = 0;
};

[[nodiscard]] inline thd_fields plan_thd(const layout_options& options, std::size_t tokens,
                                         std::size_t segments) noexcept {
  slab_plan plan;
  thd_fields fields;
  fields.tokens = plan.add<std::int32_t>(tokens);
  fields.labels = plan.add<std::int32_t>(options.labels ? tokens : 0);
  fields.position_ids = plan.add<std::int32_t>(options.position_ids ? tokens : 0);
  fields.cu_seqlens = plan.add<std::int32_t>(segments + 1);
  fields.cu_seqlens_padded = plan.add<std::int32_t>(segments + 1);
  fields.loss_mask =
      plan.add<std::uint8_t>(options.loss_mask || options.reads_loss_mask ? tokens : 0);
  fields.bytes = plan.bytes();
  return fields;
}

inline constexpr std::uint64_t max_batch_tokens = std::numeric_limits<std::int32_t>::max();

}  // namespace detail

/// A completed micro-batch in THD layout: typed views over a slab, and its host-side numbers.
///
/// A segment is a record, or one of the segments of a record, with its padding; padding at the end
/// of the row is a segment of its own. Segments cover the row without gaps, and none is empty.
/// @thread_safety  Immutable; the slab must outlive it.
class micro_batch_view {
 public:
  micro_batch_view() = default;

  /// Token ids, `total_tokens()` of them.
  [[nodiscard]] std::span<const std::int32_t> tokens() const noexcept {
    return field<std::int32_t>(fields_.tokens);
  }
  /// What each position is to predict, or `ignored_label`; empty if not asked for.
  [[nodiscard]] std::span<const std::int32_t> labels() const noexcept {
    return field<std::int32_t>(fields_.labels);
  }
  /// Position inside the record, padding included; empty if not asked for.
  [[nodiscard]] std::span<const std::int32_t> position_ids() const noexcept {
    return field<std::int32_t>(fields_.position_ids);
  }
  /// 1 where the label counts, else 0; empty if not asked for.
  [[nodiscard]] std::span<const std::uint8_t> loss_mask() const noexcept {
    return loss_mask_wanted_ ? field<std::uint8_t>(fields_.loss_mask)
                             : std::span<const std::uint8_t>{};
  }
  /// Sums of the segments' real lengths, from 0: `segments() + 1` numbers. The padding segment at
  /// the end counts with its length.
  [[nodiscard]] std::span<const std::int32_t> cu_seqlens() const noexcept {
    return field<std::int32_t>(fields_.cu_seqlens);
  }
  /// Where each segment starts in the row, and the row's end. A kernel that knows one array only
  /// takes this one.
  [[nodiscard]] std::span<const std::int32_t> cu_seqlens_padded() const noexcept {
    return field<std::int32_t>(fields_.cu_seqlens_padded);
  }

  /// Segments: those of the records, and one more if the row ends in padding of its own.
  [[nodiscard]] std::size_t segments() const noexcept {
    return fields_.cu_seqlens.count == 0 ? 0 : fields_.cu_seqlens.count - 1;
  }
  /// Tokens of the row, padding included.
  [[nodiscard]] std::size_t total_tokens() const noexcept { return fields_.tokens.count; }
  /// Longest segment without its padding, for kernels over `cu_seqlens`.
  [[nodiscard]] std::int32_t max_seqlen() const noexcept { return max_seqlen_; }
  /// Longest segment with its padding, for kernels over `cu_seqlens_padded`.
  [[nodiscard]] std::int32_t max_seqlen_padded() const noexcept { return max_seqlen_padded_; }
  /// Whether `cu_seqlens` and `cu_seqlens_padded` differ.
  [[nodiscard]] bool pad_between_segments() const noexcept { return pad_between_segments_; }
  [[nodiscard]] const batch_counts& counts() const noexcept { return counts_; }

  /// Bytes of the slab that hold fields.
  [[nodiscard]] std::size_t slab_bytes() const noexcept { return fields_.bytes; }
  /// The same micro-batch in a copy of the slab that starts at `base`, on a device for instance.
  [[nodiscard]] micro_batch_view over(const std::byte* base) const noexcept {
    micro_batch_view copy = *this;
    copy.base_ = base;
    return copy;
  }

 private:
  friend class thd_layout;

  template <class T>
  [[nodiscard]] std::span<const T> field(const detail::slab_field& at) const noexcept {
    if (at.count == 0) return {};
    return {reinterpret_cast<const T*>(base_ + at.offset), at.count};
  }

  const std::byte* base_ = nullptr;
  detail::thd_fields fields_;
  batch_counts counts_;
  std::int32_t max_seqlen_ = 0;
  std::int32_t max_seqlen_padded_ = 0;
  bool pad_between_segments_ = false;
  bool loss_mask_wanted_ = false;
};

/// Lays the records of one micro-batch out in one row.
///
/// Used in two phases over one contiguous slab: the reader writes each record's tokens and loss
/// mask into `token_span` and `mask_span`, then `complete` fills in everything else. Offsets of
/// records in `cu_seqlens` (real lengths) and `cu_seqlens_padded` follow Transformer Engine's THD
/// format; records of 1, 2, 1 and 2 tokens that occupy 2, 2, 3 and 2 have `[0,1,3,4,6]` and
/// `[0,2,4,7,9]`.
///
/// Padding at the end, up to a multiple of both `total_multiple` and `record_multiple`, is one
/// segment: attention computes it, so large multiples are better reached by filling micro-batches.
/// @thread_safety  Const members may be called by any number of threads; `token_span`, `mask_span`
///                 of different records do not overlap.
class thd_layout {
 public:
  /// @param record_tokens  Tokens of each record, in the order of delivery, each at least 1.
  /// @throws  invalid_option if an option is not valid, there is no record, a record has no tokens
  ///          or the row would exceed 2^31 - 1 tokens.
  /// @complexity  O(records).
  thd_layout(const layout_options& options, std::span<const std::uint64_t> record_tokens)
      : options_(options) {
    validate(options_);
    if (record_tokens.empty()) {
      detail::throw_invalid_option("record_tokens", "no record", "at least 1 record");
    }
    const std::size_t records = record_tokens.size();
    lengths_.reserve(records + 2);
    offsets_.reserve(records + 2);
    lengths_.push_back(0);
    offsets_.push_back(0);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < records; ++i) {
      const std::uint64_t length = record_tokens[i];
      if (length == 0) {
        detail::throw_invalid_option("record_tokens", "0 tokens for record " + std::to_string(i),
                                     "at least 1 token in every record of a micro-batch");
      }
      const std::uint64_t padded = round_up(length, options_.record_multiple);
      total = saturating_add(total, padded);
      if (total > detail::max_batch_tokens) throw_too_long(total);
      add_segment(static_cast<std::int32_t>(length), static_cast<std::int32_t>(padded));
      counts_.tokens += length;
    }
    records_ = records;
    counts_.records = records;
    pad_between_segments_ = counts_.tokens != total;
    const std::uint64_t row =
        round_up(total, alignment_multiple({options_.record_multiple, options_.total_multiple}));
    if (row > detail::max_batch_tokens) throw_too_long(row);
    if (row != total) {
      const auto padding = static_cast<std::int32_t>(row - total);
      add_segment(padding, padding);
    }
    counts_.padding_tokens = row - counts_.tokens;
    fields_ = detail::plan_thd(options_, static_cast<std::size_t>(row), lengths_.size() - 1);
  }

  [[nodiscard]] const layout_options& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t records() const noexcept { return records_; }
  /// Tokens of the row, padding included.
  [[nodiscard]] std::size_t total_tokens() const noexcept { return fields_.tokens.count; }
  /// Bytes of a slab for this micro-batch.
  [[nodiscard]] std::size_t slab_bytes() const noexcept { return fields_.bytes; }

  /// Bytes that suffice for every micro-batch of at most `max_records` records and
  /// `capacity_tokens` tokens, padding included.
  [[nodiscard]] static std::size_t slab_bytes_bound(const layout_options& options,
                                                    std::uint64_t capacity_tokens,
                                                    std::uint64_t max_records) noexcept {
    const std::uint64_t tokens = std::min(capacity_tokens, detail::max_batch_tokens);
    const std::uint64_t segments = std::min(saturating_add(max_records, 1), tokens);
    return detail::plan_thd(options, static_cast<std::size_t>(tokens),
                            static_cast<std::size_t>(segments))
        .bytes;
  }

  /// Where the reader writes the tokens of a record.
  /// @param slab    At least `slab_bytes()` bytes, aligned to 4 bytes; with a slab aligned to 64
  ///                every field is.
  /// @param record  Number of the record in this micro-batch.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] std::span<std::int32_t> token_span(std::span<std::byte> slab,
                                                   std::size_t record) const {
    check_slab(slab);
    LANEPACK_ASSERT(record < records());
    return {field<std::int32_t>(slab, fields_.tokens) + start(record), length(record)};
  }

  /// Where the reader writes the loss mask of a record, before any shift; empty if
  /// `reads_loss_mask` is false.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] std::span<std::uint8_t> mask_span(std::span<std::byte> slab,
                                                  std::size_t record) const {
    check_slab(slab);
    LANEPACK_ASSERT(record < records());
    if (!options_.reads_loss_mask) return {};
    return {field<std::uint8_t>(slab, fields_.loss_mask) + start(record), length(record)};
  }

  /// Makes a record count no loss, whatever its mask says: it fills a step, or could not be read.
  void mask_record(std::size_t record) {
    LANEPACK_ASSERT(record < records());
    if (silent_.empty()) silent_.resize(records());
    silent_[record] = 1;
  }

  /// Says that the only record is a chunk of a longer one: positions go on after its prefix, and
  /// only the first chunk counts as a record.
  /// @pre  One record; prefix and padded tokens are at most 2^31 - 1 together.
  void place_chunk(const batch_chunk& chunk) {
    LANEPACK_ASSERT(records() == 1);
    chunk_ = chunk;
  }

  /// Says that what was laid out are the segments of so many records, for `batch_counts::records`.
  void count_records(std::size_t records) noexcept { counts_.records = records; }

  /// Fills everything that the reader did not write, and shifts the loss mask. Once per slab.
  /// @throws  state_error if the slab is too small or not aligned.
  /// @complexity  O(tokens), one pass.
  [[nodiscard]] micro_batch_view complete(std::span<std::byte> slab) const {
    check_slab(slab);
    std::int32_t* const tokens = field<std::int32_t>(slab, fields_.tokens);
    std::int32_t* const labels = field<std::int32_t>(slab, fields_.labels);
    std::int32_t* const positions = field<std::int32_t>(slab, fields_.position_ids);
    std::uint8_t* const mask = field<std::uint8_t>(slab, fields_.loss_mask);

    micro_batch_view view;
    view.counts_ = counts_;
    if (chunk_.prefix_tokens != 0) view.counts_.records = 0;
    for (std::size_t i = 0; i < records(); ++i) {
      const std::size_t first = start(i);
      const std::size_t next = start(i + 1);
      const std::size_t real = length(i);
      const detail::record_fields out{
          .tokens = tokens + first,
          .labels = labels == nullptr ? nullptr : labels + first,
          .positions = positions == nullptr ? nullptr : positions + first,
          .mask = mask == nullptr ? nullptr : mask + first,
      };
      const bool joins = options_.boundary == boundary_labels::megatron_compat &&
                         i + 1 < records() && first + real == next && !silent(i + 1) &&
                         (!options_.reads_loss_mask || mask[next] != 0);
      const detail::record_place place{
          .mask_given = options_.reads_loss_mask,
          .silent = silent(i),
          .predicts_next = joins || chunk_.predicts_next,
          .first_position = static_cast<std::int32_t>(chunk_.prefix_tokens)};
      view.counts_.loss_tokens +=
          detail::complete_record(out, real, next - first, options_.pad_token, place,
                                  joins ? tokens[next] : chunk_.next_token);
    }
    const std::size_t end = start(records());
    const std::size_t padding = total_tokens() - end;
    detail::fill_value(tokens + end, padding, options_.pad_token);
    if (labels != nullptr) detail::fill_value(labels + end, padding, ignored_label);
    if (positions != nullptr) detail::fill_positions(positions + end, padding);
    if (mask != nullptr) std::memset(mask + end, 0, padding);
    std::memcpy(field<std::int32_t>(slab, fields_.cu_seqlens), lengths_.data(),
                lengths_.size() * sizeof(std::int32_t));
    std::memcpy(field<std::int32_t>(slab, fields_.cu_seqlens_padded), offsets_.data(),
                offsets_.size() * sizeof(std::int32_t));

    view.base_ = slab.data();
    view.fields_ = fields_;
    view.max_seqlen_ = max_length_;
    view.max_seqlen_padded_ = max_padded_;
    view.pad_between_segments_ = pad_between_segments_;
    view.loss_mask_wanted_ = options_.loss_mask;
    return view;
  }

 private:
  [[noreturn]] LANEPACK_COLD static void throw_too_long(std::uint64_t tokens) {
    detail::throw_invalid_option("record_tokens",
                                 "a micro-batch of at least " + std::to_string(tokens) + " tokens",
                                 "at most 2147483647, the range of cu_seqlens");
  }

  void add_segment(std::int32_t real, std::int32_t padded) {
    lengths_.push_back(lengths_.back() + real);
    offsets_.push_back(offsets_.back() + padded);
    max_length_ = std::max(max_length_, real);
    max_padded_ = std::max(max_padded_, padded);
  }

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

  [[nodiscard]] std::size_t start(std::size_t record) const noexcept {
    return static_cast<std::size_t>(offsets_[record]);
  }
  [[nodiscard]] std::size_t length(std::size_t record) const noexcept {
    return static_cast<std::size_t>(lengths_[record + 1] - lengths_[record]);
  }
  [[nodiscard]] bool silent(std::size_t record) const noexcept {
    return !silent_.empty() && silent_[record] != 0;
  }

  layout_options options_;
  /// The contents of `cu_seqlens` and `cu_seqlens_padded`.
  std::vector<std::int32_t> lengths_;
  std::vector<std::int32_t> offsets_;
  /// One byte a record once a record is masked, else empty.
  std::vector<std::uint8_t> silent_;
  detail::thd_fields fields_;
  std::size_t records_ = 0;
  batch_counts counts_;
  batch_chunk chunk_;
  std::int32_t max_length_ = 0;
  std::int32_t max_padded_ = 0;
  bool pad_between_segments_ = false;
};

}  // namespace lanepack::inline LANEPACK_ABI
