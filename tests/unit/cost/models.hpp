#pragma once

// Sizes of published models, from their config.json.

#include <optional>

#include <lanepack/cost/model_description.hpp>

namespace lanepack_test {

inline lanepack::model_description llama_3_8b() {
  lanepack::model_description model;
  model.hidden_size = 4096;
  model.layers = 32;
  model.attention_heads = 32;
  model.kv_heads = 8;
  model.ffn_size = 14336;
  model.vocabulary = 128256;
  return model;
}

inline lanepack::model_description llama_3_70b() {
  lanepack::model_description model = llama_3_8b();
  model.hidden_size = 8192;
  model.layers = 80;
  model.attention_heads = 64;
  model.ffn_size = 28672;
  return model;
}

inline lanepack::model_description llama_3_405b() {
  lanepack::model_description model = llama_3_8b();
  model.hidden_size = 16384;
  model.layers = 126;
  model.attention_heads = 128;
  model.ffn_size = 53248;
  return model;
}

inline lanepack::model_description llama_2_7b() {
  lanepack::model_description model;
  model.hidden_size = 4096;
  model.layers = 32;
  model.attention_heads = 32;
  model.ffn_size = 11008;
  model.vocabulary = 32000;
  return model;
}

inline lanepack::model_description mistral_7b() {
  lanepack::model_description model = llama_3_8b();
  model.vocabulary = 32000;
  model.sliding_window = lanepack::sliding_window_description{4096, 32};
  return model;
}

inline lanepack::model_description mixtral_8x7b() {
  lanepack::model_description model = llama_3_8b();
  model.vocabulary = 32000;
  model.moe.emplace();
  model.moe->experts = 8;
  model.moe->experts_per_token = 2;
  model.moe->ffn_size = 14336;
  return model;
}

inline lanepack::model_description qwen_2_7b() {
  lanepack::model_description model;
  model.hidden_size = 3584;
  model.layers = 28;
  model.attention_heads = 28;
  model.kv_heads = 4;
  model.ffn_size = 18944;
  model.vocabulary = 152064;
  model.qkv_bias = true;
  return model;
}

inline lanepack::model_description gpt_2() {
  lanepack::model_description model;
  model.hidden_size = 768;
  model.layers = 12;
  model.attention_heads = 12;
  model.ffn_size = 3072;
  model.gated = false;
  model.vocabulary = 50257;
  model.tied_head = true;
  model.qkv_bias = true;
  model.output_bias = true;
  model.ffn_bias = true;
  model.norm_bias = true;
  model.learned_positions = 1024;
  return model;
}

inline lanepack::model_description gemma_2_9b() {
  lanepack::model_description model;
  model.hidden_size = 3584;
  model.layers = 42;
  model.attention_heads = 16;
  model.kv_heads = 8;
  model.head_dim = 256;
  model.ffn_size = 14336;
  model.vocabulary = 256000;
  model.tied_head = true;
  model.norms_per_layer = 4;
  model.sliding_window = lanepack::sliding_window_description{4096, 21};
  return model;
}

inline lanepack::model_description qwen_3_30b_a3b() {
  lanepack::model_description model;
  model.hidden_size = 2048;
  model.layers = 48;
  model.attention_heads = 32;
  model.kv_heads = 4;
  model.head_dim = 128;
  model.vocabulary = 151936;
  model.qk_norm = true;
  model.moe.emplace();
  model.moe->experts = 128;
  model.moe->experts_per_token = 8;
  model.moe->ffn_size = 768;
  return model;
}

inline lanepack::model_description qwen_15_moe_a27b() {
  lanepack::model_description model;
  model.hidden_size = 2048;
  model.layers = 24;
  model.attention_heads = 16;
  model.vocabulary = 151936;
  model.qkv_bias = true;
  model.moe.emplace();
  model.moe->experts = 60;
  model.moe->experts_per_token = 4;
  model.moe->ffn_size = 1408;
  model.moe->shared_experts = 1;
  model.moe->shared_ffn_size = 5632;
  model.moe->shared_gate = true;
  return model;
}

inline lanepack::model_description deepseek_v2_lite() {
  lanepack::model_description model;
  model.hidden_size = 2048;
  model.layers = 27;
  model.attention_heads = 16;
  model.ffn_size = 10944;
  model.vocabulary = 102400;
  model.moe.emplace();
  model.moe->experts = 64;
  model.moe->experts_per_token = 6;
  model.moe->ffn_size = 1408;
  model.moe->shared_experts = 2;
  model.moe->dense_layers = 1;
  model.mla = lanepack::mla_description{std::nullopt, 512, 128, 64, 128};
  return model;
}

inline lanepack::model_description deepseek_v3() {
  lanepack::model_description model;
  model.hidden_size = 7168;
  model.layers = 61;
  model.attention_heads = 128;
  model.ffn_size = 18432;
  model.vocabulary = 129280;
  model.moe.emplace();
  model.moe->experts = 256;
  model.moe->experts_per_token = 8;
  model.moe->ffn_size = 2048;
  model.moe->shared_experts = 1;
  model.moe->router_bias = true;
  model.moe->dense_layers = 3;
  model.mla = lanepack::mla_description{1536, 512, 128, 64, 128};
  return model;
}

}  // namespace lanepack_test
