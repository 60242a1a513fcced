#pragma once

/// @file
/// Loss masks beside Megatron-LM's token files.
///
/// `<prefix>_loss_mask.bin` and `.idx` are a corpus in the same format with a byte for each token
/// of
/// `<prefix>.bin`, of type u8, in the same sequences and documents: 1 where the token is to be
/// predicted from those before it, 0 where it is context only. `<prefix>_loss_tokens.u32` has the
/// loss tokens of each sequence (ones of its mask but for the first token) as little-endian u32;
/// where it is missing they are counted on opening.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/corpus/block_cache.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/megatron_index.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Prefix of the loss mask of the corpus of that prefix.
inline std::string loss_mask_prefix(const std::string& prefix) {
  return prefix + "_loss_mask";
}

inline std::string loss_tokens_path(const std::string& prefix) {
  return prefix + "_loss_tokens.u32";
}

/// Whether the mask of a corpus is to be read.
inline bool has_loss_mask(const std::string& prefix, const megatron_options& options) {
  if (options.loss_mask != megatron_loss_mask::if_present) {
    return options.loss_mask == megatron_loss_mask::required;
  }
  const std::string mask = loss_mask_prefix(prefix);
  return identify_file(mask + ".idx").has_value() || identify_file(mask + ".bin").has_value();
}

/// What stands for the files of a mask in a `cache_key`; a file that is missing is left out.
inline std::vector<file_identity> loss_mask_identities(const std::string& prefix) {
  std::vector<file_identity> found;
  const std::string mask = loss_mask_prefix(prefix);
  for (const std::string& path : {mask + ".idx", mask + ".bin", loss_tokens_path(prefix)}) {
    if (const auto identity = identify_file(path)) found.push_back(*identity);
  }
  return found;
}

/// Removes the mask of a corpus that is about to be replaced, if it has one.
inline void remove_loss_mask(const std::string& prefix) {
  const std::string mask = loss_mask_prefix(prefix);
  for (const std::string& path : {mask + ".idx", mask + ".bin", loss_tokens_path(prefix)}) {
    ::unlink(path.c_str());
  }
}

/// A part of a sequence's mask to be read.
struct loss_mask_read {
  std::uint64_t sequence = 0;
  std::uint64_t first_token = 0;
  /// Where the sequence's tokens lie.
  token_extent tokens;
  std::span<std::uint8_t> out;
};

/// Reads the loss mask of a corpus.
/// @thread_safety  Const members may be called by any number of threads.
class megatron_loss_mask_files {
 public:
  megatron_loss_mask_files(const std::string& prefix, const megatron_options& options,
                           const megatron_index& tokens)
      : bin_(loss_mask_prefix(prefix) + ".bin", options.access),
        index_(loss_mask_prefix(prefix) + ".idx", options, bin_.path(), bin_.size()),
        cache_(ceil_div(tokens.header().sequences, block::records), options.index_cache_bytes) {
    check_counts(tokens);
    if (identify_file(loss_tokens_path(prefix))) {
      counts_.emplace(loss_tokens_path(prefix));
      const std::uint64_t expected = saturating_mul(4, tokens.header().sequences);
      if (counts_->size() != expected) {
        throw_file_error_at(counts_->path(), std::min(counts_->size(), expected),
                            "found a file of " + std::to_string(counts_->size()) +
                                " bytes, expected " + std::to_string(expected) + " for the " +
                                std::to_string(tokens.header().sequences) + " sequences of " +
                                index_.file().path());
      }
    } else {
      count_all(options.threads);
    }
  }

  [[nodiscard]] std::vector<file_identity> files() const {
    std::vector<file_identity> all = {index_.file().identity(), bin_.identity()};
    if (counts_) all.push_back(counts_->identity());
    return all;
  }

  /// Loss tokens of a sequence of `tokens` tokens.
  /// @throws data_error  The count cannot be read or cannot be.
  [[nodiscard]] std::uint64_t loss_tokens(std::uint64_t sequence, std::uint64_t tokens) const {
    const std::uint64_t count = count_of(sequence);
    if (count <= unmasked_loss_tokens(tokens)) return count;
    throw_data_error({.path = counts_ ? counts_->path() : bin_.path(),
                      .byte_offset = 4 * sequence,
                      .record = sequence,
                      .line = {}},
                     "found " + std::to_string(count) + " loss tokens, expected at most " +
                         std::to_string(unmasked_loss_tokens(tokens)) + " in a sequence of " +
                         std::to_string(tokens) + " tokens");
  }

  /// Fills every `out`.
  /// @throws data_error  The mask is not that of the tokens, has another value than 0 or 1, or
  ///                     cannot be read.
  void read(std::span<const loss_mask_read> reads) const {
    std::vector<file_range> ranges;
    ranges.reserve(reads.size());
    for (const loss_mask_read& each : reads) {
      const token_extent extent = index_.extent(each.sequence);
      if (extent != each.tokens) {
        throw_data_error({.path = index_.file().path(),
                          .byte_offset = index_.header().length_offset(each.sequence),
                          .record = each.sequence,
                          .line = {}},
                         "found a mask of " + std::to_string(extent.tokens) + " values from " +
                             std::to_string(extent.start) + " on, expected " +
                             std::to_string(each.tokens.tokens) + " from " +
                             std::to_string(each.tokens.start) + " on, as the tokens");
      }
      ranges.push_back({extent.start + each.first_token, std::as_writable_bytes(each.out)});
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const file_range& a, const file_range& b) { return a.offset < b.offset; });
    bin_.read_ranges(ranges, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) check_values(ranges[i]);
    });
    if (!reads.empty()) bin_.check_unchanged();
    if (!index_.keeps_all()) index_.file().check_unchanged();
  }

  /// Digest of the loss tokens of all sequences.
  [[nodiscard]] digest128 digest() const {
    digest_builder digest;
    digest.text("loss mask");
    std::vector<std::byte> part;
    const std::uint64_t total = 4 * index_.header().sequences;
    if (!counts_) digest.bytes(std::as_bytes(std::span(counted_)));
    for (std::uint64_t at = 0; counts_ && at < total; at += part.size()) {
      part.resize(static_cast<std::size_t>(std::min<std::uint64_t>(total - at, 1 << 20)));
      counts_->read_at(at, part);
      digest.bytes(part);
    }
    if (counts_) counts_->check_unchanged();
    return digest.value();
  }

 private:
  struct block {
    static constexpr std::size_t records = 4096;
    std::array<std::uint32_t, records> counts;
  };

  void check_counts(const megatron_index& tokens) const {
    const auto refuse = [this](std::uint64_t offset, const std::string& found,
                               const std::string& expected) {
      throw_file_error_at(index_.file().path(), offset,
                          "loss mask: found " + found + ", expected " + expected);
    };
    if (index_.header().type != token_type::u8) {
      refuse(17, "values of type " + std::string(token_type_name(index_.header().type)), "u8");
    }
    if (index_.header().sequences != tokens.header().sequences || index_.end() != tokens.end()) {
      refuse(18,
             std::to_string(index_.header().sequences) + " sequences and " +
                 std::to_string(index_.end()) + " values",
             std::to_string(tokens.header().sequences) + " and " + std::to_string(tokens.end()) +
                 " as in " + tokens.file().path());
    }
  }

  void check_values(const file_range& range) const {
    const auto is_wrong = [](std::byte value) { return std::to_integer<unsigned>(value) > 1; };
    const auto wrong = std::find_if(range.out.begin(), range.out.end(), is_wrong);
    if (wrong == range.out.end()) return;
    throw_file_error_at(bin_.path(),
                        range.offset + static_cast<std::uint64_t>(wrong - range.out.begin()),
                        "found " + std::to_string(std::to_integer<unsigned>(*wrong)) +
                            " in a loss mask, expected 0 or 1");
  }

  [[nodiscard]] std::uint64_t count_of(std::uint64_t sequence) const {
    if (!counts_) return counted_[static_cast<std::size_t>(sequence)];
    const std::uint64_t number = sequence / block::records;
    const block* known = cache_.find_or_load(number, [&](block& out) {
      const std::uint64_t first = number * block::records;
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>(block::records, index_.header().sequences - first));
      counts_->read_at(4 * first, std::as_writable_bytes(std::span(out.counts).first(count)));
      counts_->check_unchanged();
    });
    if (known != nullptr) return known->counts[sequence % block::records];
    std::array<std::byte, 4> raw;
    counts_->read_at(4 * sequence, raw);
    counts_->check_unchanged();
    return load_number<std::uint32_t>(raw.data());
  }

  void count_all(unsigned threads) {
    const std::uint64_t sequences = index_.header().sequences;
    counted_.resize(static_cast<std::size_t>(sequences));
    parallel_for(ceil_div(sequences, block::records), threads, [&](std::uint64_t number) {
      std::vector<std::byte> part;
      const std::uint64_t end = std::min(sequences, (number + 1) * block::records);
      for (std::uint64_t i = number * block::records; i < end; ++i) {
        const token_extent extent = index_.extent(i);
        // The first token cannot be predicted.
        for (std::uint64_t at = 1; at < extent.tokens; at += part.size()) {
          part.resize(static_cast<std::size_t>(
              std::min<std::uint64_t>(extent.tokens - at, std::uint64_t{1} << 20)));
          bin_.read_at(extent.start + at, part);
          check_values({extent.start + at, part});
          counted_[static_cast<std::size_t>(i)] +=
              static_cast<std::uint32_t>(std::count(part.begin(), part.end(), std::byte{1}));
        }
      }
    });
    bin_.check_unchanged();
  }

  input_file bin_;
  megatron_index index_;
  std::optional<input_file> counts_;
  /// Where there is no file of counts.
  std::vector<std::uint32_t> counted_;
  block_cache<block> cache_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
