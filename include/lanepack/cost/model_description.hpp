#pragma once

/// @file
/// `model_description`: the sizes of a transformer that decide its parameter count and its FLOPs.

#include <cstdint>
#include <optional>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Mixture-of-experts layers of a model.
struct moe_description {
  /// Routed experts of a layer, at least 1.
  std::uint64_t experts = 0;
  /// Routed experts that a token visits, in [1, experts].
  std::uint64_t experts_per_token = 0;
  /// Inner width of a routed expert.
  std::uint64_t ffn_size = 0;
  /// Experts that every token visits.
  std::uint64_t shared_experts = 0;
  /// Inner width of one shared expert; that of a routed one if absent.
  std::optional<std::uint64_t> shared_ffn_size;
  /// A shared expert's output is scaled by a gate of one number a token (Qwen2-MoE).
  bool shared_gate = false;
  /// The router adds a bias per expert (DeepSeek-V3).
  bool router_bias = false;
  /// Layers without experts, which have the dense `ffn_size` of the model; wherever they stand.
  std::uint64_t dense_layers = 0;

  friend bool operator==(const moe_description&, const moe_description&) = default;
};

/// Layers whose attention sees only the last tokens.
struct sliding_window_description {
  /// Keys that a query sees, its own position included; at least 1.
  std::uint64_t window_tokens = 0;
  /// Layers that use the window; the others see the whole segment.
  std::uint64_t layers = 0;

  friend bool operator==(const sliding_window_description&,
                         const sliding_window_description&) = default;
};

/// Multi-head latent attention (DeepSeek-V2): queries and keys/values pass through low ranks.
struct mla_description {
  /// Rank of the queries; full-rank queries if absent.
  std::optional<std::uint64_t> q_rank;
  /// Rank of keys and values.
  std::uint64_t kv_rank = 0;
  /// Width of a query or key head without position.
  std::uint64_t qk_nope_head_dim = 0;
  /// Width of a query or key head that carries the position; the key's is shared by all heads.
  std::uint64_t qk_rope_head_dim = 0;
  /// Width of a value head.
  std::uint64_t v_head_dim = 0;

  friend bool operator==(const mla_description&, const mla_description&) = default;
};

/// The sizes of a decoder-only transformer.
///
/// All counts are of the whole model, not of one device's part of it.
struct model_description {
  /// Width of the residual stream.
  std::uint64_t hidden_size = 0;
  /// Decoder layers.
  std::uint64_t layers = 0;
  /// Query heads of a layer.
  std::uint64_t attention_heads = 0;
  /// Key/value heads of a layer; `attention_heads` if absent (no grouping). Not used with `mla`.
  std::optional<std::uint64_t> kv_heads;
  /// Width of a head; `hidden_size / attention_heads` if absent. Not used with `mla`.
  std::optional<std::uint64_t> head_dim;
  /// Inner width of the dense feed-forward part.
  std::uint64_t ffn_size = 0;
  /// The feed-forward part has three matrices (SwiGLU, GeGLU) and not two.
  bool gated = true;
  /// Rows of the token embedding.
  std::uint64_t vocabulary = 0;
  /// The output head shares the embedding's matrix.
  bool tied_head = false;
  /// Mixture-of-experts layers.
  std::optional<moe_description> moe;
  /// Layers with a sliding window.
  std::optional<sliding_window_description> sliding_window;
  /// Latent attention in all layers.
  std::optional<mla_description> mla;

  /// Query, key and value projections have a bias.
  bool qkv_bias = false;
  /// The attention's output projection has a bias.
  bool output_bias = false;
  /// The dense feed-forward matrices have biases.
  bool ffn_bias = false;
  /// Queries and keys are normalised per head, with one weight per element of a head.
  bool qk_norm = false;
  /// Normalisations of a layer over the residual stream.
  std::uint64_t norms_per_layer = 2;
  /// Normalisations over the residual stream have a bias beside the weight (LayerNorm).
  bool norm_bias = false;
  /// Rows of a learned position embedding.
  std::uint64_t learned_positions = 0;

  /// Parameters of a vision tower, all of which every vision patch passes once; 0 without one.
  std::uint64_t vision_parameters = 0;

  friend bool operator==(const model_description&, const model_description&) = default;
};

/// Parameters of a model.
struct parameter_count {
  /// All parameters.
  std::uint64_t total = 0;
  /// Parameters that one token uses: of the routed experts, only those it visits.
  std::uint64_t active = 0;
  /// Parameters of the matrices that one token is multiplied with: `active` without embeddings,
  /// biases and normalisations, with the output head even where it is tied.
  std::uint64_t multiplied = 0;

  friend bool operator==(const parameter_count&, const parameter_count&) = default;
};

namespace detail {

inline void require_size(const char* field, std::uint64_t found, std::uint64_t low,
                         std::uint64_t high) {
  if (found >= low && found <= high) return;
  throw_invalid_option(std::string("model.") + field, std::to_string(found),
                       std::to_string(low) + " to " + std::to_string(high));
}

/// Widths of one layer's attention, summed over its heads.
struct attention_sizes {
  std::uint64_t heads = 0;
  /// Width of a query or key head.
  std::uint64_t qk_head_dim = 0;
  /// Width of a value head.
  std::uint64_t v_head_dim = 0;
  /// Key heads that are stored for a token.
  std::uint64_t kv_heads = 0;
};

[[nodiscard]] inline attention_sizes attention_sizes_of(const model_description& model) {
  const std::uint64_t heads = model.attention_heads;
  if (model.mla) {
    return {heads, model.mla->qk_nope_head_dim + model.mla->qk_rope_head_dim, model.mla->v_head_dim,
            heads};
  }
  const std::uint64_t width = model.head_dim.value_or(model.hidden_size / heads);
  return {heads, width, width, model.kv_heads.value_or(heads)};
}

}  // namespace detail

/// Checks that a description can be counted.
/// @throws  invalid_option naming the field, as `model.<field>`.
inline void validate(const model_description& model) {
  using detail::require_size;
  // The upper limits keep every product of three sizes and a small factor within 128 bits.
  constexpr std::uint64_t max_width = std::uint64_t{1} << 24;
  constexpr std::uint64_t max_count = std::uint64_t{1} << 16;
  require_size("hidden_size", model.hidden_size, 1, max_width);
  require_size("layers", model.layers, 1, max_count);
  require_size("attention_heads", model.attention_heads, 1, max_count);
  require_size("vocabulary", model.vocabulary, 1, std::uint64_t{1} << 31);
  require_size("ffn_size", model.ffn_size, 0, max_width);
  require_size("norms_per_layer", model.norms_per_layer, 0, max_count);
  require_size("learned_positions", model.learned_positions, 0, std::uint64_t{1} << 31);
  require_size("vision_parameters", model.vision_parameters, 0, std::uint64_t{1} << 44);
  if (model.mla) {
    if (model.mla->q_rank) require_size("mla.q_rank", *model.mla->q_rank, 1, max_width);
    require_size("mla.kv_rank", model.mla->kv_rank, 1, max_width);
    require_size("mla.qk_nope_head_dim", model.mla->qk_nope_head_dim, 0, max_count);
    require_size("mla.qk_rope_head_dim", model.mla->qk_rope_head_dim, 0, max_count);
    require_size("mla.v_head_dim", model.mla->v_head_dim, 1, max_count);
  } else {
    const std::uint64_t heads = model.attention_heads;
    const std::uint64_t kv_heads = model.kv_heads.value_or(heads);
    require_size("kv_heads", kv_heads, 1, heads);
    if (heads % kv_heads != 0) {
      detail::throw_invalid_option("model.kv_heads", std::to_string(kv_heads),
                                   "a divisor of attention_heads = " + std::to_string(heads));
    }
    if (model.head_dim) {
      require_size("head_dim", *model.head_dim, 1, max_count);
    } else if (model.hidden_size % heads != 0) {
      detail::throw_invalid_option("model.hidden_size", std::to_string(model.hidden_size),
                                   "a multiple of attention_heads = " + std::to_string(heads) +
                                       " where head_dim is not given");
    }
  }
  if (model.moe) {
    require_size("moe.experts", model.moe->experts, 1, max_count);
    require_size("moe.experts_per_token", model.moe->experts_per_token, 1, model.moe->experts);
    require_size("moe.ffn_size", model.moe->ffn_size, 1, max_width);
    require_size("moe.shared_experts", model.moe->shared_experts, 0, max_count);
    require_size("moe.shared_ffn_size", model.moe->shared_ffn_size.value_or(model.moe->ffn_size), 1,
                 max_width);
    require_size("moe.dense_layers", model.moe->dense_layers, 0, model.layers);
  }
  if (model.sliding_window) {
    require_size("sliding_window.window_tokens", model.sliding_window->window_tokens, 1,
                 std::uint64_t{1} << 31);
    require_size("sliding_window.layers", model.sliding_window->layers, 0, model.layers);
  }
}

/// Counts the parameters of a model.
/// @throws  invalid_option where the description is not valid or a count exceeds 2^50.
[[nodiscard]] inline parameter_count count_parameters(const model_description& model) {
  validate(model);
  const uint128 hidden = model.hidden_size;
  const detail::attention_sizes sizes = detail::attention_sizes_of(model);
  const uint128 query_width = static_cast<uint128>(sizes.heads) * sizes.qk_head_dim;
  const uint128 value_width = static_cast<uint128>(sizes.heads) * sizes.v_head_dim;

  uint128 attention = value_width * hidden;
  uint128 attention_small = model.output_bias ? hidden : 0;
  if (model.mla) {
    const uint128 kv_rank = model.mla->kv_rank;
    const uint128 nope = model.mla->qk_nope_head_dim;
    if (model.mla->q_rank) {
      const uint128 q_rank = *model.mla->q_rank;
      attention += hidden * q_rank + q_rank * query_width;
      attention_small += q_rank;
    } else {
      attention += hidden * query_width;
    }
    attention += hidden * (kv_rank + model.mla->qk_rope_head_dim);
    attention += kv_rank * (sizes.heads * nope + value_width);
    attention_small += kv_rank;
    if (model.qkv_bias) {
      attention_small += model.mla->q_rank ? *model.mla->q_rank : query_width;
      attention_small += kv_rank + model.mla->qk_rope_head_dim;
    }
  } else {
    const uint128 kv_width = static_cast<uint128>(sizes.kv_heads) * sizes.qk_head_dim;
    attention += hidden * (query_width + 2 * kv_width);
    if (model.qkv_bias) attention_small += query_width + 2 * kv_width;
    if (model.qk_norm) attention_small += static_cast<uint128>(2) * sizes.qk_head_dim;
  }
  attention_small += hidden * model.norms_per_layer * (model.norm_bias ? 2 : 1);

  const uint128 matrices = model.gated ? 3 : 2;
  const uint128 dense_ffn = matrices * hidden * model.ffn_size;
  const uint128 dense_bias =
      model.ffn_bias ? (matrices - 1) * model.ffn_size + hidden : static_cast<uint128>(0);

  const uint128 layers = model.layers;
  uint128 total = layers * (attention + attention_small);
  uint128 active = total;
  uint128 multiplied = layers * attention;
  const uint128 dense_layers = model.moe ? model.moe->dense_layers : model.layers;
  total += dense_layers * (dense_ffn + dense_bias);
  active += dense_layers * (dense_ffn + dense_bias);
  multiplied += dense_layers * dense_ffn;
  if (model.moe) {
    const moe_description& moe = *model.moe;
    const uint128 expert = matrices * hidden * moe.ffn_size;
    const uint128 always =
        hidden * moe.experts + (moe.shared_gate ? hidden : static_cast<uint128>(0)) +
        matrices * hidden * moe.shared_ffn_size.value_or(moe.ffn_size) * moe.shared_experts;
    const uint128 moe_layers = layers - dense_layers;
    const uint128 bias = moe.router_bias ? moe.experts : 0;
    total += moe_layers * (always + bias + expert * moe.experts);
    active += moe_layers * (always + bias + expert * moe.experts_per_token);
    multiplied += moe_layers * (always + expert * moe.experts_per_token);
  }

  const uint128 embedding = hidden * model.vocabulary;
  const uint128 ends = embedding * (model.tied_head ? 1 : 2) + hidden * model.learned_positions +
                       hidden * (model.norm_bias ? 2 : 1);
  total += ends + model.vision_parameters;
  active += ends;
  multiplied += embedding;

  if ((total >> 50) != 0) {
    detail::throw_invalid_option("model", "more than 2^50 parameters", "at most 2^50 parameters");
  }
  return {static_cast<std::uint64_t>(total), static_cast<std::uint64_t>(active),
          static_cast<std::uint64_t>(multiplied)};
}

}  // namespace lanepack::inline LANEPACK_ABI
