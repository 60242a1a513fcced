// Eight ranks as threads on one corpus. They exchange nothing, and together they deliver every
// record of the epoch exactly once.

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support.hpp"

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: example_ranks_threads CORPUS");
  const auto corpus = lanepack::open_corpus(argv[1], {.summary = lanepack::summary_use::always});
  constexpr lanepack::rank_index size = 8;
  std::vector<record_set> seen(size);
  std::vector<std::uint64_t> steps(size);
  std::vector<std::thread> ranks;
  for (lanepack::rank_index rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] { seen[rank] = run_rank(corpus, {rank, size}, steps[rank]); });
  }
  for (std::thread& rank : ranks) rank.join();

  record_set all;
  for (lanepack::rank_index rank = 0; rank < size; ++rank) {
    std::printf("rank %u: %zu steps, %zu records\n", rank, static_cast<std::size_t>(steps[rank]),
                static_cast<std::size_t>(seen[rank].records));
    if (steps[rank] != steps[0]) return 1;
    all.add(seen[rank]);
  }
  const record_set expected = whole_epoch(corpus.source.size());
  std::printf("together: %zu records, digest %s\nthe epoch: %zu records, digest %s\n",
              static_cast<std::size_t>(all.records), all.sum.hex().c_str(),
              static_cast<std::size_t>(expected.records), expected.sum.hex().c_str());
  return all == expected ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
