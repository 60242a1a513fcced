#pragma once

/// @file
/// The policy `sequential`: records are packed in the order in which they arrive.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/policy.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Throws unless a policy that holds nothing was given exactly the records of its steps.
inline void check_arrivals(const char* policy, const step_window& window,
                           std::span<const candidate> arrivals) {
  const std::uint64_t expected =
      std::uint64_t{window.steps} * window.packs_per_step * window.records_per_pack;
  if (arrivals.size() != expected || expected == 0) {
    throw_state_error(std::string(policy) + ": found " + std::to_string(arrivals.size()) +
                      " arrivals, expected " + std::to_string(window.steps) + " steps x " +
                      std::to_string(window.packs_per_step) + " packs x " +
                      std::to_string(window.records_per_pack) + " records, none of them 0");
  }
}

/// Throws unless a saved state is that of a policy that holds nothing.
inline void check_no_memory(const char* policy, const policy_state& state,
                            std::span<const candidate> held) {
  if (!state.words.empty() || !held.empty()) {
    throw_state_error(std::string(policy) + ": found a state of " +
                      std::to_string(state.words.size()) + " words and " +
                      std::to_string(held.size()) + " records, expected an empty one");
  }
}

}  // namespace detail

/// Packs records in the order in which they arrive: b neighbours a pack.
///
/// The order that every other policy is measured against.
class sequential_policy {
 public:
  [[nodiscard]] std::string name() const { return "sequential"; }
  [[nodiscard]] policy_scope scope() const noexcept { return policy_scope::lane; }
  [[nodiscard]] std::uint32_t window_steps() const noexcept { return 1; }
  [[nodiscard]] std::uint32_t buffered_steps() const noexcept { return 0; }

  /// Appends the packs of the window's steps.
  /// @throws state_error if `arrivals` are not exactly the records of these steps.
  /// @complexity  O(arrivals).
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    detail::check_arrivals("sequential", window, arrivals);
    for (std::size_t i = 0; i < arrivals.size(); i += window.records_per_pack) {
      for (const candidate& record : arrivals.subspan(i, window.records_per_pack)) out.add(record);
      out.close();
    }
  }

  [[nodiscard]] std::span<const candidate> held() const noexcept { return {}; }
  [[nodiscard]] policy_state save() const { return {}; }
  /// @throws state_error if the state is not empty.
  void restore(const policy_state& state, std::span<const candidate> held) {
    detail::check_no_memory("sequential", state, held);
  }
};

static_assert(lookahead_policy<sequential_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
