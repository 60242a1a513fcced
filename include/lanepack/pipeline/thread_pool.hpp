#pragma once

/// @file
/// `thread_pool`: an executor with threads of its own.

#include <memory>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/pipeline/executor.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

class pool_state;

}  // namespace detail

/// Runs tasks on threads that stay, the calling one among them. Models `executor`; copies share the
/// threads, which end with the last copy.
///
/// The threads start with the first call that has more than one task. Fewer are used where the
/// system gives no more. In a forked child a call throws state_error.
/// @thread_safety  Any number of threads may call `run` at once, also from a task: whoever calls
///                 works too, so nothing waits for a thread that is not there.
class thread_pool {
 public:
  /// @param threads  Threads at work together with a caller, at least 1.
  /// @throws invalid_option  `threads` is 0.
  explicit thread_pool(unsigned threads = available_threads());

  void run(const task_list& tasks);
  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

 private:
  unsigned threads_;
  std::shared_ptr<detail::pool_state> state_;
};

static_assert(executor<thread_pool>);

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/thread_pool.ipp>
#endif
