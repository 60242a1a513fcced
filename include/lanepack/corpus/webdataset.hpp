#pragma once

/// @file
/// WebDataset shards: tar archives whose members make records.

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/file_window.hpp>
#include <lanepack/corpus/image_size.hpp>
#include <lanepack/corpus/npy.hpp>
#include <lanepack/corpus/patches.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/record_table.hpp>
#include <lanepack/corpus/shard_source.hpp>
#include <lanepack/corpus/tar.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What the members of WebDataset samples are.
///
/// The members of a sample follow each other and have one key: their name up to the first dot of
/// its last part. What is behind that dot, in lower case, is the extension by which they are called
/// here.
struct webdataset_options {
  /// Extension of the token ids: NumPy arrays of integers where it is `npy` or ends in `.npy`,
  /// otherwise numbers of `numbers_type`.
  std::string tokens = "tokens.npy";
  /// Type of numbers that are not in a NumPy array; must be set where there are any.
  std::optional<token_type> numbers_type = std::nullopt;
  /// Extension of a loss mask, 0 or 1 for each token, a NumPy array or one byte a token. Empty:
  /// none.
  std::string loss_mask = {};
  /// Extensions that are delivered as payloads, in this order: NumPy arrays with their shape,
  /// everything else as bytes. A sample need not have all of them.
  std::vector<std::string> payloads = {};
  /// How patches are counted; `payload` is any extension: of a PNG or JPEG image, or of a NumPy
  /// array.
  patch_options patches = {};
};

/// A member's name as WebDataset takes it apart.
struct webdataset_name {
  /// Up to the first dot of the name's last part, directories included.
  std::string_view key;
  /// What follows that dot.
  std::string_view extension;
};

/// Takes a name apart; nullopt for a name that is no sample's: without an extension, with nothing
/// in front of it, or in a folder as `__meta__`.
[[nodiscard]] inline std::optional<webdataset_name> split_webdataset_name(
    std::string_view name) noexcept {
  const std::size_t slash = name.rfind('/');
  const std::size_t first = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', first);
  if (dot == std::string_view::npos || dot == first || dot + 1 == name.size()) return std::nullopt;
  // Metadata: "__index__" and the like, as a file or a folder.
  const std::string_view top = name.substr(0, name.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return std::nullopt;
  return webdataset_name{.key = name.substr(0, dot), .extension = name.substr(dot + 1)};
}

/// The shards that a pattern as `data-{000000..000041}.tar` names, in order; the pattern itself
/// where it has no braces.
/// @throws invalid_option  Braces hold something else than two numbers, as long as each other where
///                         they begin with a zero.
[[nodiscard]] inline std::vector<std::string> expand_shards(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t dots = pattern.find("..", open);
  const std::size_t close = pattern.find('}', open);
  const auto number = [&](std::size_t first, std::size_t last) -> std::optional<std::uint64_t> {
    if (first >= last || last - first > 9) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = first; i < last; ++i) {
      if (pattern[i] < '0' || pattern[i] > '9') return std::nullopt;
      value = value * 10 + static_cast<std::uint64_t>(pattern[i] - '0');
    }
    return value;
  };
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> to;
  if (close != std::string::npos && dots < close) {
    from = number(open + 1, dots);
    to = number(dots + 2, close);
  }
  const std::size_t digits = dots - open - 1;
  if (!from || !to || *from > *to || *to - *from > 10'000'000 ||
      (pattern[open + 1] == '0' && digits != close - dots - 2)) {
    detail::throw_invalid_option("shards", detail::quoted(pattern),
                                 "a range of numbers in braces, as data-{000..041}.tar");
  }
  const std::string head = pattern.substr(0, open);
  const std::vector<std::string> tails = expand_shards(pattern.substr(close + 1));
  std::vector<std::string> names;
  for (std::uint64_t i = *from; i <= *to; ++i) {
    std::string text = std::to_string(i);
    if (pattern[open + 1] == '0' && text.size() < digits) text.insert(0, digits - text.size(), '0');
    for (const std::string& rest : tails)
      names.push_back(std::string(head).append(text).append(rest));
  }
  return names;
}

namespace detail {

[[nodiscard]] inline bool is_npy_extension(std::string_view extension) noexcept {
  return extension == "npy" || extension.ends_with(".npy");
}

/// Makes records of the samples of one archive.
/// @thread_safety  None: one thread per object.
class webdataset_scan {
 public:
  webdataset_scan(const input_file& file, std::uint32_t number, const webdataset_options& options)
      : file_(file), window_(file), number_(number), options_(options) {
    wanted_.push_back(options.tokens);
    wanted_.push_back(options.loss_mask);
    wanted_.push_back(options.patches.payload);
    wanted_.insert(wanted_.end(), options.payloads.begin(), options.payloads.end());
    found_.resize(wanted_.size());
  }

  /// @throws data_error  The archive is damaged, a sample has a member twice or lacks its tokens,
  /// or
  ///                     a member is not what its extension says.
  [[nodiscard]] record_table run() && {
    record_table table(options_.payloads.size());
    tar_reader reader(file_);
    while (const std::optional<tar_member> member = reader.next()) {
      const std::optional<webdataset_name> name = split_webdataset_name(member->name);
      if (!name) continue;
      if (!in_sample_ || name->key != key_) {
        finish_sample(table);
        in_sample_ = true;
        key_ = std::string(name->key);
        header_offset_ = member->header_offset;
        extensions_.clear();
      }
      std::string extension(name->extension);
      for (char& letter : extension) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
      }
      if (std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end()) {
        fail(member->header_offset, "found a second member " + detail::quoted(extension) +
                                        " of sample " + detail::quoted(key_) + ", expected one");
      }
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        if (!wanted_[i].empty() && wanted_[i] == extension) found_[i] = *member;
      }
      extensions_.push_back(std::move(extension));
    }
    finish_sample(table);
    return table;
  }

 private:
  /// Places in `wanted_`; payloads follow.
  static constexpr std::size_t tokens_at = 0;
  static constexpr std::size_t mask_at = 1;
  static constexpr std::size_t patches_at = 2;
  static constexpr std::size_t payloads_at = 3;

  [[noreturn]] LANEPACK_COLD void fail(std::uint64_t offset, const std::string& what) const {
    throw_data_error({.path = file_.path(), .byte_offset = offset, .record = record_, .line = {}},
                     what);
  }

  [[nodiscard]] bool is_npy(std::size_t at) const noexcept { return is_npy_extension(wanted_[at]); }

  [[nodiscard]] stored_payload array_of(std::size_t at) const {
    const tar_member& member = *found_[at];
    if (!is_npy(at)) {
      return {.offset = member.offset, .shape = {payload_type::u8, {member.bytes}}};
    }
    const npy_array array = read_npy(file_, member.offset, member.bytes, npy_kind::array);
    return {.offset = array.data_offset, .shape = array.shape};
  }

  struct integers {
    stored_numbers stored;
    std::uint32_t count = 0;
  };

  [[nodiscard]] integers integers_of(std::size_t at, token_type raw) const {
    const stored_payload stored = array_of(at);
    token_type type = raw;
    if (is_npy(at)) {
      if (stored.shape.type > payload_type::i64) {
        fail(found_[at]->offset, "member " + detail::quoted(wanted_[at]) + ": found an array of " +
                                     std::string(payload_type_name(stored.shape.type)) +
                                     ", expected integers");
      }
      type = static_cast<token_type>(stored.shape.type);
    }
    const std::uint64_t bytes = stored.shape.bytes();
    const std::uint64_t count = bytes / token_bytes(type);
    if (bytes % token_bytes(type) != 0 || count > 0xffff'ffff) {
      fail(found_[at]->offset,
           "member " + detail::quoted(wanted_[at]) + ": found " + std::to_string(bytes) +
               " bytes, expected a multiple of " + std::to_string(token_bytes(type)) +
               " for at most 4294967295 numbers of type " + std::string(token_type_name(type)));
    }
    return {.stored = {.offset = stored.offset, .type = type},
            .count = static_cast<std::uint32_t>(count)};
  }

  [[nodiscard]] std::uint32_t count_loss_tokens(const integers& mask) {
    std::uint32_t ones = 0;
    const std::size_t bytes = token_bytes(mask.stored.type);
    for (std::uint32_t i = 0; i < mask.count; ++i) {
      const std::uint64_t offset = mask.stored.offset + std::uint64_t{i} * bytes;
      const std::span<const std::byte> value = window_.view(offset, bytes);
      const auto first = std::to_integer<unsigned>(value[0]);
      const bool rest_is_zero = std::all_of(value.begin() + 1, value.end(),
                                            [](std::byte part) { return part == std::byte{0}; });
      if (first > 1 || !rest_is_zero) fail(offset, "found a loss mask other than 0 and 1");
      // The first token of a record has nothing before it to be predicted from.
      if (i != 0 && first == 1) ++ones;
    }
    return ones;
  }

  [[nodiscard]] std::uint32_t count_patches() {
    const tar_member& member = *found_[patches_at];
    std::uint64_t patches = 0;
    if (is_npy(patches_at)) {
      patches = patches_of(array_of(patches_at).shape, options_.patches);
    } else if (options_.patches.from == patch_source::rows) {
      fail(member.offset, "member " + detail::quoted(wanted_[patches_at]) +
                              ": found no NumPy array, expected one whose rows are patches");
    } else {
      try {
        patches = patches_of(read_image_size(member.bytes,
                                             [&](std::uint64_t at, std::size_t count) {
                                               return window_.view(member.offset + at, count);
                                             }),
                             options_.patches);
      } catch (const image_fault& fault) {
        fail(member.offset + fault.offset,
             "member " + detail::quoted(wanted_[patches_at]) + ": " + fault.what);
      }
    }
    if (patches > 0xffff'ffff) {
      fail(member.offset,
           "found " + std::to_string(patches) + " patches, expected at most 4294967295");
    }
    return static_cast<std::uint32_t>(patches);
  }

  void finish_sample(record_table& table) {
    if (!in_sample_) return;
    record_ = table.size();
    stored_record made;
    made.file = number_;
    if (!options_.tokens.empty()) {
      if (!found_[tokens_at]) {
        fail(header_offset_, "found no member " + detail::quoted(options_.tokens) + " of sample " +
                                 detail::quoted(key_) + ", expected one");
      }
      const integers tokens =
          integers_of(tokens_at, options_.numbers_type.value_or(token_type::u8));
      made.tokens = tokens.count;
      made.ids = tokens.stored;
      made.loss_tokens = static_cast<std::uint32_t>(unmasked_loss_tokens(tokens.count));
      if (found_[mask_at]) {
        const integers mask = integers_of(mask_at, token_type::u8);
        if (mask.count != tokens.count) {
          fail(found_[mask_at]->offset, "found " + std::to_string(mask.count) +
                                            " values of the loss mask, expected " +
                                            std::to_string(tokens.count) + ", one for each token");
        }
        made.mask = mask.stored;
        made.loss_tokens = count_loss_tokens(mask);
      }
    }
    if (found_[patches_at]) made.patches = count_patches();
    for (std::size_t i = payloads_at; i < wanted_.size(); ++i) {
      made.payloads.push_back(found_[i] ? array_of(i) : stored_payload());
    }
    table.add(made);
    std::fill(found_.begin(), found_.end(), std::nullopt);
    record_.reset();
  }

  const input_file& file_;
  file_window window_;
  std::uint32_t number_;
  const webdataset_options& options_;
  std::vector<std::string> wanted_;
  /// Of the sample that is being gathered.
  std::vector<std::optional<tar_member>> found_;
  std::vector<std::string> extensions_;
  bool in_sample_ = false;
  std::string key_;
  std::uint64_t header_offset_ = 0;
  /// Number of the sample in its shard, once it is complete.
  std::optional<std::uint64_t> record_;
};

}  // namespace detail

/// Opens WebDataset shards as records of tokens with payloads: the samples of all shards in order.
///
/// The first opening goes through all headers of the archives, the headers of NumPy arrays and,
/// where patches are counted, of images, and loss masks; the index is kept beside the first shard.
/// @param files  Shards in order, at least one; see `expand_shards`.
/// @throws data_error      As `detail::webdataset_scan::run`, or a shard cannot be read.
/// @throws invalid_option  An option cannot work.
[[nodiscard]] inline shard_source open_webdataset(std::vector<std::string> files,
                                                  const webdataset_options& options = {},
                                                  const shard_options& shards = {}) {
  validate(options.patches);
  if (files.empty()) detail::throw_invalid_option("files", "no shard", "at least one");
  if (!options.tokens.empty() && !detail::is_npy_extension(options.tokens) &&
      !options.numbers_type) {
    detail::throw_invalid_option(
        "numbers_type", "none",
        "the type of the numbers in members " + detail::quoted(options.tokens));
  }
  if (options.tokens.empty() && !options.loss_mask.empty()) {
    detail::throw_invalid_option("loss_mask", detail::quoted(options.loss_mask),
                                 "none where there are no tokens");
  }
  digest_builder variant;
  variant.text(options.tokens);
  variant.number(options.numbers_type ? static_cast<std::uint64_t>(*options.numbers_type) + 1 : 0);
  variant.text(options.loss_mask);
  for (const std::string& name : options.payloads) variant.text(name);
  variant.text(options.patches.payload);
  variant.number(static_cast<std::uint64_t>(options.patches.from));
  variant.number(std::uint64_t{options.patches.patch_pixels} << 32 | options.patches.merge);
  shard_corpus corpus{.format = "WebDataset",
                      .path = files.front(),
                      .files = {},
                      .payload_names = options.payloads,
                      .variant = "webdataset " + variant.value().hex(),
                      .scan = [&](const input_file& file, std::uint32_t number) {
                        return detail::webdataset_scan(file, number, options).run();
                      }};
  corpus.files = std::move(files);
  return shard_source(corpus, shards);
}

/// One member of each sample of WebDataset shards as documents; a `document_source`.
/// @thread_safety  Const members may be called by any number of threads.
class webdataset_documents {
 public:
  /// @param extension  Of the member, as `txt` or `json`; a sample without it is an empty document.
  /// @throws data_error, invalid_option  As `open_webdataset`.
  explicit webdataset_documents(std::vector<std::string> files,
                                const std::string& extension = "txt",
                                const shard_options& shards = {})
      : source_(open_webdataset(std::move(files), options_for(extension), shards)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return source_.size(); }
  void read(std::span<const record_id> ids, std::span<std::string> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    std::vector<payload_read> reads;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      payload_shape shape;
      source_.payload_shapes(0, ids.subspan(i, 1), {&shape, 1});
      out[i].resize(static_cast<std::size_t>(shape.bytes()));
      reads.push_back({.id = ids[i],
                       .payload = 0,
                       .bytes = std::as_writable_bytes(std::span(out[i].data(), out[i].size()))});
    }
    source_.read_payloads(reads);
  }
  void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      payload_shape shape;
      source_.payload_shapes(0, ids.subspan(i, 1), {&shape, 1});
      out[i] = shape.bytes();
    }
  }
  [[nodiscard]] digest128 fingerprint() const noexcept { return source_.fingerprint(); }
  [[nodiscard]] std::string describe() const {
    return source_.describe() + ", members " + source_.payload_names()[0];
  }

 private:
  static webdataset_options options_for(const std::string& extension) {
    if (extension.empty()) {
      detail::throw_invalid_option("extension", "''", "that of the documents, as txt");
    }
    webdataset_options options;
    options.tokens.clear();
    options.payloads = {extension};
    return options;
  }

  shard_source source_;
};

static_assert(document_source<webdataset_documents>);

}  // namespace lanepack::inline LANEPACK_ABI
