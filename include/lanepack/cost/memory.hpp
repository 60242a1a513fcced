#pragma once

/// @file
/// `memory_model`: how many tokens of a micro-batch fit a device's memory.

#include <cstdint>
#include <string>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/cost/model_description.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Bytes on one device.
struct memory_options {
  /// Bytes that training may use; must be set.
  std::uint64_t budget_bytes = 0;
  /// Bytes in use whatever the micro-batch: parameters, gradients, optimizer state, buffers.
  std::uint64_t fixed_bytes = 0;
  /// Bytes kept for the backward pass per token.
  std::uint64_t activation_bytes_per_token = 0;
  /// Bytes of logits and their gradient per token.
  std::uint64_t logits_bytes_per_token = 0;
  /// Bytes that a vision tower keeps for the backward pass per patch.
  std::uint64_t activation_bytes_per_patch = 0;
  /// Most vision patches of a record per token of it, e.g. 4 where 2 x 2 patches are merged into a
  /// token: what bounds the patches of a micro-batch, whose capacity is in tokens.
  std::uint64_t patches_per_token = 1;
};

/// Whether activations are kept for the backward pass or computed again.
enum class activation_checkpointing : std::uint8_t {
  /// All are kept, but for attention's scores, which fused attention never stores.
  none,
  /// A layer keeps its input alone; one layer at a time is computed again.
  full,
};

/// How a model's activations are held.
struct activation_options {
  activation_checkpointing checkpointing = activation_checkpointing::none;
  /// Bytes of one activation: 2 for bfloat16.
  std::uint32_t activation_bytes = 2;
  /// Bytes of one logit together with its gradient: 8 for two float32.
  std::uint32_t logit_bytes = 8;
  /// Devices that share a token's activations evenly: tensor parallelism with sequence parallelism,
  /// times context parallelism.
  std::uint32_t token_shards = 1;
};

/// `options` with the bytes per token that a model needs.
///
/// Counts the inputs that matrix products and attention keep, in a layer of a pre-normalised
/// decoder: residual stream, normalised input, queries, keys, values and attention output, residual
/// stream, normalised input, feed-forward gate, value and product; for experts, the routed copies.
/// An estimate for planning: frameworks differ by what they fuse, so measure, and set
/// `memory_options` by hand where the boundary is close.
/// @param model    Layers of this device only, where pipeline parallelism divides them.
/// @throws  invalid_option where the description or an option is not valid.
[[nodiscard]] inline memory_options with_model_activations(memory_options options,
                                                           const model_description& model,
                                                           const activation_options& how = {}) {
  validate(model);
  const auto require = [](const char* name, std::uint32_t found) {
    if (found == 0) detail::throw_invalid_option(name, "0", "at least 1");
  };
  require("activation_bytes", how.activation_bytes);
  require("logit_bytes", how.logit_bytes);
  require("token_shards", how.token_shards);

  const detail::attention_sizes sizes = detail::attention_sizes_of(model);
  const std::uint64_t hidden = model.hidden_size;
  const std::uint64_t attention = sizes.heads * (sizes.qk_head_dim + sizes.v_head_dim) +
                                  sizes.kv_heads * (sizes.qk_head_dim + sizes.v_head_dim);
  const std::uint64_t inner_copies = model.gated ? 3 : 2;
  const std::uint64_t dense = 4 * hidden + attention + inner_copies * model.ffn_size;
  std::uint64_t sparse = 0;
  std::uint64_t dense_layers = model.layers;
  if (model.moe) {
    const moe_description& moe = *model.moe;
    sparse = 4 * hidden + attention +
             moe.experts_per_token * (hidden + inner_copies * moe.ffn_size) +
             moe.shared_experts * inner_copies * moe.shared_ffn_size.value_or(moe.ffn_size);
    dense_layers = moe.dense_layers;
  }
  const std::uint64_t sparse_layers = model.layers - dense_layers;

  std::uint64_t elements = 0;
  if (how.checkpointing == activation_checkpointing::full) {
    const std::uint64_t recomputed = dense_layers == 0    ? sparse
                                     : sparse_layers == 0 ? dense
                                                          : (dense > sparse ? dense : sparse);
    elements = saturating_add(saturating_mul(model.layers, hidden), recomputed);
  } else {
    elements =
        saturating_add(saturating_mul(dense_layers, dense), saturating_mul(sparse_layers, sparse));
  }
  options.activation_bytes_per_token =
      ceil_div(saturating_mul(elements, how.activation_bytes), how.token_shards);
  options.logits_bytes_per_token =
      ceil_div(saturating_mul(model.vocabulary, how.logit_bytes), how.token_shards);
  return options;
}

/// The memory boundary of a micro-batch.
/// @thread_safety  Immutable.
class memory_model {
 public:
  /// @throws  invalid_option if no token fits, or if tokens take no bytes.
  explicit memory_model(const memory_options& options) : options_(options) {
    if (options_.budget_bytes <= options_.fixed_bytes) {
      detail::throw_invalid_option(
          "budget_bytes", std::to_string(options_.budget_bytes),
          "more than fixed_bytes = " + std::to_string(options_.fixed_bytes));
    }
    if (bytes_per_token() == 0) {
      detail::throw_invalid_option("activation_bytes_per_token + logits_bytes_per_token", "0",
                                   "at least 1");
    }
    if (feasible_tokens() == 0) {
      detail::throw_invalid_option(
          "budget_bytes", std::to_string(options_.budget_bytes),
          "room for one token of " + std::to_string(bytes_per_token()) +
              " bytes beside fixed_bytes = " + std::to_string(options_.fixed_bytes));
    }
  }

  [[nodiscard]] const memory_options& options() const noexcept { return options_; }

  /// Bytes that one more token takes, its patches among them.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept {
    return saturating_add(
        saturating_add(options_.activation_bytes_per_token, options_.logits_bytes_per_token),
        saturating_mul(options_.activation_bytes_per_patch, options_.patches_per_token));
  }

  /// Tokens of the largest micro-batch that fits, padding included.
  [[nodiscard]] std::uint64_t feasible_tokens() const noexcept {
    return (options_.budget_bytes - options_.fixed_bytes) / bytes_per_token();
  }

  /// Bytes in use with a micro-batch of that many tokens, each with the most patches.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t tokens) const noexcept {
    return saturating_add(options_.fixed_bytes, saturating_mul(tokens, bytes_per_token()));
  }

  /// Bytes in use with a micro-batch of so many tokens and patches.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t tokens, std::uint64_t patches) const noexcept {
    const std::uint64_t text =
        saturating_add(options_.activation_bytes_per_token, options_.logits_bytes_per_token);
    return saturating_add(
        options_.fixed_bytes,
        saturating_add(saturating_mul(tokens, text),
                       saturating_mul(patches, options_.activation_bytes_per_patch)));
  }

 private:
  memory_options options_;
};

}  // namespace lanepack::inline LANEPACK_ABI
