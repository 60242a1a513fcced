// A training loop's data in twenty lines: every rank runs this, under torchrun, mpirun, srun or
// alone, and gets its part of every step.

#include <lanepack/corpus/open.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/topology/world.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: example_twenty_lines CORPUS");
  const auto corpus = lanepack::open_corpus(argv[1], {.summary = lanepack::summary_use::always});
  const lanepack::world where = lanepack::discover_world().world;
  lanepack::loader loader(
      corpus.source, where,
      {.plan = {.seed = 1,
                .lanes = 8,
                .records_per_pack = 16,
                .limits = {.capacity_tokens = 8192,
                           .infeasible = lanepack::infeasible_policy::truncate}}},
      lanepack::default_cost(), corpus.summary);
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) {
      // forward and backward over micro_batch.tokens(), .labels(), .cu_seqlens(), .max_seqlen()
      std::printf("step %2zu  micro-batch %zu: %5zu tokens of %3zu records, longest %d\n",
                  static_cast<std::size_t>(step.number()), micro_batch.index(),
                  micro_batch.tokens().size(), micro_batch.record_indices().size(),
                  micro_batch.max_seqlen());
    }
    // optimizer step
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
