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

}  // namespace lanepack::inline LANEPACK_ABI
