#pragma once

/// @file
/// `open_any_corpus`: `open_corpus`, JSON Lines, MDS datasets and WebDataset shards.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/open_options.hpp>
#include <lanepack/corpus/opened.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/corpus/webdataset.hpp>
#include <lanepack/json/jsonl.hpp>
#include <lanepack/json/mds.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a corpus of any format is opened.
struct any_corpus_options {
  /// For all formats; its `threads` and `progress` hold for all of them.
  open_options corpus = {};
  /// For JSON Lines; `threads` and `progress` are set by `open_any_corpus`.
  jsonl_options jsonl = {};
  /// Whether the file is JSON Lines. By default found from the extension (`.jsonl`, `.ndjson`,
  /// `.json`) or, where no other format fits, from a first byte `{`.
  std::optional<bool> is_jsonl = std::nullopt;
  /// For an MDS dataset: a folder with an `index.json`, or that file.
  mds_record_options mds = {};
  /// For WebDataset shards: a path that ends in `.tar`, with a range in braces for many.
  webdataset_options webdataset = {};
};

/// A corpus and what is known of it.
struct any_corpus {
  any_source source;
  /// Name of the format, for people.
  std::string format;
  /// What results made from the corpus have to be kept under.
  cache_key key;
  /// Where the summary is or would be kept.
  std::string summary_path;
  /// The summary, where one was asked for and found or made.
  std::optional<corpus_summary> summary = std::nullopt;
};

/// Names of formats for people, as `corpus_format_name` has those of the other formats.
inline constexpr std::string_view jsonl_format_name = "JSON Lines";
inline constexpr std::string_view mds_format_name = "MDS";
inline constexpr std::string_view webdataset_format_name = "WebDataset";

namespace detail {

/// True where the first byte that is not white space or a byte order mark is `{`.
[[nodiscard]] inline bool starts_like_json(const std::string& path) {
  const input_file file(path);
  std::array<char, 512> start{};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(start.size(), file.size()));
  file.read_at(0, std::as_writable_bytes(std::span(start).first(size)));
  std::string_view text(start.data(), size);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

[[nodiscard]] inline any_corpus named(opened_corpus corpus, std::string_view format) {
  return {.source = std::move(corpus.source),
          .format = std::string(format),
          .key = std::move(corpus.key),
          .summary_path = std::move(corpus.summary_path),
          .summary = std::move(corpus.summary)};
}

/// A dataset's folder or its index, unless the user says what the file is.
[[nodiscard]] inline bool is_mds_corpus(const std::string& path,
                                        const any_corpus_options& options) {
  if (options.corpus.format || options.is_jsonl) return false;
  return path.ends_with("/index.json") || path == "index.json" ||
         (!identify_file(path) && identify_file(mds_index_path(path)));
}

[[nodiscard]] inline bool is_webdataset_corpus(const std::string& path,
                                               const any_corpus_options& options) {
  return !options.corpus.format && !options.is_jsonl && path.ends_with(".tar");
}

[[nodiscard]] inline shard_options shard_options_of(const any_corpus_options& options) {
  shard_options chosen;
  chosen.threads = options.corpus.threads;
  chosen.progress = options.corpus.progress;
  return chosen;
}

[[nodiscard]] inline jsonl_options jsonl_options_of(const any_corpus_options& options) {
  jsonl_options chosen = options.jsonl;
  chosen.threads = options.corpus.threads;
  chosen.progress = options.corpus.progress;
  return chosen;
}

}  // namespace detail

/// True where `open_any_corpus` would read the file at `path` as JSON Lines.
/// @throws data_error  There is no such file, or it cannot be read.
[[nodiscard]] inline bool is_jsonl_corpus(const std::string& path,
                                          const any_corpus_options& options = {}) {
  if (options.is_jsonl) return *options.is_jsonl;
  if (options.corpus.format || detail::is_mds_corpus(path, options) ||
      detail::is_webdataset_corpus(path, options)) {
    return false;
  }
  for (const std::string_view extension : {".jsonl", ".ndjson", ".json"}) {
    if (path.ends_with(extension)) return true;
  }
  return !find_corpus_format(path, options.corpus) && detail::starts_like_json(path);
}

/// Opens the corpus at `path`, whatever its format.
/// @param path  A file, the prefix of a Megatron-LM corpus, the folder of an MDS dataset, or a
///              pattern of WebDataset shards.
/// @throws data_error, invalid_option  As `open_corpus`, `jsonl_source`, `open_mds` and
///         `open_webdataset`.
/// @complexity  As `open_corpus`; for JSON Lines 24 bytes of index a record are read, or the file
///              is read through where it has no index yet; for shards see `shard_source`.
[[nodiscard]] inline any_corpus open_any_corpus(const std::string& path,
                                                const any_corpus_options& options = {}) {
  // The format in between belongs to `open_corpus`, which has no names for those below.
  constexpr corpus_format none = corpus_format::token_file;
  if (detail::is_mds_corpus(path, options)) {
    shard_source source = open_mds(path, options.mds, detail::shard_options_of(options));
    return detail::named(
        detail::opened(std::move(source), detail::mds_index_path(path), none, options.corpus),
        mds_format_name);
  }
  if (detail::is_webdataset_corpus(path, options)) {
    const std::vector<std::string> files = expand_shards(path);
    shard_source source =
        open_webdataset(files, options.webdataset, detail::shard_options_of(options));
    return detail::named(detail::opened(std::move(source), files.front(), none, options.corpus),
                         webdataset_format_name);
  }
  if (!is_jsonl_corpus(path, options)) {
    opened_corpus corpus = open_corpus(path, options.corpus);
    const corpus_format format = corpus.format;
    return detail::named(std::move(corpus), corpus_format_name(format));
  }
  return detail::named(detail::opened(jsonl_source(path, detail::jsonl_options_of(options)), path,
                                      none, options.corpus),
                       jsonl_format_name);
}

}  // namespace lanepack::inline LANEPACK_ABI
