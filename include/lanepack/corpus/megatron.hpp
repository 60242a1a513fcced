#pragma once

/// @file
/// Megatron-LM's indexed token files: `.bin` holds the tokens, `.idx` says where sequences lie; see
/// `megatron_index.hpp` for its layout, and `megatron_loss_mask.hpp` for loss masks beside them.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/megatron_index.hpp>
#include <lanepack/corpus/megatron_loss_mask.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/token_reads.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A corpus in Megatron-LM's indexed format; a `record_source`.
///
/// Opening reads a few bytes, whatever the size of the corpus. An index entry is checked when it is
/// first used: no negative length, each sequence starts where the one before ends, the last ends
/// with the `.bin`. The fingerprint covers token type, record, counts and all lengths. A loss mask
/// beside the corpus (`<prefix>_loss_mask.bin`) is read with it.
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
  [[nodiscard]] source_traits traits() const {
    return {
        .has_payload = true, .has_all_shapes = true, .has_loss_mask = self_->loss_mask.has_value()};
  }
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
    cache_key key{
        .files = {self_->index.file().identity(), self_->bin.identity()},
        .variant = detail::megatron_variant(self_->options, self_->loss_mask.has_value())};
    if (self_->loss_mask) {
      const std::vector<file_identity> more = self_->loss_mask->files();
      key.files.insert(key.files.end(), more.begin(), more.end());
    }
    return key;
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
      add_loss_tokens(ids, out);
      check_index();
      return;
    }
    // Random ids miss the caches: asking for a few records ahead lets the misses overlap.
    constexpr std::size_t ahead = 16;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i + ahead < ids.size()) self_->index.prefetch_length(ids[i + ahead]);
      out[i] = detail::unmasked_shape(self_->index.length(ids[i]));
    }
    add_loss_tokens(ids, out);
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
    if (!self_->loss_mask) {
      detail::fill_loss_masks(reads);
      return;
    }
    std::vector<detail::loss_mask_read> masks;
    for (const record_read& read : reads) {
      if (read.loss_mask.empty()) continue;
      const std::uint64_t sequence = only_sequence(read.id);
      masks.push_back({sequence, read.first_token, extent(read.id), read.loss_mask});
    }
    self_->loss_mask->read(masks);
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
      if (self_->loss_mask) digest.digest(self_->loss_mask->digest());
      return digest.value();
    });
  }

  [[nodiscard]] std::string describe() const {
    return "Megatron-LM " + self_->prefix + ": " + std::to_string(size()) +
           (self_->documents ? " documents, " : " sequences, ") +
           std::to_string(self_->index.end()) + " tokens of type " +
           std::string(token_type_name(type())) + (self_->loss_mask ? ", with a loss mask" : "");
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
      if (detail::has_loss_mask(prefix, options)) loss_mask.emplace(prefix, options, index);
    }

    megatron_options options;
    std::string prefix;
    input_file bin;
    detail::megatron_index index;
    std::uint64_t records;
    std::optional<detail::megatron_documents> documents;
    bool keeps_all = false;
    std::optional<detail::megatron_loss_mask_files> loss_mask;
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

  void add_loss_tokens(std::span<const record_id> ids, std::span<record_shape> out) const {
    if (!self_->loss_mask) return;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out[i].loss_tokens = self_->loss_mask->loss_tokens(only_sequence(ids[i]), out[i].tokens);
    }
  }

  /// The sequence that a record is, which has to be one for its loss mask to be found.
  [[nodiscard]] std::uint64_t only_sequence(record_id id) const {
    if (!self_->documents) return id;
    const std::uint64_t first = self_->documents->first_sequence(id);
    const std::uint64_t count = self_->documents->first_sequence(id + 1) - first;
    if (count == 1) return first;
    detail::throw_data_error(
        {.path = self_->index.file().path(), .byte_offset = {}, .record = id, .line = {}},
        "found a document of " + std::to_string(count) +
            " sequences beside a loss mask, expected documents of one: open the corpus by "
            "sequence, "
            "or without its loss mask");
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
/// those names; without it nothing is left behind. A loss mask that lies beside what is replaced is
/// removed; write the new one after that, as a corpus of its own.
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
    index_.overwrite(0, detail::megatron_header_text(type_, sequences_, document_entries_));
    // An old index must not be seen beside the new tokens, nor an old loss mask beside them.
    ::unlink(index_.path().c_str());
    detail::remove_loss_mask(detail::megatron_prefix(bin_.path()));
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
