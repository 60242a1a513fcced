#pragma once

/// @file
/// The options that decide a plan, as every program that makes one spells them.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/corpus_options.hpp"
#include "support/mix_arguments.hpp"
#include "support/numbers.hpp"
#include "support/policy_arguments.hpp"
#include "support/read_lengths.hpp"

namespace lanepack_programs {

/// The cost model that `--model FILE` names, or the default one.
inline lanepack::cost_model cost_model_of(const std::string& path) {
  return path.empty() ? lanepack::cost_model{} : lanepack::read_cost_model(path);
}

/// Prints what the options' user should know to stderr.
inline void print_advice(const lanepack::plan_options& options) {
  for (const std::string& sentence : lanepack::advice(options)) {
    std::fputs(("note: " + sentence + "\n").c_str(), stderr);
  }
}

/// Prints which policy `auto` chose and why to stderr.
inline void print_choice(const lanepack::policy_choice& choice) {
  if (!choice.reason.empty()) std::fputs(("note: " + choice.reason + "\n").c_str(), stderr);
}

/// A plan that can be run.
struct opened_plan {
  lanepack::plan_options options;
  std::shared_ptr<const lanepack::candidate_feed> feed;
  lanepack::any_policy policy;
};

/// Options of a plan on the command line.
class plan_arguments {
 public:
  /// Registers the options; the object must outlive the parser.
  void add_to(CLI::App& app) {
    auto* corpus = app.add_option("--corpus", corpus_,
                                  "Corpus: Megatron .bin/.idx, llm.c or nanoGPT .bin, JSON Lines, "
                                  ".npy or .u32 lengths")
                       ->type_name("PATH");
    auto* lengths =
        app.add_option("--lengths", lengths_, "Record lengths: .npy or raw little-endian u32")
            ->type_name("FILE")
            ->excludes(corpus);
    mix_.add_to(app, corpus, lengths);
    add_number(app, "--lanes", options_.lanes, "L, the number of lanes", {.least = 1})->required();
    add_number(app, "--records-per-pack", options_.records_per_pack, "b, records of a pack",
               {.least = 1})
        ->required();
    add_number(app, "--lookahead", options_.lookahead_steps, "Steps of records a lane may buffer");
    app.add_option("--policy", options_.policy, "Lookahead policy: " + policy_list());
    policy_.add_to(app);
    add_number(app, "--seed", options_.seed, "Keys every random decision");
    add_number(app, "--epochs", epochs_, "Passes over the corpus");
    app.add_option("--epoch-end", rule_,
                   "drop_last, pad, continue or finite (default continue with --mix, else "
                   "drop_last)");
    add_number(app, "--steps", steps_, "Steps after which the run ends");
    app.add_option("--skip-steps", skips_,
                   "Ranges FIRST:LAST of steps that are not delivered; LAST "
                   "itself is delivered again");
    app.add_option("--pack-size-change", changes_,
                   "STEP:B, from which step packs have B records; may be repeated");
    app.add_option("--shuffle", shuffle_, "full, block or none");
    add_number(app, "--block-records", options_.shuffle.block_records,
               "Records of a block of --shuffle block");
    add_number(app, "--group-blocks", options_.shuffle.group_blocks,
               "Blocks whose records mix under --shuffle block");
    add_number(app, "--capacity-tokens", capacity_, "Most tokens of a micro-batch, after padding",
               {.least = 1});
    add_number(app, "--record-multiple", options_.limits.record_multiple,
               "Every record is padded to a multiple of so many tokens", {.least = 1});
    app.add_option("--infeasible", infeasible_,
                   "Records above the capacity: fail, skip_and_count, truncate or chunk");
    app.add_option("--empty", empty_, "Records without tokens: fail or skip_and_count");
    app.add_option(
           "--model", model_,
           "Cost model: a Hugging Face config.json or saved coefficients; else 24576 L + L^2")
        ->type_name("FILE");
  }

  /// Opens the corpus and composes the plan.
  [[nodiscard]] opened_plan open() {
    const bool mixes = mix_.given();
    if (!mixes && corpus_.empty() == lengths_.empty()) {
      lanepack::detail::throw_invalid_option("--corpus", "neither it nor --lengths nor --mix",
                                             "one of the three");
    }
    if (mixes) options_.mixture = mix_.options();
    options_.epochs = epochs_;
    options_.steps = steps_;
    if (!rule_.empty()) {
      options_.rule = lanepack::parse_epoch_end(rule_);
    } else if (mixes) {
      options_.rule = lanepack::epoch_end::continue_epochs;
    }
    options_.shuffle.kind = lanepack::parse_shuffle_kind(shuffle_);
    options_.limits.capacity_tokens = capacity_;
    options_.limits.infeasible = lanepack::parse_infeasible_policy(infeasible_, "--infeasible");
    options_.limits.empty = lanepack::parse_empty_policy(empty_, "--empty");
    for (const std::string& text : skips_) {
      const auto [first, last] = split("--skip-steps", text);
      options_.skip_steps.push_back({first, last});
    }
    for (const std::string& text : changes_) {
      const auto [step, size] = split("--pack-size-change", text, {.least = 1, .most = UINT32_MAX});
      options_.pack_size_changes.push_back({step, static_cast<std::uint32_t>(size)});
    }
    check_steps();
    const lanepack::any_estimator estimator = cost_model_of(model_).estimator;
    policy_.apply_to(options_, estimator);
    lanepack::validate(options_);
    const any_lengths lengths =
        mixes ? mix_.open(reading_) : read_lengths(corpus_.empty() ? lengths_ : corpus_, reading_);
    auto feed = lanepack::make_candidate_feed(lengths.source, lengths.summary, estimator, options_);
    lanepack::any_policy policy = lanepack::make_policy(options_, *feed);
    print_advice(options_);
    print_choice(lanepack::choose_policy(options_, *feed));
    return {options_, std::move(feed), std::move(policy)};
  }

  static std::string policy_list() {
    std::string names;
    for (const lanepack::named_policy& policy : lanepack::policies()) {
      names += std::string(policy.name) + ", ";
    }
    return names + std::string(lanepack::auto_policy);
  }

 private:
  /// Says in the words of the options what the library would say in those of its fields.
  void check_steps() const {
    for (std::size_t i = 0; i < skips_.size(); ++i) {
      const lanepack::step_range& range = options_.skip_steps[i];
      if (range.last > range.first) continue;
      lanepack::detail::throw_invalid_option("--skip-steps", skips_[i],
                                             "a LAST that is larger than FIRST");
    }
    const std::uint64_t most =
        lanepack::max_ordered_records / std::max<std::uint64_t>(options_.lookahead_steps, 1);
    std::uint64_t previous = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      const lanepack::pack_size_change& change = options_.pack_size_changes[i];
      if (change.step <= previous) {
        lanepack::detail::throw_invalid_option("--pack-size-change", changes_[i],
                                               "a step after " + std::to_string(previous));
      }
      previous = change.step;
      if (change.records_per_pack > most && options_.records_per_pack <= most) {
        lanepack::detail::throw_invalid_option(
            "--pack-size-change", changes_[i],
            "at most " + std::to_string(most) + " records with a lookahead of " +
                std::to_string(options_.lookahead_steps) + " steps");
      }
    }
  }

  static std::pair<std::uint64_t, std::uint64_t> split(const std::string& option,
                                                       const std::string& text,
                                                       number_range second = {}) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
      lanepack::detail::throw_invalid_option(option, lanepack::detail::quoted(text),
                                             "two numbers as A:B");
    }
    return {parse_number(option, text.substr(0, colon)),
            parse_number(option, text.substr(colon + 1), second)};
  }

  lanepack::plan_options options_;
  policy_arguments policy_;
  mix_arguments mix_;
  lanepack::any_corpus_options reading_;
  std::string corpus_;
  std::string lengths_;
  std::optional<std::uint64_t> epochs_;
  std::optional<std::uint64_t> steps_;
  std::string rule_;
  std::vector<std::string> skips_;
  std::vector<std::string> changes_;
  std::string shuffle_ = "full";
  std::uint64_t capacity_ = 32768;
  std::string infeasible_ = "truncate";
  std::string empty_ = "skip_and_count";
  std::string model_;
};

}  // namespace lanepack_programs
