#include <lanepack/core/parallel.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("core: every chunk is worked on once, whatever the number of threads", "[core]") {
  for (const unsigned threads : {1U, 2U, 5U, 100U}) {
    for (const std::uint64_t chunks : {0U, 1U, 3U, 1000U}) {
      CAPTURE(threads, chunks);
      std::vector<std::atomic<int>> calls(chunks);
      parallel_for(chunks, threads, [&](std::uint64_t chunk) { ++calls[chunk]; });
      for (const auto& count : calls) REQUIRE(count == 1);
    }
  }
}

TEST_CASE("core: one thread works in order on the calling thread", "[core]") {
  std::vector<std::uint64_t> order;
  const auto caller = std::this_thread::get_id();
  parallel_for(5, 1, [&](std::uint64_t chunk) {
    REQUIRE(std::this_thread::get_id() == caller);
    order.push_back(chunk);
  });
  REQUIRE(order == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("core: no more threads than asked for are used", "[core]") {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  parallel_for(64, 3, [&](std::uint64_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  REQUIRE(seen.size() >= 1);
  REQUIRE(seen.size() <= 3);
}

TEST_CASE("core: the exception of the lowest failing chunk reaches the caller", "[core]") {
  for (const unsigned threads : {1U, 2U, 4U}) {
    for (int repetition = 0; repetition < 50; ++repetition) {
      std::string caught;
      try {
        parallel_for(200, threads, [](std::uint64_t chunk) {
          if (chunk >= 17) throw std::runtime_error(std::to_string(chunk));
        });
      } catch (const std::runtime_error& failure) {
        caught = failure.what();
      }
      REQUIRE(caught == "17");
    }
  }
}

TEST_CASE("core: there is at least one thread", "[core]") {
  REQUIRE(available_threads() >= 1);
}
