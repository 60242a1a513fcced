#pragma once

/// @file
/// `quadratic_cost`: linear work per token and attention that grows with the square of the length.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/cost/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Coefficients of `quadratic_cost`: a record of L tokens costs `linear` L + `quadratic` L^2.
///
/// The default is a dense transformer of hidden size 4096 up to a factor: 12 h^2 L + 2 h L^2 is
/// proportional to 6 h L + L^2 with 6 h = 24576.
struct quadratic_cost_options {
  /// Cost units of a token.
  std::uint64_t linear = 24576;
  /// Cost units of a squared token.
  std::uint64_t quadratic = 1;
  /// Cost units of a vision patch.
  std::uint64_t per_patch = 0;
};

/// Cost of the form a L + b L^2, exact in integers up to `max_record_cost`.
///
/// With the default coefficients that is a record of 1 036 359 tokens.
/// @complexity  O(1) a record.
/// @thread_safety  Immutable.
class quadratic_cost {
 public:
  explicit quadratic_cost(const quadratic_cost_options& options = {}) noexcept
      : options_(options) {}

  /// The cost of one record, at most `max_record_cost`.
  [[nodiscard]] std::uint64_t cost(const record_shape& shape) const noexcept {
    const std::uint64_t square = saturating_mul(shape.tokens, shape.tokens);
    const std::uint64_t text = saturating_add(saturating_mul(options_.linear, shape.tokens),
                                              saturating_mul(options_.quadratic, square));
    return saturate_cost(saturating_add(text, saturating_mul(options_.per_patch, shape.patches)));
  }

  void costs(std::span<const record_shape> shapes, std::span<std::uint64_t> out) const noexcept {
    LANEPACK_ASSERT(shapes.size() == out.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) out[i] = cost(shapes[i]);
  }

  [[nodiscard]] std::string describe() const {
    return "quadratic(linear=" + std::to_string(options_.linear) +
           ",quadratic=" + std::to_string(options_.quadratic) +
           ",per_patch=" + std::to_string(options_.per_patch) + ")";
  }

 private:
  quadratic_cost_options options_;
};

static_assert(cost_estimator<quadratic_cost>);

/// The estimator used where no model is given: 24576 L + L^2.
[[nodiscard]] inline quadratic_cost default_cost() noexcept {
  return quadratic_cost{};
}

}  // namespace lanepack::inline LANEPACK_ABI
