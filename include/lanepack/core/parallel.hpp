#pragma once

/// @file
/// Work cut into numbered chunks and shared by threads.

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Processors that this process may use, at least 1.
[[nodiscard]] inline unsigned available_threads() noexcept {
#if defined(__linux__)
  ::cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
    return static_cast<unsigned>(CPU_COUNT(&set));
  }
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `work(chunk)` once for every chunk in [0, chunks), on at most `threads` threads, the
/// calling one among them.
///
/// Chunks are begun in ascending order. After a call has thrown no further chunk is begun, and the
/// exception of the lowest chunk that threw is rethrown here when all threads have stopped.
/// @param threads  At least 1. Fewer are used where the system gives no more.
/// @determinism  Which exception is rethrown does not depend on the number of threads, as long as
///               a chunk throws on its own account alone.
template <class Work>
void parallel_for(std::uint64_t chunks, unsigned threads, Work&& work) {
  LANEPACK_ASSERT(threads >= 1);
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr failure;
  std::uint64_t failed_chunk = 0;

  const auto run = [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) return;
      try {
        work(chunk);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure || chunk < failed_chunk) {
          failure = std::current_exception();
          failed_chunk = chunk;
        }
        stop.store(true, std::memory_order_relaxed);
      }
    }
  };

  std::vector<std::thread> workers;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(threads, chunks));
  if (wanted > 1) {
    workers.reserve(wanted - 1);
    try {
      for (std::size_t i = 1; i < wanted; ++i) workers.emplace_back(run);
    } catch (const std::system_error&) {
      // The system gives no more threads: those that run do all the work.
    }
  }
  run();
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lanepack::inline LANEPACK_ABI
