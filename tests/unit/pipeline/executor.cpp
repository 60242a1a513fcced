#include <lanepack/pipeline/executor.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/thread_pool.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"

using namespace lanepack;

namespace {

/// Forgets the last task.
class lazy_executor {
 public:
  void run(const task_list& tasks) {
    for (std::uint64_t i = 0; i + 1 < tasks.size(); ++i) tasks.run(i);
  }
  [[nodiscard]] unsigned threads() const { return 1; }
};

std::vector<any_executor> executors() {
  return {any_executor(), thread_pool(1), thread_pool(2), thread_pool(8),
          lanepack_test::shuffling_executor(5)};
}

}  // namespace

TEST_CASE("executors: every task runs once", "[pipeline]") {
  for (any_executor on : executors()) {
    for (const std::uint64_t count : {0U, 1U, 2U, 100U}) {
      std::vector<std::atomic<int>> runs(count);
      run_tasks(on, count, [&](std::uint64_t task) { ++runs[task]; });
      for (const std::atomic<int>& each : runs) REQUIRE(each == 1);
    }
  }
  REQUIRE_THROWS_AS(thread_pool(0), invalid_option);
}

TEST_CASE("executors: the lowest task that fails is reported, once", "[pipeline]") {
  for (any_executor on : executors()) {
    for (int again = 0; again < 3; ++again) {
      try {
        run_tasks(on, 60, [](std::uint64_t task) {
          if (task % 20 == 7) throw std::runtime_error(std::to_string(task));
        });
        FAIL("no exception");
      } catch (const std::runtime_error& failure) {
        REQUIRE(std::string(failure.what()) == "7");
      }
    }
    std::atomic<int> after{0};
    run_tasks(on, 5, [&](std::uint64_t) { ++after; });
    REQUIRE(after == 5);
  }
}

TEST_CASE("executors: one that leaves tasks out is found out", "[pipeline]") {
  any_executor on = lazy_executor();
  REQUIRE_THROWS_AS(run_tasks(on, 3, [](std::uint64_t) {}), state_error);
}

TEST_CASE("thread_pool: several callers and tasks that call again", "[pipeline]") {
  any_executor pool = thread_pool(3);
  std::atomic<int> runs{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&pool, &runs] {
      any_executor mine = pool;
      for (int again = 0; again < 20; ++again) {
        run_tasks(mine, 5, [&](std::uint64_t) {
          any_executor inner = mine;
          run_tasks(inner, 3, [&](std::uint64_t) { ++runs; });
        });
      }
    });
  }
  for (std::thread& each : callers) each.join();
  REQUIRE(runs == 4 * 20 * 5 * 3);
}

TEST_CASE("thread_pool: a forked child gets an error and ends", "[pipeline]") {
  thread_pool pool(2);
  any_executor on = pool;
  run_tasks(on, 4, [](std::uint64_t) {});
  const ::pid_t child = ::fork();
  if (child == 0) {
    int code = 1;
    try {
      run_tasks(on, 2, [](std::uint64_t) {});
    } catch (const state_error&) {
      code = 0;
    }
    ::_exit(code);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}
