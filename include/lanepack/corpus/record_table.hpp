#pragma once

/// @file
/// Where the records of a corpus of many shards lie, with their shapes and payloads.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Numbers in a file.
struct stored_numbers {
  /// Byte of the first.
  std::uint64_t offset = 0;
  token_type type = token_type::i32;

  friend bool operator==(const stored_numbers&, const stored_numbers&) = default;
};

/// A payload in a file.
struct stored_payload {
  /// Its first byte.
  std::uint64_t offset = 0;
  payload_shape shape;

  friend bool operator==(const stored_payload&, const stored_payload&) = default;
};

/// A record in a file.
struct stored_record {
  /// Number of the file.
  std::uint32_t file = 0;
  std::uint32_t tokens = 0;
  std::uint32_t loss_tokens = 0;
  std::uint32_t patches = 0;
  stored_numbers ids;
  /// 0 or 1 for each token; absent where all are to be predicted.
  std::optional<stored_numbers> mask;
  /// One for each payload of the corpus.
  std::vector<stored_payload> payloads;
};

/// The records of many shards, 40 bytes each and 16 more for every payload.
/// @thread_safety  Const members may be called by any number of threads.
class record_table {
 public:
  /// @param payloads  Payloads of a record.
  explicit record_table(std::size_t payloads = 0) : payloads_(payloads) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return records_.size(); }
  [[nodiscard]] std::size_t payloads() const noexcept { return payloads_; }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] bool has_loss_mask() const noexcept { return has_loss_mask_; }
  [[nodiscard]] const record_payload_bytes& largest_payload() const noexcept { return largest_; }

  /// Adds a record behind those that are there.
  /// @pre  It has `payloads()` payloads; extents are below 2^59.
  void add(const stored_record& record) {
    LANEPACK_ASSERT(record.payloads.size() == payloads_);
    std::uint64_t bytes = 0;
    for (const stored_payload& payload : record.payloads) {
      places_.push_back({payload.offset, packed(payload.shape)});
      bytes = saturating_add(bytes, payload.shape.bytes());
    }
    push({.file = record.file,
          .tokens = record.tokens,
          .loss_tokens = record.loss_tokens,
          .patches = record.patches,
          .ids_offset = record.ids.offset,
          .mask_offset = record.mask ? record.mask->offset : no_mask,
          .types = static_cast<std::uint8_t>(
              static_cast<unsigned>(record.ids.type) |
              (record.mask ? static_cast<unsigned>(record.mask->type) << 4 : 0U))},
         bytes);
  }

  /// Adds the records of another table with as many payloads.
  void append(const record_table& other) {
    LANEPACK_ASSERT(other.payloads_ == payloads_);
    for (std::size_t i = 0; i < other.records_.size(); ++i) {
      std::uint64_t bytes = 0;
      for (std::size_t p = 0; p < payloads_; ++p) {
        const place& from = other.places_[i * payloads_ + p];
        const payload_shape shape = other.unpacked(from.shape);
        places_.push_back({from.offset, packed(shape)});
        bytes = saturating_add(bytes, shape.bytes());
      }
      push(other.records_[i], bytes);
    }
  }

  /// @pre  `id` is below `size()`.
  [[nodiscard]] record_shape shape(record_id id) const noexcept {
    const entry& record = records_[static_cast<std::size_t>(id)];
    return {.tokens = record.tokens, .loss_tokens = record.loss_tokens, .patches = record.patches};
  }
  [[nodiscard]] std::uint32_t file(record_id id) const noexcept {
    return records_[static_cast<std::size_t>(id)].file;
  }
  [[nodiscard]] stored_numbers ids(record_id id) const noexcept {
    const entry& record = records_[static_cast<std::size_t>(id)];
    return {record.ids_offset, static_cast<token_type>(record.types & 15)};
  }
  [[nodiscard]] std::optional<stored_numbers> mask(record_id id) const noexcept {
    const entry& record = records_[static_cast<std::size_t>(id)];
    if (record.mask_offset == no_mask) return std::nullopt;
    return stored_numbers{record.mask_offset, static_cast<token_type>(record.types >> 4)};
  }
  [[nodiscard]] stored_payload payload(record_id id, std::size_t number) const noexcept {
    const place& at = places_[static_cast<std::size_t>(id) * payloads_ + number];
    return {at.offset, unpacked(at.shape)};
  }

  /// Over everything that is in the table.
  /// @complexity  O(records x payloads).
  [[nodiscard]] digest128 digest() const {
    digest_builder digest;
    digest.number(size());
    for (const entry& record : records_) {
      digest.number(std::uint64_t{record.file} << 32 | record.tokens);
      digest.number(std::uint64_t{record.loss_tokens} << 32 | record.patches);
      digest.number(record.ids_offset);
      digest.number(record.mask_offset);
      digest.number(record.types);
    }
    for (const place& at : places_) {
      digest.number(at.offset);
      detail::digest_shape(digest, unpacked(at.shape));
    }
    return digest.value();
  }

  void save(detail::cache_writer& out) const {
    out.number(payloads_);
    out.number(records_.size());
    for (const entry& record : records_) {
      for (const std::uint64_t value :
           {std::uint64_t{record.file}, std::uint64_t{record.tokens},
            std::uint64_t{record.loss_tokens}, std::uint64_t{record.patches}, record.ids_offset,
            record.mask_offset + 1, std::uint64_t{record.types}}) {
        out.small_number(value);
      }
    }
    out.number(shapes_.size());
    for (const payload_shape& shape : shapes_) {
      out.small_number(static_cast<std::uint64_t>(shape.type));
      out.small_number(shape.dimensions);
      for (std::size_t i = 0; i < shape.dimensions; ++i) out.small_number(shape.extents[i]);
    }
    for (const place& at : places_) {
      out.small_number(at.offset);
      out.number(at.shape);
    }
  }

  /// The table that `save` wrote, or nullopt where `in` holds no such table.
  /// @param files  Number of files that records may be in.
  [[nodiscard]] static std::optional<record_table> load(detail::cache_reader& in,
                                                        std::size_t payloads, std::size_t files) {
    record_table table(payloads);
    if (in.number() != payloads) return std::nullopt;
    std::vector<entry> records;
    for (std::uint64_t left = in.number(); left != 0 && in.good(); --left) {
      std::array<std::uint64_t, 7> values{};
      for (std::uint64_t& value : values) value = in.small_number();
      constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
      if (values[0] >= files || values[1] > most || values[2] > most || values[3] > most ||
          values[6] > 255 || (values[6] & 15) > 7 || values[6] >> 4 > 7) {
        return std::nullopt;
      }
      records.push_back({.file = static_cast<std::uint32_t>(values[0]),
                         .tokens = static_cast<std::uint32_t>(values[1]),
                         .loss_tokens = static_cast<std::uint32_t>(values[2]),
                         .patches = static_cast<std::uint32_t>(values[3]),
                         .ids_offset = values[4],
                         .mask_offset = values[5] - 1,
                         .types = static_cast<std::uint8_t>(values[6])});
    }
    for (std::uint64_t left = in.number(); left != 0 && in.good(); --left) {
      payload_shape shape;
      const std::uint64_t type = in.small_number();
      const std::uint64_t dimensions = in.small_number();
      if (type > static_cast<std::uint64_t>(payload_type::f64) ||
          dimensions > max_payload_dimensions) {
        return std::nullopt;
      }
      shape.type = static_cast<payload_type>(type);
      shape.dimensions = static_cast<std::uint32_t>(dimensions);
      for (std::size_t i = 0; i < shape.dimensions; ++i) shape.extents[i] = in.small_number();
      table.shapes_.push_back(shape);
    }
    for (std::size_t i = 0; i < records.size() && in.good(); ++i) {
      std::uint64_t bytes = 0;
      for (std::size_t p = 0; p < payloads; ++p) {
        const place at{.offset = in.small_number(), .shape = in.number()};
        if (at.shape >> 60 > static_cast<std::uint64_t>(payload_type::f64) ||
            ((at.shape & listed) != 0 && (at.shape & value_bits) >= table.shapes_.size())) {
          return std::nullopt;
        }
        table.places_.push_back(at);
        bytes = saturating_add(bytes, table.unpacked(at.shape).bytes());
      }
      table.push(records[i], bytes);
    }
    if (!in.good()) return std::nullopt;
    return table;
  }

 private:
  struct entry {
    std::uint32_t file = 0;
    std::uint32_t tokens = 0;
    std::uint32_t loss_tokens = 0;
    std::uint32_t patches = 0;
    std::uint64_t ids_offset = 0;
    std::uint64_t mask_offset = 0;
    /// Of the ids in the lower half, of the mask in the upper.
    std::uint8_t types = 0;
  };
  /// A payload. Its shape is a word: the type in the upper four bits; below it the extent of the
  /// only dimension, or, where `listed` is set, a number in `shapes_`.
  struct place {
    std::uint64_t offset = 0;
    std::uint64_t shape = 0;
  };

  static constexpr std::uint64_t no_mask = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t listed = std::uint64_t{1} << 59;
  static constexpr std::uint64_t value_bits = listed - 1;

  void push(const entry& record, std::uint64_t payload_bytes) {
    if (payload_bytes > largest_.bytes) largest_ = {.id = size(), .bytes = payload_bytes};
    tokens_ = saturating_add(tokens_, record.tokens);
    has_loss_mask_ =
        has_loss_mask_ || record.loss_tokens != detail::unmasked_loss_tokens(record.tokens);
    records_.push_back(record);
  }

  [[nodiscard]] std::uint64_t packed(const payload_shape& shape) {
    const std::uint64_t type = static_cast<std::uint64_t>(shape.type) << 60;
    if (shape.dimensions == 1 && shape.extents[0] <= value_bits) return type | shape.extents[0];
    const auto key = std::tuple(shape.type, shape.dimensions, shape.extents);
    const auto [at, is_new] = numbers_.try_emplace(key, shapes_.size());
    if (is_new) shapes_.push_back(shape);
    return type | listed | at->second;
  }

  [[nodiscard]] payload_shape unpacked(std::uint64_t word) const noexcept {
    const std::uint64_t value = word & value_bits;
    if ((word & listed) != 0) return shapes_[static_cast<std::size_t>(value)];
    return {static_cast<payload_type>(word >> 60), {value}};
  }

  std::size_t payloads_;
  std::vector<entry> records_;
  std::vector<place> places_;
  /// Shapes of other than one dimension.
  std::vector<payload_shape> shapes_;
  std::map<
      std::tuple<payload_type, std::uint32_t, std::array<std::uint64_t, max_payload_dimensions>>,
      std::uint64_t>
      numbers_;
  std::uint64_t tokens_ = 0;
  bool has_loss_mask_ = false;
  record_payload_bytes largest_;
};

}  // namespace lanepack::inline LANEPACK_ABI
