#pragma once

/// @file
/// The `executor` concept: on which threads a pipeline's work is done. It never decides an order.

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A number of independent tasks, valid during the call that hands them out.
class task_list {
 public:
  /// Calls `call(work, i)` for task i.
  task_list(std::uint64_t size, void (*call)(void* work, std::uint64_t task), void* work) noexcept
      : size_(size), call_(call), work_(work) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Does a task. It does not throw; what goes wrong reaches whoever made the list.
  void run(std::uint64_t task) const noexcept { call_(work_, task); }

 private:
  std::uint64_t size_;
  void (*call_)(void* work, std::uint64_t task);
  void* work_;
};

/// Runs independent tasks.
///
/// Semantic requirements on a model:
/// - `run(tasks)` has called `tasks.run(i)` exactly once for every i in [0, `tasks.size()`) when it
///   returns, on any threads and in any order, the calling thread among them as it likes; a model
///   that has threads of its own lets the caller work too, or never runs tasks that wait for
///   others;
/// - it may be called from several threads at once, and from a task;
/// - `threads()` is the number of tasks that are likely to run at the same time, at least 1: it
///   decides how much is taken on together, and nothing else.
template <class Executor>
concept executor = requires(Executor& executor, const Executor& view, const task_list& tasks) {
  executor.run(tasks);
  { view.threads() } -> std::same_as<unsigned>;
};

/// Runs every task on the calling thread, in ascending order.
class inline_executor {
 public:
  void run(const task_list& tasks) {
    for (std::uint64_t i = 0; i < tasks.size(); ++i) tasks.run(i);
  }
  [[nodiscard]] unsigned threads() const noexcept { return 1; }
};

/// Shared ownership of any `executor`; itself one. Copies share it.
class any_executor {
 public:
  /// Runs everything on the calling thread.
  any_executor() : any_executor(inline_executor{}) {}

  /// Takes an executor by value.
  template <class Executor>
  requires(!std::same_as<std::remove_cvref_t<Executor>, any_executor> &&
           executor<std::remove_cvref_t<Executor>>)
      any_executor(Executor&& executor)  // NOLINT(google-explicit-constructor): it is one
      : self_(std::make_shared<model<std::remove_cvref_t<Executor>>>(
            std::forward<Executor>(executor))) {}

  void run(const task_list& tasks) { self_->run(tasks); }
  [[nodiscard]] unsigned threads() const { return self_->threads(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void run(const task_list& tasks) = 0;
    [[nodiscard]] virtual unsigned threads() const = 0;
  };

  template <class Executor>
  struct model final : interface {
    explicit model(Executor executor) : value(std::move(executor)) {}
    void run(const task_list& tasks) override { value.run(tasks); }
    [[nodiscard]] unsigned threads() const override { return value.threads(); }
    Executor value;
  };

  std::shared_ptr<interface> self_;
};

static_assert(executor<inline_executor> && executor<any_executor>);

namespace detail {

/// Runs tasks that may throw, and rethrows what the lowest of those that threw did.
void run_tasks(any_executor& on, std::uint64_t count, void (*call)(void* work, std::uint64_t task),
               void* work);

}  // namespace detail

/// Calls `work(i)` for every i in [0, count) on an executor.
///
/// Once a call has thrown, tasks above it are not begun any more.
/// @throws       what the lowest task that threw has thrown, whichever came first; once, when no
///               task is running any more.
/// @determinism  Which exception that is does not depend on the executor, as long as a task throws
///               on its own account alone.
template <class Work>
void run_tasks(any_executor& on, std::uint64_t count, Work&& work) {
  detail::run_tasks(
      on, count,
      [](void* called, std::uint64_t task) {
        (*static_cast<std::remove_reference_t<Work>*>(called))(task);
      },
      const_cast<std::remove_cv_t<std::remove_reference_t<Work>>*>(std::addressof(work)));
}

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/executor.ipp>
#endif
