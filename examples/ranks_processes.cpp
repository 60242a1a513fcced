// Ranks as processes, each finding its rank in the environment that its launcher made:
//
//   mpirun -n 4 example_ranks_processes CORPUS
//
// They exchange nothing while they load. Afterwards each leaves a file with what it saw; whoever
// finds the files of all ranks adds them up and compares them with the corpus.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include <lanepack/core/file.hpp>

#include "support.hpp"

namespace {

struct rank_report {
  std::uint64_t steps = 0;
  record_set seen;
};

std::string report_path(lanepack::rank_index rank) {
  const char* folder = std::getenv("TMPDIR");
  // Processes that one launcher started on this machine have the same parent.
  return std::string(folder == nullptr ? "/tmp" : folder) + "/lanepack-ranks-" +
         std::to_string(::getppid()) + "-" + std::to_string(rank);
}

std::optional<rank_report> read_report(lanepack::rank_index rank) {
  std::ifstream file(report_path(rank));
  rank_report report;
  if (!(file >> report.steps >> report.seen.records >> report.seen.sum.high >>
        report.seen.sum.low)) {
    return std::nullopt;
  }
  return report;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: example_ranks_processes CORPUS");
  const lanepack::world where = lanepack::discover_world().world;
  const auto corpus = lanepack::open_corpus(argv[1], {.summary = lanepack::summary_use::always});
  rank_report own;
  own.seen = run_rank(corpus, where, own.steps);
  std::printf("rank %u of %u: %zu steps, %zu records\n", where.rank, where.size,
              static_cast<std::size_t>(own.steps), static_cast<std::size_t>(own.seen.records));

  const std::string text = std::to_string(own.steps) + " " + std::to_string(own.seen.records) +
                           " " + std::to_string(own.seen.sum.high) + " " +
                           std::to_string(own.seen.sum.low) + "\n";
  lanepack::write_file_atomically(report_path(where.rank),
                                  std::as_bytes(std::span(text.data(), text.size())));

  record_set all;
  for (lanepack::rank_index rank = 0; rank < where.size; ++rank) {
    const std::optional<rank_report> report = read_report(rank);
    if (!report) return 0;
    if (report->steps != own.steps) return 1;
    all.add(report->seen);
  }
  const bool complete = all == whole_epoch(corpus.source.size());
  std::printf("together: %zu records, digest %s: %s\n", static_cast<std::size_t>(all.records),
              all.sum.hex().c_str(), complete ? "the epoch, each record once" : "NOT the epoch");
  return complete ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
