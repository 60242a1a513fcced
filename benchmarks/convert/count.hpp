#pragma once

/// @file
/// The index of the records that a pipeline would make of the input, instead of the records.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/text_documents.hpp>
#include <lanepack/json/mds.hpp>
#include <lanepack/json/stages.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/text_stages.hpp>
#include <lanepack/pipeline/thread_pool.hpp>

#include "convert/encode.hpp"
#include "convert/options.hpp"
#include "support/progress.hpp"

namespace lanepack_programs {

/// What was counted.
struct count_report {
  std::string path;
  /// False where the file was there already.
  bool made = true;
  std::string input;
  std::string stages;
  std::uint64_t documents = 0;
  std::uint64_t records = 0;
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;
  double seconds = 0;
};

/// The documents as a program would open them.
/// @param endings  Of the files below folders.
inline lanepack::pipeline_input open_documents(const convert_options& options,
                                               const std::vector<std::string>& endings,
                                               input_format format, document_kind kind) {
  if (format == input_format::mds) {
    if (options.inputs.size() != 1 || kind != document_kind::text) {
      lanepack::detail::throw_invalid_option(
          "--count-index",
          options.inputs.size() != 1 ? "several MDS datasets" : "MDS samples that are no text",
          "one dataset with a column of text; others are converted with --output");
    }
    return lanepack::mds_documents(options.inputs.front(), options.text_field);
  }
  if (kind == document_kind::token_line) {
    lanepack::detail::throw_invalid_option("--count-index", "token arrays",
                                           "text or conversations; tokens need no stages");
  }
  progress_bar bar("find documents", progress_unit::bytes, options.progress);
  return lanepack::text_documents(
      options.inputs,
      {.unit = format == input_format::jsonl ? lanepack::text_unit::line : options.unit,
       .endings = endings,
       .max_document_bytes = options.max_document_bytes,
       .threads = options.threads,
       .progress = bar.callback()});
}

/// The stages that do what a conversion would.
inline lanepack::pipeline stages_of(const convert_options& options, const encode_plan& plan) {
  const lanepack::text_stage_options lengths{.end = plan.eot,
                                             .min_tokens = options.min_tokens,
                                             .max_tokens = options.max_tokens,
                                             .when_long = options.when_long};
  switch (plan.kind) {
    case document_kind::text_line:
      return lanepack::pipeline(
          lanepack::text_line_stages(*plan.tokenizer, lengths, options.text_field));
    case document_kind::chat_line:
      return lanepack::pipeline(
          lanepack::chat_line_stages(*plan.chat, lengths, options.shape, options.extras));
    default:
      return lanepack::pipeline(lanepack::text_stages(*plan.tokenizer, lengths));
  }
}

/// Throws where an index cannot be written, or would take the place of something else.
inline void check_index_path(const std::string& path) {
  const lanepack::output_file probe(path);
  if (!lanepack::identify_file(path)) return;
  constexpr std::string_view kind = "lanepack pipeline index";
  const lanepack::input_file file(path);
  std::string head(std::min<std::size_t>(kind.size(), static_cast<std::size_t>(file.size())), ' ');
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  if (file.size() == 0 || head == kind) return;
  throw lanepack::data_error(
      {.path = path}, "found a file that is no index of a pipeline, expected one or nothing");
}

/// Makes the index unless it is there.
/// @param endings  Of the files below folders.
/// @throws std::runtime_error  It cannot be written.
inline count_report make_index(const convert_options& options,
                               const std::vector<std::string>& endings, input_format format,
                               const encode_plan& plan) {
  const auto start = std::chrono::steady_clock::now();
  if (options.skip_bad_lines) {
    lanepack::detail::throw_invalid_option("--bad-lines", "skip with --count-index",
                                           "fail: a program that reads the same lines would fail");
  }
  // Before the work, not behind it.
  check_index_path(options.count_index);
  const lanepack::pipeline_input input = open_documents(options, endings, format, plan.kind);
  const lanepack::pipeline stages = stages_of(options, plan);
  count_report report;
  report.path = options.count_index;
  report.input = input.describe();
  report.stages = stages.describe();
  report.documents = input.size();
  std::optional<lanepack::count_index> index;
  if (!options.restart) index = lanepack::count_index::load(options.count_index);
  report.made = !index || index->input_fingerprint() != input.fingerprint() ||
                index->pipeline_fingerprint() != stages.fingerprint() ||
                index->inputs() != input.size();
  if (report.made) {
    progress_bar bar("count", progress_unit::count, options.progress);
    const lanepack::thread_pool threads(options.threads);
    index = lanepack::make_count_index(input, stages,
                                       {.executor = threads, .progress = bar.callback()});
    if (!index->save(options.count_index)) {
      throw std::runtime_error(options.count_index + ": cannot write the index");
    }
  }
  report.records = index->records();
  for (lanepack::record_id id = 0; id < report.records; ++id) {
    const lanepack::record_shape shape = index->shape(id);
    report.tokens += shape.tokens;
    report.loss_tokens += shape.loss_tokens;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace lanepack_programs
