#pragma once

/// @file
/// Composes the mixture of a run from its options: names to parts, tokens to records, steps to
/// positions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/part_names.hpp>
#include <lanepack/corpus/source_part.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/mixed_records.hpp>
#include <lanepack/sampler/mixture.hpp>
#include <lanepack/sampler/mixture_options.hpp>
#include <lanepack/sampler/schedule.hpp>
#include <lanepack/sampler/shuffle_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// `tokens` in fixed point with 20 bits after the point, over `records`; at least 1.
[[nodiscard]] inline uint128 fixed_point_mean(std::uint64_t tokens, std::uint64_t records) {
  return std::max<uint128>(1, (static_cast<uint128>(tokens) << 20) / records);
}

/// Weights per record out of weights per token: each weight over the part's mean tokens, rounded to
/// a sum of `max_mixture_weights` by largest remainder; a part with a weight keeps at least 1.
/// @pre  Parts with a weight have records; every weight is below 2^32.
[[nodiscard]] inline std::vector<std::uint64_t> record_weights(
    std::span<const std::uint64_t> token_weights, std::span<const part_selection> parts) {
  std::vector<uint128> shares(token_weights.size(), 0);
  uint128 all = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (token_weights[i] == 0) continue;
    shares[i] = (static_cast<uint128>(token_weights[i]) << 80) /
                fixed_point_mean(parts[i].tokens, parts[i].domain.size());
    all += shares[i];
  }
  struct remainder {
    uint128 size;
    std::size_t part;
  };
  std::vector<remainder> remainders;
  std::vector<std::uint64_t> weights(shares.size(), 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    const uint128 scaled = shares[i] * max_mixture_weights;
    weights[i] = static_cast<std::uint64_t>(scaled / all);
    sum += weights[i];
    remainders.push_back({scaled % all, i});
  }
  std::sort(remainders.begin(), remainders.end(), [](const remainder& a, const remainder& b) {
    return a.size != b.size ? a.size > b.size : a.part < b.part;
  });
  for (std::size_t i = 0; i < max_mixture_weights - sum; ++i) ++weights[remainders[i].part];
  for (const remainder& each : remainders) {
    if (weights[each.part] != 0) continue;
    --*std::max_element(weights.begin(), weights.end());
    weights[each.part] = 1;
  }
  return weights;
}

/// The part that an option names.
[[nodiscard]] inline std::size_t part_named(const part_names& names, const std::string& option,
                                            const std::string& name) {
  const std::optional<std::size_t> found = names.find(name);
  if (!found) throw_invalid_option(option, detail::quoted(name), "one of " + names.listed());
  return *found;
}

/// The weights of all phases by part, as the options give them.
[[nodiscard]] inline std::vector<mixture_weights> weights_of_phases(
    const mixture_options& options, const part_names& names, std::span<const source_part> parts,
    std::span<const part_selection> selected, const step_schedule& schedule) {
  if (options.phases.empty()) {
    throw_invalid_option("mixture.phases", "none", "at least one, from step 0 on");
  }
  std::vector<mixture_weights> result;
  std::vector<std::uint64_t> weights(parts.size(), 0);
  for (std::size_t i = 0; i < options.phases.size(); ++i) {
    const mixture_phase& phase = options.phases[i];
    const std::string option = "mixture.phases[" + std::to_string(i) + "]";
    if (i == 0 ? phase.step != 0 : phase.step <= options.phases[i - 1].step) {
      throw_invalid_option(
          option + ".step", std::to_string(phase.step),
          i == 0 ? std::string("0") : "a step after " + std::to_string(options.phases[i - 1].step));
    }
    std::vector<bool> named(parts.size(), false);
    for (const part_weight& each : phase.weights) {
      const std::size_t part = part_named(names, option + ".weights", each.part);
      if (named[part]) {
        throw_invalid_option(option + ".weights", detail::quoted(each.part) + " twice",
                             "each part once");
      }
      named[part] = true;
      if (each.weight >> 32 != 0) {
        throw_invalid_option(option + ".weights[" + detail::quoted(each.part) + "]",
                             std::to_string(each.weight), "at most 2^32 - 1");
      }
      if (each.weight != 0 && selected[part].domain.size() == 0) {
        throw_invalid_option(option + ".weights[" + detail::quoted(each.part) + "]",
                             std::to_string(each.weight),
                             "0: no record of the part's " + std::to_string(parts[part].records) +
                                 " can be delivered");
      }
      weights[part] = each.weight;
    }
    if (std::all_of(weights.begin(), weights.end(), [](std::uint64_t w) { return w == 0; })) {
      throw_invalid_option(option + ".weights", "all 0", "a part with a weight");
    }
    result.push_back(
        {schedule.lane_records_before(phase.step) * schedule.lanes(),
         options.unit == mixture_unit::tokens ? record_weights(weights, selected) : weights});
  }
  return result;
}

[[nodiscard]] inline std::vector<mixed_part> mixed_parts(const mixture_options& options,
                                                         const part_names& names,
                                                         std::span<const part_selection> selected) {
  std::vector<mixed_part> parts;
  for (const part_selection& each : selected) parts.push_back({.records = each.domain.size()});
  std::vector<bool> named(parts.size(), false);
  for (std::size_t i = 0; i < options.ends.size(); ++i) {
    const part_end_rule& rule = options.ends[i];
    const std::string option = "mixture.ends[" + std::to_string(i) + "]";
    const std::size_t part = part_named(names, option + ".part", rule.part);
    if (named[part]) {
      throw_invalid_option(option + ".part", detail::quoted(rule.part) + " again",
                           "each part once");
    }
    named[part] = true;
    if (rule.epochs == 0) throw_invalid_option(option + ".epochs", "0", "at least 1");
    parts[part].rule = rule.rule;
    parts[part].epochs = rule.epochs;
  }
  return parts;
}

}  // namespace detail

/// The mixture that options describe, over the parts of a corpus.
///
/// Weights per token become weights per record with sum 2^20: each over the part's mean tokens as
/// they are delivered, rounded by largest remainder.
/// @param schedule  Of the run, as far as mixing does not end it.
/// @throws      invalid_option naming the option; state_error where the selection lacks parts.
/// @complexity  As `mixture_order`; about 0.2 us a part beside that.
/// @determinism The same on every rank. What parts without a weight are does not matter.
[[nodiscard]] inline std::shared_ptr<const mixed_records> make_mixture(
    const any_source& source, const record_selection& selection, const mixture_options& options,
    const shuffle_options& shuffle, std::uint64_t seed, const step_schedule& schedule) {
  const std::span<const source_part> parts = source.parts();
  if (parts.empty()) {
    detail::throw_invalid_option("mixture", "the corpus " + source.describe(),
                                 "a concatenated_source, which has parts");
  }
  if (selection.parts.size() != parts.size()) {
    detail::throw_state_error(source.describe() +
                              ": found a summary without parts, expected one that summarize or "
                              "summary_of_parts made");
  }
  const part_names names(parts);
  mixture_order order(detail::mixed_parts(options, names, selection.parts),
                      detail::weights_of_phases(options, names, parts, selection.parts, schedule));
  std::vector<mixed_records::part> members;
  members.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    members.push_back({.first = parts[i].first,
                       .order = epoch_order(selection.parts[i].domain, shuffle,
                                            seed_of_part(seed, parts[i].name))});
  }
  return std::make_shared<const mixed_records>(std::move(order), std::move(members), seed);
}

/// Steps that a mixture leaves of a run: those before the first that needs a record which a rule
/// `stop` or `drop` forbids; nullopt where nothing ends.
[[nodiscard]] inline std::optional<std::uint64_t> steps_of_mixture(const mixture_order& mixture,
                                                                   const step_schedule& schedule) {
  const std::optional<std::uint64_t> end = mixture.end_position();
  if (!end || *end >> 63 != 0) return std::nullopt;
  const step_index steps = schedule.step_of_lane_record(*end / schedule.lanes());
  if (steps == 0) {
    detail::throw_invalid_option(
        "mixture.ends", "parts that end after " + std::to_string(*end) + " records of the mixture",
        "at least one step, " +
            std::to_string(std::uint64_t{schedule.lanes()} * schedule.records_per_pack(0)) +
            " records");
  }
  return steps;
}

}  // namespace lanepack::inline LANEPACK_ABI
