#pragma once

/// @file
/// `pipeline`: stages in a row, from the inputs of a corpus to records.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Stages in a row, at most one of them with a memory. Copies share what is stateless.
///
/// What a stage throws, and a record that is none, becomes a data_error that names input and stage,
/// with the stage's own exception nested in it.
/// @thread_safety  Const members may be called by any number of threads, each with its own memory.
/// @determinism    A pure function of the input, and of the inputs before where a stage has a
///                 memory.
class pipeline {
 public:
  /// @throws invalid_option  More than one stage has a memory: a second one can stand in a pipeline
  ///                         of its own whose inputs are the records of the first.
  explicit pipeline(std::vector<any_stage> stages) : stages_(std::move(stages)) {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!stages_[i].stateful()) continue;
      if (carrying_) {
        detail::throw_invalid_option(
            "stages",
            "two that carry something over, " + stages_[*carrying_].describe() + " and " +
                stages_[i].describe(),
            "one; make the second a pipeline of its own over the pipeline_source of the first");
      }
      carrying_ = i;
    }
  }

  [[nodiscard]] std::span<const any_stage> stages() const noexcept { return stages_; }
  /// Whether a stage carries something over from input to input.
  [[nodiscard]] bool stateful() const noexcept { return carrying_.has_value(); }

  /// Of the stages' descriptions.
  [[nodiscard]] digest128 fingerprint() const {
    digest_builder digest;
    digest.text("pipeline 1");
    for (const any_stage& stage : stages_) digest.text(stage.describe());
    return digest.value();
  }

  /// The stages in a line.
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (const any_stage& stage : stages_) {
      if (!text.empty()) text += " > ";
      text += stage.describe();
    }
    return text.empty() ? "no stage" : text;
  }

  /// The memory of one that was never used; of a pipeline without memory, nothing.
  [[nodiscard]] std::optional<any_stage> new_memory() const {
    if (!carrying_) return std::nullopt;
    return stages_[*carrying_];
  }

  /// Runs the stages before the one with a memory, or all, on the samples of one input.
  /// @param corpus  Describes the corpus in errors.
  void run_stateless(std::vector<sample>& samples, const std::string& corpus,
                     record_id input) const {
    run(0, carrying_.value_or(stages_.size()), samples, corpus, input);
    if (!carrying_) check(samples, corpus, input);
  }

  /// Runs the other stages.
  /// @pre  `memory` came from `new_memory` and has seen the inputs before.
  void run_carrying(any_stage& memory, std::vector<sample>& samples, const std::string& corpus,
                    record_id input) const {
    named(*carrying_, corpus, input, [&] { memory.apply(samples); });
    run(*carrying_ + 1, stages_.size(), samples, corpus, input);
    check(samples, corpus, input);
  }

  /// What is held back behind the last input, as `run_carrying` makes records of it.
  /// @param inputs  Inputs of the corpus.
  void run_finish(any_stage& memory, std::vector<sample>& samples, const std::string& corpus,
                  record_id inputs) const {
    named(*carrying_, corpus, inputs, [&] { memory.finish(samples); });
    run(*carrying_ + 1, stages_.size(), samples, corpus, inputs);
    check(samples, corpus, inputs);
  }

 private:
  void run(std::size_t first, std::size_t last, std::vector<sample>& samples,
           const std::string& corpus, record_id input) const {
    for (std::size_t i = first; i < last; ++i) {
      named(i, corpus, input, [&] { stages_[i].apply(samples); });
    }
  }

  template <class Call>
  void named(std::size_t stage, const std::string& corpus, record_id input, Call&& call) const {
    try {
      call();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& failure) {
      fail(stage, corpus, input, failure.what());
    } catch (...) {
      fail(stage, corpus, input, "an exception that is no std::exception");
    }
  }

  [[noreturn]] LANEPACK_COLD void fail(std::size_t stage, const std::string& corpus,
                                       record_id input, const std::string& what) const {
    std::throw_with_nested(
        data_error({.path = corpus, .byte_offset = {}, .record = input, .line = {}},
                   "stage " + stages_[stage].describe() + ": " + what));
  }

  static void check(const std::vector<sample>& samples, const std::string& corpus,
                    record_id input) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (const std::optional<std::string> fault = detail::fault_of(samples[i])) {
        detail::throw_data_error(
            {.path = corpus, .byte_offset = {}, .record = input, .line = {}},
            "what the pipeline made of it, number " + std::to_string(i) + ": " + *fault);
      }
    }
  }

  std::vector<any_stage> stages_;
  /// The stage with a memory.
  std::optional<std::size_t> carrying_;
};

}  // namespace lanepack::inline LANEPACK_ABI
