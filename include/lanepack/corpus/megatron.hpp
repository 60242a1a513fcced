#pragma once

/// @file
/// Megatron-LM's indexed token files: `.bin` holds the tokens, `.idx` says where sequences lie.
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
#include <cstring>
#include <memory>
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
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/block_cache.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/token_reads.hpp>
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

/// Format and record of a corpus, for `cache_key`.
inline std::string megatron_variant(const megatron_options& options) {
  std::string variant = "megatron";
  variant += options.record == megatron_record::document ? " documents" : " sequences";
  if (options.pointers == megatron_pointers::recomputed) variant += " recomputed";
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

/// A corpus in Megatron-LM's indexed format; a `record_source`.
///
/// Opening reads a few bytes, whatever the size of the corpus. An index entry is checked when it is
/// first used: no negative length, each sequence starts where the one before ends, the last ends
/// with the `.bin`. The fingerprint covers token type, record, counts and all lengths.
/// @complexity  Shapes: O(1), about 7 ns a record once that part of the index is in memory, and a
///              cache miss besides where the index is larger than the processor's caches. The first
///              use of a part reads 12 bytes a sequence of it, 48 KiB at a time.
/// @thread_safety  Const members may be called by any number of threads.
class megatron_source {
 public:
  /// Opens `<prefix>.bin` and `<prefix>.idx`; `path` is the prefix or either file.
  /// @throws invalid_option  `threads` is 0.
  /// @throws data_error      A file cannot be read, is no such file, is of fairseq's variant, or
  ///                         the sizes of the two do not fit together.
  explicit megatron_source(const std::string& path, const megatron_options& options = {})
      : self_(std::make_unique<state>(checked(options), detail::megatron_prefix(path))) {}

  [[nodiscard]] std::uint64_t size() const { return self_->records; }
  [[nodiscard]] source_traits traits() const { return {}; }
  /// Type in which the tokens are stored.
  [[nodiscard]] token_type type() const { return header().type; }
  /// Sequences in the index.
  [[nodiscard]] std::uint64_t sequences() const { return header().sequences; }
  /// Documents in the index.
  [[nodiscard]] std::uint64_t documents() const {
    return std::max<std::uint64_t>(header().document_entries, 1) - 1;
  }
  /// The index has modes (text or image) for its sequences; they are not interpreted.
  [[nodiscard]] bool is_multimodal() const { return header().multimodal; }
  /// What results made from this source have to be kept under.
  [[nodiscard]] cache_key identity() const {
    return {.files = {self_->index.file().identity(), self_->bin.identity()},
            .variant = detail::megatron_variant(self_->options)};
  }

  /// @throws state_error  An id is not in the corpus.
  /// @throws data_error   The index is corrupt there, or changed after it was opened.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (const record_id id : ids) detail::check_record(id, size());
    if (self_->options.index_access == file_access::mapped) self_->index.file().check_unchanged();
    if (self_->documents) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        out[i] = detail::unmasked_shape(extent(ids[i]).tokens);
      }
      check_index();
      return;
    }
    // Random ids miss the caches: asking for a few records ahead lets the misses overlap.
    constexpr std::size_t ahead = 16;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i + ahead < ids.size()) self_->index.prefetch_length(ids[i + ahead]);
      out[i] = detail::unmasked_shape(self_->index.length(ids[i]));
    }
    check_index();
  }

  /// @throws state_error  An id or a range is not in the corpus.
  /// @throws data_error   The index is corrupt there, a token is not in [0, 2^31), a file was cut
  ///                      short, changed or replaced, or a read failed.
  void read(std::span<const record_read> reads) const {
    if (self_->options.index_access == file_access::mapped) self_->index.file().check_unchanged();
    const std::uint64_t bytes = token_bytes(type());
    std::vector<token_read> wanted(reads.size());
    constexpr std::size_t ahead = 8;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (!self_->documents && i + ahead < reads.size()) {
        self_->index.prefetch_extent(reads[i + ahead].id);
      }
      detail::check_record(reads[i].id, size());
      const token_extent where = extent(reads[i].id);
      if (!detail::read_fits(reads[i], where.tokens)) {
        // Planned by what the index said before it changed.
        self_->index.file().check_unchanged();
        detail::check_read(reads[i], where.tokens);
      }
      wanted[i] = {(where.start + reads[i].first_token) * bytes, reads[i].tokens, reads[i].id};
    }
    check_index();
    read_tokens(self_->bin, type(), wanted);
    detail::fill_loss_masks(reads);
  }

  /// @complexity  O(records) at the first call, by all threads, unless the options had it.
  /// @throws data_error  The index cannot be read.
  [[nodiscard]] digest128 fingerprint() const {
    return self_->fingerprint.value([this] {
      digest_builder digest;
      digest.text("megatron");
      digest.number(detail::megatron_code_of(type()));
      digest.number(sequences());
      digest.digest(self_->index.digest_lengths(self_->options.threads));
      if (self_->documents) {
        digest.number(size());
        for (record_id id = 0; id < size(); ++id) {
          digest.number(self_->documents->first_sequence(id));
        }
      }
      return digest.value();
    });
  }

  [[nodiscard]] std::string describe() const {
    return "Megatron-LM " + self_->prefix + ": " + std::to_string(size()) +
           (self_->documents ? " documents, " : " sequences, ") +
           std::to_string(self_->index.end()) + " tokens of type " +
           std::string(token_type_name(type()));
  }

 private:
  struct state {
    state(const megatron_options& chosen, std::string path_prefix)
        : options(chosen),
          prefix(std::move(path_prefix)),
          bin(prefix + ".bin", options.access),
          index(prefix + ".idx", options, bin.path(), bin.size()),
          records(index.header().sequences),
          fingerprint(options.known_fingerprint) {
      if (options.record == megatron_record::document) {
        documents.emplace(index, options);
        records = documents->size();
      }
      keeps_all = index.keeps_all() && (!documents || documents->keeps_all());
    }

    megatron_options options;
    std::string prefix;
    input_file bin;
    detail::megatron_index index;
    std::uint64_t records;
    std::optional<detail::megatron_documents> documents;
    bool keeps_all = false;
    detail::lazy_digest fingerprint;
  };

  static const megatron_options& checked(const megatron_options& options) {
    if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
    return options;
  }

  /// Throws if the index changed, where entries may have been read that are not kept. An entry that
  /// is kept was checked when it was read.
  void check_index() const {
    if (!self_->keeps_all) self_->index.file().check_unchanged();
  }

  [[nodiscard]] const detail::megatron_header& header() const { return self_->index.header(); }
  [[nodiscard]] token_extent extent(record_id id) const {
    return self_->documents ? self_->documents->extent(id) : self_->index.extent(id);
  }

  std::unique_ptr<const state> self_;
};

static_assert(record_source<megatron_source>);

/// How a Megatron-LM corpus is written.
struct megatron_writer_options {
  /// Type in which tokens are stored; every id has to fit.
  token_type type = token_type::i32;
};

/// Writes a corpus in Megatron-LM's indexed format, sequence by sequence.
///
/// The files appear under their names when `finish` is called, the index last, and replace what had
/// those names; without it nothing is left behind.
/// @complexity  O(tokens) time; memory of a few buffers and of the longest sequence, whatever the
///              size of the corpus.
/// @thread_safety  None: one thread per object.
class megatron_writer {
 public:
  /// Creates temporary files beside `<prefix>.bin` and `<prefix>.idx`; `path` is the prefix or
  /// either file.
  /// @throws data_error  They cannot be created.
  explicit megatron_writer(const std::string& path, const megatron_writer_options& options = {})
      : type_(options.type),
        bin_(detail::megatron_prefix(path) + ".bin"),
        index_(detail::megatron_prefix(path) + ".idx"),
        documents_(detail::megatron_prefix(path) + ".documents") {
    const std::array<std::byte, detail::megatron_header_bytes> header{};
    index_.append(header);
    add_document_entry();
  }

  /// Appends a sequence to the document that is being written; it may be empty.
  /// @throws data_error  An id does not fit the type, the sequence is longer than 2^31 - 1 tokens,
  ///                     or the device is full. After the first two the corpus is unchanged.
  void add_sequence(std::span<const std::int32_t> tokens) {
    check_open();
    if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      fail(0, "found a sequence of " + std::to_string(tokens.size()) +
                  " tokens, expected at most 2147483647");
    }
    encode(tokens);
    bin_.append(buffer_);
    append(index_, static_cast<std::int32_t>(tokens.size()));
    ++sequences_;
    tokens_ += tokens.size();
    document_open_ = true;
  }

  /// Ends the document that is being written, also one without a sequence.
  void end_document() {
    check_open();
    add_document_entry();
    document_open_ = false;
  }

  /// Appends a document of one sequence.
  void add_document(std::span<const std::int32_t> tokens) {
    add_sequence(tokens);
    end_document();
  }

  [[nodiscard]] std::uint64_t sequences() const noexcept { return sequences_; }
  [[nodiscard]] std::uint64_t documents() const noexcept { return document_entries_ - 1; }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }

  /// Ends the last document where that was not done, and completes both files.
  /// @throws data_error  That failed; what is left does not look like a corpus.
  void finish() {
    check_open();
    if (document_open_) end_document();
    finished_ = true;
    write_pointers();
    copy_documents();
    documents_.discard();
    std::vector<std::byte> header;
    const auto magic = std::as_bytes(std::span(megatron_magic));
    header.insert(header.end(), magic.begin(), magic.end());
    detail::append_number(header, std::uint64_t{1});
    detail::append_number(header, static_cast<std::uint8_t>(detail::megatron_code_of(type_)));
    detail::append_number(header, sequences_);
    detail::append_number(header, document_entries_);
    index_.overwrite(0, header);
    // An old index must not be seen beside the new tokens.
    ::unlink(index_.path().c_str());
    bin_.commit();
    index_.commit();
  }

 private:
  static constexpr std::uint64_t copied_bytes = std::uint64_t{1} << 18;

  void check_open() const {
    if (finished_) detail::throw_state_error("megatron_writer: found a call after finish()");
  }

  template <class T>
  static void append(output_file& file, T value) {
    std::array<std::byte, sizeof value> raw;
    std::memcpy(raw.data(), &value, sizeof value);
    file.append(raw);
  }

  [[noreturn]] LANEPACK_COLD void fail(std::size_t position, const std::string& what) const {
    detail::throw_data_error({.path = bin_.path(),
                              .byte_offset = bin_.size() + position * token_bytes(type_),
                              .record = sequences_,
                              .line = {}},
                             what);
  }

  void encode(std::span<const std::int32_t> tokens) {
    const std::int32_t largest = max_token_id(type_);
    buffer_.resize(tokens.size() * token_bytes(type_));
    detail::with_token_type(type_, [&](auto zero) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0 || tokens[i] > largest) {
          fail(i, "found token " + std::to_string(tokens[i]) + ", expected an id in [0, " +
                      std::to_string(largest) + "] for the type " +
                      std::string(token_type_name(type_)));
        }
        const auto value = static_cast<decltype(zero)>(tokens[i]);
        std::memcpy(buffer_.data() + i * sizeof value, &value, sizeof value);
      }
    });
  }

  void add_document_entry() {
    append(documents_, static_cast<std::int64_t>(sequences_));
    ++document_entries_;
  }

  /// Lengths are in the index already; the pointers that follow them are their sums.
  void write_pointers() {
    std::int64_t pointer = 0;
    std::vector<std::byte> lengths;
    for (std::uint64_t done = 0; done < 4 * sequences_; done += lengths.size()) {
      lengths.resize(static_cast<std::size_t>(std::min(copied_bytes, 4 * sequences_ - done)));
      index_.read_back(detail::megatron_header_bytes + done, lengths);
      for (std::size_t i = 0; i < lengths.size(); i += 4) {
        append(index_, pointer);
        pointer += static_cast<std::int64_t>(
            detail::load_number<std::uint32_t>(lengths.data() + i) * token_bytes(type_));
      }
    }
  }

  void copy_documents() {
    std::vector<std::byte> entries;
    for (std::uint64_t done = 0; done < documents_.size(); done += entries.size()) {
      entries.resize(static_cast<std::size_t>(std::min(copied_bytes, documents_.size() - done)));
      documents_.read_back(done, entries);
      index_.append(entries);
    }
  }

  token_type type_;
  output_file bin_;
  output_file index_;
  /// Never committed: document entries wait here until the number of sequences is known.
  output_file documents_;
  std::vector<std::byte> buffer_;
  std::uint64_t sequences_ = 0;
  std::uint64_t document_entries_ = 0;
  std::uint64_t tokens_ = 0;
  bool document_open_ = false;
  bool finished_ = false;
};

}  // namespace lanepack::inline LANEPACK_ABI
