#pragma once

/// @file
/// Work cut into numbered chunks and shared by threads.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Chunks that threads take in ascending order, and the first failure among them.
class chunk_queue {
 public:
  explicit chunk_queue(std::uint64_t chunks) : chunks_(chunks) {}

  /// Calls `call(work, chunk)` until no chunk is left or a call has thrown.
  void run(void (*call)(void* work, std::uint64_t chunk), void* work) noexcept {
    while (!stop_.load(std::memory_order_relaxed)) {
      const std::uint64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks_) return;
      try {
        call(work, chunk);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_ || chunk < failed_chunk_) {
          failure_ = std::current_exception();
          failed_chunk_ = chunk;
        }
        stop_.store(true, std::memory_order_relaxed);
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::uint64_t chunks_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::uint64_t failed_chunk_ = 0;
};

// Not a template, so that a program compiles it once for all kinds of work.
inline void run_chunks(std::uint64_t chunks, unsigned threads,
                       void (*call)(void* work, std::uint64_t chunk), void* work) {
  LANEPACK_ASSERT(threads >= 1);
  chunk_queue queue(chunks);
  std::vector<std::thread> workers;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(threads, chunks));
  if (wanted > 1) {
    workers.reserve(wanted - 1);
    try {
      for (std::size_t i = 1; i < wanted; ++i) {
        workers.emplace_back([&queue, call, work] { queue.run(call, work); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that run do all the work.
    }
  }
  queue.run(call, work);
  for (std::thread& worker : workers) worker.join();
  queue.rethrow();
}

}  // namespace detail

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
  detail::run_chunks(
      chunks, threads,
      [](void* called, std::uint64_t chunk) {
        (*static_cast<std::remove_reference_t<Work>*>(called))(chunk);
      },
      const_cast<std::remove_cv_t<std::remove_reference_t<Work>>*>(std::addressof(work)));
}

}  // namespace lanepack::inline LANEPACK_ABI
