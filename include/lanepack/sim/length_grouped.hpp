#pragma once

/// @file
/// The baseline `length_grouped`: shuffled mega-batches sorted by length, as in length-grouped
/// sampling.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/sequential.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of `length_grouped_policy`.
struct length_grouped_options {
  /// Steps of a mega-batch, at least 1.
  std::uint32_t steps = 50;
};

/// Sorts the records of a mega-batch of steps by descending length (ties: arrival); a step takes
/// neighbours and deals them to its packs in turn, as Hugging Face's distributed length-grouped
/// sampler does with `mega_batch_mult` times the batch.
///
/// Batches are alike in length inside a step and unlike between steps, so ranks wait little and
/// tokens of long records weigh less where a loss is divided by the tokens of its step.
/// @complexity  O(n log n) a mega-batch.
class length_grouped_policy {
 public:
  /// @throws invalid_option
  explicit length_grouped_policy(const length_grouped_options& options = {}) : options_(options) {
    if (options.steps == 0) detail::throw_invalid_option("steps", "0", "at least 1");
  }

  [[nodiscard]] std::string name() const { return "length_grouped"; }
  [[nodiscard]] policy_scope scope() const noexcept { return policy_scope::all_lanes; }
  [[nodiscard]] std::uint32_t window_steps() const noexcept { return options_.steps; }
  [[nodiscard]] std::uint32_t buffered_steps() const noexcept { return 0; }

  /// Appends the packs of the window's steps.
  /// @throws state_error if `arrivals` are not exactly the records of these steps.
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    detail::check_arrivals("length_grouped", window, arrivals);
    order_.resize(arrivals.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [arrivals](std::uint32_t a, std::uint32_t b) {
      return arrivals[a].tokens != arrivals[b].tokens ? arrivals[a].tokens > arrivals[b].tokens
                                                      : a < b;
    });
    const std::size_t packs = window.packs_per_step;
    const std::size_t a_step = packs * window.records_per_pack;
    for (std::size_t first = 0; first < order_.size(); first += a_step) {
      for (std::size_t pack = 0; pack < packs; ++pack) {
        for (std::size_t i = pack; i < a_step; i += packs) out.add(arrivals[order_[first + i]]);
        out.close();
      }
    }
  }

  [[nodiscard]] std::span<const candidate> held() const noexcept { return {}; }
  [[nodiscard]] policy_state save() const { return {}; }
  /// @throws state_error if the state is not empty.
  void restore(const policy_state& state, std::span<const candidate> held) {
    detail::check_no_memory("length_grouped", state, held);
  }

 private:
  length_grouped_options options_;
  std::vector<std::uint32_t> order_;
};

static_assert(lookahead_policy<length_grouped_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
