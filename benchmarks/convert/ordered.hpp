#pragma once

/// @file
/// Numbered work on many threads whose results are used in order.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace lanepack_programs {

/// Calls `work(number)` for every number in [first, count) on `threads` threads, the calling one
/// among them, and `commit(number, result)` for each result in ascending order, by one thread at a
/// time. At most `2 * threads` results wait, whatever the difference between them.
///
/// After a call of either has thrown no further work is begun, and the exception of the lowest
/// number is rethrown here: everything below it has been committed, nothing above.
template <class Result>
class ordered_work {
 public:
  ordered_work(std::uint64_t first, std::uint64_t count, unsigned threads)
      : next_(first), committed_(first), count_(count), threads_(threads) {}

  template <class Work, class Commit>
  void run(Work&& work, Commit&& commit) {
    std::vector<std::thread> workers;
    workers.reserve(threads_);
    try {
      for (unsigned i = 1; i < threads_ && i < count_ - next_at_start(); ++i) {
        workers.emplace_back([&] { loop(work, commit); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that run do all the work.
    }
    loop(work, commit);
    for (std::thread& worker : workers) worker.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct outcome {
    std::optional<Result> result;
    std::exception_ptr failure;
  };

  [[nodiscard]] std::uint64_t next_at_start() {
    const std::lock_guard lock(mutex_);
    return committed_;
  }

  template <class Work, class Commit>
  void loop(Work& work, Commit& commit) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [this] {
        return stopped_ || next_ >= count_ || next_ < committed_ + 2 * std::uint64_t{threads_};
      });
      if (stopped_ || next_ >= count_) return;
      const std::uint64_t number = next_++;
      lock.unlock();
      outcome done;
      try {
        done.result.emplace(work(number));
      } catch (...) {
        done.failure = std::current_exception();
      }
      lock.lock();
      waiting_.emplace(number, std::move(done));
      if (!committing_) commit_ready(lock, commit);
    }
  }

  template <class Commit>
  void commit_ready(std::unique_lock<std::mutex>& lock, Commit& commit) {
    committing_ = true;
    for (auto found = waiting_.find(committed_); !stopped_ && found != waiting_.end();
         found = waiting_.find(committed_)) {
      outcome ready = std::move(found->second);
      waiting_.erase(found);
      const std::uint64_t number = committed_;
      lock.unlock();
      if (!ready.failure) {
        try {
          commit(number, std::move(*ready.result));
        } catch (...) {
          ready.failure = std::current_exception();
        }
      }
      lock.lock();
      if (ready.failure) {
        failure_ = ready.failure;
        stopped_ = true;
      } else {
        ++committed_;
      }
      room_.notify_all();
    }
    committing_ = false;
  }

  std::mutex mutex_;
  std::condition_variable room_;
  std::uint64_t next_;
  std::uint64_t committed_;
  std::uint64_t count_;
  unsigned threads_;
  bool committing_ = false;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::map<std::uint64_t, outcome> waiting_;
};

}  // namespace lanepack_programs
