#include <lanepack/json/cost_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/core/error.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

namespace {

using lanepack::cost_coefficients;
using lanepack::parse_cost_coefficients;
using lanepack::parse_cost_model;
using lanepack::window_coefficients;

std::uint64_t cost_of(const lanepack::cost_model& model, std::uint64_t tokens) {
  const lanepack::record_shape shape{.tokens = tokens, .loss_tokens = 0, .patches = 0};
  std::uint64_t cost = 0;
  model.estimator.costs({&shape, 1}, {&cost, 1});
  return cost;
}

void require_error(const std::string& text, const std::string& what) {
  CAPTURE(text);
  CHECK_THROWS_MATCHES(parse_cost_model(text, "m.json"), lanepack::data_error,
                       Catch::Matchers::Message("m.json" + what));
}

}  // namespace

TEST_CASE("json: coefficients have one text", "[json]") {
  cost_coefficients one;
  one.fraction_bits = 4;
  one.per_token = 48;
  one.per_pair = 2;
  one.per_micro_batch = 7;
  CHECK(cost_model_text(one) == R"({
  "lanepack_cost_model": 1,
  "fraction_bits": 4,
  "per_token": 48,
  "per_pair": 2,
  "per_patch": 0,
  "per_micro_batch": 7
}
)");
  one.window = window_coefficients{.window_tokens = 128, .per_pair = 3};
  CHECK(cost_model_text(one) == R"({
  "lanepack_cost_model": 1,
  "fraction_bits": 4,
  "per_token": 48,
  "per_pair": 2,
  "window": {
    "window_tokens": 128,
    "per_pair": 3
  },
  "per_patch": 0,
  "per_micro_batch": 7
}
)");
}

TEST_CASE("json: coefficients are the same after saving and loading", "[json]") {
  const lanepack_test::scratch_dir dir;
  lanepack_test::for_each_seed(100, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    cost_coefficients one;
    one.fraction_bits = static_cast<std::uint32_t>(gen.between(0, 63));
    one.per_token = gen.heavy_tailed(48);
    one.per_pair = gen.heavy_tailed(48);
    one.per_patch = gen.heavy_tailed(48);
    one.per_micro_batch = gen.heavy_tailed(48);
    if (gen.one_in(2)) {
      one.window = window_coefficients{.window_tokens = gen.between(1, 1 << 20),
                                       .per_pair = gen.heavy_tailed(48)};
    }
    const std::string path = dir.path("model.json");
    save_cost_model(path, one);
    const std::string saved = lanepack_test::read_file(path);
    const cost_coefficients loaded = parse_cost_coefficients(saved, path);
    CHECK(loaded == one);
    CHECK(cost_model_text(loaded) == saved);
    CHECK(lanepack::read_cost_model(path).per_micro_batch == one.per_micro_batch);
    CHECK(lanepack::read_cost_model(path).estimator.describe() ==
          lanepack::transformer_cost(one).describe());
  });
}

TEST_CASE("json: the three kinds of cost model", "[json]") {
  // (48 * 10 + 2 * 55) / 2^4 = 36.875
  const auto coefficients = parse_cost_model(
      R"({"lanepack_cost_model": 1, "fraction_bits": 4, "per_token": 48, "per_pair": 2})");
  CHECK(cost_of(coefficients, 10) == 36);
  CHECK_FALSE(coefficients.description);

  const auto plain = parse_cost_model(R"({"linear": 100, "quadratic": 3, "per_micro_batch": 9})");
  CHECK(cost_of(plain, 10) == 1300);
  CHECK(plain.per_micro_batch == 9);
  CHECK(cost_of(parse_cost_model(R"({"linear": 5})"), 10) == 50);

  const std::string config = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})";
  const auto model = parse_cost_model(config);
  REQUIRE(model.description);
  CHECK(model.description->layers == 2);
  CHECK(model.estimator.describe() ==
        lanepack::transformer_cost(lanepack::parse_model_config(config)).describe());
  CHECK(lanepack::cost_model().estimator.describe() == lanepack::default_cost().describe());
}

TEST_CASE("json: a cost model with wrong or unknown keys is refused", "[json]") {
  require_error("7", ": found 7, expected an object");
  require_error(R"({"lanepack_cost_model": 2, "fraction_bits": 0})",
                ": key \"lanepack_cost_model\": found 2, expected version 1");
  require_error(R"({"lanepack_cost_model": 1, "fraction_bits": 0, "per_token": 1})",
                ": found no key \"per_pair\", expected an integer of at least 0");
  require_error(R"({"lanepack_cost_model": 1, "fraction_bits": 64, "per_token": 1, "per_pair": 0})",
                ": key \"fraction_bits\": found 64, expected 0 to 63");
  require_error(
      R"({"lanepack_cost_model": 1, "fraction_bits": 0, "per_token": 1.5, "per_pair": 0})",
      ": key \"per_token\": found 1.5, expected an integer of at least 0");
  require_error(R"({"lanepack_cost_model": 1, "fraction_bits": 0, "per_token": 281474976710656,
                    "per_pair": 0})",
                ": cost.per_token: found 281474976710656, expected 0 to 281474976710655");
  require_error(R"({"lanepack_cost_model": 1, "fraction_bits": 0, "per_token": 1, "per_pair": 0,
                    "per_pairs": 1})",
                ": key \"per_pairs\": found 1, expected no such key in a cost model");
  require_error(R"({"lanepack_cost_model": 1, "fraction_bits": 0, "per_token": 1, "per_pair": 0,
                    "window": {"window_tokens": 0, "per_pair": 1}})",
                ": key \"window.window_tokens\": found 0, expected an integer of at least 1");
  require_error(R"({"linear": 1, "quadratc": 1})",
                ": key \"quadratc\": found 1, expected no such key in a cost model");
  require_error("{}",
                ": found no key \"hidden_size\" or \"n_embd\" or \"d_model\", expected an integer "
                "of at least 1");
  cost_coefficients bad;
  bad.per_pair = std::uint64_t{1} << 48;
  const lanepack_test::scratch_dir dir;
  CHECK_THROWS_AS(save_cost_model(dir.path("m.json"), bad), lanepack::invalid_option);
  CHECK(dir.entries() == 0);
}
