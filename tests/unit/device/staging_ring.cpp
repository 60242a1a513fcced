#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::device_error;
using lanepack::host_backend;
using lanepack::host_backend_options;
using lanepack::host_call;
using lanepack::invalid_option;
using lanepack::ring_options;
using lanepack::ring_statistics;
using ring = lanepack::staging_ring<host_backend>;

std::string refusal(const ring_options& options) {
  try {
    const ring slots(host_backend{}, options);
    return "accepted";
  } catch (const invalid_option& refused) {
    return refused.what();
  }
}

// Submits a slot with `value` in its first byte.
void put(ring& slots, int value) {
  auto slot = slots.acquire();
  REQUIRE(slot.has_value());
  slot->bytes()[0] = static_cast<std::byte>(value);
  REQUIRE(slots.submit(std::move(*slot)));
}

int value_of(const ring::lease& lease) {
  return std::to_integer<int>(lease.bytes()[0]);
}

std::exception_ptr problem(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

// The text of the error that `next` throws, or what it returned.
std::string outcome(ring& slots) {
  try {
    return slots.next() ? "slot" : "end";
  } catch (const std::runtime_error& failure) {
    return failure.what();
  }
}

void short_pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

}  // namespace

TEST_CASE("device: a ring has as many slots as fit into its limit", "[device]") {
  const host_backend backend;
  {
    const ring slots(backend, {.slot_bytes = 1000, .bytes_limit = 3999});
    CHECK(slots.depth() == 3);
    CHECK(slots.slot_bytes() == 1000);
    CHECK(backend.counters().live_bytes == 3000);
    CHECK(backend.counters().threads == 0);
  }
  CHECK(backend.counters().live_bytes == 0);
  CHECK(ring(backend, {.slot_bytes = 1000, .bytes_limit = 1000}).depth() == 1);
  CHECK(ring(backend, {.slot_bytes = 1, .bytes_limit = 1 << 20}).depth() == 256);
  CHECK(ring(backend, {.slot_bytes = 1, .bytes_limit = 1 << 20, .slots_limit = 5}).depth() == 5);
  CHECK(ring(backend).depth() == 64);
}

TEST_CASE("device: a ring without room for a slot is refused", "[device]") {
  CHECK(refusal({.slot_bytes = 1000, .bytes_limit = 999}) ==
        "bytes_limit: found 999, expected room for one slot, slot_bytes = 1000");
  CHECK(refusal({.slot_bytes = 0}) == "slot_bytes: found 0, expected at least 1");
  CHECK(refusal({.slots_limit = 0}) == "slots_limit: found 0, expected at least 1");
}

TEST_CASE("device: a ring that could not be made leaves nothing", "[device]") {
  for (const host_call call : {host_call::allocate, host_call::make_event}) {
    for (std::uint64_t number = 0; number < 3; ++number) {
      const host_backend backend(
          {.copy_delay = {}, .before_call = lanepack::fail_call(call, number)});
      CHECK_THROWS_AS(ring(backend, {.slot_bytes = 8, .bytes_limit = 24}), device_error);
      CHECK(backend.counters().live_bytes == 0);
    }
  }
}

TEST_CASE("device: slots come in the order of submission", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 24});
  auto a = slots.acquire();
  auto b = slots.acquire();
  auto c = slots.acquire();
  CHECK_FALSE(slots.try_acquire().has_value());
  CHECK(a->index() != b->index());
  CHECK(a->bytes().size() == 8);
  c->bytes()[0] = std::byte{3};
  a->bytes()[0] = std::byte{1};
  b->bytes()[0] = std::byte{2};
  const std::uint32_t second_index = c->index();
  CHECK(slots.submit(std::move(*a), 8));
  CHECK(slots.submit(std::move(*c), 2));
  CHECK(slots.submit(std::move(*b)));
  auto lease = slots.next();
  CHECK(value_of(*lease) == 1);
  CHECK(lease->sequence() == 0);
  lease = slots.next();
  CHECK(value_of(*lease) == 3);
  CHECK(lease->bytes().size() == 2);
  CHECK(lease->index() == second_index);
  CHECK(lease->sequence() == 1);
  lease = slots.try_next();
  CHECK(value_of(*lease) == 2);
  CHECK_FALSE(slots.try_next().has_value());
}

TEST_CASE("device: more used bytes than a slot has are refused", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 8});
  auto slot = slots.acquire();
  CHECK_THROWS_MATCHES(
      slots.submit(std::move(*slot), 9), invalid_option,
      Catch::Matchers::Message("used bytes of a slot: found 9, expected at most slot_bytes = 8"));
  slot.reset();
  put(slots, 1);
  CHECK(slots.next()->bytes().size() == 8);
}

TEST_CASE("device: a slot that is not submitted is free again", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 16});
  auto first = slots.acquire();
  const std::uint32_t index = first->index();
  first.reset();
  auto again = slots.acquire();
  CHECK(again->index() == index);
  auto other = slots.acquire();
  *again = std::move(*other);
  CHECK(again->index() != index);
  CHECK(slots.try_acquire().has_value());
  CHECK_FALSE(slots.try_next().has_value());
}

TEST_CASE("device: a lease that goes gives its slot back", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 16});
  put(slots, 1);
  put(slots, 2);
  CHECK_FALSE(slots.try_acquire().has_value());
  auto lease = slots.next();
  CHECK(lease->active());
  lease = slots.next();
  CHECK(value_of(*lease) == 2);
  CHECK(slots.try_acquire().has_value());
  lease->release();
  CHECK_FALSE(lease->active());
  lease->release();
  CHECK(slots.statistics().released == 2);
  CHECK(slots.statistics().released_behind_event == 0);
}

TEST_CASE("device: one use of a slot leaves no mark on the next", "[device]") {
  const host_backend backend;
  const auto stream = backend.make_stream();
  ring slots(backend, {.slot_bytes = 8, .bytes_limit = 8});
  std::uint64_t behind_event = 0;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    put(slots, round);
    auto lease = slots.next();
    CHECK(value_of(*lease) == round);
    if (round % 4 == 0) {
      const auto share = lease->share();
      lease->release_after(stream);
      ++behind_event;
    } else if (round % 4 == 2) {
      backend.call_async(stream, short_pause);
      lease->release_after(stream);
      ++behind_event;
    } else {
      lease->release();
      CHECK(slots.try_acquire().has_value());
    }
    CHECK(slots.statistics().released_behind_event == behind_event);
  }
}

TEST_CASE("device: a ring closed by its producer is read to the end", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 24});
  put(slots, 1);
  put(slots, 2);
  auto late = slots.acquire();
  CHECK_FALSE(slots.closed());
  slots.close();
  CHECK(slots.closed());
  CHECK_FALSE(slots.submit(std::move(*late)));
  CHECK_FALSE(slots.acquire().has_value());
  CHECK_FALSE(slots.try_acquire().has_value());
  CHECK(value_of(*slots.next()) == 1);
  CHECK(value_of(*slots.next()) == 2);
  CHECK_FALSE(slots.next().has_value());
  CHECK_FALSE(slots.next().has_value());
  slots.close();
}

TEST_CASE("device: a failure comes in its place and once", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 24});
  put(slots, 1);
  put(slots, 2);
  slots.fail(problem("the producer failed"));
  slots.fail(problem("and failed again"));
  CHECK(slots.closed());
  CHECK_FALSE(slots.acquire().has_value());
  CHECK(outcome(slots) == "slot");
  CHECK(outcome(slots) == "slot");
  CHECK(outcome(slots) == "the producer failed");
  CHECK(outcome(slots) == "end");
  slots.fail(problem("too late"));
  CHECK(outcome(slots) == "end");
}

TEST_CASE("device: try_next throws the failure too", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 8});
  slots.fail(problem("the producer failed"));
  CHECK_THROWS_MATCHES(slots.try_next(), std::runtime_error,
                       Catch::Matchers::Message("the producer failed"));
  CHECK_FALSE(slots.try_next().has_value());
}

TEST_CASE("device: a failure after the close is not lost", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 8});
  slots.close();
  slots.fail(problem("the producer failed"));
  CHECK(outcome(slots) == "the producer failed");
  CHECK(outcome(slots) == "end");
}

TEST_CASE("device: closing and failing wake everybody", "[device]") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 8});
    std::vector<std::string> outcomes(3);
    {
      std::vector<std::thread> threads;
      for (std::string& text : outcomes) {
        threads.emplace_back([&slots, &text] { text = outcome(slots); });
      }
      short_pause();
      fails ? slots.fail(problem("failed")) : slots.close();
      for (std::thread& thread : threads) thread.join();
    }
    int errors = 0;
    int ends = 0;
    for (const std::string& text : outcomes) {
      errors += text == "failed" ? 1 : 0;
      ends += text == "end" ? 1 : 0;
    }
    CHECK(errors == (fails ? 1 : 0));
    CHECK(ends == (fails ? 2 : 3));
  }
  for (const bool fails : {false, true}) {
    ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 8});
    const auto held = slots.acquire();
    bool got = true;
    std::thread producer([&] { got = slots.acquire().has_value(); });
    short_pause();
    fails ? slots.fail(problem("failed")) : slots.close();
    producer.join();
    CHECK_FALSE(got);
  }
}

TEST_CASE("device: a producer waits for a consumer and the other way round", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 16});
  std::thread producer([&] {
    while (slots.statistics().consumer_waits == 0) std::this_thread::yield();
    short_pause();
    for (int i = 0; i < 20; ++i) {
      auto slot = slots.acquire();
      if (!slot) return;
      slot->bytes()[0] = static_cast<std::byte>(i);
      slots.submit(std::move(*slot));
    }
    slots.close();
  });
  int received = 0;
  while (const auto lease = slots.next()) {
    CHECK(value_of(*lease) == received);
    ++received;
    if (received != 5) continue;
    while (slots.statistics().producer_waits == 0) std::this_thread::yield();
    short_pause();
  }
  producer.join();
  CHECK(received == 20);
  const ring_statistics statistics = slots.statistics();
  CHECK(statistics.acquired == 20);
  CHECK(statistics.submitted == 20);
  CHECK(statistics.delivered == 20);
  CHECK(statistics.released == 20);
  CHECK(statistics.consumer_waits >= 1);
  CHECK(statistics.consumer_wait_time >= std::chrono::milliseconds(1));
  CHECK(statistics.producer_waits >= 1);
  CHECK(statistics.producer_wait_time >= std::chrono::milliseconds(1));
  CHECK(statistics.peak_slots == 2);
}

TEST_CASE("device: a ring whose owner goes stops its producer", "[device]") {
  std::optional<ring> slots(std::in_place, host_backend{},
                            ring_options{.slot_bytes = 8, .bytes_limit = 16});
  put(*slots, 1);
  auto lease = slots->next();
  auto slot = slots->acquire();
  slots.reset();
  // What was handed out is still there.
  CHECK(value_of(*lease) == 1);
  slot->bytes()[7] = std::byte{1};
  lease->release();
  slot.reset();
}

TEST_CASE("device: every failing call of the backend ends the ring cleanly", "[device]") {
  // Consumers mix all ways to give back; whichever call fails first, both ends hear of it.
  const auto run = [](host_call call, std::uint64_t number) {
    const host_backend backend(
        {.copy_delay = {}, .before_call = lanepack::fail_call(call, number)});
    const host_backend sound;
    const auto stream = sound.make_stream();
    const auto event = sound.make_event();
    ring slots(backend, {.slot_bytes = 8, .bytes_limit = 16});
    bool thrown = false;
    try {
      for (int i = 0; i < 12; ++i) {
        auto slot = slots.acquire();
        if (!slot || !slots.submit(std::move(*slot))) break;
        auto lease = slots.next();
        auto other = std::optional(lease->share());
        if (i % 3 == 0) {
          lease->release_after(stream);
          other->release_after(stream);
        } else if (i % 3 == 1) {
          sound.record(event, stream);
          lease->release_after(event);
          // The other share ends with its scope, where an error cannot be thrown.
        } else {
          lease->release();
          other->release_after(stream);
        }
      }
    } catch (const device_error&) {
      thrown = true;
    }
    const bool failed = slots.closed();
    CHECK((failed || !thrown));
    if (failed) CHECK_THROWS_AS(slots.next(), device_error);
    slots.close();
    CHECK_FALSE(slots.next().has_value());
    return failed ? 1 : 0;
  };
  int failed = 0;
  for (const host_call call : {host_call::make_stream, host_call::record, host_call::wait,
                               host_call::query, host_call::synchronize}) {
    for (std::uint64_t number = 0; number < 6; ++number) {
      CAPTURE(static_cast<int>(call), number);
      failed += run(call, number);
    }
  }
  CHECK(failed >= 15);
}

TEST_CASE("device: slots and leases are moved and not copied", "[device]") {
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<ring::slot>);
  STATIC_REQUIRE(std::is_nothrow_move_assignable_v<ring::slot>);
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<ring::slot>);
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<ring::lease>);
  STATIC_REQUIRE(std::is_nothrow_move_assignable_v<ring::lease>);
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<ring::lease>);
  STATIC_REQUIRE_FALSE(std::is_move_constructible_v<ring>);
}

TEST_CASE("device: a forked child of a ring gets an error and goes", "[device]") {
  std::atomic<bool> in_query{false};
  const host_backend backend({.copy_delay = {}, .before_call = [&](host_call call, std::uint64_t) {
                                if (call != host_call::query) return;
                                in_query = true;
                                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                              }});
  const auto stream = backend.make_stream();
  std::optional<ring> slots(std::in_place, backend,
                            ring_options{.slot_bytes = 8, .bytes_limit = 32});
  put(*slots, 1);
  put(*slots, 2);
  put(*slots, 3);
  auto lease = slots->next();
  auto other = slots->next();
  auto slot = slots->acquire();
  auto last = slots->next();
  last->release_after(stream);
  // Somebody waits in the ring, under its lock, while the process forks.
  std::thread producer([&] {
    for (int i = 0; i < 3; ++i) static_cast<void>(slots->acquire());
  });
  while (!in_query) std::this_thread::yield();
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
    expect_refusal([&] { static_cast<void>(slots->acquire()); });
    expect_refusal([&] { static_cast<void>(slots->try_acquire()); });
    expect_refusal([&] { static_cast<void>(slots->next()); });
    expect_refusal([&] { static_cast<void>(slots->try_next()); });
    expect_refusal([&] { slots->close(); });
    expect_refusal([&] { slots->fail(problem("child")); });
    expect_refusal([&] { static_cast<void>(slots->closed()); });
    expect_refusal([&] { static_cast<void>(slots->statistics()); });
    expect_refusal([&] { static_cast<void>(lease->share()); });
    expect_refusal([&] { static_cast<void>(slots->submit(std::move(*slot))); });
    lease->release_after(stream);
    other.reset();
    slot.reset();
    slots.reset();
    ::_exit(refused == 10 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  slots->close();
  producer.join();
  CHECK(value_of(*lease) == 1);
}

TEST_CASE("device: slots that are submitted together come in their order", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 32, .slots_limit = 4});
  ring::batch filled;
  REQUIRE(filled.empty());
  REQUIRE(slots.submit(filled));
  for (int value = 1; value <= 3; ++value) {
    auto slot = slots.acquire();
    slot->bytes()[0] = static_cast<std::byte>(value);
    filled.add(std::move(*slot), static_cast<std::size_t>(value));
  }
  REQUIRE_FALSE(filled.empty());
  REQUIRE_FALSE(slots.try_next());
  std::vector<int> values;
  std::thread consumer([&] {
    while (auto lease = slots.next()) {
      values.push_back(value_of(*lease));
      values.push_back(static_cast<int>(lease->bytes().size()));
    }
  });
  REQUIRE(slots.submit(filled));
  REQUIRE(filled.empty());
  slots.close();
  consumer.join();
  REQUIRE(values == std::vector<int>{1, 1, 2, 2, 3, 3});
  REQUIRE(slots.statistics().submitted == 3);
}

TEST_CASE("device: slots that cannot be submitted together are free again", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 8, .bytes_limit = 16, .slots_limit = 2});
  {
    ring::batch filled;
    filled.add(std::move(*slots.acquire()), 8);
    filled.add(std::move(*slots.acquire()), 9);
    REQUIRE_THROWS_AS(slots.submit(filled), invalid_option);
    REQUIRE_FALSE(slots.try_next());
    REQUIRE_FALSE(slots.try_acquire());
  }
  ring::batch filled;
  filled.add(std::move(*slots.acquire()), 8);
  filled.add(std::move(*slots.acquire()), 8);
  slots.close();
  REQUIRE_FALSE(slots.submit(filled));
  REQUIRE(filled.empty());
  REQUIRE_FALSE(slots.next());
}
