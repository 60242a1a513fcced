#pragma once

/// @file
/// The threads of `thread_pool`, and the bodies of its functions.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/device/fork_guard.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/thread_pool.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Lists of tasks that are being worked on, and the threads that do.
class pool_state {
 public:
  explicit pool_state(unsigned threads) : workers_wanted_(threads - 1) {}
  pool_state(const pool_state&) = delete;
  pool_state& operator=(const pool_state&) = delete;

  ~pool_state() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_ready_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  [[nodiscard]] const fork_guard& guard() const noexcept { return guard_; }

  void run(const task_list& tasks) {
    guard_.check("thread_pool");
    if (tasks.size() == 0) return;
    std::unique_lock lock(mutex_);
    if (tasks.size() > 1) start();
    job here(tasks);
    const auto place = jobs_.insert(jobs_.end(), &here);
    if (tasks.size() > 1) work_ready_.notify_all();
    while (here.next < tasks.size()) work(here, lock);
    jobs_.erase(place);
    here.finished.wait(lock, [&here] { return here.running == 0; });
  }

 private:
  struct job {
    explicit job(const task_list& work) : tasks(work) {}
    const task_list& tasks;
    std::uint64_t next = 0;
    std::uint64_t running = 0;
    std::condition_variable finished;
  };

  /// Does the next task of a job.
  static void work(job& from, std::unique_lock<std::mutex>& lock) {
    const std::uint64_t task = from.next++;
    ++from.running;
    lock.unlock();
    from.tasks.run(task);
    lock.lock();
    // Under the lock, as the job ends with the caller's wait.
    if (--from.running == 0 && from.next == from.tasks.size()) from.finished.notify_one();
  }

  void start() {
    if (started_) return;
    started_ = true;
    workers_.reserve(workers_wanted_);
    try {
      for (std::size_t i = 0; i < workers_wanted_; ++i) {
        workers_.emplace_back([this] { work_until_stopped(); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that run do all the work.
    }
  }

  void work_until_stopped() {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto with_work = [](const job* each) { return each->next < each->tasks.size(); };
      auto found = jobs_.end();
      work_ready_.wait(lock, [&] {
        found = std::find_if(jobs_.begin(), jobs_.end(), with_work);
        return stopping_ || found != jobs_.end();
      });
      if (found == jobs_.end()) return;
      work(**found, lock);
    }
  }

  const fork_guard guard_;
  std::size_t workers_wanted_;
  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::list<job*> jobs_;
  std::vector<std::thread> workers_;
  bool started_ = false;
  bool stopping_ = false;
};

/// @throws invalid_option  `threads` is 0.
inline std::shared_ptr<pool_state> make_pool_state(unsigned threads) {
  if (threads == 0) throw_invalid_option("threads", "0", "at least 1");
  // A forked child must not join threads that it does not have.
  return {new pool_state(threads), [](pool_state* gone) {
            if (!gone->guard().in_child()) delete gone;
          }};
}

}  // namespace detail

LANEPACK_FUNCTION thread_pool::thread_pool(unsigned threads)
    : threads_(threads), state_(detail::make_pool_state(threads)) {}

LANEPACK_FUNCTION void thread_pool::run(const task_list& tasks) {
  state_->run(tasks);
}

}  // namespace lanepack::inline LANEPACK_ABI
