// Prints digests of costs, of coefficients derived from models and of the bytes of a micro-batch.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <lanepack/batch/thd.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/cost/transformer.hpp>

namespace {

std::vector<std::uint64_t> lengths() {
  std::vector<std::uint64_t> result;
  std::uint64_t state = 1;
  for (unsigned i = 0; i < 1000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    result.push_back((state >> 32) >> (i % 32));
  }
  return result;
}

template <class Estimator>
void print_costs(const char* name, const Estimator& estimator) {
  lanepack::digest_builder digest;
  for (const std::uint64_t length : lengths()) {
    digest.number(estimator.cost({.tokens = length, .loss_tokens = 0, .patches = length % 7}));
  }
  std::printf("cost/%s %s\n", name, digest.value().hex().c_str());
}

lanepack::model_description dense() {
  lanepack::model_description model;
  model.hidden_size = 4096;
  model.layers = 32;
  model.attention_heads = 32;
  model.kv_heads = 8;
  model.ffn_size = 14336;
  model.vocabulary = 128256;
  return model;
}

lanepack::model_description windowed() {
  lanepack::model_description model = dense();
  model.sliding_window = lanepack::sliding_window_description{4096, 16};
  model.vision_parameters = 600000000;
  return model;
}

void print_batch() {
  std::vector<std::uint64_t> tokens;
  for (const std::uint64_t length : lengths()) tokens.push_back(1 + length % 200);
  lanepack::layout_options options;
  options.record_multiple = 4;
  options.total_multiple = 64;
  const lanepack::thd_layout layout(options, tokens);
  std::vector<std::uint64_t> memory(layout.slab_bytes() / 8);
  const std::span<std::byte> slab = std::as_writable_bytes(std::span(memory));
  std::int32_t next = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::int32_t& token : layout.token_span(slab, i)) token = next++;
    for (std::uint8_t& mask : layout.mask_span(slab, i)) mask = next++ % 3 == 0 ? 1 : 0;
  }
  const lanepack::micro_batch_view batch = layout.complete(slab);
  lanepack::digest_builder digest;
  const auto feed = [&digest](auto values) {
    digest.number(values.size());
    for (const auto value : values) digest.number(static_cast<std::uint64_t>(value));
  };
  feed(batch.tokens());
  feed(batch.labels());
  feed(batch.position_ids());
  feed(batch.loss_mask());
  feed(batch.cu_seqlens());
  feed(batch.cu_seqlens_padded());
  digest.number(batch.counts().loss_tokens);
  std::printf("batch/thd %s\n", digest.value().hex().c_str());
}

}  // namespace

int main() {
  print_costs("default", lanepack::default_cost());
  print_costs("dense", lanepack::transformer_cost(dense()));
  print_costs("windowed", lanepack::transformer_cost(windowed()));
  print_batch();
}
