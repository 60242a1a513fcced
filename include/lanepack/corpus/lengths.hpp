#pragma once

/// @file
/// `length_source`: a corpus of which only the record lengths are known.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/npy.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Record lengths without records: for simulation and planning; a `record_source`.
///
/// Lengths are at most 2^32 - 1 tokens. The fingerprint covers their number and values and is the
/// same for every way to store them.
/// @thread_safety  Const members may be called by any number of threads.
class length_source {
 public:
  /// Takes lengths in tokens.
  explicit length_source(std::vector<std::uint32_t> lengths)
      : owned_(lengths.size() * sizeof(std::uint32_t)),
        data_(owned_.data()),
        size_(lengths.size()),
        origin_("memory") {
    if (!lengths.empty()) std::memcpy(owned_.data(), lengths.data(), owned_.size());
  }

  /// Opens a one-dimensional `.npy` array of integers.
  /// @param access  `positioned` reads the table into memory and checks every length now; `mapped`
  ///                opens in O(1), checks at access, and shares the pages with other processes.
  /// @throws data_error  The file is not such an array, or a length is not in [0, 2^32).
  [[nodiscard]] static length_source from_npy(std::string path,
                                              file_access access = file_access::positioned) {
    input_file file(std::move(path), access);
    const npy_header header = read_npy_header(file);
    return length_source(std::move(file), header);
  }

  /// Opens a file of little-endian u32 numbers and nothing else.
  /// @param access  As for `from_npy`.
  /// @throws data_error  The file cannot be read or its size is not a multiple of 4.
  [[nodiscard]] static length_source from_u32(std::string path,
                                              file_access access = file_access::positioned) {
    input_file file(std::move(path), access);
    if (file.size() % sizeof(std::uint32_t) != 0) {
      detail::throw_file_error_at(file.path(), file.size() - file.size() % sizeof(std::uint32_t),
                                  "found a file of " + std::to_string(file.size()) +
                                      " bytes, expected a multiple of 4 for a list of u32 lengths");
    }
    const std::uint64_t count = file.size() / sizeof(std::uint32_t);
    return length_source(std::move(file),
                         npy_header{.type = token_type::u32, .count = count, .data_offset = 0});
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] source_traits traits() const {
    return {.has_payload = false, .has_all_shapes = true, .has_loss_mask = false};
  }

  /// What results made from this source have to be kept under; no files for lengths in memory.
  [[nodiscard]] cache_key identity() const {
    cache_key key{.files = {}, .variant = "lengths"};
    if (identity_) key.files.push_back(*identity_);
    return key;
  }

  /// @throws state_error  An id is not in the corpus.
  /// @throws data_error   A length of a mapped table is not in [0, 2^32).
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    if (file_) file_->check_unchanged();
    detail::with_token_type(type_, [&](auto zero) {
      using stored = decltype(zero);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        detail::check_record(ids[i], size_);
        out[i] = detail::unmasked_shape(length<stored>(ids[i]));
      }
    });
  }

  /// There is nothing to read.
  /// @throws state_error  Always, unless `reads` is empty.
  void read(std::span<const record_read> reads) const {
    if (!reads.empty()) {
      detail::throw_state_error(describe() + ": found a read of record " +
                                std::to_string(reads.front().id) +
                                ", expected none: a length table holds no tokens");
    }
  }

  /// @complexity  O(records) at the first call.
  [[nodiscard]] digest128 fingerprint() const {
    return fingerprint_.value([this] {
      digest_builder digest;
      digest.text("lengths");
      digest.number(size_);
      detail::with_token_type(type_, [&](auto zero) {
        std::array<std::uint32_t, 1024> block;
        for (record_id first = 0; first < size_; first += block.size()) {
          const auto count =
              static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size_ - first));
          for (std::size_t i = 0; i < count; ++i) block[i] = length<decltype(zero)>(first + i);
          digest.bytes(std::as_bytes(std::span(block).first(count)));
        }
      });
      return digest.value();
    });
  }

  [[nodiscard]] std::string describe() const {
    return "lengths " + origin_ + ", " + std::to_string(size_) + " records";
  }

 private:
  length_source(input_file file, const npy_header& header)
      : type_(header.type),
        data_offset_(header.data_offset),
        size_(header.count),
        origin_(file.path()),
        identity_(file.identity()) {
    if (file.access() == file_access::mapped) {
      data_ = file.mapping() + header.data_offset;
      file_.emplace(std::move(file));
      return;
    }
    owned_.resize(static_cast<std::size_t>(header.count * token_bytes(type_)));
    file.read_at(header.data_offset, owned_);
    file.check_unchanged();
    data_ = owned_.data();
    detail::with_token_type(type_, [this](auto zero) {
      if constexpr (std::signed_integral<decltype(zero)> || sizeof zero > 4) {
        for (record_id id = 0; id < size_; ++id) static_cast<void>(length<decltype(zero)>(id));
      }
    });
  }

  template <class Stored>
  [[nodiscard]] std::uint32_t length(record_id id) const {
    const auto value = detail::load_number<Stored>(data_ + id * sizeof(Stored));
    if constexpr (std::signed_integral<Stored>) {
      if (value < 0) throw_bad(id);
    }
    if constexpr (sizeof(Stored) > 4) {
      if (static_cast<std::uint64_t>(value) > std::numeric_limits<std::uint32_t>::max()) {
        throw_bad(id);
      }
    }
    return static_cast<std::uint32_t>(value);
  }

  [[noreturn]] LANEPACK_COLD void throw_bad(record_id id) const {
    const std::uint64_t position = id * token_bytes(type_);
    detail::throw_data_error(
        {.path = origin_, .byte_offset = data_offset_ + position, .record = id, .line = {}},
        "found a length of " + detail::number_text(type_, data_ + position) +
            " tokens, expected one in [0, 4294967295]");
  }

  std::vector<std::byte> owned_;
  std::optional<input_file> file_;
  const std::byte* data_ = nullptr;
  token_type type_ = token_type::u32;
  std::uint64_t data_offset_ = 0;
  std::uint64_t size_ = 0;
  std::string origin_;
  std::optional<file_identity> identity_;
  detail::lazy_digest fingerprint_;
};

static_assert(record_source<length_source>);

}  // namespace lanepack::inline LANEPACK_ABI
