#pragma once

/// @file
/// What a conversion is asked to do.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/chat/options.hpp>
#include <lanepack/core/available_threads.hpp>
#include <lanepack/corpus/text_scan.hpp>
#include <lanepack/corpus/token_type.hpp>
#include <lanepack/json/chat_line.hpp>
#include <lanepack/pipeline/text_stages.hpp>

#include "support/progress.hpp"

namespace lanepack_programs {

/// What kind of files the input is.
enum class input_format { automatic, jsonl, mds, text };

/// What a line of JSON Lines holds.
enum class line_content { automatic, text, tokens, chat };

/// What a document is once it was taken out of its file.
enum class document_kind {
  /// The text itself.
  text,
  /// JSON Lines: an object with a text, with token arrays, with a conversation.
  text_line,
  token_line,
  chat_line,
  /// Token ids of 4 bytes and perhaps a loss mask behind them.
  token_bytes,
};

struct convert_options {
  std::vector<std::string> inputs;
  /// Prefix of the output, as given; empty where an index is wanted.
  std::string output;
  /// File of an index to be made instead of a corpus, or empty.
  std::string count_index;

  input_format format = input_format::automatic;
  std::vector<std::string> endings;
  lanepack::text_unit unit = lanepack::text_unit::file;
  line_content content = line_content::automatic;
  std::string text_field = "text";
  std::string token_key;
  /// Of an MDS column of bytes.
  lanepack::token_type bytes_type = lanepack::token_type::i64;
  /// MDS column of a loss mask, or empty.
  std::string mask_column;
  lanepack::chat_shape shape = lanepack::chat_shape::automatic;
  lanepack::chat_extras extras = lanepack::chat_extras::refuse;
  std::uint64_t max_document_bytes = std::uint64_t{1} << 30;

  std::string tokenizer;
  lanepack::chat_options chat;
  bool has_template = false;
  bool append_eot = false;
  std::string eot;

  std::uint64_t min_tokens = 1;
  std::optional<std::uint64_t> max_tokens;
  lanepack::long_documents when_long = lanepack::long_documents::truncate;
  bool skip_bad_lines = false;

  std::optional<lanepack::token_type> type;
  /// Whether a loss mask is written; by what the input holds where absent.
  std::optional<bool> loss_mask;

  unsigned threads = lanepack::available_threads();
  std::uint64_t part_bytes = std::uint64_t{1} << 22;
  std::uint64_t save_seconds = 5;
  bool restart = false;
  bool json = false;
  progress_mode progress = progress_mode::automatic;
};

}  // namespace lanepack_programs
