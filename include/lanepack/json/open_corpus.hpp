#pragma once

/// @file
/// `open_any_corpus`: `open_corpus` and JSON Lines.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/open_options.hpp>
#include <lanepack/corpus/opened.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/json/jsonl.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a corpus of any format is opened, JSON Lines among them.
struct any_corpus_options {
  /// For all formats; its `threads` and `progress` hold for JSON Lines too.
  open_options corpus = {};
  /// For JSON Lines; `threads` and `progress` are set by `open_any_corpus`.
  jsonl_options jsonl = {};
  /// Whether the file is JSON Lines. By default found from the extension (`.jsonl`, `.ndjson`,
  /// `.json`) or, where no other format fits, from a first byte `{`.
  std::optional<bool> is_jsonl = std::nullopt;
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

/// Name of JSON Lines for people, as `corpus_format_name` has those of the other formats.
inline constexpr std::string_view jsonl_format_name = "JSON Lines";

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
  if (options.corpus.format) return false;
  for (const std::string_view extension : {".jsonl", ".ndjson", ".json"}) {
    if (path.ends_with(extension)) return true;
  }
  return !find_corpus_format(path, options.corpus) && detail::starts_like_json(path);
}

/// Opens the corpus at `path`, whatever its format.
/// @param path  A file, or the prefix of a Megatron-LM corpus.
/// @throws data_error, invalid_option  As `open_corpus` and `jsonl_source`.
/// @complexity  As `open_corpus`; for JSON Lines 24 bytes of index a record are read, or the file
/// is
///              read through where it has no index yet.
[[nodiscard]] inline any_corpus open_any_corpus(const std::string& path,
                                                const any_corpus_options& options = {}) {
  if (!is_jsonl_corpus(path, options)) {
    opened_corpus corpus = open_corpus(path, options.corpus);
    const corpus_format format = corpus.format;
    return detail::named(std::move(corpus), corpus_format_name(format));
  }
  // The format in between belongs to `open_corpus`, which has no name for this one.
  return detail::named(detail::opened(jsonl_source(path, detail::jsonl_options_of(options)), path,
                                      corpus_format::token_file, options.corpus),
                       jsonl_format_name);
}

}  // namespace lanepack::inline LANEPACK_ABI
