// A trainer that can be stopped at any moment and goes on with another number of processes:
//
//   mpirun -n 4 example_checkpoint_processes CORPUS FOLDER 200 20
//   mpirun -n 3 example_checkpoint_processes CORPUS FOLDER 200    # goes on where the last
//   checkpoint is
//
// Arguments: corpus, folder (default: one of these processes' own), steps of the run (30),
// milliseconds that a step takes (0). Every rank saves what its lanes need every 10 steps, and logs
// the digests of its packs, for `lanepack-verify` to compare runs by.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <lanepack/core/file.hpp>
#include <lanepack/json/run_state.hpp>
#include <lanepack/loader/digest_log.hpp>

#include "support.hpp"

namespace {

namespace fs = std::filesystem;

/// The newest checkpoint of which the files of all ranks are there: `state-STEP-RANK-of-SIZE`.
std::optional<lanepack::run_state> last_checkpoint(const fs::path& folder) {
  std::map<std::pair<unsigned long long, unsigned>, std::vector<std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    unsigned long long step = 0;
    unsigned rank = 0;
    unsigned size = 0;
    char end = 0;
    const std::string name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "state-%llu-%u-of-%u.cbo%c", &step, &rank, &size, &end) == 4 &&
        name.ends_with(".cbor")) {
      found[{step, size}].push_back(entry.path().string());
    }
  }
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    if (at->second.size() != at->first.second) continue;
    std::vector<lanepack::run_state> parts;
    for (const std::string& path : at->second) parts.push_back(lanepack::read_run_state(path));
    return lanepack::merge(parts);
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    throw std::runtime_error(
        "usage: example_checkpoint_processes CORPUS [FOLDER [STEPS [MILLISECONDS]]]");
  }
  const char* temporary = std::getenv("TMPDIR");
  const fs::path folder = argc > 2 ? argv[2]
                                   : std::string(temporary == nullptr ? "/tmp" : temporary) +
                                         "/lanepack-checkpoint-" + std::to_string(::getppid());
  const lanepack::step_index steps = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 30;
  const std::chrono::milliseconds work(argc > 4 ? std::strtol(argv[4], nullptr, 10) : 0);
  fs::create_directories(folder);

  const lanepack::world where = lanepack::discover_world().world;
  const auto corpus = lanepack::open_corpus(argv[1], {.summary = lanepack::summary_use::always});
  lanepack::loader_options options;
  options.plan.seed = 7;
  options.plan.lanes = 12;
  options.plan.records_per_pack = 8;
  options.plan.lookahead_steps = 8;
  options.plan.rule = lanepack::epoch_end::continue_epochs;
  options.plan.steps = steps;
  options.plan.policy = "calendar";
  options.plan.limits.infeasible = lanepack::infeasible_policy::truncate;
  options.digests = true;
  options.uneven = lanepack::uneven_lanes::allow;
  options.resume_from = last_checkpoint(folder);
  // Finding a calendar's numbers takes a second or two; these do for an example.
  options.plan.tuning = lanepack::calendar_tuning{};

  const std::string name = std::to_string(where.rank) + "-of-" + std::to_string(where.size);
  const std::string pid = std::to_string(::getpid()) + "\n";
  lanepack::write_file_atomically((folder / ("pid-" + std::to_string(where.rank))).string(),
                                  std::as_bytes(std::span(pid)));
  lanepack::loader loader(corpus.source, where, options, lanepack::default_cost(), corpus.summary);
  lanepack::digest_log log((folder / ("log-" + name + ".jsonl")).string());
  const lanepack::step_index first = loader.state().next_step;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) static_cast<void>(micro_batch);
    std::this_thread::sleep_for(work);
    log.add(step);
    const lanepack::run_state state = step.state();
    if (state.next_step % 10 == 0) {
      lanepack::save_run_state(
          (folder / ("state-" + std::to_string(state.next_step) + "-" + name + ".cbor")).string(),
          state);
    }
  }
  std::printf("rank %u of %u: steps %llu to %llu\n", where.rank, where.size,
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(steps));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
