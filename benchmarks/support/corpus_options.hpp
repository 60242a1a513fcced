#pragma once

/// @file
/// The options of a program that say how a corpus is read.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <lanepack/core/parallel.hpp>
#include <lanepack/corpus/token_type.hpp>
#include <lanepack/json/open_corpus.hpp>

#include "support/numbers.hpp"
#include "support/program.hpp"

namespace lanepack_programs {

/// Adds the options for reading a corpus to `app`; parsing fills `options`, which has to live until
/// then.
inline void add_corpus_options(CLI::App& app, lanepack::any_corpus_options& options) {
  using lanepack::corpus_format;
  using lanepack::end_of_text_place;
  using lanepack::megatron_loss_mask;
  using lanepack::megatron_pointers;
  using lanepack::megatron_record;
  using lanepack::target_key;
  constexpr const char* group = "Corpus";

  const auto choice = [&app](const std::string& name, const std::string& help, auto choices,
                             auto set) {
    std::string names;
    for (const auto& [key, value] : choices) names += (names.empty() ? "" : ",") + key;
    app.add_option_function<std::string>(
           name, [choices, set](const std::string& chosen) { set(choices.at(chosen)); }, help)
        ->check(one_of(choices))
        ->type_name("{" + names + "}")
        ->group("Corpus");
  };

  choice("--format", "Format of the files, instead of finding it out",
         std::map<std::string, std::optional<corpus_format>>{{"jsonl", std::nullopt},
                                                             {"megatron", corpus_format::megatron},
                                                             {"npy", corpus_format::npy_lengths},
                                                             {"tokens", corpus_format::token_file},
                                                             {"u32", corpus_format::u32_lengths}},
         [&options](std::optional<corpus_format> format) {
           options.corpus.format = format;
           options.is_jsonl = !format;
         });
  choice("--records", "What a record of a Megatron-LM corpus is (default sequence)",
         std::map<std::string, megatron_record>{{"document", megatron_record::document},
                                                {"sequence", megatron_record::sequence}},
         [&options](megatron_record record) { options.corpus.megatron.record = record; });
  choice("--loss-mask", "Whether the loss mask beside a Megatron-LM corpus is read (default auto)",
         std::map<std::string, megatron_loss_mask>{{"auto", megatron_loss_mask::if_present},
                                                   {"none", megatron_loss_mask::none},
                                                   {"required", megatron_loss_mask::required}},
         [&options](megatron_loss_mask use) { options.corpus.megatron.loss_mask = use; });
  app.add_flag_callback(
         "--recompute-pointers",
         [&options] { options.corpus.megatron.pointers = megatron_pointers::recomputed; },
         "Megatron-LM: find sequences by their lengths, for an index whose pointers overflowed")
      ->group(group);
  app.add_flag("--allow-longer-bin", options.corpus.megatron.allow_longer_bin,
               "Megatron-LM: accept bytes after the last sequence")
      ->group(group);
  app.add_option_function<std::string>(
         "--dtype",
         [&options](const std::string& name) {
           options.corpus.tokens.type = lanepack::parse_token_type(name);
         },
         "Type of the tokens of a file without a header (nanoGPT): u16, u32, ...")
      ->check(
          [](const std::string& name) {
            return lanepack::parse_token_type(name)
                       ? std::string()
                       : "found " + lanepack::detail::quoted(name) +
                             ", expected u8, i8, u16, i16, u32, i32, u64 or i64";
          },
          "")
      ->type_name("TYPE")
      ->group(group);
  add_number(app, "--eot", options.corpus.tokens.end_of_text,
             "Id of the end-of-text token of a token file (default by its type)")
      ->type_name("ID")
      ->group(group);
  choice("--eot-place", "Where a document of a token file has it (default by its format)",
         std::map<std::string, end_of_text_place>{{"first", end_of_text_place::first},
                                                  {"last", end_of_text_place::last}},
         [&options](end_of_text_place place) { options.corpus.tokens.place = place; });
  app.add_option("--token-key", options.jsonl.keys.token_key,
                 "JSON Lines: key of the token array (default input_ids or tokens)")
      ->type_name("KEY")
      ->group(group);
  add_number(app, "--max-line-bytes", options.jsonl.max_line_bytes,
             "JSON Lines: most bytes of a line", {.least = 1, .most = UINT32_MAX})
      ->type_name("N")
      ->group(group);
  choice("--targets", "JSON Lines: what marks the tokens to predict (default auto)",
         std::map<std::string, target_key>{{"auto", target_key::automatic},
                                           {"labels", target_key::labels},
                                           {"loss_mask", target_key::loss_mask},
                                           {"none", target_key::none}},
         [&options](target_key key) { options.jsonl.keys.targets = key; });
  add_number(app, "--threads", options.corpus.threads, "Threads that read (default all processors)",
             {.least = 1})
      ->type_name("N")
      ->group(group);
}

}  // namespace lanepack_programs
