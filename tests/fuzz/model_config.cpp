// Model configurations and cost models: whatever the text, a description that can be counted or a
// data_error.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <lanepack/core/error.hpp>
#include <lanepack/json/cost_model.hpp>

#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lanepack_test::fuzz_check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lanepack::model_description model = lanepack::parse_model_config(text);
    const lanepack::parameter_count count = lanepack::count_parameters(model);
    fuzz_check(count.active <= count.total, "no more is active than there is");
    fuzz_check(model.hidden_size != 0 && model.layers != 0, "sizes are set");
  } catch (const lanepack::data_error&) {
  }
  try {
    const lanepack::cost_model model = lanepack::parse_cost_model(text);
    std::uint64_t last = 0;
    for (const std::uint64_t tokens : {0U, 1U, 2U, 1000U, 1U << 30}) {
      const lanepack::record_shape shape{.tokens = tokens, .loss_tokens = 0, .patches = 0};
      std::uint64_t cost = 0;
      model.estimator.costs({&shape, 1}, {&cost, 1});
      fuzz_check(cost >= last && cost <= lanepack::max_record_cost, "costs rise to their limit");
      last = cost;
    }
  } catch (const lanepack::data_error&) {
  }
  try {
    const lanepack::cost_coefficients coefficients = lanepack::parse_cost_coefficients(text);
    const std::string saved = lanepack::cost_model_text(coefficients);
    fuzz_check(lanepack::parse_cost_coefficients(saved) == coefficients, "saved and loaded");
  } catch (const lanepack::data_error&) {
  }
  return 0;
}
