#pragma once

/// @file
/// How a token file is opened.

#include <cstdint>
#include <optional>
#include <string>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/file_access.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Where a document has its end-of-text token.
enum class end_of_text_place : std::uint8_t {
  /// In front, as llm.c writes it.
  first,
  /// At the end, as nanoGPT writes it.
  last,
};

/// How a token file is opened.
struct token_file_options {
  /// Type of the tokens. A file with a header says it itself; one without needs it here.
  std::optional<token_type> type = std::nullopt;
  /// Id of the end-of-text token. By default 50256 for u16 tokens (GPT-2) and 128000 for llm.c's
  /// u32 tokens (LLaMA 3); any other type needs it here.
  std::optional<std::int32_t> end_of_text = std::nullopt;
  /// By default `first` for a file with a header and `last` for one without.
  std::optional<end_of_text_place> place = std::nullopt;
  /// How the tokens are read.
  file_access access = file_access::positioned;
  /// Threads that look for documents, at least 1.
  unsigned threads = available_threads();
  /// Told the number of bytes looked through.
  progress_callback progress = {};
  /// Where the document lengths are kept for the next opening; by default beside the file, named
  /// after it with the extension `.lanepack-documents`. A place that cannot be written is no error.
  std::optional<std::string> index_path = std::nullopt;
};

}  // namespace lanepack::inline LANEPACK_ABI
