#include <lanepack/cost/memory.hpp>

#include <cstdint>

#include "models.hpp"
#include "support/catch.hpp"

using namespace lanepack;
using namespace lanepack_test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("cost: memory_model divides what is left by what a token takes", "[cost]") {
  memory_options options;
  options.budget_bytes = 1000;
  options.fixed_bytes = 400;
  options.activation_bytes_per_token = 30;
  options.logits_bytes_per_token = 9;
  const memory_model model(options);
  CHECK(model.bytes_per_token() == 39);
  CHECK(model.feasible_tokens() == 15);
  CHECK(model.bytes(15) == 985);
  CHECK(model.bytes(16) == 1024);

  // 39 bytes a token and up to 4 patches of 5 bytes.
  options.activation_bytes_per_patch = 5;
  options.patches_per_token = 4;
  const memory_model vision(options);
  CHECK(vision.bytes_per_token() == 59);
  CHECK(vision.feasible_tokens() == 10);
  CHECK(vision.bytes(10) == 990);
  CHECK(vision.bytes(10, 7) == 825);
}

TEST_CASE("cost: activations of a dense model are counted per layer", "[cost]") {
  // Residual twice, two normalised inputs, queries and attention output, keys, values, three inner
  // activations: 4 x 4096 + 2 x 4096 + 2 x 1024 + 3 x 14336 = 69632 elements a layer.
  memory_options options = with_model_activations({}, llama_3_8b());
  CHECK(options.activation_bytes_per_token == 32 * 69632 * 2);
  CHECK(options.logits_bytes_per_token == 128256 * 8);

  activation_options full;
  full.checkpointing = activation_checkpointing::full;
  options = with_model_activations({}, llama_3_8b(), full);
  CHECK(options.activation_bytes_per_token == (32 * 4096 + 69632) * 2);

  activation_options sharded;
  sharded.token_shards = 8;
  options = with_model_activations({}, llama_3_8b(), sharded);
  CHECK(options.activation_bytes_per_token == 32 * 69632 * 2 / 8);
  CHECK(options.logits_bytes_per_token == 128256);
}

TEST_CASE("cost: activations of experts are those of the routed copies", "[cost]") {
  const memory_options options = with_model_activations({}, mixtral_8x7b());
  const std::uint64_t layer = 4 * 4096 + 2 * 4096 + 2 * 1024 + 2 * (4096 + 3 * 14336);
  CHECK(options.activation_bytes_per_token == 32 * layer * 2);
}

TEST_CASE("cost: a memory model without room says so", "[cost]") {
  memory_options options;
  options.budget_bytes = 100;
  options.fixed_bytes = 100;
  options.activation_bytes_per_token = 1;
  CHECK_THROWS_WITH(memory_model(options),
                    "budget_bytes: found 100, expected more than "
                    "fixed_bytes = 100");
  options.fixed_bytes = 50;
  options.activation_bytes_per_token = 51;
  CHECK_THROWS_WITH(memory_model(options), ContainsSubstring("one token of 51 bytes"));
  options.activation_bytes_per_token = 0;
  CHECK_THROWS_AS(memory_model(options), invalid_option);

  activation_options zero;
  zero.token_shards = 0;
  CHECK_THROWS_WITH(with_model_activations({}, llama_3_8b(), zero),
                    "token_shards: found 0, expected at least 1");
}
