// Saved states of runs, JSON or CBOR: whatever the bytes, a state that survives being saved, or a
// data_error.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <lanepack/core/error.hpp>
#include <lanepack/json/run_state.hpp>

#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lanepack_test::fuzz_check;
  try {
    const lanepack::run_state state =
        lanepack::parse_run_state({reinterpret_cast<const char*>(data), size});
    for (std::size_t i = 1; i < state.fragments.size(); ++i) {
      fuzz_check(state.fragments[i - 1].lane < state.fragments[i].lane, "lanes ascend");
    }
    for (const auto format : {lanepack::state_format::json, lanepack::state_format::cbor}) {
      const std::string saved = lanepack::run_state_bytes(state, format);
      fuzz_check(lanepack::parse_run_state(saved) == state, "saved and loaded");
    }
  } catch (const lanepack::data_error&) {
  }
  return 0;
}
