#pragma once

/// @file
/// The options of a policy beside its name and its lookahead, as every program spells them.

#include <CLI/CLI.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/numbers.hpp"

namespace lanepack_programs {

/// Limits on a step, the displacement bound, and what the records are said to cost.
class policy_arguments {
 public:
  /// Registers the options; the object must outlive the parser.
  void add_to(CLI::App& app) {
    add_number(app, "--max-displacement", max_displacement_,
               "Most steps that a record may be held back; 0: 32 x lookahead")
        ->default_str("32 x lookahead");
    add_fraction(app, "--max-step-tokens-ratio", max_step_tokens_ratio_,
                 "Most tokens expected in a step, over the mean step; 0: no limit");
    add_fraction(app, "--max-step-cost-ratio", max_step_cost_ratio_,
                 "Most cost expected in a step, over the mean step; 0: no limit")
        ->default_str("no limit");
    app.add_option("--histogram", histogram_,
                   "Policies plan by these lengths rather than by the corpus: JSON "
                   "{\"lengths\": [[tokens, count], ...]}")
        ->type_name("FILE");
  }

  /// Writes them to the options of a plan, whose limits are already there.
  /// @throws  lanepack::invalid_option, or lanepack::data_error of the histogram's file
  void apply_to(lanepack::plan_options& options, const lanepack::any_estimator& estimator) const {
    options.max_displacement_steps = max_displacement_;
    options.max_step_tokens_ppm =
        parts_per_million("--max-step-tokens-ratio", max_step_tokens_ratio_);
    options.max_step_cost_ppm = parts_per_million("--max-step-cost-ratio", max_step_cost_ratio_);
    if (!histogram_.empty()) {
      const auto lengths = lanepack::read_length_histogram(histogram_);
      try {
        options.costs = lanepack::costs_of_lengths(lengths, estimator, options.limits);
      } catch (const lanepack::invalid_option& e) {
        lanepack::detail::throw_json_error(histogram_, e.what());
      }
    }
  }

 private:
  static std::uint32_t parts_per_million(const char* option, double ratio) {
    constexpr double most = 4000;
    if (ratio == 0) return 0;
    const double parts = std::round(ratio * 1'000'000);
    // Not a number compares false.
    if (!(parts >= 1'000'001 && ratio <= most)) {
      std::array<char, 32> shown;
      std::snprintf(shown.data(), shown.size(), "%.15g", ratio);
      lanepack::detail::throw_invalid_option(
          option, shown.data(),
          "at least 1.000001 times the mean step and at most 4000 times, or 0");
    }
    return static_cast<std::uint32_t>(parts);
  }

  std::uint64_t max_displacement_ = 0;
  double max_step_tokens_ratio_ = 1.5;
  double max_step_cost_ratio_ = 0;
  std::string histogram_;
};

}  // namespace lanepack_programs
