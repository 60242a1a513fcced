#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <lanepack/device/host_backend.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::device_error;
using lanepack::host_backend;
using lanepack::host_call;
using lanepack::host_counters;
using lanepack::memory_kind;

std::string failure_of(const host_backend& backend, const host_backend::stream& stream) {
  try {
    backend.synchronize(stream);
    return "none";
  } catch (const device_error& failure) {
    return failure.what();
  }
}

}  // namespace

TEST_CASE("device: the host backend counts what it does", "[device]") {
  const host_backend backend;
  const host_backend same = backend;
  const auto stream = backend.make_stream();
  const auto event = backend.make_event();
  CHECK(backend.counters().threads == 0);
  std::vector<char> from(64, 'x');
  std::vector<char> to(64, 'o');
  backend.copy_async(stream, to.data(), from.data(), 64);
  same.copy_async(stream, to.data(), from.data(), 10);
  backend.record(event, stream);
  backend.wait(stream, event);
  backend.synchronize(event);
  CHECK(backend.query(event));
  backend.synchronize(stream);
  const host_counters counters = same.counters();
  CHECK(counters.streams == 1);
  CHECK(counters.events == 1);
  CHECK(counters.threads == 1);
  CHECK(counters.copies == 2);
  CHECK(counters.copies_run == 2);
  CHECK(counters.copied_bytes == 74);
  CHECK(counters.records == 1);
  CHECK(counters.waits == 1);
  CHECK(counters.queries == 1);
  CHECK(counters.synchronizations == 2);
  CHECK(counters.allocations == 0);
  CHECK(to == from);
}

TEST_CASE("device: memory of the host backend lies on a cache line", "[device]") {
  const host_backend backend;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}}) {
    void* memory = backend.allocate(memory_kind::staging, bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    CHECK(backend.counters().live_bytes == bytes);
    backend.deallocate(memory_kind::staging, memory, bytes);
  }
  CHECK(backend.counters().live_bytes == 0);
}

TEST_CASE("device: the host backend delays copies", "[device]") {
  const host_backend backend({.copy_delay = std::chrono::milliseconds(3), .before_call = {}});
  const auto stream = backend.make_stream();
  int from = 1;
  int to = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) backend.copy_async(stream, &to, &from, sizeof to);
  backend.synchronize(stream);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(9));
  CHECK(to == 1);
}

TEST_CASE("device: the hook of the host backend sees calls with their numbers", "[device]") {
  std::mutex mutex;
  std::vector<std::pair<host_call, std::uint64_t>> seen;
  const host_backend backend(
      {.copy_delay = {}, .before_call = [&](host_call call, std::uint64_t number) {
         const std::scoped_lock lock(mutex);
         seen.emplace_back(call, number);
       }});
  const auto stream = backend.make_stream();
  const auto event = backend.make_event();
  int from = 1;
  int to = 0;
  for (int i = 0; i < 2; ++i) {
    backend.copy_async(stream, &to, &from, sizeof to);
    backend.record(event, stream);
    backend.synchronize(event);
  }
  using expected = std::vector<std::pair<host_call, std::uint64_t>>;
  const std::scoped_lock lock(mutex);
  CHECK((seen.size() == 10 || seen.size() == 12));
  expected without_runs;
  expected runs;
  for (const auto& call : seen) {
    (call.first == host_call::run_copy ? runs : without_runs).push_back(call);
  }
  CHECK(runs == expected{{host_call::run_copy, 0}, {host_call::run_copy, 1}});
  CHECK(without_runs == expected{{host_call::make_stream, 0},
                                 {host_call::make_event, 0},
                                 {host_call::copy, 0},
                                 {host_call::record, 0},
                                 {host_call::synchronize, 0},
                                 {host_call::copy, 1},
                                 {host_call::record, 1},
                                 {host_call::synchronize, 1}});
}

TEST_CASE("device: a stream remembers its first failure", "[device]") {
  const host_backend backend;
  const auto stream = backend.make_stream();
  const auto other = backend.make_stream();
  int ran = 0;
  backend.call_async(stream, [&ran] { ++ran; });
  backend.call_async(stream, [] { throw std::runtime_error("first"); });
  backend.call_async(stream, [] { throw std::runtime_error("second"); });
  backend.call_async(stream, [&ran] { ++ran; });
  CHECK(failure_of(backend, stream) == "host_backend: a stream failed: first");
  CHECK(failure_of(backend, stream) == "host_backend: a stream failed: first");
  CHECK(ran == 1);
  CHECK(failure_of(backend, other) == "none");
  backend.call_async(other, [] { throw 7; });
  CHECK(failure_of(backend, other) == "host_backend: a stream failed");
}

TEST_CASE("device: a failure that was injected names its call", "[device]") {
  const host_backend backend(
      {.copy_delay = {}, .before_call = lanepack::fail_call(host_call::run_copy, 1)});
  const auto stream = backend.make_stream();
  int from = 1;
  int to = 0;
  backend.copy_async(stream, &to, &from, sizeof to);
  CHECK(failure_of(backend, stream) == "none");
  backend.copy_async(stream, &to, &from, sizeof to);
  CHECK(failure_of(backend, stream) == "host_backend: a stream failed: injected failure of call 1");
  CHECK(backend.counters().copies == 2);
  CHECK(backend.counters().copies_run == 1);
}

TEST_CASE("device: a forked child of the host backend gets an error and goes", "[device]") {
  std::optional<host_backend> backend(std::in_place);
  std::optional stream(backend->make_stream());
  std::optional idle(backend->make_stream());
  std::optional event(backend->make_event());
  int from = 1;
  int to = 0;
  // The stream's thread holds its lock or waits while the process forks.
  backend->call_async(*stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  backend->record(*event, *stream);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(30);
    int refused = 0;
    const auto expect_refusal = [&refused](const auto& call) {
      try {
        call();
      } catch (const lanepack::state_error&) {
        ++refused;
      }
    };
    expect_refusal([&] { backend->copy_async(*stream, &to, &from, sizeof to); });
    expect_refusal([&] { backend->record(*event, *stream); });
    expect_refusal([&] { backend->wait(*stream, *event); });
    expect_refusal([&] { static_cast<void>(backend->query(*event)); });
    expect_refusal([&] { backend->synchronize(*event); });
    expect_refusal([&] { backend->synchronize(*stream); });
    expect_refusal([&] { backend->call_async(*stream, [] {}); });
    expect_refusal([&] { static_cast<void>(backend->make_stream()); });
    expect_refusal([&] { static_cast<void>(backend->make_event()); });
    expect_refusal([&] { static_cast<void>(backend->allocate(memory_kind::device, 8)); });
    stream.reset();
    idle.reset();
    event.reset();
    backend.reset();
    ::_exit(refused == 10 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  backend->copy_async(*stream, &to, &from, sizeof to);
  backend->synchronize(*stream);
  CHECK(to == 1);
}

TEST_CASE("device: the last owner of a stream may be its own thread", "[device]") {
  const host_backend backend;
  const auto after = backend.make_stream();
  const auto event = backend.make_event();
  {
    auto stream = std::make_shared<host_backend::stream>(backend.make_stream());
    backend.call_async(
        *stream, [last = stream] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
    backend.record(event, *stream);
  }
  backend.synchronize(event);
  CHECK(backend.query(event));
}
