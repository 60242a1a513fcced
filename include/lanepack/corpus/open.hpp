#pragma once

/// @file
/// `open_corpus`: finds out what a path holds and opens it, with its cached summary.

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
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/npy.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/corpus/token_file.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The formats that `open_corpus` knows.
enum class corpus_format : std::uint8_t {
  /// `.bin` and `.idx` of Megatron-LM.
  megatron,
  /// A run of tokens of llm.c, modded-nanoGPT or nanoGPT.
  token_file,
  /// Lengths in a `.npy` array.
  npy_lengths,
  /// Lengths as little-endian u32.
  u32_lengths,
};

/// Name of a format for people.
[[nodiscard]] constexpr std::string_view corpus_format_name(corpus_format format) noexcept {
  constexpr std::array<std::string_view, 4> names = {"Megatron-LM .bin/.idx", "token file",
                                                     "NumPy lengths", "u32 lengths"};
  return names[static_cast<std::size_t>(format)];
}

/// What is done about the summary of a corpus that is opened.
enum class summary_use : std::uint8_t {
  /// None is looked for.
  none,
  /// It is loaded where it has been saved and fits the files.
  if_saved,
  /// It is loaded, or made and saved.
  always,
};

/// How a corpus of any format is opened.
struct open_options {
  /// By default found from the extension and the first bytes.
  std::optional<corpus_format> format = std::nullopt;
  /// For a Megatron-LM corpus; `threads` and `known_fingerprint` are set by `open_corpus`.
  megatron_options megatron = {};
  /// For a token file; `threads` and `progress` are set by `open_corpus`.
  token_file_options tokens = {};
  /// How length tables are read.
  file_access lengths_access = file_access::positioned;
  summary_use summary = summary_use::if_saved;
  /// Where the summary is kept; by default beside the corpus, named after it and its options, with
  /// the extension `.lanepack-summary`.
  std::optional<std::string> summary_path = std::nullopt;
  /// Computes the fingerprint from the index and compares it with the saved summary's, instead of
  /// trusting sizes and times of the files.
  bool verify_summary = false;
  /// Threads for what has to be read through, at least 1.
  unsigned threads = available_threads();
  /// Told how far such reading is, in bytes or records.
  progress_callback progress = {};
};

/// A corpus and what is known of it.
struct opened_corpus {
  any_source source;
  corpus_format format = corpus_format::megatron;
  /// What results made from the corpus have to be kept under.
  cache_key key;
  /// Where the summary is or would be kept.
  std::string summary_path;
  /// The summary, where one was asked for and found or made.
  std::optional<corpus_summary> summary = std::nullopt;
};

/// Where the summary of a corpus is kept unless the user says otherwise.
/// @param path  Path of the corpus, for a Megatron-LM corpus its prefix.
[[nodiscard]] inline std::string default_summary_path(const std::string& path,
                                                      const std::string& variant) {
  // Two ways to cut one file into records must not overwrite each other's summaries.
  digest_builder digest;
  digest.text(variant);
  return path + "." + digest.value().hex().substr(0, 8) + ".lanepack-summary";
}

namespace detail {

/// First bytes of a file as text for a message.
inline std::string first_bytes_text(const input_file& file) {
  if (file.size() == 0) return "an empty file";
  std::array<std::byte, 8> raw{};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(raw.size(), file.size()));
  file.read_at(0, std::span(raw).first(count));
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "a file that starts with the bytes";
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = std::to_integer<unsigned>(raw[i]);
    text += ' ';
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

inline bool starts_with(const input_file& file, std::string_view wanted) {
  if (file.size() < wanted.size()) return false;
  std::string raw(wanted.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(raw.data(), raw.size())));
  return raw == wanted;
}

inline bool has_llm_c_magic(const input_file& file) {
  std::array<std::byte, sizeof(std::int32_t)> raw{};
  if (file.size() < raw.size()) return false;
  file.read_at(0, raw);
  return is_llm_c_magic(load_number<std::int32_t>(raw.data()));
}

}  // namespace detail

/// The format of what is at `path`, or nullopt where it is none that `open_corpus` knows.
///
/// A prefix or a `.bin` beside an `.idx` is Megatron-LM's; otherwise the magic of the first bytes
/// decides, and then the extension. A file without a header can be recognised only where
/// `options.tokens.type` is given.
/// @throws data_error  There is no file at `path`, or it cannot be read.
[[nodiscard]] inline std::optional<corpus_format> find_corpus_format(
    const std::string& path, const open_options& options = {}) {
  if (options.format) return options.format;
  const bool is_index = path.ends_with(".idx");
  const bool is_bin = path.ends_with(".bin");
  if (!is_index && !is_bin && !identify_file(path) && identify_file(path + ".idx")) {
    return corpus_format::megatron;
  }
  const input_file file(path);
  if (is_index) return corpus_format::megatron;
  if (detail::starts_with(file, npy_magic)) return corpus_format::npy_lengths;
  if (detail::has_llm_c_magic(file)) return corpus_format::token_file;
  if (is_bin && identify_file(detail::megatron_prefix(path) + ".idx")) {
    return corpus_format::megatron;
  }
  if (path.ends_with(".u32")) return corpus_format::u32_lengths;
  // A prefix may also be the name of a file of another kind.
  if (!is_bin && identify_file(path + ".idx") && identify_file(path + ".bin")) {
    return corpus_format::megatron;
  }
  if (options.tokens.type) return corpus_format::token_file;
  return std::nullopt;
}

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_unknown_format(const std::string& path) {
  const input_file file(path);
  std::string expected =
      ", expected a Megatron-LM .bin/.idx, a token file of llm.c, lengths as .npy or .u32";
  if (path.ends_with(".bin")) {
    expected = ", expected " + megatron_prefix(path) +
               ".idx beside it (Megatron-LM), the header of llm.c, or the option that says the "
               "type of the tokens (nanoGPT)";
  }
  throw_file_error_at(path, 0, "found " + first_bytes_text(file) + expected);
}

inline std::string summary_path_of(const std::string& path, const std::string& variant,
                                   const open_options& options) {
  return options.summary_path.value_or(default_summary_path(path, variant));
}

/// @param saved  A summary that was loaded already, or nullopt.
template <class Source>
opened_corpus opened(Source source, const std::string& path, corpus_format format,
                     const open_options& options,
                     std::optional<corpus_summary> saved = std::nullopt) {
  cache_key key = source.identity();
  std::string summary_path = summary_path_of(path, key.variant, options);
  any_source any(std::move(source));
  if (!saved && options.summary != summary_use::none) {
    saved = load_summary(summary_path, key);
    if (saved && options.verify_summary && saved->fingerprint != any.fingerprint()) saved.reset();
  }
  if (!saved && options.summary == summary_use::always) {
    saved = summarize(any, {.threads = options.threads, .progress = options.progress});
    save_summary(summary_path, key, *saved);
  }
  return {.source = std::move(any),
          .format = format,
          .key = std::move(key),
          .summary_path = std::move(summary_path),
          .summary = std::move(saved)};
}

inline opened_corpus open_megatron(const std::string& path, const open_options& options) {
  const std::string prefix = megatron_prefix(path);
  megatron_options chosen = options.megatron;
  chosen.threads = options.threads;
  chosen.known_fingerprint.reset();
  // The fingerprint is the one thing that costs time on a large corpus, so it is taken from the
  // summary where the files are those that the summary was made from.
  const auto index = identify_file(prefix + ".idx");
  const auto bin = identify_file(prefix + ".bin");
  if (options.summary != summary_use::none && !options.verify_summary && index && bin) {
    const cache_key key{.files = {*index, *bin}, .variant = megatron_variant(chosen)};
    if (auto saved = load_summary(summary_path_of(prefix, key.variant, options), key)) {
      chosen.known_fingerprint = saved->fingerprint;
      megatron_source source(prefix, chosen);
      if (source.identity() == key) {
        return opened(std::move(source), prefix, corpus_format::megatron, options,
                      std::move(saved));
      }
      chosen.known_fingerprint.reset();
    }
  }
  return opened(megatron_source(prefix, chosen), prefix, corpus_format::megatron, options);
}

}  // namespace detail

/// Opens the corpus at `path`, whatever its format.
/// @param path  A file, or the prefix of a Megatron-LM corpus.
/// @throws data_error      There is no such file, no known format, or the format's own complaints.
/// @throws invalid_option  As the format's source.
/// @complexity  O(1) for a Megatron-LM corpus, the summary's size aside; see each source for the
///              other formats. With `summary_use::always` and none saved, O(records).
[[nodiscard]] inline opened_corpus open_corpus(const std::string& path,
                                               const open_options& options = {}) {
  if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
  const std::optional<corpus_format> format = find_corpus_format(path, options);
  if (!format) detail::throw_unknown_format(path);
  switch (*format) {
    case corpus_format::megatron:
      return detail::open_megatron(path, options);
    case corpus_format::token_file: {
      token_file_options chosen = options.tokens;
      chosen.threads = options.threads;
      chosen.progress = options.progress;
      return detail::opened(token_file_source(path, chosen), path, *format, options);
    }
    case corpus_format::npy_lengths:
      return detail::opened(length_source::from_npy(path, options.lengths_access), path, *format,
                            options);
    case corpus_format::u32_lengths:
      break;
  }
  return detail::opened(length_source::from_u32(path, options.lengths_access), path, *format,
                        options);
}

}  // namespace lanepack::inline LANEPACK_ABI
