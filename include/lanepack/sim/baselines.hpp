#pragma once

/// @file
/// Coordinated baselines by name: what the field runs where one planner sees all lengths of a step.
///
/// They live here and not in `packer/`, because no loader can run them: they need the lengths of
/// all ranks, and most let the number of records of a rank float. A trainer that includes the core
/// does not compile them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/sim/baseline_options.hpp>
#include <lanepack/sim/length_grouped.hpp>
#include <lanepack/sim/pooled_balanced.hpp>
#include <lanepack/sim/pooled_packing.hpp>
#include <lanepack/sim/pooled_records.hpp>
#include <lanepack/sim/step_assigner.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A baseline that has a name.
struct named_baseline {
  std::string_view name;
  /// Whose it is and what it does, in one line.
  std::string_view description;
  /// True if one planner assigns the records of a step to ranks; false if only their order differs.
  bool coordinated;
  /// Whether every rank gets the same number of records.
  bool equal_counts;
  /// Makes the order of the records; `step_records` is the number of records of a step.
  any_policy (*make_policy)(std::uint64_t step_records);
  /// Makes the assignment of a step to ranks.
  /// @throws invalid_option
  any_step_assigner (*make_assigner)(const baseline_options& options);
};

namespace detail {

inline any_policy sequential_baseline(std::uint64_t) {
  return sequential_policy();
}

/// The micro-batcher that suits the synchronisation model, for ranks whose records are given.
inline any_step_assigner own_lanes_baseline(const baseline_options& options) {
  return own_lanes_assigner(micro_batching_of(options), options.record_multiple,
                            counts_for(options.sync));
}

/// A new baseline is added here and nowhere else.
inline constexpr std::array baseline_table{
    named_baseline{"pooled_mffd", "NeMo-RL: MFFD over the step, bins dealt in turn, real tokens",
                   true, false, sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_packing_assigner(pooled_packer::mffd_nemo, options);
                   }},
    named_baseline{"pooled_mffd_padded", "as pooled_mffd, on a backend that pads to the capacity",
                   true, false, sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_packing_assigner(pooled_packer::mffd_nemo, options,
                                                    pooled_backend::padded_to_capacity);
                   }},
    named_baseline{"pooled_ffd", "first fit decreasing over the step, bins dealt in turn", true,
                   false, sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_packing_assigner(pooled_packer::first_fit_decreasing, options);
                   }},
    named_baseline{"pooled_ffd_balanced",
                   "slime, prime-rl: first fit decreasing, bins balanced over ranks by cost", true,
                   false, sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_ffd_balanced_assigner(options);
                   }},
    named_baseline{"pooled_lpt", "AReaL, TRL: count-capped longest first over the step", true, true,
                   sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_lpt_assigner(options);
                   }},
    named_baseline{"pooled_kk", "verl: equal-size Karmarkar-Karp over the step", true, true,
                   sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_kk_assigner(options);
                   }},
    named_baseline{"dp_balanced", "Megatron-LM: next fit in order, records popped to new bins",
                   true, false, sequential_baseline,
                   [](const baseline_options& options) -> any_step_assigner {
                     return pooled_packing_assigner(pooled_packer::next_fit, options);
                   }},
    named_baseline{
        "length_grouped", "Hugging Face: mega-batches of 50 steps sorted by length", false, true,
        [](std::uint64_t step_records) -> any_policy {
          const std::uint64_t most = max_ordered_records / std::max<std::uint64_t>(step_records, 1);
          length_grouped_options options;
          options.steps =
              static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, options.steps));
          return length_grouped_policy(options);
        },
        own_lanes_baseline},
};

}  // namespace detail

/// All baselines, in the order in which to list them.
[[nodiscard]] constexpr std::span<const named_baseline> baselines() noexcept {
  return detail::baseline_table;
}

/// The baseline of that name, or nullptr.
[[nodiscard]] constexpr const named_baseline* find_baseline(std::string_view name) noexcept {
  for (const named_baseline& baseline : baselines()) {
    if (baseline.name == name) return &baseline;
  }
  return nullptr;
}

}  // namespace lanepack::inline LANEPACK_ABI
