#pragma once

/// @file
/// `token_cost`: a record costs what it is long.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/cost/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Coefficients of `token_cost`.
struct token_cost_options {
  /// Cost units of a token.
  std::uint64_t per_token = 1;
  /// Cost units of a vision patch.
  std::uint64_t per_patch = 0;
};

/// Cost linear in the tokens and patches of a record.
/// @complexity  O(1) a record.
/// @thread_safety  Immutable.
class token_cost {
 public:
  explicit token_cost(const token_cost_options& options = {}) noexcept : options_(options) {}

  /// The cost of one record, at most `max_record_cost`.
  [[nodiscard]] std::uint64_t cost(const record_shape& shape) const noexcept {
    return saturate_cost(saturating_add(saturating_mul(options_.per_token, shape.tokens),
                                        saturating_mul(options_.per_patch, shape.patches)));
  }

  void costs(std::span<const record_shape> shapes, std::span<std::uint64_t> out) const noexcept {
    LANEPACK_ASSERT(shapes.size() == out.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) out[i] = cost(shapes[i]);
  }

  [[nodiscard]] std::string describe() const {
    return "token(per_token=" + std::to_string(options_.per_token) +
           ",per_patch=" + std::to_string(options_.per_patch) + ")";
  }

 private:
  token_cost_options options_;
};

static_assert(cost_estimator<token_cost>);

}  // namespace lanepack::inline LANEPACK_ABI
