// lanepack-convert: text, JSON Lines and MDS to a Megatron-LM corpus, with a loss mask where there
// is one to be had.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "convert/options.hpp"
#include "convert/run.hpp"
#include "support/numbers.hpp"
#include "support/program.hpp"
#include "support/terminal.hpp"

namespace {

using namespace lanepack_programs;

/// Adds an option whose values have names.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, const std::string& help,
                        const std::map<std::string, Value>& choices, Value& variable) {
  std::string names;
  std::string chosen;
  for (const auto& [key, value] : choices) {
    names += (names.empty() ? "" : ",") + key;
    if (value == variable) chosen = key;
  }
  return app
      .add_option_function<std::string>(
          name, [choices, &variable](const std::string& text) { variable = choices.at(text); },
          help)
      ->check(one_of(choices))
      ->type_name("{" + names + "}")
      ->default_str(chosen);
}

/// Adds an option whose value is one of the token types that Megatron-LM has.
CLI::Option* add_token_type(CLI::App& app, const std::string& name, const std::string& help,
                            std::function<void(lanepack::token_type)> take) {
  return app
      .add_option_function<std::string>(
          name,
          [take = std::move(take)](const std::string& text) {
            take(*lanepack::parse_token_type(text));
          },
          help)
      ->check(
          [](const std::string& text) {
            const auto type = lanepack::parse_token_type(text);
            // Megatron-LM has no code for the unsigned types beyond.
            const bool known =
                type && type != lanepack::token_type::u32 && type != lanepack::token_type::u64;
            return known ? std::string()
                         : "found " + lanepack::detail::quoted(text) +
                               ", expected u8, i8, u16, i16, i32 or i64";
          },
          "")
      ->type_name("TYPE");
}

void add_input_options(CLI::App& app, convert_options& options) {
  constexpr const char* group = "Input";
  add_choice<input_format>(app, "--format", "Format of the files; auto goes by their names",
                           {{"auto", input_format::automatic},
                            {"jsonl", input_format::jsonl},
                            {"mds", input_format::mds},
                            {"text", input_format::text}},
                           options.format)
      ->group(group);
  app.add_option("--ending", options.endings,
                 "Below folders, take files whose names end so, as .txt (default all; .jsonl, "
                 ".ndjson and .json for JSON Lines)")
      ->type_name("TEXT")
      ->group(group);
  add_choice<lanepack::text_unit>(app, "--unit", "What a document of a text file is",
                                  {{"file", lanepack::text_unit::file},
                                   {"line", lanepack::text_unit::line},
                                   {"paragraph", lanepack::text_unit::paragraph}},
                                  options.unit)
      ->group(group);
  add_choice<line_content>(app, "--content",
                           "What a line of JSON Lines or a sample of MDS holds; auto goes by the "
                           "first line, or by the columns",
                           {{"auto", line_content::automatic},
                            {"chat", line_content::chat},
                            {"text", line_content::text},
                            {"tokens", line_content::tokens}},
                           options.content)
      ->group(group);
  app.add_option("--text-field,--json-keys", options.text_field,
                 "Key of a line's text, or column of a sample's")
      ->type_name("KEY")
      ->group(group);
  app.add_option(
         "--token-key", options.token_key,
         "Key of a line's token array, or column of a sample's (default input_ids or tokens)")
      ->type_name("KEY")
      ->group(group);
  add_token_type(app, "--bytes-type", "MDS: type of the tokens in a column of bytes",
                 [&options](lanepack::token_type type) { options.bytes_type = type; })
      ->default_str("i64")
      ->group(group);
  app.add_option("--loss-mask-column", options.mask_column,
                 "MDS: column with 0 or 1 for each token")
      ->type_name("COLUMN")
      ->group(group);
  add_choice<lanepack::chat_shape>(app, "--shape", "How a line holds a chat; auto goes by its keys",
                                   {{"alpaca", lanepack::chat_shape::alpaca},
                                    {"auto", lanepack::chat_shape::automatic},
                                    {"conversations", lanepack::chat_shape::conversations},
                                    {"messages", lanepack::chat_shape::messages}},
                                   options.shape)
      ->group(group);
  add_number(app, "--max-document-bytes", options.max_document_bytes,
             "Most bytes of a line, paragraph or file", {.least = 1, .most = UINT32_MAX})
      ->type_name("N")
      ->group(group);
  app.add_option_function<std::string>(
         "--bad-lines",
         [&options](const std::string& text) { options.skip_bad_lines = text == "skip"; },
         "What to do with a line that is not what it should be: stop, or leave it out and count it")
      ->check(one_of(std::map<std::string, bool>{{"fail", false}, {"skip", true}}))
      ->type_name("{fail,skip}")
      ->default_str("fail")
      ->group(group);
}

void add_token_options(CLI::App& app, convert_options& options) {
  constexpr const char* group = "Tokens";
  app.add_option("--tokenizer", options.tokenizer,
                 "bytes, a Hugging Face tokenizer.json, or a SentencePiece .model")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--append-eot,--append-eod", options.append_eot,
               "End each document with the end-of-text token")
      ->group(group);
  app.add_option("--eot", options.eot,
                 "That token as it is spelled, or its id (default <|endoftext|>, <|end_of_text|>, "
                 "</s> or <eos>)")
      ->type_name("TOKEN")
      ->group(group);
  add_number(app, "--min-tokens", options.min_tokens, "Leave out shorter documents")
      ->type_name("N")
      ->group(group);
  add_number(app, "--max-tokens", options.max_tokens, "Most tokens of a document",
             {.least = 1, .most = INT32_MAX})
      ->type_name("N")
      ->group(group);
  add_choice<lanepack::long_documents>(app, "--long", "What becomes of a longer document",
                                       {{"skip", lanepack::long_documents::skip},
                                        {"split", lanepack::long_documents::split},
                                        {"truncate", lanepack::long_documents::truncate}},
                                       options.when_long)
      ->group(group);
  add_token_type(app, "--dtype",
                 "Type of the tokens (default u16 for vocabularies below 65500, else i32)",
                 [&options](lanepack::token_type type) { options.type = type; })
      ->group(group);
}

void add_chat_options(CLI::App& app, convert_options& options) {
  constexpr const char* group = "Chat";
  using lanepack::chat_loss;
  using lanepack::chat_template;
  const std::map<std::string, chat_template> templates = {{"chatml", chat_template::chatml},
                                                          {"llama3", chat_template::llama3},
                                                          {"plain", chat_template::plain}};
  app.add_option_function<std::string>(
         "--template",
         [&options, templates](const std::string& text) {
           options.chat.format = templates.at(text);
           options.has_template = true;
         },
         "Template that conversations are written in")
      ->check(one_of(templates))
      ->type_name("{chatml,llama3,plain}")
      ->group(group);
  add_choice<chat_loss>(app, "--loss", "Turns whose tokens are to be predicted",
                        {{"all", chat_loss::all},
                         {"assistant", chat_loss::assistant},
                         {"last", chat_loss::last_assistant}},
                        options.chat.loss)
      ->group(group);
  add_choice<lanepack::chat_extras>(
      app, "--chat-extras",
      "Lists of tools and an assistant's reasoning, which no template here writes down: a bad "
      "line, "
      "or left out",
      {{"ignore", lanepack::chat_extras::ignore}, {"refuse", lanepack::chat_extras::refuse}},
      options.extras)
      ->group(group);
  app.add_option_function<std::string>(
         "--default-system",
         [&options](const std::string& text) { options.chat.default_system = text; },
         "System message of conversations that have none")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--system-prefix", options.chat.system_prefix,
                 "Text in front of every system message")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--end-of-turn", options.chat.end_of_turn,
                 "plain: special token behind each turn of the assistant")
      ->type_name("TOKEN")
      ->group(group);
  app.add_flag_callback(
         "--no-begin-of-text", [&options] { options.chat.begin_of_text = false; },
         "llama3: do not begin with <|begin_of_text|>")
      ->group(group);
  const std::map<std::string, std::optional<bool>> masks = {
      {"auto", std::nullopt}, {"no", false}, {"yes", true}};
  add_choice<std::optional<bool>>(
      app, "--loss-mask",
      "Write a loss mask beside the tokens; auto does for chats and for "
      "tokens with labels",
      masks, options.loss_mask)
      ->group(group);
}

void add_options(command_line& line, convert_options& options) {
  line.describe(
      "Turns text files, and JSON Lines or MDS datasets of texts, token arrays or conversations, "
      "into a Megatron-LM "
      "corpus: OUTPUT.bin and OUTPUT.idx, and for conversations a loss mask in "
      "OUTPUT_loss_mask.bin, its .idx and OUTPUT_loss_tokens.u32. The result is the same for any "
      "number of threads. A conversion that was broken off, in whatever way, goes on where it was "
      "when it is started again; until it is done all it writes is in OUTPUT.partial/.",
      line.name() +
          " chats.jsonl -o train --tokenizer tokenizer.json --template chatml --max-tokens 8192");
  CLI::App& app = line.app();
  app.add_option("INPUT", options.inputs, "Files, folders with files, or folders of MDS datasets")
      ->required()
      ->type_name("")
      ->default_str("");
  CLI::Option* const output =
      app.add_option("-o,--output,--output-prefix", options.output, "Prefix of the corpus")
          ->type_name("OUTPUT")
          ->default_str("");
  app.add_option("--count-index", options.count_index,
                 "Instead of a corpus, write the index with which a program makes the same records "
                 "as it goes: open_count_index and text_stages, text_line_stages or "
                 "chat_line_stages")
      ->type_name("FILE")
      ->excludes(output);
  add_number(app, "--threads,--workers", options.threads,
             "Threads that convert (default all processors)", {.least = 1, .most = 4096})
      ->type_name("N");
  add_number(app, "--part-bytes", options.part_bytes, "Bytes that a thread converts at a time",
             {.least = 1, .most = std::uint64_t{1} << 32})
      ->type_name("N");
  add_number(app, "--save-seconds", options.save_seconds,
             "Seconds of work that are lost at most where the process is killed")
      ->type_name("N");
  app.add_flag("--restart", options.restart, "Begin anew even where a conversion was broken off");
  app.add_flag("--json", options.json, "Print a JSON object");
  app.add_flag_callback(
      "--progress", [&options] { options.progress = progress_mode::always; },
      "Show progress even where stderr is no terminal");
  app.add_flag_callback(
      "--quiet", [&options] { options.progress = progress_mode::never; }, "Show no progress");
  add_input_options(app, options);
  add_token_options(app, options);
  add_chat_options(app, options);
}

std::string output_files(const convert_report& done) {
  std::string text = done.prefix + ".bin, .idx";
  if (done.has_loss_mask) {
    text += " and " + lanepack::detail::loss_mask_prefix(done.prefix) + ".bin, .idx, " +
            lanepack::detail::loss_tokens_path(done.prefix);
  }
  return text;
}

double tokens_per_second(const convert_report& done) {
  return done.seconds > 0 ? static_cast<double>(done.tokens_here) / done.seconds : 0.0;
}

void print_report(const convert_report& done) {
  const convert_counts& counts = done.counts;
  std::string text = "wrote      " + output_files(done) + "\n";
  text += "documents  " + with_commas(counts.documents) + "\n";
  text += "tokens     " + with_commas(counts.tokens) + " of type " +
          std::string(lanepack::token_type_name(done.type)) + ", " +
          with_commas(counts.loss_tokens) + " of them to be predicted\n";
  const auto line = [&text](std::uint64_t count, const std::string& what) {
    if (count != 0) text += what + with_commas(count) + "\n";
  };
  line(counts.short_documents, "too short  ");
  line(counts.long_documents, "too long   ");
  line(counts.cut_documents, "cut        ");
  line(counts.bad_lines, "bad lines  ");
  text += "read       " + short_bytes(static_cast<double>(done.input_bytes)) + " in " +
          with_commas(done.files) + (done.files == 1 ? " file" : " files");
  if (done.resumed_bytes != 0) {
    text += ", " + short_bytes(static_cast<double>(done.resumed_bytes)) + " of them before";
  }
  text += "\ntime       " + fixed(done.seconds, 2) + " s, " + short_count(tokens_per_second(done)) +
          " tokens/s\n";
  print(text);
}

nlohmann::ordered_json to_json(const convert_report& done) {
  nlohmann::ordered_json out;
  out["output"] = done.prefix;
  out["type"] = lanepack::token_type_name(done.type);
  out["loss_mask"] = done.has_loss_mask;
  out["files"] = done.files;
  out["input_bytes"] = done.input_bytes;
  out["documents"] = done.counts.documents;
  out["tokens"] = done.counts.tokens;
  out["loss_tokens"] = done.counts.loss_tokens;
  out["too_short"] = done.counts.short_documents;
  out["too_long"] = done.counts.long_documents;
  out["cut"] = done.counts.cut_documents;
  out["bad_lines"] = done.counts.bad_lines;
  out["problems"] = done.problems;
  out["resumed_bytes"] = done.resumed_bytes;
  out["seconds"] = done.seconds;
  out["tokens_per_second"] = tokens_per_second(done);
  return out;
}

void print_report(const count_report& done) {
  std::string text = (done.made ? "wrote      " : "found      ") + done.path + "\n";
  text += "input      " + done.input + "\n";
  text += "stages     " + done.stages + "\n";
  text += "documents  " + with_commas(done.documents) + "\n";
  text += "records    " + with_commas(done.records) + "\n";
  text += "tokens     " + with_commas(done.tokens) + ", " + with_commas(done.loss_tokens) +
          " of them to be predicted\n";
  text += "time       " + fixed(done.seconds, 2) + " s\n";
  print(text);
}

nlohmann::ordered_json to_json(const count_report& done) {
  nlohmann::ordered_json out;
  out["index"] = done.path;
  out["made"] = done.made;
  out["input"] = done.input;
  out["stages"] = done.stages;
  out["documents"] = done.documents;
  out["records"] = done.records;
  out["tokens"] = done.tokens;
  out["loss_tokens"] = done.loss_tokens;
  out["seconds"] = done.seconds;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, [](command_line& line) {
    convert_options options;
    add_options(line, options);
    line.parse();
    if (options.output.empty() && options.count_index.empty()) {
      lanepack::detail::throw_invalid_option("--output", "nothing",
                                             "the prefix of the corpus, or --count-index");
    }
    if (!options.count_index.empty()) {
      const count_report counted = converter(options).count();
      if (options.json) {
        print(json_text(to_json(counted), 2) + "\n");
      } else {
        print_report(counted);
      }
      return exit_code::ok;
    }
    const convert_report done = converter(options).run();
    for (const std::string& problem : done.problems) {
      print_error(line.name(), problem + " (left out)");
    }
    if (done.counts.bad_lines > done.problems.size()) {
      print_error(line.name(), "and " + with_commas(done.counts.bad_lines - done.problems.size()) +
                                   " more bad lines, left out");
    }
    if (options.json) {
      print(json_text(to_json(done), 2) + "\n");
    } else {
      print_report(done);
    }
    return exit_code::ok;
  });
}
