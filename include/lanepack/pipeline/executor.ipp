#pragma once

/// @file
/// The bodies of the functions in executor.hpp.

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/executor.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Tasks that may throw, and the failure of the lowest.
class failing_tasks {
 public:
  failing_tasks(void (*call)(void* work, std::uint64_t task), void* work)
      : call_(call), work_(work) {}

  void run(std::uint64_t task) noexcept {
    done_.fetch_add(1, std::memory_order_relaxed);
    if (task > failed_.load(std::memory_order_relaxed)) return;
    try {
      call_(work_, task);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (task < failed_.load(std::memory_order_relaxed)) {
        failure_ = std::current_exception();
        failed_.store(task, std::memory_order_relaxed);
      }
    }
  }

  void finish(std::uint64_t count) {
    if (failure_) {
      // Nothing here refers to the exception any more once the caller may have it.
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    if (done_.load(std::memory_order_relaxed) != count) {
      throw_state_error("executor: found " + std::to_string(done_.load()) +
                        " tasks run when run() returned, expected each of " +
                        std::to_string(count) + " once");
    }
  }

 private:
  void (*call_)(void* work, std::uint64_t task);
  void* work_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{std::numeric_limits<std::uint64_t>::max()};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

LANEPACK_FUNCTION void run_tasks(any_executor& on, std::uint64_t count,
                                 void (*call)(void* work, std::uint64_t task), void* work) {
  failing_tasks tasks(call, work);
  on.run(task_list(
      count,
      [](void* called, std::uint64_t task) { static_cast<failing_tasks*>(called)->run(task); },
      &tasks));
  tasks.finish(count);
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
