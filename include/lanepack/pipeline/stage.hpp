#pragma once

/// @file
/// The `stateless_stage` and `stateful_stage` concepts, and `any_stage`: one step from text to
/// records.

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
#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A stage whose output for an input depends on that input alone.
///
/// Semantic requirements on a model:
/// - `apply(samples)` replaces the samples that one input of the pipeline has become so far by
///   those that it becomes, any number of them, in an order of its own choice;
/// - it is a pure function: const, callable by any number of threads at once, the same on every
///   machine; what it throws ends the call and names the input to the user;
/// - `describe()` names the stage and every option that changes what it makes, in a line: a saved
///   state or an index of a pipeline whose stages describe themselves otherwise is refused.
template <class Stage>
concept stateless_stage = std::copy_constructible<Stage> &&
    requires(const Stage& stage, std::vector<sample>& samples) {
  stage.apply(samples);
  { stage.describe() } -> std::same_as<std::string>;
};

/// What a stage with a memory needs to go on: no payload, but where to find it.
struct stage_state {
  /// Inputs of the pipeline, counted back from the last one, that have to be given to the stage
  /// again after `restore`; what it makes of them was made before.
  std::uint64_t replay = 0;
  /// The stage's own, the same number of them in every state of a stage, at most 16.
  std::vector<std::uint64_t> words;

  friend bool operator==(const stage_state&, const stage_state&) = default;
};

/// A stage whose output for an input also depends on the inputs before.
///
/// Semantic requirements on a model, beside those of a stateless stage on what `apply` makes:
/// - copies are independent, and a copy of one that was never used is one that was never used;
/// - `apply` is called for every input in order, also where no sample is left of it;
/// - `finish(samples)` puts what it still holds behind the last input into `samples`, which come
///   empty;
/// - after `restore(save().words)` on one that was never used and `apply` for the last
///   `save().replay` inputs again it does what it would have done. So words are counts into those
///   inputs ("skip 17 tokens of the first"), and what it holds back must be bounded.
template <class Stage>
concept stateful_stage = std::copy_constructible<Stage> &&
    requires(Stage& stage, const Stage& view, std::vector<sample>& samples,
             std::span<const std::uint64_t> words) {
  stage.apply(samples);
  stage.finish(samples);
  stage.restore(words);
  { view.save() } -> std::same_as<stage_state>;
  { view.describe() } -> std::same_as<std::string>;
};

/// Any stage. Copies of a stateless one share it; copies of a stateful one are independent.
///
/// @thread_safety  Of a stateless stage, any number of threads; of a stateful one, one an object.
class any_stage {
 public:
  /// Takes a stage by value.
  template <class Stage>
  requires(!std::same_as<std::remove_cvref_t<Stage>, any_stage> &&
           (stateless_stage<std::remove_cvref_t<Stage>> ||
            stateful_stage<std::remove_cvref_t<Stage>>))
      any_stage(Stage&& stage)  // NOLINT(google-explicit-constructor): a stage is an any_stage
      : self_(std::make_shared<model<std::remove_cvref_t<Stage>>>(std::forward<Stage>(stage))) {}

  any_stage(const any_stage& other) : self_(other.self_->copy(other.self_)) {}
  any_stage(any_stage&&) noexcept = default;
  any_stage& operator=(const any_stage& other) {
    if (this != &other) self_ = other.self_->copy(other.self_);
    return *this;
  }
  any_stage& operator=(any_stage&&) noexcept = default;
  ~any_stage() = default;

  [[nodiscard]] bool stateful() const { return self_->stateful(); }
  [[nodiscard]] std::string describe() const { return self_->describe(); }
  /// @pre  It is stateless.
  void apply(std::vector<sample>& samples) const { self_->apply_const(samples); }
  /// For a stage of either kind.
  void apply(std::vector<sample>& samples) { self_->apply(samples); }
  /// Nothing for a stateless stage.
  void finish(std::vector<sample>& samples) { self_->finish(samples); }
  /// Empty for a stateless stage.
  [[nodiscard]] stage_state save() const { return self_->save(); }
  /// Nothing for a stateless stage.
  void restore(std::span<const std::uint64_t> words) { self_->restore(words); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    [[nodiscard]] virtual std::shared_ptr<interface> copy(
        const std::shared_ptr<interface>& self) const = 0;
    [[nodiscard]] virtual bool stateful() const = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
    virtual void apply(std::vector<sample>& samples) = 0;
    virtual void apply_const(std::vector<sample>& samples) const = 0;
    virtual void finish(std::vector<sample>& samples) = 0;
    [[nodiscard]] virtual stage_state save() const = 0;
    virtual void restore(std::span<const std::uint64_t> words) = 0;
  };

  template <class Stage>
  struct model final : interface {
    static constexpr bool has_memory = stateful_stage<Stage>;

    explicit model(Stage stage) : value(std::move(stage)) {}
    [[nodiscard]] std::shared_ptr<interface> copy(
        const std::shared_ptr<interface>& self) const override {
      if constexpr (has_memory) {
        return std::make_shared<model>(value);
      } else {
        return self;
      }
    }
    [[nodiscard]] bool stateful() const override { return has_memory; }
    [[nodiscard]] std::string describe() const override { return value.describe(); }
    void apply(std::vector<sample>& samples) override { value.apply(samples); }
    void apply_const(std::vector<sample>& samples) const override {
      if constexpr (!has_memory) {
        value.apply(samples);
      } else {
        detail::throw_state_error("stage " + value.describe() +
                                  ": found a call without its memory, expected a copy");
      }
    }
    void finish([[maybe_unused]] std::vector<sample>& samples) override {
      if constexpr (has_memory) value.finish(samples);
    }
    [[nodiscard]] stage_state save() const override {
      if constexpr (has_memory) {
        return value.save();
      } else {
        return {};
      }
    }
    void restore([[maybe_unused]] std::span<const std::uint64_t> words) override {
      if constexpr (has_memory) value.restore(words);
    }
    Stage value;
  };

  std::shared_ptr<interface> self_;
};

}  // namespace lanepack::inline LANEPACK_ABI
