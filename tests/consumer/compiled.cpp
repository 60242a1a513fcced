// A loop that links lanepack::compiled: it sees declarations only, and every record comes once.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <lanepack/corpus/memory.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/topology/world.hpp>

#if !LANEPACK_COMPILED
#error "lanepack::compiled has not said that it is linked"
#endif

int main() {
  constexpr std::uint64_t records = 24;
  std::vector<std::vector<std::int32_t>> tokens;
  for (std::uint64_t i = 0; i < records; ++i) {
    tokens.emplace_back(i % 5 + 1, static_cast<std::int32_t>(i));
  }
  lanepack::loader loader(lanepack::memory_source(tokens),
                          lanepack::discover_world({.rank = 0, .world_size = 1}).world,
                          {.plan = {.lanes = 2, .records_per_pack = 3}});
  std::uint64_t seen = 0;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) seen += micro_batch.record_indices().size();
  }
  std::printf("%llu records\n", static_cast<unsigned long long>(seen));
  return seen == records ? 0 : 1;
}
