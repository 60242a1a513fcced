#pragma once

/// @file
/// `run_state`: what a run needs to go on after a step, on any number of ranks.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A record that a policy holds: 16 bytes, from which its (epoch, id) follows.
struct held_record {
  /// Its place in the arrival order of its lane; of a corpus without an index, that of its input
  /// times 2^16 and its number among the input's records.
  std::uint64_t arrival = 0;
  /// The step at which it was admitted.
  step_index admitted = 0;

  friend bool operator==(const held_record&, const held_record&) = default;
};

/// What one lane needs to go on under a policy with memory: cursors and references, no payload.
///
/// At most `lookahead_steps` x b records are held, so a fragment takes at most 16 bytes for each of
/// them and 200 bytes more. A policy that plans all lanes has one fragment, that of lane 0, and
/// every rank has the same.
struct lane_fragment {
  lane_index lane = 0;
  /// The arrival that comes next, counted from the run's first, in the same numbers.
  std::uint64_t admitted = 0;
  /// The policy's own words: `policy_state`.
  std::vector<std::uint64_t> policy;
  /// Records admitted and not emitted, by ascending arrival.
  std::vector<held_record> held;

  friend bool operator==(const lane_fragment&, const lane_fragment&) = default;
};

/// One thing that two runs must have in common to have the same packs.
struct run_property {
  std::string name;
  std::string value;

  friend bool operator==(const run_property&, const run_property&) = default;
};

/// Where a run stands after a step, so that it can go on from there with any number of ranks.
///
/// Under a policy without memory (`sequential`, `window`, `replicated`) it is the number of the
/// next step and nothing else, the same on every rank. Under `calendar`, and over a corpus without
/// an index, a rank has the fragments of its own lanes; `merge` makes the state of the run out of
/// those of all ranks, and any rank of any later world starts from it.
/// @determinism  The state of a run after a step depends on corpus, plan options and step alone.
struct run_state {
  /// The first step that was not delivered.
  step_index next_step = 0;
  /// The first step of which nothing has come into the packs delivered or the records held: the
  /// mixture may be another from this step on when the run goes on. At least `next_step`, and equal
  /// to it under rules that drain.
  step_index planned_until = 0;
  /// The step before which the fragments were taken: `next_step`, or the first of the window that
  /// holds it.
  step_index fragments_step = 0;
  /// Fragments that the state of a whole run has; 0 where the policy has no memory.
  std::uint32_t fragments_wanted = 0;
  /// Corpus and options, as far as they matter before `planned_until`, in a fixed order; see
  /// `properties_of_run`.
  std::vector<run_property> run;
  /// By ascending lane.
  std::vector<lane_fragment> fragments;

  /// True if it has a fragment of every lane that needs one.
  [[nodiscard]] bool whole() const noexcept { return fragments.size() == fragments_wanted; }

  friend bool operator==(const run_state&, const run_state&) = default;
};

namespace detail {

/// What differs between the runs that two states belong to; empty if nothing does.
[[nodiscard]] inline std::string differences(std::span<const run_property> found,
                                             std::span<const run_property> expected) {
  std::string text;
  const auto add = [&text](const std::string& name, const std::string& a, const std::string& b) {
    if (!text.empty()) text += "; ";
    text += name + ": found " + a + ", expected " + b;
  };
  const auto value_in = [](std::span<const run_property> properties, const std::string& name) {
    const auto at = std::find_if(properties.begin(), properties.end(),
                                 [&](const run_property& p) { return p.name == name; });
    return at == properties.end() ? std::string("nothing") : at->value;
  };
  for (const run_property& property : expected) {
    const std::string value = value_in(found, property.name);
    if (value != property.value) add(property.name, value, property.value);
  }
  for (const run_property& property : found) {
    if (value_in(expected, property.name) == "nothing") {
      add(property.name, property.value, "nothing");
    }
  }
  return text;
}

/// Throws unless a state belongs to the run with these properties.
inline void check_same_run(const run_state& state, std::span<const run_property> expected) {
  const std::string text = differences(state.run, expected);
  if (!text.empty()) throw_state_error("the saved state is of another run: " + text);
}

/// "0 to 3, 7", of the lanes below `wanted` that have no fragment.
[[nodiscard]] inline std::string lanes_missing(const run_state& state, lane_index first,
                                               lane_index last) {
  std::string text;
  auto next = std::lower_bound(
      state.fragments.begin(), state.fragments.end(), first,
      [](const lane_fragment& fragment, lane_index lane) { return fragment.lane < lane; });
  for (lane_index lane = first; lane < last; ++lane) {
    if (next != state.fragments.end() && next->lane == lane) {
      ++next;
      continue;
    }
    lane_index end = lane + 1;
    while (end < last && (next == state.fragments.end() || next->lane != end)) ++end;
    if (!text.empty()) text += ", ";
    text += std::to_string(lane);
    if (end - lane > 1) text += " to " + std::to_string(end - 1);
    lane = end - 1;
  }
  return text;
}

}  // namespace detail

/// The state of a run out of the states of its ranks after the same step: the union of their
/// fragments.
///
/// The same value, whichever number of ranks it came from and in whichever order; states that
/// repeat fragments are welcome where they agree. A state that lacks fragments can be merged again.
/// @throws  state_error  There is none, they are not after the same step of the same run, or two
///                       say different things of a lane.
/// @complexity  O(fragments log fragments).
[[nodiscard]] inline run_state merge(std::span<const run_state> parts) {
  if (parts.empty()) detail::throw_state_error("found no state to merge, expected at least one");
  run_state whole = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const run_state& part = parts[i];
    detail::check_same_run(part, whole.run);
    if (part.next_step != whole.next_step || part.planned_until != whole.planned_until ||
        part.fragments_step != whole.fragments_step ||
        part.fragments_wanted != whole.fragments_wanted) {
      detail::throw_state_error("found a state before step " + std::to_string(part.next_step) +
                                " beside one before step " + std::to_string(whole.next_step) +
                                ", expected states after the same step");
    }
    whole.fragments.insert(whole.fragments.end(), part.fragments.begin(), part.fragments.end());
  }
  std::stable_sort(whole.fragments.begin(), whole.fragments.end(),
                   [](const lane_fragment& a, const lane_fragment& b) { return a.lane < b.lane; });
  const auto kept =
      std::unique(whole.fragments.begin(), whole.fragments.end(),
                  [](const lane_fragment& a, const lane_fragment& b) {
                    if (a.lane != b.lane) return false;
                    if (a != b) {
                      detail::throw_state_error("two states say different things of lane " +
                                                std::to_string(a.lane) + ", expected the same");
                    }
                    return true;
                  });
  whole.fragments.erase(kept, whole.fragments.end());
  return whole;
}

}  // namespace lanepack::inline LANEPACK_ABI
