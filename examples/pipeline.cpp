// From documents to training records: a stage of one's own, a filter and a split, run by all cores
// once for the index and again as records are read.

#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/pipeline.hpp>
#include <lanepack/topology/world.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// A stage: what an input has become so far is replaced by what it becomes.
class without_blank_start {
 public:
  void apply(std::vector<lanepack::sample>& samples) const {
    for (lanepack::sample& each : samples) {
      std::size_t blank = 0;
      while (blank < each.tokens.size() &&
             (each.tokens[blank] == ' ' || each.tokens[blank] == '\n')) {
        ++blank;
      }
      each.tokens.erase(each.tokens.begin(),
                        each.tokens.begin() + static_cast<std::ptrdiff_t>(blank));
    }
  }
  // Stands for the stage in indexes and saved states: change it with what the stage does.
  [[nodiscard]] std::string describe() const { return "without_blank_start 1"; }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: example_pipeline CORPUS");
  const std::string path = argv[1];
  // Inputs: any document_source (text) or, as here, any record_source (tokens).
  const auto corpus = lanepack::open_corpus(path);
  const lanepack::pipeline stages(
      {without_blank_start{},
       lanepack::filter("at least 32 tokens",
                        [](const lanepack::sample& each) { return each.tokens.size() >= 32; }),
       lanepack::split({.tokens = 512, .overlap = 16})});
  const lanepack::thread_pool threads;
  auto index = lanepack::open_count_index(path + ".lanepack-pipeline", corpus.source, stages,
                                          {.executor = threads});
  const lanepack::any_source records =
      lanepack::pipeline_source(corpus.source, stages, std::move(index), {.executor = threads});
  std::printf("%s\n", records.describe().c_str());

  // From here on it is a corpus like any other.
  lanepack::loader loader(
      records, lanepack::discover_world().world,
      {.plan = {
           .seed = 1, .lanes = 8, .records_per_pack = 8, .limits = {.capacity_tokens = 4096}}});
  for (auto&& step : loader) {
    std::size_t tokens = 0;
    for (auto&& micro_batch : step) tokens += micro_batch.tokens().size();
    std::printf("step %zu: %zu tokens\n", static_cast<std::size_t>(step.number()), tokens);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
