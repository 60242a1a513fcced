#pragma once

/// @file
/// Records with payloads out of MDS shards: what the columns of a shard are taken for.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/file_window.hpp>
#include <lanepack/corpus/image_size.hpp>
#include <lanepack/corpus/mds.hpp>
#include <lanepack/corpus/patches.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/record_table.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What the columns of MDS samples are.
struct mds_record_options {
  /// Column of token ids: an array or bytes. Empty: `tokens` or `input_ids`, whichever is there.
  std::string tokens = {};
  /// Type of the ids in a column of bytes, which does not say it.
  token_type bytes_type = token_type::i64;
  /// Column of a loss mask, 0 or 1 for each token, an array or bytes of one byte a token. Empty:
  /// none.
  std::string loss_mask = {};
  /// Columns that are delivered as payloads, in this order: arrays, scalars and raw pixels with
  /// their shape, everything else, encoded images and lists of them among it, as bytes.
  std::vector<std::string> payloads = {};
  /// How patches are counted; `payload` is the name of any column.
  patch_options patches = {};
};

namespace detail {

/// Numbers of columns in a shard.
struct mds_chosen_columns {
  std::size_t tokens = 0;
  std::optional<std::size_t> loss_mask;
  std::vector<std::size_t> payloads;
  std::optional<std::size_t> patches;
};

/// The token type of stored numbers, or nullopt where they are not integers.
[[nodiscard]] inline std::optional<token_type> integer_type(payload_type type) noexcept {
  if (type > payload_type::i64) return std::nullopt;
  return static_cast<token_type>(type);
}

/// Makes records of the samples of one shard.
/// @thread_safety  None: one thread per object.
class mds_record_scan {
 public:
  mds_record_scan(const input_file& file, std::uint32_t number, const mds_columns& columns,
                  const mds_chosen_columns& chosen, const mds_record_options& options)
      : window_(file), number_(number), columns_(columns), chosen_(chosen), options_(options) {}

  /// @param samples  Samples that the index says.
  /// @throws data_error  The shard is not what index and encodings say.
  [[nodiscard]] record_table run(std::uint64_t samples) && {
    const std::vector<std::uint32_t> offsets = read_mds_offsets(window_.file(), samples);
    record_table table(chosen_.payloads.size());
    for (sample_ = 0; sample_ < samples; ++sample_) {
      const std::uint64_t begin = offsets[static_cast<std::size_t>(sample_)];
      const std::uint64_t end = offsets[static_cast<std::size_t>(sample_) + 1];
      const std::size_t head = columns_.head_bytes();
      if (head > end - begin) {
        fail(begin, "found a sample of " + std::to_string(end - begin) +
                        " bytes, expected at least " + std::to_string(head) + " for its sizes");
      }
      columns_.locate(window_.file().path(), sample_, begin, end, window_.view(begin, head),
                      values_);
      table.add(record());
    }
    return table;
  }

 private:
  [[noreturn]] LANEPACK_COLD void fail(std::uint64_t offset, const std::string& what) const {
    throw_data_error(
        {.path = window_.file().path(), .byte_offset = offset, .record = sample_, .line = {}},
        what);
  }

  [[noreturn]] LANEPACK_COLD void fail(std::size_t column, std::uint64_t offset,
                                       const std::string& what) const {
    fail(values_[column].offset + offset,
         "column " + detail::quoted(columns_.columns()[column].name) + ": " + what);
  }

  [[nodiscard]] std::span<const std::byte> view(std::size_t column, std::uint64_t offset,
                                                std::size_t bytes) {
    return window_.view(values_[column].offset + offset, bytes);
  }

  /// Shape of the numbers in `bytes` bytes of a column's value from `offset` on.
  [[nodiscard]] mds_numbers header(std::size_t column, const mds_encoding& encoding,
                                   std::uint64_t offset, std::uint64_t bytes) {
    const auto start = static_cast<std::size_t>(std::min(bytes, mds_header_bytes));
    try {
      return mds_header_reader(encoding, view(column, offset, start), bytes).read();
    } catch (const mds_fault& fault) {
      fail(column, offset + fault.offset, fault.what);
    }
  }

  [[nodiscard]] mds_numbers header(std::size_t column) {
    return header(column, columns_.columns()[column].encoding, 0, values_[column].bytes);
  }

  /// Whole numbers in one dimension, or in more of which all but the last have extent 1.
  struct integers {
    stored_numbers stored;
    std::uint32_t count = 0;
  };

  [[nodiscard]] integers integers_of(std::size_t column, token_type bytes_type) {
    const mds_numbers numbers = header(column);
    const mds_kind kind = columns_.columns()[column].encoding.kind;
    std::optional<token_type> type = integer_type(numbers.shape.type);
    if (kind == mds_kind::bytes) {
      type = bytes_type;
    } else if (kind != mds_kind::array) {
      type = std::nullopt;
    }
    if (!type) {
      fail(column, 0,
           "found encoding " + detail::quoted(columns_.columns()[column].encoding.name) +
               ", expected bytes or an array of integers");
    }
    const std::uint64_t bytes = numbers.shape.bytes();
    if (bytes % token_bytes(*type) != 0) {
      fail(column, 0,
           "found " + std::to_string(bytes) + " bytes, expected a multiple of " +
               std::to_string(token_bytes(*type)) + " for numbers of type " +
               std::string(token_type_name(*type)));
    }
    return {.stored = {.offset = values_[column].offset + numbers.first_byte, .type = *type},
            .count = static_cast<std::uint32_t>(bytes / token_bytes(*type))};
  }

  [[nodiscard]] std::uint32_t count_loss_tokens(std::size_t column, const integers& mask) {
    std::uint32_t ones = 0;
    const std::size_t bytes = token_bytes(mask.stored.type);
    for (std::uint32_t i = 0; i < mask.count; ++i) {
      const std::uint64_t offset = mask.stored.offset + std::uint64_t{i} * bytes;
      const std::uint64_t value = load_uint(window_.view(offset, bytes).data(), bytes);
      if (value > 1) {
        fail(column, offset - values_[column].offset, "found a loss mask other than 0 and 1");
      }
      // The first token of a record has nothing before it to be predicted from.
      if (i != 0 && value == 1) ++ones;
    }
    return ones;
  }

  [[nodiscard]] std::uint64_t patches_in(std::size_t column, std::uint64_t offset,
                                         std::uint64_t bytes) {
    if (bytes == 0) return 0;
    try {
      return patches_of(read_image_size(bytes,
                                        [&](std::uint64_t at, std::size_t count) {
                                          return view(column, offset + at, count);
                                        }),
                        options_.patches);
    } catch (const image_fault& fault) {
      fail(column, offset + fault.offset, fault.what);
    }
  }

  [[nodiscard]] std::uint64_t count_patches(std::size_t column) {
    const mds_encoding& encoding = columns_.columns()[column].encoding;
    if (encoding.kind == mds_kind::array || encoding.kind == mds_kind::pixels) {
      return patches_of(header(column).shape, options_.patches);
    }
    if (options_.patches.from == patch_source::rows) {
      fail(column, 0,
           "found encoding " + detail::quoted(encoding.name) +
               ", expected an array whose rows are patches");
    }
    const mds_encoding pixels{.name = "pil", .kind = mds_kind::pixels};
    std::uint64_t patches = 0;
    try {
      for_each_image(
          encoding, values_[column].bytes,
          [&](std::uint64_t offset, std::size_t count) { return view(column, offset, count); },
          [&](std::uint64_t first, std::uint64_t bytes) {
            patches = saturating_add(
                patches,
                encoding.kind == mds_kind::pixels_list
                    ? patches_of(header(column, pixels, first, bytes).shape, options_.patches)
                    : patches_in(column, first, bytes));
          });
    } catch (const mds_fault& fault) {
      fail(column, fault.offset, fault.what);
    }
    return patches;
  }

  [[nodiscard]] stored_record record() {
    const integers tokens = integers_of(chosen_.tokens, options_.bytes_type);
    stored_record made;
    made.file = number_;
    made.tokens = tokens.count;
    made.ids = tokens.stored;
    made.loss_tokens = static_cast<std::uint32_t>(unmasked_loss_tokens(tokens.count));
    if (chosen_.loss_mask) {
      const integers mask = integers_of(*chosen_.loss_mask, token_type::u8);
      if (mask.count != tokens.count) {
        fail(*chosen_.loss_mask, 0,
             "found " + std::to_string(mask.count) + " values of the loss mask, expected " +
                 std::to_string(tokens.count) + ", one for each token");
      }
      made.mask = mask.stored;
      made.loss_tokens = count_loss_tokens(*chosen_.loss_mask, mask);
    }
    for (const std::size_t column : chosen_.payloads) {
      const mds_numbers numbers = header(column);
      made.payloads.push_back(
          {.offset = values_[column].offset + numbers.first_byte, .shape = numbers.shape});
    }
    if (chosen_.patches) {
      const std::uint64_t patches = count_patches(*chosen_.patches);
      if (patches > 0xffff'ffff) {
        fail(*chosen_.patches, 0,
             "found " + std::to_string(patches) + " patches, expected at most 4294967295");
      }
      made.patches = static_cast<std::uint32_t>(patches);
    }
    return made;
  }

  file_window window_;
  std::uint32_t number_;
  const mds_columns& columns_;
  const mds_chosen_columns& chosen_;
  const mds_record_options& options_;
  std::uint64_t sample_ = 0;
  std::vector<mds_value> values_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
