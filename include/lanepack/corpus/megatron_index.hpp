#pragma once

/// @file
/// The index of Megatron-LM's token files: where sequences and documents lie in the `.bin`.
///
/// Layout as written by Megatron-LM (`megatron/core/datasets/indexed_dataset.py`). Little-endian,
/// without alignment:
///
///     0          9 bytes  "MMIDIDX\0\0"
///     9          u64      version 1
///     17         u8       code of the token type
///     18         u64      N, the number of sequences
///     26         u64      D, the number of documents plus one
///     34         i32[N]   tokens of each sequence
///     34 + 4N    i64[N]   byte at which each sequence starts in the .bin
///     34 + 12N   i64[D]   first sequence of each document, then N
///     34+12N+8D  i8[N]    modes, in multimodal files only

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/corpus/block_cache.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// First bytes of every Megatron-LM index.
inline constexpr std::string_view megatron_magic{"MMIDIDX\0\0", 9};

namespace detail {

/// Token type of a code in an index; codes 6 and 7 are floating point, 9 and 10 are found in
/// indices of writers that share Megatron-LM's codes up to 8.
constexpr std::optional<token_type> megatron_type_of(unsigned code) noexcept {
  switch (code) {
    case 1:
      return token_type::u8;
    case 2:
      return token_type::i8;
    case 3:
      return token_type::i16;
    case 4:
      return token_type::i32;
    case 5:
      return token_type::i64;
    case 8:
      return token_type::u16;
    case 9:
      return token_type::u32;
    case 10:
      return token_type::u64;
    default:
      return std::nullopt;
  }
}

constexpr unsigned megatron_code_of(token_type type) noexcept {
  for (unsigned code = 1; code <= 10; ++code) {
    if (megatron_type_of(code) == type) return code;
  }
  return 0;
}

inline constexpr std::uint64_t megatron_header_bytes = 34;

/// What the header of an index says.
struct megatron_header {
  token_type type = token_type::i32;
  std::uint64_t sequences = 0;
  std::uint64_t document_entries = 0;
  bool multimodal = false;

  [[nodiscard]] std::uint64_t length_offset(std::uint64_t sequence) const noexcept {
    return megatron_header_bytes + 4 * sequence;
  }
  [[nodiscard]] std::uint64_t pointer_offset(std::uint64_t sequence) const noexcept {
    return megatron_header_bytes + 4 * sequences + 8 * sequence;
  }
  [[nodiscard]] std::uint64_t document_offset(std::uint64_t document) const noexcept {
    return megatron_header_bytes + 12 * sequences + 8 * document;
  }
};

inline megatron_header read_megatron_header(const input_file& index) {
  const auto fail = [&index](std::uint64_t offset, const std::string& what) {
    throw_file_error_at(index.path(), offset, "Megatron-LM index: " + what);
  };
  std::array<std::byte, megatron_header_bytes> raw{};
  const auto present = static_cast<std::size_t>(std::min<std::uint64_t>(raw.size(), index.size()));
  index.read_at(0, std::span(raw).first(present));
  const std::string_view text(reinterpret_cast<const char*>(raw.data()), present);
  if (text.substr(0, 6) == "TNTIDX") {
    fail(0,
         "found the magic TNTIDX of fairseq's older format, expected MMIDIDX: convert the "
         "corpus with Megatron-LM's tools");
  }
  if (text.substr(0, megatron_magic.size()) != megatron_magic) {
    fail(0, "found another magic, expected MMIDIDX");
  }
  if (present < 26) {
    fail(present,
         "found a file of " + std::to_string(present) + " bytes, expected a header of 34 bytes");
  }
  if (const auto version = load_number<std::uint64_t>(raw.data() + 9); version != 1) {
    fail(9, "found version " + std::to_string(version) + ", expected 1");
  }
  megatron_header header;
  header.sequences = load_number<std::uint64_t>(raw.data() + 18);
  const uint128 size = index.size();
  const uint128 sequences = header.sequences;
  if (present == raw.size()) header.document_entries = load_number<std::uint64_t>(raw.data() + 26);
  const uint128 expected =
      megatron_header_bytes + 12 * sequences + 8 * static_cast<uint128>(header.document_entries);
  header.multimodal = size == expected + sequences && sequences != 0;
  if (present < raw.size() || (size != expected && !header.multimodal)) {
    if (size == 26 + 12 * sequences) {
      fail(26,
           "found fairseq's variant of the format, which has no document index, expected "
           "Megatron-LM's");
    }
    const std::string counts = std::to_string(header.sequences) + " sequences and " +
                               std::to_string(header.document_entries) + " document entries";
    if (expected > std::numeric_limits<std::uint64_t>::max() / 2) {
      fail(18, "found " + counts + " in a file of " + std::to_string(index.size()) +
                   " bytes, expected counts that fit into it");
    }
    fail(std::min(index.size(), static_cast<std::uint64_t>(expected)),
         "found a file of " + std::to_string(index.size()) + " bytes, expected " +
             std::to_string(static_cast<std::uint64_t>(expected)) + " (or " +
             std::to_string(static_cast<std::uint64_t>(expected + sequences)) +
             " with modes) for " + counts);
  }
  const auto code = std::to_integer<unsigned>(raw[17]);
  const std::optional<token_type> type = megatron_type_of(code);
  if (!type) {
    fail(17, "found the token type code " + std::to_string(code) +
                 (code == 6 || code == 7 ? " (floating point)" : "") +
                 ", expected an integer type (1 to 5, or 8 to 10)");
  }
  header.type = *type;
  return header;
}

/// The first bytes of an index.
inline std::vector<std::byte> megatron_header_text(token_type type, std::uint64_t sequences,
                                                   std::uint64_t document_entries) {
  std::vector<std::byte> header;
  const auto magic = std::as_bytes(std::span(megatron_magic));
  header.insert(header.end(), magic.begin(), magic.end());
  append_number(header, std::uint64_t{1});
  append_number(header, static_cast<std::uint8_t>(megatron_code_of(type)));
  append_number(header, sequences);
  append_number(header, document_entries);
  return header;
}

/// Format and record of a corpus, for `cache_key`.
inline std::string megatron_variant(const megatron_options& options, bool has_loss_mask) {
  std::string variant = "megatron";
  variant += options.record == megatron_record::document ? " documents" : " sequences";
  if (options.pointers == megatron_pointers::recomputed) variant += " recomputed";
  if (has_loss_mask) variant += " with a loss mask";
  return variant;
}

/// `prefix` of a path with or without its `.bin` or `.idx`.
inline std::string megatron_prefix(std::string path) {
  if (path.ends_with(".bin") || path.ends_with(".idx")) path.resize(path.size() - 4);
  return path;
}

/// Reads extents of sequences out of an index and checks what it reads.
/// @thread_safety  Const members may be called by any number of threads.
class megatron_index {
 public:
  megatron_index(std::string path, const megatron_options& options, const std::string& bin_path,
                 std::uint64_t bin_bytes)
      : file_(std::move(path), options.index_access),
        header_(read_megatron_header(file_)),
        bin_path_(bin_path),
        cache_(blocks(),
               options.index_access == file_access::mapped ? 0 : options.index_cache_bytes) {
    if (options.pointers == megatron_pointers::recomputed) sum_lengths(options.threads);
    find_end();
    check_bin(bin_bytes, options.allow_longer_bin);
  }

  [[nodiscard]] const input_file& file() const noexcept { return file_; }
  [[nodiscard]] const megatron_header& header() const noexcept { return header_; }
  /// Token at which the last sequence ends.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// Tokens of a sequence.
  [[nodiscard]] std::uint64_t length(std::uint64_t sequence) const {
    const record_block* block = find_block(sequence);
    return block != nullptr ? block->lengths[sequence % record_block::records]
                            : direct_extent(sequence).tokens;
  }

  [[nodiscard]] token_extent extent(std::uint64_t sequence) const {
    const record_block* block = find_block(sequence);
    return block != nullptr ? block->extent(sequence % record_block::records)
                            : direct_extent(sequence);
  }

  /// Fetches what `length` will read from memory into the processor's caches, if it is in memory.
  void prefetch_length(std::uint64_t sequence) const noexcept {
    if (file_.mapping() != nullptr) {
      prefetch_mapped(sequence);
    } else if (const record_block* block = cache_.find(sequence / record_block::records)) {
      __builtin_prefetch(&block->lengths[sequence % record_block::records]);
    }
  }

  /// The same for `extent`.
  void prefetch_extent(std::uint64_t sequence) const noexcept {
    if (file_.mapping() != nullptr) {
      prefetch_mapped(sequence);
    } else if (const record_block* block = cache_.find(sequence / record_block::records)) {
      // The lengths from there on fill one line.
      const std::size_t entry = sequence % record_block::records / record_block::stride;
      __builtin_prefetch(&block->starts[entry]);
      __builtin_prefetch(&block->lengths[entry * record_block::stride]);
    }
  }

  /// True if every entry is kept once it was read and checked, so that no later change of the file
  /// goes unseen.
  [[nodiscard]] bool keeps_all() const noexcept { return cache_.holds_all(); }

  /// Digest of all lengths, read with all threads.
  [[nodiscard]] digest128 digest_lengths(unsigned threads) const {
    constexpr std::uint64_t chunk_sequences = std::uint64_t{1} << 18;
    std::vector<digest128> parts(
        static_cast<std::size_t>(ceil_div(header_.sequences, chunk_sequences)));
    parallel_for(parts.size(), threads, [&](std::uint64_t chunk) {
      const std::uint64_t first = chunk * chunk_sequences;
      std::vector<std::byte> raw(
          static_cast<std::size_t>(4 * std::min(chunk_sequences, header_.sequences - first)));
      file_.read_at(header_.length_offset(first), raw);
      digest_builder digest;
      digest.bytes(raw);
      parts[chunk] = digest.value();
    });
    file_.check_unchanged();
    digest_builder digest;
    for (const digest128& part : parts) digest.digest(part);
    return digest.value();
  }

 private:
  [[nodiscard]] std::uint64_t blocks() const noexcept {
    return ceil_div(header_.sequences, record_block::records);
  }

  /// The length, and the two pointers that it is checked against.
  void prefetch_mapped(std::uint64_t sequence) const noexcept {
    if (sequence >= header_.sequences) return;
    const std::byte* const pointers = file_.mapping() + header_.pointer_offset(sequence);
    __builtin_prefetch(file_.mapping() + header_.length_offset(sequence));
    __builtin_prefetch(pointers);
    __builtin_prefetch(pointers + 2 * sizeof(std::uint64_t) - 1);
  }

  [[nodiscard]] const record_block* find_block(std::uint64_t sequence) const {
    const std::uint64_t block = sequence / record_block::records;
    return cache_.find_or_load(block, [&](record_block& out) { load(block, out); });
  }

  [[noreturn]] LANEPACK_COLD void fail(std::uint64_t offset, std::uint64_t sequence,
                                       const std::string& what) const {
    throw_data_error({.path = file_.path(), .byte_offset = offset, .record = sequence, .line = {}},
                     "Megatron-LM index: " + what);
  }

  [[nodiscard]] std::uint32_t checked_length(std::uint64_t sequence,
                                             const std::byte* stored) const {
    const auto length = load_number<std::int32_t>(stored);
    if (length < 0) {
      fail(header_.length_offset(sequence), sequence,
           "found a length of " + std::to_string(length) + " tokens, expected at least 0");
    }
    return static_cast<std::uint32_t>(length);
  }

  /// Token at which a sequence starts, by its pointer.
  [[nodiscard]] std::uint64_t checked_start(std::uint64_t sequence, const std::byte* stored) const {
    const auto pointer = load_number<std::int64_t>(stored);
    const auto bytes = static_cast<std::int64_t>(token_bytes(header_.type));
    if (pointer < 0 || pointer % bytes != 0) {
      fail(header_.pointer_offset(sequence), sequence,
           "found the pointer " + std::to_string(pointer) + ", expected a multiple of " +
               std::to_string(bytes) + recompute_hint());
    }
    return static_cast<std::uint64_t>(pointer) / static_cast<std::uint64_t>(bytes);
  }

  static std::string recompute_hint() {
    return " (pointers that overflowed when they were written can be recomputed from the lengths)";
  }

  void check_next(std::uint64_t sequence, std::uint64_t start, std::uint64_t length,
                  std::uint64_t next) const {
    if (next - start == length && next >= start) return;
    const std::uint64_t bytes = token_bytes(header_.type);
    fail(header_.pointer_offset(sequence + 1), sequence + 1,
         "found the pointer " + std::to_string(next * bytes) + ", expected " +
             std::to_string((start + length) * bytes) + ", the end of sequence " +
             std::to_string(sequence) + recompute_hint());
  }

  /// The start of the sequence after the last is the end that was found on opening.
  [[nodiscard]] std::uint64_t start_after(std::uint64_t sequence, const std::byte* stored) const {
    return sequence + 1 == header_.sequences ? end_ : checked_start(sequence + 1, stored);
  }

  void load(std::uint64_t block, record_block& out) const {
    const std::uint64_t first = block * record_block::records;
    const auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>(record_block::records, header_.sequences - first));
    const auto lengths = std::as_writable_bytes(std::span(out.lengths)).first(4 * count);
    file_.read_at(header_.length_offset(first), lengths);
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<void>(checked_length(first + i, lengths.data() + 4 * i));
    }
    if (!sums_.empty()) {
      out.fill_starts(sums_[block], count);
      file_.check_unchanged();
      return;
    }
    const bool last = first + count == header_.sequences;
    std::vector<std::byte> pointers(8 * (count + (last ? 0 : 1)));
    file_.read_at(header_.pointer_offset(first), pointers);
    file_.check_unchanged();
    std::uint64_t start = checked_start(first, pointers.data());
    for (std::size_t i = 0; i < count; ++i) {
      if (i % record_block::stride == 0) out.starts[i / record_block::stride] = start;
      const std::uint64_t next = start_after(first + i, pointers.data() + 8 * (i + 1));
      check_next(first + i, start, out.lengths[i], next);
      start = next;
    }
  }

  /// Reads one sequence's entries, for what is not kept in memory.
  [[nodiscard]] token_extent direct_extent(std::uint64_t sequence) const {
    std::array<std::byte, 16> raw;
    file_.read_at(header_.length_offset(sequence), std::span(raw).first(4));
    const std::uint64_t length = checked_length(sequence, raw.data());
    if (!sums_.empty()) {
      const std::uint64_t first = sequence / record_block::records * record_block::records;
      std::vector<std::byte> before(static_cast<std::size_t>(4 * (sequence - first)));
      file_.read_at(header_.length_offset(first), before);
      std::uint64_t start = sums_[sequence / record_block::records];
      for (std::size_t i = 0; 4 * i < before.size(); ++i) {
        start += checked_length(first + i, before.data() + 4 * i);
      }
      return {start, length};
    }
    const bool last = sequence + 1 == header_.sequences;
    file_.read_at(header_.pointer_offset(sequence), std::span(raw).first(last ? 8 : 16));
    const std::uint64_t start = checked_start(sequence, raw.data());
    check_next(sequence, start, length, start_after(sequence, raw.data() + 8));
    return {start, length};
  }

  void sum_lengths(unsigned threads) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(blocks() + 1));
    parallel_for(blocks(), threads, [&](std::uint64_t block) {
      const std::uint64_t first = block * record_block::records;
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>(record_block::records, header_.sequences - first));
      std::vector<std::byte> lengths(4 * count);
      file_.read_at(header_.length_offset(first), lengths);
      for (std::size_t i = 0; i < count; ++i) {
        sums[block + 1] += checked_length(first + i, lengths.data() + 4 * i);
      }
    });
    for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
    sums_ = std::move(sums);
  }

  void find_end() {
    if (header_.sequences == 0) return;
    if (!sums_.empty()) {
      end_ = sums_.back();
      return;
    }
    std::array<std::byte, 8> raw;
    file_.read_at(header_.pointer_offset(0), raw);
    if (const std::uint64_t start = checked_start(0, raw.data()); start != 0) {
      fail(header_.pointer_offset(0), 0,
           "found the pointer " + std::to_string(start * token_bytes(header_.type)) +
               ", expected 0");
    }
    const std::uint64_t last = header_.sequences - 1;
    file_.read_at(header_.pointer_offset(last), raw);
    const std::uint64_t start = checked_start(last, raw.data());
    file_.read_at(header_.length_offset(last), std::span(raw).first(4));
    end_ = start + checked_length(last, raw.data());
  }

  void check_bin(std::uint64_t bin_bytes, bool allow_longer) const {
    const std::uint64_t expected = saturating_mul(end_, token_bytes(header_.type));
    if (bin_bytes == expected || (allow_longer && bin_bytes > expected)) return;
    throw_file_error_at(bin_path_, std::min(bin_bytes, expected),
                        "found a file of " + std::to_string(bin_bytes) + " bytes, expected " +
                            std::to_string(expected) + " for the " +
                            std::to_string(header_.sequences) + " sequences of " + file_.path());
  }

  input_file file_;
  megatron_header header_;
  std::string bin_path_;
  std::uint64_t end_ = 0;
  /// Start of each block, where pointers are recomputed; else empty.
  std::vector<std::uint64_t> sums_;
  block_cache<record_block> cache_;
};

/// Reads the first sequences of documents out of an index and checks what it reads.
/// @thread_safety  Const members may be called by any number of threads.
class megatron_documents {
 public:
  megatron_documents(const megatron_index& index, const megatron_options& options)
      : index_(&index),
        entries_(index.header().document_entries),
        cache_(ceil_div(entries_ + 1, block::records),
               options.index_access == file_access::mapped ? 0 : options.index_cache_bytes) {
    const std::uint64_t sequences = index.header().sequences;
    if (entries_ == 0 || (entries_ == 1 && sequences != 0)) {
      fail(0, "found no documents, expected their boundaries: open the corpus by sequence");
    }
    if (const std::uint64_t first = direct(0); first != 0) {
      fail(0, "found " + std::to_string(first) +
                  " as the first sequence of the first document, "
                  "expected 0");
    }
    documents_ = entries_ - 1 + (direct(entries_ - 1) < sequences ? 1 : 0);
  }

  /// Documents, and one more where sequences follow the last.
  [[nodiscard]] std::uint64_t size() const noexcept { return documents_; }

  /// First sequence of a document; `document` may be `size()`.
  [[nodiscard]] std::uint64_t first_sequence(std::uint64_t document) const {
    const block* known = cache_.find_or_load(
        document / block::records, [&](block& out) { load(document / block::records, out); });
    return known != nullptr ? known->first[document % block::records] : direct(document);
  }

  /// As `megatron_index::keeps_all`.
  [[nodiscard]] bool keeps_all() const noexcept { return cache_.holds_all(); }

  [[nodiscard]] token_extent extent(std::uint64_t document) const {
    const std::uint64_t first = first_sequence(document);
    const std::uint64_t last = first_sequence(document + 1);
    if (last < first) fail_order(document + 1, last, first);
    const std::uint64_t start = start_of(first);
    return {start, start_of(last) - start};
  }

 private:
  struct block {
    static constexpr std::size_t records = 4096;
    std::array<std::uint64_t, records> first;
  };

  [[noreturn]] LANEPACK_COLD void fail(std::uint64_t document, const std::string& what) const {
    throw_data_error({.path = index_->file().path(),
                      .byte_offset = index_->header().document_offset(document),
                      .record = document,
                      .line = {}},
                     "Megatron-LM index: " + what);
  }

  [[noreturn]] LANEPACK_COLD void fail_order(std::uint64_t document, std::uint64_t found,
                                             std::uint64_t before) const {
    fail(document, "found " + std::to_string(found) +
                       " as the first sequence of a document, expected at least " +
                       std::to_string(before) + ", that of the document before");
  }

  [[nodiscard]] std::uint64_t start_of(std::uint64_t sequence) const {
    return sequence == index_->header().sequences ? index_->end() : index_->extent(sequence).start;
  }

  [[nodiscard]] std::uint64_t checked(std::uint64_t document, const std::byte* stored) const {
    const auto value = load_number<std::int64_t>(stored);
    const std::uint64_t sequences = index_->header().sequences;
    if (value < 0 || static_cast<std::uint64_t>(value) > sequences) {
      fail(document, "found " + std::to_string(value) +
                         " as the first sequence of a document, expected one in [0, " +
                         std::to_string(sequences) + "]");
    }
    return static_cast<std::uint64_t>(value);
  }

  [[nodiscard]] std::uint64_t direct(std::uint64_t document) const {
    if (document >= entries_) return index_->header().sequences;
    std::array<std::byte, 8> raw;
    index_->file().read_at(index_->header().document_offset(document), raw);
    return checked(document, raw.data());
  }

  void load(std::uint64_t number, block& out) const {
    const std::uint64_t first = number * block::records;
    const auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>(block::records, entries_ - std::min(entries_, first)));
    const auto raw = std::as_writable_bytes(std::span(out.first)).first(8 * count);
    index_->file().read_at(index_->header().document_offset(first), raw);
    index_->file().check_unchanged();
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<void>(checked(first + i, raw.data() + 8 * i));
    }
    std::fill(out.first.begin() + static_cast<std::ptrdiff_t>(count), out.first.end(),
              index_->header().sequences);
  }

  const megatron_index* index_;
  std::uint64_t entries_;
  std::uint64_t documents_ = 0;
  block_cache<block> cache_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
