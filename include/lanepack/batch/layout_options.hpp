#pragma once

/// @file
/// What a micro-batch holds beside its tokens, and to what it is aligned.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The label that a loss ignores.
inline constexpr std::int32_t ignored_label = -100;

/// The label of a record's last token.
enum class boundary_labels : std::uint8_t {
  /// `ignored_label`: a record never predicts the next one.
  masked,
  /// Where the next record follows without padding, its first token, if that token's loss mask is
  /// 1; as Megatron-LM's pretraining data sets shift a whole row. THD layout only.
  megatron_compat,
};

/// Fields and alignment of a micro-batch.
struct layout_options {
  /// Every record is padded to a multiple of this (2 x cp under context parallelism).
  std::uint32_t record_multiple = 1;
  /// The whole micro-batch is padded to a multiple of this and of `record_multiple`.
  std::uint32_t total_multiple = 1;
  /// Stands where there is no record. It may equal a token of the data: padding is masked by
  /// position, never by value.
  std::int32_t pad_token = 0;
  /// Produce labels: the tokens shifted by one inside each record.
  bool labels = true;
  /// Produce position ids, which start at 0 in every record.
  bool position_ids = true;
  /// Produce the loss mask: 1 where the label counts.
  bool loss_mask = true;
  /// The reader writes a loss mask for every record. Otherwise `mask_span` is empty and every token
  /// but a record's first is predicted.
  bool reads_loss_mask = true;
  boundary_labels boundary = boundary_labels::masked;
};

/// The least common multiple of alignments, e.g. 2 x cp, tp under sequence parallelism, 16 or 32
/// for FP8.
/// @throws  invalid_option where one is 0 or the result exceeds 2^31 - 1.
[[nodiscard]] inline std::uint32_t alignment_multiple(std::span<const std::uint32_t> multiples) {
  std::uint64_t result = 1;
  for (const std::uint32_t multiple : multiples) {
    if (multiple == 0) detail::throw_invalid_option("alignment", "0", "at least 1");
    // Both factors are below 2^32, so the product is exact.
    result = result / std::gcd<std::uint64_t, std::uint64_t>(result, multiple) * multiple;
    if (result > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      detail::throw_invalid_option("alignment",
                                   "a least common multiple of " + std::to_string(result),
                                   "at most 2147483647");
    }
  }
  return static_cast<std::uint32_t>(result);
}

/// As above, for a list written in place.
[[nodiscard]] inline std::uint32_t alignment_multiple(
    std::initializer_list<std::uint32_t> multiples) {
  return alignment_multiple(std::span(multiples.begin(), multiples.size()));
}

/// Checks layout options.
/// @throws  invalid_option naming the field.
inline void validate(const layout_options& options) {
  const auto require = [](const char* name, std::uint32_t found) {
    if (found == 0) detail::throw_invalid_option(name, "0", "at least 1");
  };
  require("record_multiple", options.record_multiple);
  require("total_multiple", options.total_multiple);
  if (options.pad_token < 0) {
    detail::throw_invalid_option("pad_token", std::to_string(options.pad_token),
                                 "a token id, 0 to 2147483647");
  }
  static_cast<void>(alignment_multiple({options.record_multiple, options.total_multiple}));
}

/// Records and tokens, of a micro-batch or of a step.
struct batch_counts {
  /// Records.
  std::uint64_t records = 0;
  /// Tokens of records, without padding.
  std::uint64_t tokens = 0;
  /// Labels that count in the loss.
  std::uint64_t loss_tokens = 0;
  /// Tokens that no record has.
  std::uint64_t padding_tokens = 0;

  batch_counts& operator+=(const batch_counts& other) noexcept {
    records += other.records;
    tokens += other.tokens;
    loss_tokens += other.loss_tokens;
    padding_tokens += other.padding_tokens;
    return *this;
  }

  friend bool operator==(const batch_counts&, const batch_counts&) = default;
};

/// Where the only record of a micro-batch lies in a longer one; a whole record has no prefix and
/// nothing after it.
struct batch_chunk {
  /// Tokens of the record before this chunk.
  std::uint64_t prefix_tokens = 0;
  /// The chunk's last token predicts the first one after it.
  bool predicts_next = false;
  /// That token, where it is predicted.
  std::int32_t next_token = 0;
};

namespace detail {

/// Fields start at multiples of this in a slab.
inline constexpr std::size_t field_alignment = 64;

/// Where a field lies in a slab; `count` is 0 for one that is not produced.
struct slab_field {
  std::size_t offset = 0;
  std::size_t count = 0;
};

/// Lays fields one behind the other.
class slab_plan {
 public:
  template <class T>
  slab_field add(std::size_t count) noexcept {
    const slab_field field{bytes_, count};
    bytes_ += static_cast<std::size_t>(
        round_up(static_cast<std::uint64_t>(count) * sizeof(T), field_alignment));
    return field;
  }

  /// Bytes of all fields so far, a multiple of `field_alignment`.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
