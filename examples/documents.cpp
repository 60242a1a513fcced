// Training on text files without converting them first: lanepack-convert counts once which records
// they become, and the loader makes the records as it goes.
//
//   lanepack-convert DOCUMENTS --ending .txt --count-index web.index --tokenizer bytes --min-tokens
//   32
//     --max-tokens 512 --long split
//   example_documents DOCUMENTS web.index

#include <lanepack/corpus/text_documents.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/pipeline.hpp>
#include <lanepack/tokenizer/byte_level.hpp>
#include <lanepack/topology/world.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: example_documents DOCUMENTS INDEX");
  const lanepack::text_documents documents(argv[1], {.endings = {".txt"}});
  const lanepack::pipeline stages(lanepack::text_stages(
      lanepack::byte_level_tokenizer(),
      {.min_tokens = 32, .max_tokens = 512, .when_long = lanepack::long_documents::split}));
  bool counted = false;
  const lanepack::thread_pool threads;
  auto index = lanepack::open_count_index(
      argv[2], documents, stages,
      {.executor = threads, .progress = [&](std::uint64_t, std::uint64_t) { counted = true; }});
  std::printf("index %s: %zu records of %zu documents\n", counted ? "made" : "read",
              static_cast<std::size_t>(index.records()), static_cast<std::size_t>(index.inputs()));

  // From here on it is a corpus like any other.
  lanepack::loader loader(
      lanepack::pipeline_source(documents, stages, std::move(index), {.executor = threads}),
      lanepack::discover_world().world,
      {.plan = {
           .seed = 1, .lanes = 4, .records_per_pack = 8, .limits = {.capacity_tokens = 4096}}});
  for (auto&& step : loader) {
    std::size_t tokens = 0;
    for (auto&& micro_batch : step) tokens += micro_batch.tokens().size();
    std::printf("step %zu: %zu tokens\n", static_cast<std::size_t>(step.number()), tokens);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
