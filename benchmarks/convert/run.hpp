#pragma once

/// @file
/// A conversion from its options to its report.

#include <algorithm>
#include <chrono>
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

#include <nlohmann/json.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/text_documents.hpp>
#include <lanepack/corpus/token_type.hpp>

#include "convert/count.hpp"
#include "convert/encode.hpp"
#include "convert/files.hpp"
#include "convert/input.hpp"
#include "convert/mds_input.hpp"
#include "convert/options.hpp"
#include "convert/ordered.hpp"
#include "convert/output.hpp"
#include "support/progress.hpp"

namespace lanepack_programs {

/// What a conversion has done.
struct convert_report {
  std::string prefix;
  lanepack::token_type type = lanepack::token_type::i32;
  bool has_loss_mask = false;
  std::uint64_t files = 0;
  std::uint64_t input_bytes = 0;
  convert_counts counts;
  std::vector<std::string> problems;
  /// Bytes of the input that an earlier process had converted.
  std::uint64_t resumed_bytes = 0;
  /// Tokens that this process has made.
  std::uint64_t tokens_here = 0;
  double seconds = 0;
};

/// Thrown to leave a part whose first bad line was found.
struct part_given_up {};

/// Runs conversions.
class converter {
 public:
  explicit converter(const convert_options& options) : options_(options) {}

  /// Makes an index of what would be converted.
  count_report count() {
    const input_files files(options_);
    make_plan(files, *open_input(files));
    return make_index(options_, files.endings(), files.format(), plan_);
  }

  convert_report run() {
    const auto start = std::chrono::steady_clock::now();
    const input_files files(options_);
    const std::unique_ptr<convert_input> input = open_input(files);
    make_plan(files, *input);
    convert_output output(options_.output, description(files, *input), plan_.type,
                          plan_.writes_mask, options_.restart);
    convert_report report;
    report.resumed_bytes = output.progress().input_bytes;
    const std::uint64_t tokens_before = output.progress().counts.tokens;
    if (!output.progress().complete) convert(*input, output);
    output.publish();
    const convert_progress& progress = output.progress();
    report.prefix = output.prefix();
    report.type = plan_.type;
    report.has_loss_mask = plan_.writes_mask;
    report.files = input->identity().size();
    report.input_bytes = progress.input_bytes;
    report.counts = progress.counts;
    report.problems = progress.problems;
    report.tokens_here = progress.counts.tokens - tokens_before;
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  }

 private:
  /// A bad line of a part; its line number counts from the start of the part.
  struct bad_line {
    lanepack::data_location where;
    std::string what;
  };

  struct part_result {
    converted_part part;
    part_read read;
    std::vector<bad_line> bad;
  };

  static constexpr std::size_t most_problems = 20;

  [[nodiscard]] std::unique_ptr<convert_input> open_input(const input_files& files) {
    if (files.format() == input_format::mds) {
      plan_.kind = judge_columns(lanepack::read_mds_index(files.paths().front()), options_);
      std::vector<std::unique_ptr<convert_input>> inputs;
      for (const std::string& path : files.paths()) {
        inputs.push_back(open_mds_input(path, plan_.kind, options_));
      }
      return std::make_unique<joined_input>(std::move(inputs));
    }
    if (!options_.mask_column.empty()) {
      lanepack::detail::throw_invalid_option("--loss-mask-column", "input that is no MDS dataset",
                                             "--format mds");
    }
    const lanepack::text_unit unit = files.is_jsonl() ? lanepack::text_unit::line : options_.unit;
    if (unit != lanepack::text_unit::file) {
      return std::make_unique<ranges_input>(files.paths(), unit, options_.part_bytes,
                                            options_.max_document_bytes);
    }
    nlohmann::ordered_json identity = nlohmann::ordered_json::array();
    for (const std::string& path : files.paths()) {
      identity.push_back(file_entry(path, lanepack::input_file(path).identity()));
    }
    lanepack::text_documents_options chosen;
    chosen.max_document_bytes = options_.max_document_bytes;
    return std::make_unique<source_input<lanepack::text_documents>>(
        lanepack::text_documents(files.paths(), chosen), std::move(identity), options_.part_bytes);
  }

  /// What the first line says of all.
  [[nodiscard]] line_kind first_line(const convert_input& input) const {
    struct found {};
    std::optional<line_kind> kind;
    for (std::uint64_t part = 0; part < input.parts() && !kind; ++part) {
      try {
        input.read(part, {[&](std::string_view line, const lanepack::data_location& where) {
                            kind = judge_line(line, where, options_);
                            throw found{};
                          },
                          [](const lanepack::data_location& where, const std::string& what) {
                            throw lanepack::data_error(where, what);
                          }});
      } catch (const found&) {
        // The rest of the part is read later.
      }
    }
    if (kind) return *kind;
    throw lanepack::data_error({.path = options_.inputs[0]},
                               "found no line, expected at least one");
  }

  void make_plan(const input_files& files, const convert_input& input) {
    bool has_mask = false;
    if (files.format() == input_format::mds) {
      has_mask = !options_.mask_column.empty();
      plan_.has_mask = has_mask;
      if (has_mask && plan_.kind != document_kind::token_bytes) {
        lanepack::detail::throw_invalid_option("--loss-mask-column", "samples that are no tokens",
                                               "--content tokens");
      }
    } else if (!files.is_jsonl() && options_.content != line_content::automatic) {
      lanepack::detail::throw_invalid_option("--content", "input that is text",
                                             "JSON Lines or MDS: --format jsonl or mds");
    }
    if (files.is_jsonl()) {
      const bool is_tokens = options_.content == line_content::tokens;
      plan_.kind = is_tokens                                ? document_kind::token_line
                   : options_.content == line_content::chat ? document_kind::chat_line
                                                            : document_kind::text_line;
      if (options_.content == line_content::automatic || (is_tokens && !options_.loss_mask)) {
        const line_kind kind = first_line(input);
        if (options_.content == line_content::automatic) plan_.kind = kind.kind;
        has_mask = kind.has_mask && plan_.kind == document_kind::token_line;
      }
    }
    const bool is_chat = plan_.kind == document_kind::chat_line;
    const bool is_tokens =
        plan_.kind == document_kind::token_line || plan_.kind == document_kind::token_bytes;
    if (options_.has_template && !is_chat) {
      lanepack::detail::throw_invalid_option("--template", "input that is no chat",
                                             "JSON Lines of conversations");
    }
    plan_.writes_mask = options_.loss_mask.value_or(is_chat || has_mask);
    if (!is_tokens || !options_.tokenizer.empty()) {
      if (options_.tokenizer.empty()) {
        lanepack::detail::throw_invalid_option("--tokenizer", "nothing",
                                               "bytes or the path of a tokenizer");
      }
      plan_.tokenizer = open_tokenizer(options_);
    }
    if (is_chat) {
      if (!options_.has_template) {
        lanepack::detail::throw_invalid_option("--template", "nothing for a chat",
                                               "chatml, llama3 or plain");
      }
      plan_.chat.emplace(*plan_.tokenizer, options_.chat);
    }
    if (options_.append_eot) {
      if (plan_.tokenizer) {
        plan_.eot = find_eot(*plan_.tokenizer, options_.eot);
      } else {
        plan_.eot = static_cast<std::int32_t>(
            parse_number("--eot", options_.eot, {0, std::numeric_limits<std::int32_t>::max()}));
      }
    }
    // Megatron-LM itself takes two bytes below this size of a vocabulary.
    constexpr std::uint64_t small_vocabulary = 65500;
    const bool fits =
        plan_.tokenizer && !is_tokens && plan_.tokenizer->vocabulary_size() < small_vocabulary;
    plan_.type =
        options_.type.value_or(fits ? lanepack::token_type::u16 : lanepack::token_type::i32);
  }

  /// All that the bytes of the output depend on, by the names of the options.
  [[nodiscard]] nlohmann::ordered_json description(const input_files& files,
                                                   const convert_input& input) const {
    nlohmann::ordered_json of;
    constexpr const char* contents[] = {"documents", "text", "tokens", "chat", "columns of tokens"};
    constexpr const char* formats[] = {"auto", "jsonl", "mds", "text"};
    constexpr const char* units[] = {"file", "paragraph", "line"};
    constexpr const char* shapes[] = {"auto", "messages", "conversations", "alpaca"};
    constexpr const char* when_long[] = {"truncate", "skip", "split"};
    of["--format"] = formats[static_cast<std::size_t>(files.format())];
    of["--content"] = contents[static_cast<std::size_t>(plan_.kind)];
    of["--unit"] = units[static_cast<std::size_t>(options_.unit)];
    of["--text-field"] = options_.text_field;
    of["--token-key"] = options_.token_key;
    of["--bytes-type"] = lanepack::token_type_name(options_.bytes_type);
    of["--loss-mask-column"] = options_.mask_column;
    of["--shape"] = shapes[static_cast<std::size_t>(options_.shape)];
    of["--tokenizer"] = options_.tokenizer == "bytes" ? "bytes" : "file";
    if (const auto digest = tokenizer_digest(options_.tokenizer)) of["--tokenizer"] = *digest;
    if (plan_.chat) {
      of["--chat-extras"] = options_.extras == lanepack::chat_extras::ignore ? "ignore" : "refuse";
      of["--template"] = lanepack::to_string(options_.chat.format);
      of["--loss"] = lanepack::to_string(options_.chat.loss);
      of["--default-system"] = options_.chat.default_system
                                   ? nlohmann::ordered_json(*options_.chat.default_system)
                                   : nlohmann::ordered_json();
      of["--system-prefix"] = options_.chat.system_prefix;
      of["--end-of-turn"] = options_.chat.end_of_turn;
      of["--no-begin-of-text"] = !options_.chat.begin_of_text;
    }
    of["--eot"] = plan_.eot ? nlohmann::ordered_json(*plan_.eot) : nlohmann::ordered_json();
    of["--min-tokens"] = options_.min_tokens;
    of["--max-tokens"] = options_.max_tokens ? nlohmann::ordered_json(*options_.max_tokens)
                                             : nlohmann::ordered_json();
    of["--long"] = when_long[static_cast<std::size_t>(options_.when_long)];
    of["--max-document-bytes"] = options_.max_document_bytes;
    of["--dtype"] = lanepack::token_type_name(plan_.type);
    of["--loss-mask"] = plan_.writes_mask;
    of["--part-bytes"] = options_.part_bytes;
    return {{"version", 1}, {"options", std::move(of)}, {"inputs", input.identity()}};
  }

  void convert(const convert_input& input, convert_output& output) {
    convert_progress& progress = output.progress();
    progress_bar bar("convert", progress_unit::bytes, options_.progress);
    auto saved = std::chrono::steady_clock::now();
    bool has_unsaved = false;
    try {
      ordered_work<part_result>(progress.parts, input.parts(), options_.threads)
          .run([&](std::uint64_t part) { return convert_part(input, part); },
               [&](std::uint64_t part, part_result&& done) {
                 commit(input, output, part, done);
                 has_unsaved = true;
                 bar.report(progress.input_bytes, std::max(input.bytes(), progress.input_bytes));
                 const auto now = std::chrono::steady_clock::now();
                 if (now - saved < std::chrono::seconds(options_.save_seconds)) return;
                 output.save();
                 has_unsaved = false;
                 saved = std::chrono::steady_clock::now();
               });
    } catch (const lanepack::data_error&) {
      // What is done is done, whatever is wrong with the rest.
      if (has_unsaved) output.save();
      throw;
    }
  }

  [[nodiscard]] part_result convert_part(const convert_input& input, std::uint64_t part) const {
    part_result done;
    document_encoder encoder(options_, plan_);
    const auto refuse = [&](const lanepack::data_location& where, const std::string& what) {
      ++done.part.counts.bad_lines;
      if (done.bad.size() < most_problems) done.bad.push_back({input.locate(where), what});
      if (!options_.skip_bad_lines) throw part_given_up{};
    };
    try {
      done.read =
          input.read(part, {[&](std::string_view document, const lanepack::data_location& where) {
                              try {
                                encoder.encode(document);
                              } catch (const lanepack::data_error& fault) {
                                lanepack::data_location exact = where;
                                if (where.byte_offset) {
                                  *exact.byte_offset += fault.where().byte_offset.value_or(0);
                                }
                                // Its location leads the message of an error.
                                std::string what = fault.what();
                                if (fault.where().byte_offset) what.erase(0, what.find(": ") + 2);
                                refuse(exact, what);
                                return;
                              }
                              add(encoder.tokens(), encoder.loss_mask(), done.part);
                            },
                            refuse});
    } catch (const part_given_up&) {
      // Committing the part reports the line.
    }
    return done;
  }

  /// Appends a document, as long as it may be.
  void add(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> mask,
           converted_part& to) const {
    if (tokens.size() < options_.min_tokens) {
      ++to.counts.short_documents;
      return;
    }
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(
        options_.max_tokens.value_or(std::numeric_limits<std::int32_t>::max()),
        std::numeric_limits<std::int32_t>::max()));
    if (tokens.size() > most) {
      if (options_.when_long == lanepack::long_documents::skip) {
        ++to.counts.long_documents;
        return;
      }
      ++to.counts.cut_documents;
      if (options_.when_long == lanepack::long_documents::truncate) {
        tokens = tokens.first(most);
        mask = mask.first(most);
      }
    }
    do {
      const std::size_t size = std::min(tokens.size(), most);
      add_sequence(tokens.first(size), mask.first(size), to);
      tokens = tokens.subspan(size);
      mask = mask.subspan(size);
    } while (!tokens.empty());
  }

  void add_sequence(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> mask,
                    converted_part& to) const {
    const std::size_t before = to.tokens.size();
    to.tokens.resize(before + tokens.size() * lanepack::token_bytes(plan_.type));
    lanepack::detail::with_token_type(plan_.type, [&](auto zero) {
      std::byte* at = to.tokens.data() + before;
      for (const std::int32_t token : tokens) {
        const auto value = static_cast<decltype(zero)>(token);
        std::memcpy(at, &value, sizeof value);
        at += sizeof value;
      }
    });
    std::uint64_t targets = lanepack::detail::unmasked_loss_tokens(tokens.size());
    if (plan_.writes_mask) {
      to.loss_mask.insert(to.loss_mask.end(), mask.begin(), mask.end());
      targets = 0;
      for (std::size_t i = 1; i < mask.size(); ++i) targets += mask[i];
      to.loss_tokens.push_back(static_cast<std::uint32_t>(targets));
    }
    to.lengths.push_back(static_cast<std::uint32_t>(tokens.size()));
    ++to.counts.documents;
    to.counts.tokens += tokens.size();
    to.counts.loss_tokens += targets;
  }

  void commit(const convert_input& input, convert_output& output, std::uint64_t part,
              part_result& done) const {
    convert_progress& progress = output.progress();
    const std::uint64_t file = input.file_of(part);
    const std::uint64_t lines_before = file == progress.file ? progress.lines : 0;
    for (bad_line& bad : done.bad) {
      if (bad.where.line && !bad.where.record) *bad.where.line += lines_before;
      lanepack::data_error error(bad.where, bad.what);
      if (!options_.skip_bad_lines) throw lanepack::data_error(error);
      if (progress.problems.size() < most_problems) progress.problems.emplace_back(error.what());
    }
    output.append(done.part);
    progress.parts = part + 1;
    progress.input_bytes += done.read.bytes;
    progress.file = file;
    progress.lines = lines_before + done.read.line_ends;
    progress.counts += done.part.counts;
  }

  const convert_options& options_;
  encode_plan plan_;
};

}  // namespace lanepack_programs
