#pragma once

/// @file
/// The `lookahead_policy` concept and `any_policy`: which buffered records form the next packs.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/candidate.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The steps that a policy is asked to form.
struct step_window {
  /// First of the steps.
  step_index first_step = 0;
  /// Steps to form: 1 to `window_steps()`, fewer at the end of the data and where the number of
  /// records a pack changes.
  std::uint32_t steps = 1;
  /// Records of every pack of these steps (b).
  std::uint32_t records_per_pack = 1;
  /// Packs of every step: 1 for a lane-local stream, L where one stream plans all lanes.
  std::uint32_t packs_per_step = 1;
  /// Steps from `first_step` until the stream has to be empty; nullopt where it never drains.
  std::optional<std::uint64_t> steps_to_drain = std::nullopt;
  /// The lane whose packs these are; 0 where one stream plans all lanes.
  lane_index lane = 0;
};

/// Which arrivals one object of a policy sees.
enum class policy_scope : std::uint8_t {
  /// Those of one lane; a rank has an object for each lane that it owns and plans no other.
  lane,
  /// Those of all lanes in stream order; every rank has one object and plans all L packs of a step.
  all_lanes,
};

/// What a policy needs to go on, beside the records that it holds.
struct policy_state {
  /// Meaning is the policy's own; empty for a policy without memory.
  std::vector<std::uint64_t> words;
};

/// What a policy that plans by a distribution of costs has done so far; a distribution that does
/// not match the stream shows here. All zero for other policies.
struct policy_statistics {
  /// Packs formed under a cap.
  std::uint64_t packs = 0;
  /// Packs of these whose cost exceeded the cap.
  std::uint64_t packs_above_cap = 0;
  /// Records that left in a pack above the cap because they had reached the displacement bound.
  std::uint64_t due_records = 0;
  /// What the arrivals would have cost if they were as the distribution says.
  std::uint64_t expected_cost = 0;

  friend bool operator==(const policy_statistics&, const policy_statistics&) = default;
};

/// Forms packs of a fixed number of records out of a stream of arrivals.
///
/// The caller and a policy count records, and nothing else passes between them: before the steps
/// [t, t + k) with k <= `window_steps()` are formed, the caller has handed over every arrival of
/// the steps before t + k + `buffered_steps()` (fewer only at the end of the data). So a policy
/// holds at most (`window_steps()` + `buffered_steps()`) x b x packs-per-step records at any time,
/// and at the end of the data it drains because arrivals stop while packs go on.
///
/// Semantic requirements on a model:
/// - `form(window, arrivals, out)` appends exactly `steps x packs_per_step` packs, step by step,
///   each of `records_per_pack` records, out of the records held and `arrivals`; the rest stays
///   held;
/// - it depends on the options, the arrivals and the earlier calls alone: integers only, every tie
///   broken by (cost, arrival);
/// - a policy with `buffered_steps() == 0` holds nothing between calls and needs no earlier call,
///   so it can start at any window;
/// - `held()` lists what is held between calls; `save` and `restore` move it across a restart.
///
/// A model may also have `statistics()`, which returns `policy_statistics`.
template <class Policy>
concept lookahead_policy = requires(Policy& policy, const Policy& view, const step_window& window,
                                    std::span<const candidate> arrivals, pack_list& out,
                                    const policy_state& state) {
  { view.name() } -> std::convertible_to<std::string>;
  { view.scope() } -> std::same_as<policy_scope>;
  { view.window_steps() } -> std::same_as<std::uint32_t>;
  { view.buffered_steps() } -> std::same_as<std::uint32_t>;
  policy.form(window, arrivals, out);
  { view.held() } -> std::same_as<std::span<const candidate>>;
  { view.save() } -> std::same_as<policy_state>;
  policy.restore(state, arrivals);
};

/// Any `lookahead_policy`, owned by value; copies are independent.
///
/// One virtual call per window.
/// @thread_safety  None: one thread per object.
class any_policy {
 public:
  /// Takes a policy by value.
  template <class Policy>
  requires(!std::same_as<std::remove_cvref_t<Policy>, any_policy> &&
           lookahead_policy<std::remove_cvref_t<Policy>> &&
           std::copy_constructible<std::remove_cvref_t<Policy>>)
      any_policy(Policy&& policy)  // NOLINT(google-explicit-constructor)
      : self_(std::make_unique<model<std::remove_cvref_t<Policy>>>(std::forward<Policy>(policy))) {}

  any_policy(const any_policy& other) : self_(other.self_->clone()) {}
  any_policy(any_policy&&) noexcept = default;
  any_policy& operator=(const any_policy& other) {
    if (this != &other) self_ = other.self_->clone();
    return *this;
  }
  any_policy& operator=(any_policy&&) noexcept = default;
  ~any_policy() = default;

  [[nodiscard]] std::string name() const { return self_->name(); }
  [[nodiscard]] policy_scope scope() const { return self_->scope(); }
  [[nodiscard]] std::uint32_t window_steps() const { return self_->window_steps(); }
  [[nodiscard]] std::uint32_t buffered_steps() const { return self_->buffered_steps(); }
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    self_->form(window, arrivals, out);
  }
  [[nodiscard]] std::span<const candidate> held() const { return self_->held(); }
  [[nodiscard]] policy_state save() const { return self_->save(); }
  void restore(const policy_state& state, std::span<const candidate> held) {
    self_->restore(state, held);
  }
  [[nodiscard]] policy_statistics statistics() const { return self_->statistics(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    [[nodiscard]] virtual std::unique_ptr<interface> clone() const = 0;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual policy_scope scope() const = 0;
    [[nodiscard]] virtual std::uint32_t window_steps() const = 0;
    [[nodiscard]] virtual std::uint32_t buffered_steps() const = 0;
    virtual void form(const step_window& window, std::span<const candidate> arrivals,
                      pack_list& out) = 0;
    [[nodiscard]] virtual std::span<const candidate> held() const = 0;
    [[nodiscard]] virtual policy_state save() const = 0;
    virtual void restore(const policy_state& state, std::span<const candidate> held) = 0;
    [[nodiscard]] virtual policy_statistics statistics() const = 0;
  };

  template <class Policy>
  struct model final : interface {
    explicit model(Policy policy) : value(std::move(policy)) {}
    [[nodiscard]] std::unique_ptr<interface> clone() const override {
      return std::make_unique<model>(value);
    }
    [[nodiscard]] std::string name() const override { return value.name(); }
    [[nodiscard]] policy_scope scope() const override { return value.scope(); }
    [[nodiscard]] std::uint32_t window_steps() const override { return value.window_steps(); }
    [[nodiscard]] std::uint32_t buffered_steps() const override { return value.buffered_steps(); }
    void form(const step_window& window, std::span<const candidate> arrivals,
              pack_list& out) override {
      value.form(window, arrivals, out);
    }
    [[nodiscard]] std::span<const candidate> held() const override { return value.held(); }
    [[nodiscard]] policy_state save() const override { return value.save(); }
    void restore(const policy_state& state, std::span<const candidate> held) override {
      value.restore(state, held);
    }
    [[nodiscard]] policy_statistics statistics() const override {
      if constexpr (requires(const Policy& policy) {
                      { policy.statistics() } -> std::same_as<policy_statistics>;
                    }) {
        return value.statistics();
      } else {
        return {};
      }
    }
    Policy value;
  };

  std::unique_ptr<interface> self_;
};

static_assert(lookahead_policy<any_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
