#pragma once

/// @file
/// `transformer_cost`: FLOPs of a transformer's training step per record, in integer cost units.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/model_description.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Attention work of the layers with a sliding window.
struct window_coefficients {
  /// Keys that a query sees, its own position included; at least 1.
  std::uint64_t window_tokens = 1;
  /// Work of a query-key pair, summed over these layers.
  std::uint64_t per_pair = 0;

  friend bool operator==(const window_coefficients&, const window_coefficients&) = default;
};

/// What decides a cost, as plain numbers: equal coefficients give equal costs everywhere.
///
/// A record of L tokens and P patches is one segment of causal attention. It has
/// `pairs(L) = L (L + 1) / 2` query-key pairs, or, in a window of w,
/// `pairs(L, w) = m (m + 1) / 2 + (L - m) w` with `m = min(L, w)`, and costs
///
///     floor((per_token L + per_pair pairs(L) + window.per_pair pairs(L, window.window_tokens)
///            + per_patch P) / 2^fraction_bits)
///
/// cost units, at most `max_record_cost`. Every coefficient is below 2^48, so that JSON readers
/// which keep numbers as doubles do not change it.
struct cost_coefficients {
  /// A cost unit is 2^fraction_bits of what the other coefficients count; 0 to 63.
  std::uint32_t fraction_bits = 0;
  /// Work of a token outside attention's pairs.
  std::uint64_t per_token = 0;
  /// Work of a query-key pair, summed over the layers that see the whole segment.
  std::uint64_t per_pair = 0;
  /// Layers with a sliding window.
  std::optional<window_coefficients> window;
  /// Work of a vision patch.
  std::uint64_t per_patch = 0;
  /// What a micro-batch costs beside its records, in cost units; no part of a record's cost.
  std::uint64_t per_micro_batch = 0;

  friend bool operator==(const cost_coefficients&, const cost_coefficients&) = default;
};

namespace detail {

inline constexpr std::uint64_t coefficient_limit = std::uint64_t{1} << 48;

/// Longer records cost as much as one of this length: their pairs would leave 64 bits, and no
/// layout can hold them.
inline constexpr std::uint64_t costed_tokens = (std::uint64_t{1} << 32) - 1;

/// Query-key pairs of a causal segment of at most `costed_tokens` tokens.
[[nodiscard]] constexpr std::uint64_t causal_pairs(std::uint64_t tokens) noexcept {
  return tokens % 2 == 0 ? tokens / 2 * (tokens + 1) : (tokens + 1) / 2 * tokens;
}

/// Query-key pairs of such a segment where a query sees at most `window` keys.
[[nodiscard]] constexpr std::uint64_t window_pairs(std::uint64_t tokens,
                                                   std::uint64_t window) noexcept {
  const std::uint64_t ramp = std::min(tokens, window);
  return causal_pairs(ramp) + (tokens - ramp) * ramp;
}

/// The cost of a shape before it is cut to whole units.
[[nodiscard]] constexpr uint128 unscaled_cost(const cost_coefficients& coefficients,
                                              const record_shape& shape) noexcept {
  // Every product is below 2^112, so the sum cannot wrap.
  const std::uint64_t tokens = std::min(shape.tokens, costed_tokens);
  uint128 work = static_cast<uint128>(coefficients.per_token) * tokens;
  work += static_cast<uint128>(coefficients.per_pair) * causal_pairs(tokens);
  if (coefficients.window) {
    work += static_cast<uint128>(coefficients.window->per_pair) *
            window_pairs(tokens, coefficients.window->window_tokens);
  }
  work += static_cast<uint128>(coefficients.per_patch) * shape.patches;
  return work;
}

}  // namespace detail

/// Checks coefficients, e.g. after reading them from a file.
/// @throws  invalid_option naming the field, as `cost.<field>`.
inline void validate(const cost_coefficients& coefficients) {
  const auto require = [](const char* field, std::uint64_t found, std::uint64_t low,
                          std::uint64_t limit) {
    if (found >= low && found < limit) return;
    detail::throw_invalid_option(std::string("cost.") + field, std::to_string(found),
                                 std::to_string(low) + " to " + std::to_string(limit - 1));
  };
  require("fraction_bits", coefficients.fraction_bits, 0, 64);
  require("per_token", coefficients.per_token, 0, detail::coefficient_limit);
  require("per_pair", coefficients.per_pair, 0, detail::coefficient_limit);
  require("per_patch", coefficients.per_patch, 0, detail::coefficient_limit);
  require("per_micro_batch", coefficients.per_micro_batch, 0, detail::coefficient_limit);
  if (coefficients.window) {
    require("window.window_tokens", coefficients.window->window_tokens, 1,
            detail::coefficient_limit);
    require("window.per_pair", coefficients.window->per_pair, 0, detail::coefficient_limit);
  }
}

/// FLOPs of forward and backward, as coefficients.
///
/// A token costs 6 FLOPs per parameter that it is multiplied with (2 forward, 4 backward), a
/// query-key pair 6 FLOPs per element of a query head and of a value head, over all heads and
/// layers; a patch 6 FLOPs per parameter of the vision tower. Only pairs that the causal mask
/// keeps are counted. Recomputing activations changes all of them by nearly one factor, which no
/// balance depends on. The coefficients are whole FLOPs, exact; the cost unit is the smallest power
/// of two FLOPs with which a record of 2^24 tokens does not saturate, or, where that would be more
/// than a token's linear work, the largest power of two within it. For a dense 8B model that is
/// 2^28 FLOPs, about 170 units a token.
/// Source: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", appendix B.
/// @throws  invalid_option where the description is not valid or a coefficient exceeds 2^48 - 1.
[[nodiscard]] inline cost_coefficients derive_coefficients(const model_description& model) {
  const parameter_count parameters = count_parameters(model);
  const detail::attention_sizes sizes = detail::attention_sizes_of(model);
  constexpr std::uint64_t flops = 6;
  const std::uint64_t layer_pair =
      saturating_mul(flops * sizes.heads, sizes.qk_head_dim + sizes.v_head_dim);
  const std::uint64_t window_layers = model.sliding_window ? model.sliding_window->layers : 0;

  cost_coefficients result;
  result.per_token = saturating_mul(flops, parameters.multiplied);
  result.per_pair = saturating_mul(layer_pair, model.layers - window_layers);
  if (window_layers != 0) {
    result.window = window_coefficients{model.sliding_window->window_tokens,
                                        saturating_mul(layer_pair, window_layers)};
  }
  result.per_patch = saturating_mul(flops, model.vision_parameters);
  validate(result);

  const record_shape longest{.tokens = std::uint64_t{1} << 24};
  const uint128 work = detail::unscaled_cost(result, longest);
  const auto most = static_cast<std::uint32_t>(std::bit_width(result.per_token) - 1);
  while (result.fraction_bits < most && (work >> result.fraction_bits) > max_record_cost) {
    ++result.fraction_bits;
  }
  return result;
}

/// Cost of a record under given coefficients.
/// @complexity  O(1) a record: a few multiplications.
/// @thread_safety  Immutable.
/// @determinism  128-bit integer arithmetic; the same on every machine.
class transformer_cost {
 public:
  /// @throws  invalid_option as `validate` does.
  explicit transformer_cost(const cost_coefficients& coefficients) : coefficients_(coefficients) {
    validate(coefficients_);
  }

  /// @throws  invalid_option as `derive_coefficients` does.
  explicit transformer_cost(const model_description& model)
      : coefficients_(derive_coefficients(model)) {}

  [[nodiscard]] const cost_coefficients& coefficients() const noexcept { return coefficients_; }

  /// What a micro-batch costs beside its records, in cost units.
  [[nodiscard]] std::uint64_t micro_batch_cost() const noexcept {
    return coefficients_.per_micro_batch;
  }

  /// The cost of one record, at most `max_record_cost`.
  [[nodiscard]] std::uint64_t cost(const record_shape& shape) const noexcept {
    const uint128 units =
        detail::unscaled_cost(coefficients_, shape) >> coefficients_.fraction_bits;
    return units > max_record_cost ? max_record_cost : static_cast<std::uint64_t>(units);
  }

  void costs(std::span<const record_shape> shapes, std::span<std::uint64_t> out) const noexcept {
    LANEPACK_ASSERT(shapes.size() == out.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) out[i] = cost(shapes[i]);
  }

  [[nodiscard]] std::string describe() const {
    std::string text = "transformer(fraction_bits=" + std::to_string(coefficients_.fraction_bits) +
                       ",per_token=" + std::to_string(coefficients_.per_token) +
                       ",per_pair=" + std::to_string(coefficients_.per_pair);
    if (coefficients_.window) {
      text += ",window_tokens=" + std::to_string(coefficients_.window->window_tokens) +
              ",per_window_pair=" + std::to_string(coefficients_.window->per_pair);
    }
    return text + ",per_patch=" + std::to_string(coefficients_.per_patch) + ")";
  }

 private:
  cost_coefficients coefficients_;
};

static_assert(cost_estimator<transformer_cost>);

}  // namespace lanepack::inline LANEPACK_ABI
