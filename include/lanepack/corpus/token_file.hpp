#pragma once

/// @file
/// Files of one long run of tokens, cut into documents at the end-of-text token: those of llm.c and
/// modded-nanoGPT, and those of nanoGPT.
///
/// Layout of llm.c (`llmc/dataloader.h`): 256 little-endian i32 (magic, version, number of tokens,
/// zeros), then the tokens; a document starts with the end-of-text token. nanoGPT's files have no
/// header, and a document ends with it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
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
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/block_cache.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/token_file_options.hpp>
#include <lanepack/corpus/token_reads.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// What tells a token file of llm.c.
struct token_file_magic {
  std::int32_t magic;
  std::int32_t version;
  token_type type;
  std::int32_t end_of_text;
};

inline constexpr std::array<token_file_magic, 2> token_file_magics = {{
    {20240520, 1, token_type::u16, 50256},
    {20240801, 7, token_type::u32, 128000},
}};

inline constexpr std::int32_t llm_c_evaluation_magic = 20240522;
inline constexpr std::uint64_t llm_c_header_bytes = 1024;

/// True for the first number of any file of llm.c, also those that cannot be opened.
inline bool is_llm_c_magic(std::int32_t number) noexcept {
  return number == llm_c_evaluation_magic ||
         std::any_of(token_file_magics.begin(), token_file_magics.end(),
                     [number](const token_file_magic& known) { return known.magic == number; });
}

/// What is known of a token file before it is looked through.
struct token_file_layout {
  token_type type = token_type::u16;
  std::int32_t end_of_text = 0;
  end_of_text_place place = end_of_text_place::last;
  /// Byte of the first token.
  std::uint64_t data_offset = 0;
  std::uint64_t tokens = 0;

  [[nodiscard]] std::uint64_t offset_of(std::uint64_t token) const noexcept {
    return data_offset + token * token_bytes(type);
  }
};

[[noreturn]] LANEPACK_COLD inline void throw_missing_option(const std::string& option,
                                                            const std::string& expected) {
  throw_invalid_option(option, "none", expected);
}

inline token_file_layout read_llm_c_header(const input_file& file,
                                           const token_file_options& options) {
  const auto fail = [&file](std::uint64_t offset, const std::string& what) {
    throw_file_error_at(file.path(), offset, "llm.c token file: " + what);
  };
  if (file.size() < llm_c_header_bytes) {
    fail(file.size(), "found a file of " + std::to_string(file.size()) +
                          " bytes, expected a header of 1024 bytes");
  }
  std::array<std::byte, 12> raw;
  file.read_at(0, raw);
  const auto magic = load_number<std::int32_t>(raw.data());
  const auto version = load_number<std::int32_t>(raw.data() + 4);
  const auto count = load_number<std::int32_t>(raw.data() + 8);
  if (magic == llm_c_evaluation_magic) {
    fail(0,
         "found an evaluation file (magic 20240522), expected a training file (magic 20240520 "
         "or 20240801)");
  }
  token_file_layout layout;
  for (const token_file_magic& known : token_file_magics) {
    if (known.magic != magic) continue;
    if (known.version != version) {
      fail(4, "found version " + std::to_string(version) + ", expected " +
                  std::to_string(known.version));
    }
    layout.type = known.type;
    layout.end_of_text = options.end_of_text.value_or(known.end_of_text);
  }
  if (count < 0) {
    fail(8, "found " + std::to_string(count) + " tokens, expected at least 0");
  }
  layout.place = options.place.value_or(end_of_text_place::first);
  layout.data_offset = llm_c_header_bytes;
  layout.tokens = static_cast<std::uint64_t>(count);
  if (const std::uint64_t expected = layout.offset_of(layout.tokens); expected != file.size()) {
    fail(std::min(expected, file.size()), "found a file of " + std::to_string(file.size()) +
                                              " bytes, expected " + std::to_string(expected) +
                                              " for " + std::to_string(layout.tokens) + " tokens");
  }
  if (options.type && *options.type != layout.type) {
    throw_invalid_option(
        "type", std::string(token_type_name(*options.type)),
        std::string(token_type_name(layout.type)) + ", as the header of " + file.path() + " says");
  }
  return layout;
}

inline token_file_layout read_token_file_layout(const input_file& file,
                                                const token_file_options& options) {
  if (file.size() >= sizeof(std::int32_t)) {
    std::array<std::byte, sizeof(std::int32_t)> raw;
    file.read_at(0, raw);
    if (is_llm_c_magic(load_number<std::int32_t>(raw.data()))) {
      return read_llm_c_header(file, options);
    }
  }
  if (!options.type) {
    throw_missing_option("type", "the type of the tokens (u16 for nanoGPT), because " +
                                     file.path() + " has no header that says it");
  }
  if (!options.end_of_text && *options.type != token_type::u16) {
    throw_missing_option("end_of_text",
                         "the id of the end-of-text token that cuts " + file.path() +
                             " into documents; only for u16 tokens it is known to be 50256");
  }
  token_file_layout layout;
  layout.type = *options.type;
  layout.end_of_text = options.end_of_text.value_or(token_file_magics[0].end_of_text);
  layout.place = options.place.value_or(end_of_text_place::last);
  layout.tokens = file.size() / token_bytes(layout.type);
  if (const std::uint64_t end = layout.offset_of(layout.tokens); end != file.size()) {
    throw_file_error_at(file.path(), end,
                        "found a file of " + std::to_string(file.size()) +
                            " bytes, expected a multiple of " +
                            std::to_string(token_bytes(layout.type)) + " for tokens of type " +
                            std::string(token_type_name(layout.type)));
  }
  return layout;
}

/// Appends to `found` the positions in `count` stored numbers that hold `wanted`.
template <class T>
void find_token_of(const std::byte* from, std::size_t count, T wanted,
                   std::vector<std::uint32_t>& found) {
  constexpr std::size_t block = 256;
  std::array<T, block> stored;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t part = std::min(block, count - begin);
    std::memcpy(stored.data(), from + begin * sizeof(T), part * sizeof(T));
    bool any = false;
    for (std::size_t i = 0; i < part; ++i) any |= stored[i] == wanted;
    if (!any) continue;
    for (std::size_t i = 0; i < part; ++i) {
      if (stored[i] == wanted) found.push_back(static_cast<std::uint32_t>(begin + i));
    }
  }
}

/// Lengths of records that follow each other without gaps, 4.1 bytes a record.
class extent_table {
 public:
  /// Appends a record.
  void add(std::uint32_t tokens) {
    if (lengths_.size() % stride == 0) starts_.push_back(end_);
    lengths_.push_back(tokens);
    end_ += tokens;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return lengths_.size(); }
  /// Tokens of all records.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] std::uint32_t length(record_id id) const noexcept { return lengths_[id]; }
  [[nodiscard]] std::span<const std::uint32_t> lengths() const noexcept { return lengths_; }
  [[nodiscard]] token_extent extent(record_id id) const noexcept {
    const auto first = lengths_.begin() + static_cast<std::ptrdiff_t>(id / stride * stride);
    const auto last = lengths_.begin() + static_cast<std::ptrdiff_t>(id);
    return {std::accumulate(first, last, starts_[id / stride]), lengths_[id]};
  }

 private:
  static constexpr std::size_t stride = 64;

  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t end_ = 0;
};

/// Looks through all tokens and returns the lengths of the documents.
inline extent_table find_documents(const input_file& file, const token_file_layout& layout,
                                   unsigned threads, const progress_callback& progress) {
  constexpr std::uint64_t chunk_tokens = std::uint64_t{1} << 20;
  std::vector<std::vector<std::uint32_t>> found(
      static_cast<std::size_t>(ceil_div(layout.tokens, chunk_tokens)));
  chunk_progress told(progress, layout.tokens * token_bytes(layout.type));
  parallel_for(found.size(), threads, [&](std::uint64_t chunk) {
    const std::uint64_t first = chunk * chunk_tokens;
    const std::uint64_t count = std::min(chunk_tokens, layout.tokens - first);
    std::vector<std::byte> raw(static_cast<std::size_t>(count * token_bytes(layout.type)));
    file.read_at(layout.offset_of(first), raw);
    with_token_type(layout.type, [&](auto zero) {
      using stored = decltype(zero);
      if (layout.end_of_text <= max_token_id(layout.type)) {
        find_token_of(raw.data(), static_cast<std::size_t>(count),
                      static_cast<stored>(layout.end_of_text), found[chunk]);
      }
    });
    told.advance(raw.size());
  });
  told.finish();
  file.check_unchanged();

  extent_table documents;
  const auto close = [&](std::uint64_t end) {
    const std::uint64_t start = documents.end();
    if (end == start) return;
    if (end - start > std::numeric_limits<std::uint32_t>::max()) {
      throw_data_error({.path = file.path(),
                        .byte_offset = layout.offset_of(start),
                        .record = documents.size(),
                        .line = {}},
                       "found " + std::to_string(end - start) +
                           " tokens without the end-of-text token " +
                           std::to_string(layout.end_of_text) + ", expected at most 4294967295");
    }
    documents.add(static_cast<std::uint32_t>(end - start));
  };
  const std::uint64_t behind = layout.place == end_of_text_place::last ? 1 : 0;
  bool any = false;
  for (std::size_t chunk = 0; chunk < found.size(); ++chunk) {
    for (const std::uint32_t position : found[chunk]) {
      close(chunk * chunk_tokens + position + behind);
      any = true;
    }
    found[chunk] = {};
  }
  if (!any && layout.tokens != 0) {
    throw_file_error_at(file.path(), layout.data_offset,
                        "found no end-of-text token " + std::to_string(layout.end_of_text) +
                            " in " + std::to_string(layout.tokens) +
                            " tokens, expected at least one to cut them into documents");
  }
  close(layout.tokens);
  return documents;
}

inline constexpr std::string_view documents_cache_kind = "lanepack documents 1";

inline cache_key token_file_key(const input_file& file, const token_file_layout& layout) {
  return {.files = {file.identity()},
          .variant = "token file " + std::string(token_type_name(layout.type)) + " at " +
                     std::to_string(layout.data_offset) + " cut " +
                     (layout.place == end_of_text_place::first ? "before " : "after ") +
                     std::to_string(layout.end_of_text)};
}

inline std::optional<extent_table> load_documents(const std::string& path, const cache_key& key,
                                                  std::uint64_t tokens) {
  cache_reader in(path, documents_cache_kind);
  if (!read_key(in, key)) return std::nullopt;
  extent_table documents;
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    const std::uint64_t length = in.small_number();
    if (length == 0 || length > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    documents.add(static_cast<std::uint32_t>(length));
  }
  if (!in.good() || !in.at_end() || documents.end() != tokens) return std::nullopt;
  return documents;
}

inline void save_documents(const std::string& path, const cache_key& key,
                           const extent_table& documents) {
  cache_writer out;
  write_key(out, key);
  out.number(documents.size());
  for (const std::uint32_t length : documents.lengths()) out.small_number(length);
  static_cast<void>(out.save(path, documents_cache_kind));
}

}  // namespace detail

/// A token file cut into documents; a `record_source`.
///
/// The end-of-text token belongs to its document. Tokens before the first one (`first`) or after
/// the last (`last`) are a document too. The fingerprint covers token type, cut and all lengths.
/// @complexity  The first opening looks through the file with all threads; later ones read the
///              cached lengths, one to five bytes a document. Memory 4.1 bytes a document.
/// @thread_safety  Const members may be called by any number of threads.
class token_file_source {
 public:
  /// @throws invalid_option  An option that the file does not answer is missing, contradicts the
  ///                         header, or is out of range.
  /// @throws data_error      The file cannot be read, is an evaluation file, its size is not what
  ///                         the header says, or it holds no end-of-text token.
  explicit token_file_source(std::string path, const token_file_options& options = {})
      : file_(std::move(path), options.access),
        layout_(detail::read_token_file_layout(file_, checked(options))) {
    const cache_key key = identity();
    const std::string index_path =
        options.index_path.value_or(file_.path() + ".lanepack-documents");
    if (auto known = detail::load_documents(index_path, key, layout_.tokens)) {
      documents_ = *std::move(known);
      return;
    }
    documents_ = detail::find_documents(file_, layout_, options.threads, options.progress);
    detail::save_documents(index_path, key, documents_);
  }

  [[nodiscard]] std::uint64_t size() const { return documents_.size(); }
  [[nodiscard]] source_traits traits() const { return {}; }
  /// Type in which the tokens are stored.
  [[nodiscard]] token_type type() const { return layout_.type; }
  /// What results made from this source have to be kept under.
  [[nodiscard]] cache_key identity() const { return detail::token_file_key(file_, layout_); }

  /// @throws state_error  An id is not in the corpus.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = detail::unmasked_shape(documents_.length(ids[i]));
    }
  }

  /// @throws state_error  An id or a range is not in the corpus.
  /// @throws data_error   A token is not in [0, 2^31), the file was cut short, changed or replaced,
  ///                      or a read failed.
  void read(std::span<const record_read> reads) const {
    std::vector<token_read> wanted(reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      detail::check_record(reads[i].id, size());
      const token_extent where = documents_.extent(reads[i].id);
      detail::check_read(reads[i], where.tokens);
      wanted[i] = {layout_.offset_of(where.start + reads[i].first_token), reads[i].tokens,
                   reads[i].id};
    }
    read_tokens(file_, layout_.type, wanted);
    detail::fill_loss_masks(reads);
  }

  /// @complexity  O(documents) at the first call.
  [[nodiscard]] digest128 fingerprint() const {
    return fingerprint_.value([this] {
      digest_builder digest;
      digest.text("token file");
      digest.number(static_cast<std::uint64_t>(layout_.type));
      digest.number(static_cast<std::uint64_t>(layout_.end_of_text));
      digest.number(static_cast<std::uint64_t>(layout_.place));
      digest.number(size());
      digest.bytes(std::as_bytes(documents_.lengths()));
      return digest.value();
    });
  }

  [[nodiscard]] std::string describe() const {
    return "token file " + file_.path() + ": " + std::to_string(size()) + " documents, " +
           std::to_string(layout_.tokens) + " tokens of type " +
           std::string(token_type_name(layout_.type));
  }

 private:
  static const token_file_options& checked(const token_file_options& options) {
    if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
    if (options.end_of_text && *options.end_of_text < 0) {
      detail::throw_invalid_option("end_of_text", std::to_string(*options.end_of_text),
                                   "an id of at least 0");
    }
    return options;
  }

  input_file file_;
  detail::token_file_layout layout_;
  detail::extent_table documents_;
  detail::lazy_digest fingerprint_;
};

static_assert(record_source<token_file_source>);

}  // namespace lanepack::inline LANEPACK_ABI
