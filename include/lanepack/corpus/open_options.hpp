#pragma once

/// @file
/// How a corpus of any format is opened, and what is then known of it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/file_access.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/corpus/token_file_options.hpp>

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

}  // namespace lanepack::inline LANEPACK_ABI
