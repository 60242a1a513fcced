#pragma once

/// @file
/// The options of a program that mix several corpora.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/numbers.hpp"
#include "support/read_lengths.hpp"

namespace lanepack_programs {

/// A mixture on the command line.
class mix_arguments {
 public:
  /// Registers the options; the object must outlive the parser.
  void add_to(CLI::App& app, CLI::Option* corpus, CLI::Option* lengths) {
    constexpr const char* group = "Mixture";
    app.add_option("--mix", parts_,
                   "A corpus of a mixture, its name and its weight; repeated for each. Weight 0: "
                   "none of it until --mix-from")
        ->type_name("NAME=PATH:WEIGHT")
        ->group(group)
        ->excludes(corpus)
        ->excludes(lengths);
    app.add_option("--mix-from", changes_, "Weights that change from a step on; may be repeated")
        ->type_name("STEP:NAME=WEIGHT[,...]")
        ->group(group);
    app.add_option("--mix-unit", unit_, "What weights are shares of: records or tokens")
        ->group(group);
    app.add_option("--mix-end", ends_,
                   "What happens after some epochs (default 1) of a corpus: repeat, stop or drop")
        ->type_name("NAME=RULE[:EPOCHS]")
        ->group(group);
  }

  /// Whether there is a mixture.
  [[nodiscard]] bool given() const {
    if (parts_.empty() && (!changes_.empty() || !ends_.empty())) {
      lanepack::detail::throw_invalid_option("--mix", "none",
                                             "at least one beside --mix-from and --mix-end");
    }
    return !parts_.empty();
  }

  /// The mixture that the options describe.
  /// @throws  lanepack::invalid_option
  [[nodiscard]] lanepack::mixture_options options() const {
    lanepack::mixture_options mixture;
    mixture.unit = lanepack::parse_mixture_unit(unit_, "--mix-unit");
    mixture.phases.emplace_back();
    for (const std::string& text : parts_) {
      const part found = part_of(text);
      mixture.phases[0].weights.push_back({found.name, found.weight});
    }
    for (const std::string& text : changes_) mixture.phases.push_back(phase_of(text));
    for (const std::string& text : ends_) mixture.ends.push_back(end_of(text));
    return mixture;
  }

  /// Opens all corpora as one.
  [[nodiscard]] any_lengths open(const lanepack::any_corpus_options& reading) const {
    std::vector<lanepack::named_source> sources;
    std::vector<lanepack::corpus_summary> summaries;
    for (const std::string& text : parts_) {
      part found = part_of(text);
      any_lengths lengths = read_lengths(found.path, reading);
      sources.push_back({std::move(found.name), std::move(lengths.source)});
      summaries.push_back(std::move(lengths.summary));
    }
    lanepack::any_source source = lanepack::concatenated_source(std::move(sources));
    lanepack::corpus_summary summary = lanepack::summary_of_parts(source, std::move(summaries));
    return {std::move(source), std::move(summary)};
  }

 private:
  struct part {
    std::string name;
    std::string path;
    std::uint64_t weight = 0;
  };

  /// `text` before and after the first or last `mark`.
  static std::pair<std::string, std::string> halves(const std::string& option,
                                                    const std::string& text, std::size_t mark,
                                                    const char* expected) {
    if (mark == std::string::npos) {
      lanepack::detail::throw_invalid_option(option, lanepack::detail::quoted(text), expected);
    }
    return {text.substr(0, mark), text.substr(mark + 1)};
  }

  static part part_of(const std::string& text) {
    constexpr const char* expected = "NAME=PATH:WEIGHT";
    auto [name, rest] = halves("--mix", text, text.find('='), expected);
    auto [path, weight] = halves("--mix", rest, rest.rfind(':'), expected);
    return {std::move(name), std::move(path), parse_number("--mix", weight)};
  }

  static lanepack::mixture_phase phase_of(const std::string& text) {
    constexpr const char* expected = "STEP:NAME=WEIGHT,...";
    auto [step, rest] = halves("--mix-from", text, text.find(':'), expected);
    lanepack::mixture_phase phase{parse_number("--mix-from", step), {}};
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string one = rest.substr(0, end);
      rest.erase(0, end + 1);
      auto [name, weight] = halves("--mix-from", one, one.find('='), expected);
      phase.weights.push_back({std::move(name), parse_number("--mix-from", weight)});
    }
    return phase;
  }

  static lanepack::part_end_rule end_of(const std::string& text) {
    auto [name, rest] = halves("--mix-end", text, text.find('='), "NAME=RULE[:EPOCHS]");
    lanepack::part_end_rule end{std::move(name)};
    const std::size_t colon = rest.find(':');
    end.rule = lanepack::parse_part_end(rest.substr(0, colon), "--mix-end");
    if (colon != std::string::npos) end.epochs = parse_number("--mix-end", rest.substr(colon + 1));
    return end;
  }

  std::vector<std::string> parts_;
  std::vector<std::string> changes_;
  std::vector<std::string> ends_;
  std::string unit_ = "records";
};

/// Prints to stderr which share of a mixture each part has had.
inline void print_shares(const lanepack::any_source& source,
                         std::span<const lanepack::part_share> shares) {
  lanepack::part_share all;
  for (const lanepack::part_share& share : shares) {
    all.records += share.records;
    all.tokens += share.tokens;
  }
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const lanepack::source_part& part = source.parts()[i];
    std::fprintf(stderr, "mix: %s %.3f %% of records, %.3f %% of tokens (ids from %llu)\n",
                 part.name.c_str(), percent(shares[i].records, all.records),
                 percent(shares[i].tokens, all.tokens),
                 static_cast<unsigned long long>(part.first));
  }
}

}  // namespace lanepack_programs
