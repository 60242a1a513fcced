#pragma once

/// @file
/// The policy `window`: a window's records are split into packs of balanced cost.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/window_stagger.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Options of `window_policy`.
struct window_options {
  /// Steps that are formed together (K), at least 1; also all that the policy buffers.
  std::uint32_t lookahead_steps = 16;
  /// How the packs of a window are balanced.
  partition_options partition = {};
  /// How far the heavy packs of lanes stand apart; `stagger_window` finds it.
  window_stagger stagger = {};
};

/// Splits the records of K steps into packs of balanced cost and emits the heaviest first.
///
/// Batch Cost Lookahead ("Coordination-Free Workload Regularization for Variable-Cost Distributed
/// Training"), with packs in descending order of cost on every lane: a record that costs more than
/// a pack's share cannot be balanced away, but the packs that hold such records then fall on the
/// same steps of all lanes. Equal packs stand in the order of their first arrivals; inside a pack
/// records stand in arrival order. Where a step has several packs they are neighbours in that
/// order.
///
/// A stagger turns the order of packs round the window, differently for each group of lanes, so
/// that no step holds the heavy packs of all lanes. What that keeps is the expected tokens and cost
/// of the steps of a whole window; a lane does not see the packs of others, so a single step strays
/// from it by chance, and in shorter windows at the end of the data or before a change of b heavy
/// packs may meet again. Windows with several packs a step are not staggered.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only; a window depends on its own arrivals alone.
class window_policy {
 public:
  /// @throws invalid_option if `lookahead_steps` or `stagger.groups` is 0 or the partition options
  ///         are invalid.
  explicit window_policy(const window_options& options = {})
      : lookahead_steps_(options.lookahead_steps),
        stagger_(options.stagger),
        partitioner_(options.partition) {
    if (lookahead_steps_ == 0) {
      detail::throw_invalid_option("lookahead_steps", "0", "at least 1");
    }
    if (stagger_.groups == 0) detail::throw_invalid_option("stagger.groups", "0", "at least 1");
  }

  [[nodiscard]] std::string name() const { return "window"; }
  [[nodiscard]] policy_scope scope() const noexcept { return policy_scope::lane; }
  [[nodiscard]] std::uint32_t window_steps() const noexcept { return lookahead_steps_; }
  [[nodiscard]] std::uint32_t buffered_steps() const noexcept { return 0; }

  /// Appends the packs of the window's steps.
  /// @param arrivals  In arrival order.
  /// @throws state_error if `arrivals` are not exactly the records of these steps, or more than
  ///         `max_ordered_records`.
  /// @complexity  O(n log packs); no allocation once the scratch has grown, `out` aside.
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    detail::check_arrivals("window", window, arrivals);
    if (costs_.size() < arrivals.size()) costs_.resize(arrivals.size());
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      LANEPACK_ASSERT(i == 0 || arrivals[i - 1].arrival < arrivals[i].arrival);
      costs_[i] = arrivals[i].cost;
    }
    const partition_view packs =
        partitioner_.partition(std::span(costs_).first(arrivals.size()), window.records_per_pack);
    const std::size_t offset =
        window.packs_per_step == 1 ? stagger_.offset(window.lane, window.steps) : 0;
    for (std::size_t place = 0; place < packs.size(); ++place) {
      const std::size_t pack = place >= offset ? place - offset : place + packs.size() - offset;
      for (const std::uint32_t index : packs[pack]) out.add(arrivals[index]);
      out.close();
    }
  }

  /// How far the heavy packs of lanes stand apart.
  [[nodiscard]] const window_stagger& stagger() const noexcept { return stagger_; }

  [[nodiscard]] std::span<const candidate> held() const noexcept { return {}; }
  [[nodiscard]] policy_state save() const { return {}; }
  /// @throws state_error if the state is not empty.
  void restore(const policy_state& state, std::span<const candidate> held) {
    detail::check_no_memory("window", state, held);
  }

 private:
  std::uint32_t lookahead_steps_;
  window_stagger stagger_;
  balanced_partitioner partitioner_;
  std::vector<std::uint64_t> costs_;
};

static_assert(lookahead_policy<window_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
