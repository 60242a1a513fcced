#pragma once

/// @file
/// The `cost_estimator` concept: the estimated work of records in integer cost units.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The largest cost of one record: 2^24 of them still sum in 64 bits.
inline constexpr std::uint64_t max_record_cost = std::uint64_t{1} << 40;

/// `cost`, or `max_record_cost` where it is larger.
[[nodiscard]] constexpr std::uint64_t saturate_cost(std::uint64_t cost) noexcept {
  return std::min(cost, max_record_cost);
}

/// Turns shapes into costs.
///
/// Semantic requirements on a model:
/// - `costs(shapes, out)` writes the cost of `shapes[i]` to `out[i]` (same length), each at most
///   `max_record_cost`; integer arithmetic only, a pure function of the shape and the model;
/// - cost does not fall when tokens are added;
/// - `describe()` is canonical text: equal text means equal costs.
template <class Estimator>
concept cost_estimator = requires(const Estimator& estimator, std::span<const record_shape> shapes,
                                  std::span<std::uint64_t> out) {
  estimator.costs(shapes, out);
  { estimator.describe() } -> std::same_as<std::string>;
};

/// Shared ownership of any `cost_estimator`; itself one.
///
/// One virtual call per batch of shapes.
/// @thread_safety  Const members may be called by any number of threads.
class any_estimator {
 public:
  /// Takes an estimator by value.
  template <class Estimator>
  requires(!std::same_as<std::remove_cvref_t<Estimator>, any_estimator> &&
           cost_estimator<std::remove_cvref_t<Estimator>>)
      any_estimator(Estimator&& estimator)  // NOLINT(google-explicit-constructor)
      : self_(std::make_shared<model<std::remove_cvref_t<Estimator>>>(
            std::forward<Estimator>(estimator))) {}

  void costs(std::span<const record_shape> shapes, std::span<std::uint64_t> out) const {
    self_->costs(shapes, out);
  }
  /// Cost of one shape; for many, `costs` is faster.
  [[nodiscard]] std::uint64_t cost(const record_shape& shape) const {
    std::uint64_t out = 0;
    costs({&shape, 1}, {&out, 1});
    return out;
  }
  [[nodiscard]] std::string describe() const { return self_->describe(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void costs(std::span<const record_shape> shapes,
                       std::span<std::uint64_t> out) const = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
  };

  template <class Estimator>
  struct model final : interface {
    explicit model(Estimator estimator) : value(std::move(estimator)) {}
    void costs(std::span<const record_shape> shapes, std::span<std::uint64_t> out) const override {
      value.costs(shapes, out);
    }
    [[nodiscard]] std::string describe() const override { return value.describe(); }
    Estimator value;
  };

  std::shared_ptr<const interface> self_;
};

static_assert(cost_estimator<any_estimator>);

}  // namespace lanepack::inline LANEPACK_ABI
