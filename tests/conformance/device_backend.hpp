#pragma once

// What every model of `device_backend` has to do, and `staging_ring` on top of it. A test case of a
// backend calls `check_device_backend(harness)`. A harness has
//
//   using backend = ...;
//   backend make();
//     A backend without faults.
//   void call_async(const backend&, stream_view, std::function<void()>);
//     Runs a function on the host in the stream's turn; it makes no calls to the backend.
//   std::optional<backend> make_failing(device_fault, std::uint64_t number);
//     A backend that fails the call of that number (from 0), or nullopt if it cannot be made to.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lanepack/device/buffer.hpp>
#include <lanepack/device/concept.hpp>
#include <lanepack/device/staging_ring.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace lanepack_test {

enum class device_fault {
  make_stream,
  make_event,
  allocate,
  copy_given,
  copy_run,
  record,
  wait,
  query,
  synchronize,
};

// Holds streams up until it is opened, or goes.
class stream_gate {
 public:
  stream_gate() = default;
  stream_gate(const stream_gate&) = delete;
  stream_gate& operator=(const stream_gate&) = delete;
  ~stream_gate() { open(); }

  template <class Harness, class Backend>
  void hold(Harness& harness, const Backend& backend, typename Backend::stream_view stream) {
    harness.call_async(backend, stream, [shared = shared_] {
      std::unique_lock lock(shared->mutex);
      shared->changed.wait(lock, [&shared] { return shared->open; });
    });
  }

  void open() {
    {
      const std::scoped_lock lock(shared_->mutex);
      shared_->open = true;
    }
    shared_->changed.notify_all();
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<state> shared_ = std::make_shared<state>();
};

// A thread that is joined whatever the test does.
class joined_thread {
 public:
  template <class Function>
  explicit joined_thread(Function&& function) : thread_(std::forward<Function>(function)) {}
  joined_thread(joined_thread&&) = default;
  joined_thread& operator=(joined_thread&&) = delete;
  ~joined_thread() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

inline void pause_us(std::uint64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

inline void fill_bytes(std::span<std::byte> bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value * 31 + i * 7 + 1);
  }
}

inline bool holds_bytes(std::span<const std::byte> bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(value * 31 + i * 7 + 1)) return false;
  }
  return true;
}

template <class Harness>
class device_backend_checks {
 public:
  using backend_type = typename Harness::backend;
  using buffer = lanepack::device_buffer<backend_type>;
  using ring = lanepack::staging_ring<backend_type>;

  explicit device_backend_checks(Harness& harness) : harness_(harness) {}

  static constexpr std::size_t bytes = 1000;

  buffer staging(const backend_type& backend, std::size_t size = bytes) {
    return buffer(backend, lanepack::memory_kind::staging, size);
  }
  buffer device(const backend_type& backend, std::size_t size = bytes) {
    return buffer(backend, lanepack::memory_kind::device, size);
  }
  static void copy(const backend_type& backend, typename backend_type::stream_view stream,
                   const buffer& to, const buffer& from) {
    backend.copy_async(stream, to.data(), from.data(), from.size());
  }

  void round_trip() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend);
    const buffer there = device(backend);
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    const auto event = backend.make_event();
    for (std::uint64_t round = 0; round < 20; ++round) {
      fill_bytes(from.bytes(), round);
      copy(backend, stream, there, from);
      copy(backend, stream, to, there);
      backend.record(event, stream);
      backend.synchronize(event);
      CHECK(backend.query(event));
      REQUIRE(holds_bytes(to.bytes(), round));
    }
    backend.copy_async(stream, to.data(), from.data(), 0);
    backend.synchronize(stream);
    REQUIRE(holds_bytes(to.bytes(), 19));
  }

  void order_in_a_stream() {
    const backend_type backend = harness_.make();
    std::vector<buffer> chain;
    for (int i = 0; i < 65; ++i) chain.push_back(staging(backend));
    for (std::uint64_t i = 0; i < chain.size(); ++i) fill_bytes(chain[i].bytes(), 100 + i);
    const auto stream = backend.make_stream();
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      copy(backend, stream, chain[i + 1], chain[i]);
    backend.synchronize(stream);
    for (const buffer& link : chain) REQUIRE(holds_bytes(link.bytes(), 100));
  }

  void giving_work_does_not_wait() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend);
    const buffer to = staging(backend);
    fill_bytes(from.bytes(), 1);
    fill_bytes(to.bytes(), 2);
    const auto stream = backend.make_stream();
    const auto event = backend.make_event();
    stream_gate gate;
    gate.hold(harness_, backend, stream);
    copy(backend, stream, to, from);
    backend.record(event, stream);
    CHECK_FALSE(backend.query(event));
    CHECK(holds_bytes(to.bytes(), 2));
    gate.open();
    backend.synchronize(event);
    CHECK(holds_bytes(to.bytes(), 1));
  }

  void streams_do_not_wait_for_each_other() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend);
    const buffer to = staging(backend);
    fill_bytes(from.bytes(), 3);
    const auto held = backend.make_stream();
    const auto other = backend.make_stream();
    const auto event = backend.make_event();
    stream_gate gate;
    gate.hold(harness_, backend, held);
    backend.record(event, held);
    copy(backend, other, to, from);
    backend.synchronize(other);
    CHECK(holds_bytes(to.bytes(), 3));
    CHECK_FALSE(backend.query(event));
  }

  void an_event_that_was_not_recorded_has_passed() {
    const backend_type backend = harness_.make();
    const auto stream = backend.make_stream();
    const auto event = backend.make_event();
    CHECK(backend.query(event));
    backend.synchronize(event);
    backend.wait(stream, event);
    backend.synchronize(stream);
  }

  void waiting_for_an_event() {
    const backend_type backend = harness_.make();
    const buffer first = staging(backend);
    const buffer second = staging(backend);
    const buffer third = staging(backend);
    fill_bytes(first.bytes(), 4);
    fill_bytes(second.bytes(), 5);
    fill_bytes(third.bytes(), 6);
    const auto a = backend.make_stream();
    const auto b = backend.make_stream();
    const auto end = backend.make_event();
    stream_gate gate;
    gate.hold(harness_, backend, a);
    copy(backend, a, second, first);
    {
      const auto event = backend.make_event();
      backend.record(event, a);
      backend.wait(b, event);
      // The event goes; what waits for it does not.
    }
    copy(backend, b, third, second);
    backend.record(end, b);
    pause_us(2000);
    CHECK_FALSE(backend.query(end));
    gate.open();
    backend.synchronize(end);
    CHECK(holds_bytes(third.bytes(), 4));
  }

  void recording_again() {
    const backend_type backend = harness_.make();
    const auto held = backend.make_stream();
    const auto idle = backend.make_stream();
    const auto waiting = backend.make_stream();
    const auto event = backend.make_event();
    const auto end = backend.make_event();
    stream_gate gate;
    gate.hold(harness_, backend, held);
    backend.record(event, held);
    CHECK_FALSE(backend.query(event));
    backend.wait(waiting, event);
    backend.record(end, waiting);
    backend.record(event, idle);
    backend.synchronize(event);
    CHECK(backend.query(event));
    pause_us(2000);
    CHECK_FALSE(backend.query(end));
    gate.open();
    backend.synchronize(end);
  }

  void owners_can_be_moved() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend);
    const buffer to = staging(backend);
    fill_bytes(from.bytes(), 7);
    stream_gate gate;
    auto stream = backend.make_stream();
    auto event = backend.make_event();
    const typename backend_type::stream_view stream_before = stream;
    const typename backend_type::event_view event_before = event;
    gate.hold(harness_, backend, stream);
    copy(backend, stream, to, from);
    backend.record(event, stream);
    auto moved_stream = std::move(stream);
    auto moved_event = std::move(event);
    CHECK_FALSE(backend.query(event_before));
    gate.open();
    backend.synchronize(stream_before);
    CHECK(backend.query(moved_event));
    CHECK(holds_bytes(to.bytes(), 7));
    moved_stream = backend.make_stream();
    moved_event = backend.make_event();
    backend.synchronize(moved_stream);
  }

  void destruction_with_work_in_flight() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend);
    const buffer to = staging(backend);
    fill_bytes(from.bytes(), 8);
    fill_bytes(to.bytes(), 9);
    stream_gate gate;
    const joined_thread opener([&gate] {
      pause_us(2000);
      gate.open();
    });
    {
      const auto stream = backend.make_stream();
      const auto event = backend.make_event();
      gate.hold(harness_, backend, stream);
      for (int i = 0; i < 10; ++i) copy(backend, stream, to, from);
      backend.record(event, stream);
    }
    CHECK(holds_bytes(to.bytes(), 8));
  }

  void many_streams() {
    const backend_type backend = harness_.make();
    constexpr std::size_t count = 8;
    constexpr std::uint64_t rounds = 30;
    std::vector<buffer> from;
    std::vector<buffer> to;
    std::vector<typename backend_type::stream> streams;
    std::vector<typename backend_type::event> events;
    for (std::size_t i = 0; i < count; ++i) {
      from.push_back(staging(backend));
      to.push_back(staging(backend));
      streams.push_back(backend.make_stream());
      events.push_back(backend.make_event());
    }
    std::array<std::atomic<bool>, count> right{};
    {
      std::vector<joined_thread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
          bool good = true;
          for (std::uint64_t round = 0; round < rounds; ++round) {
            fill_bytes(from[i].bytes(), i * 1000 + round);
            copy(backend, streams[i], to[i], from[i]);
            backend.record(events[i], streams[i]);
            backend.synchronize(events[i]);
            good = good && holds_bytes(to[i].bytes(), i * 1000 + round);
          }
          right[i] = good;
        });
      }
    }
    for (const auto& good : right) CHECK(good);
  }

  void a_ring_of_streams() {
    // Each link waits for the one before, across all streams.
    const backend_type backend = harness_.make();
    std::vector<buffer> links;
    std::vector<typename backend_type::stream> streams;
    std::vector<typename backend_type::event> events;
    for (std::size_t i = 0; i < 6; ++i) {
      links.push_back(staging(backend));
      streams.push_back(backend.make_stream());
      events.push_back(backend.make_event());
    }
    fill_bytes(links[0].bytes(), 10);
    for (std::size_t step = 0; step < 60; ++step) {
      const std::size_t from = step % links.size();
      const std::size_t to = (step + 1) % links.size();
      if (step > 0) backend.wait(streams[to], events[from]);
      copy(backend, streams[to], links[to], links[from]);
      backend.record(events[to], streams[to]);
    }
    backend.synchronize(events[0]);
    for (const buffer& link : links) CHECK(holds_bytes(link.bytes(), 10));
  }

  void one_stream_from_many_threads() {
    const backend_type backend = harness_.make();
    const buffer from = staging(backend, 64);
    const buffer to = staging(backend, 64 * 4);
    fill_bytes(from.bytes(), 11);
    const auto stream = backend.make_stream();
    {
      std::vector<joined_thread> threads;
      for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 50; ++i) {
            backend.copy_async(stream, to.bytes().data() + 64 * t, from.data(), 64);
          }
        });
      }
    }
    backend.synchronize(stream);
    for (std::size_t t = 0; t < 4; ++t) CHECK(holds_bytes(to.bytes().subspan(64 * t, 64), 11));
  }

  void a_copy_that_fails() {
    auto failing = harness_.make_failing(device_fault::copy_run, 2);
    if (!failing) return;
    const backend_type& backend = *failing;
    const buffer from = staging(backend);
    std::vector<buffer> to;
    for (std::uint64_t i = 0; i < 5; ++i) {
      to.push_back(staging(backend));
      fill_bytes(to.back().bytes(), 50 + i);
    }
    fill_bytes(from.bytes(), 12);
    const auto stream = backend.make_stream();
    const auto waiting = backend.make_stream();
    const auto before = backend.make_event();
    const auto behind = backend.make_event();
    copy(backend, stream, to[0], from);
    copy(backend, stream, to[1], from);
    backend.record(before, stream);
    backend.synchronize(before);
    copy(backend, stream, to[2], from);
    backend.record(behind, stream);
    CHECK_THROWS_AS(backend.synchronize(behind), lanepack::device_error);
    CHECK_THROWS_AS(backend.query(behind), lanepack::device_error);
    CHECK(backend.query(before));
    // It stays failed, and whoever waits for it fails too.
    copy(backend, stream, to[3], from);
    CHECK_THROWS_AS(backend.synchronize(stream), lanepack::device_error);
    backend.wait(waiting, behind);
    copy(backend, waiting, to[4], from);
    CHECK_THROWS_AS(backend.synchronize(waiting), lanepack::device_error);
    CHECK(holds_bytes(to[0].bytes(), 12));
    CHECK(holds_bytes(to[1].bytes(), 12));
    CHECK(holds_bytes(to[2].bytes(), 52));
    CHECK(holds_bytes(to[3].bytes(), 53));
    CHECK(holds_bytes(to[4].bytes(), 54));
  }

  void calls_that_fail() {
    if (auto backend = harness_.make_failing(device_fault::make_stream, 1)) {
      const auto stream = backend->make_stream();
      CHECK_THROWS_AS(backend->make_stream(), lanepack::device_error);
      backend->synchronize(stream);
    }
    if (auto backend = harness_.make_failing(device_fault::make_event, 0)) {
      CHECK_THROWS_AS(backend->make_event(), lanepack::device_error);
      CHECK(backend->query(backend->make_event()));
    }
    if (auto backend = harness_.make_failing(device_fault::allocate, 1)) {
      const buffer memory = staging(*backend);
      CHECK_THROWS_AS(staging(*backend), lanepack::device_error);
    }
    if (auto backend = harness_.make_failing(device_fault::copy_given, 1)) {
      const buffer from = staging(*backend);
      const buffer to = staging(*backend);
      const auto stream = backend->make_stream();
      fill_bytes(from.bytes(), 13);
      copy(*backend, stream, to, from);
      backend->synchronize(stream);
      fill_bytes(from.bytes(), 14);
      CHECK_THROWS_AS(copy(*backend, stream, to, from), lanepack::device_error);
      backend->synchronize(stream);
      CHECK(holds_bytes(to.bytes(), 13));
      copy(*backend, stream, to, from);
      backend->synchronize(stream);
      CHECK(holds_bytes(to.bytes(), 14));
    }
    if (auto backend = harness_.make_failing(device_fault::record, 1)) {
      const auto stream = backend->make_stream();
      const auto event = backend->make_event();
      backend->record(event, stream);
      CHECK_THROWS_AS(backend->record(event, stream), lanepack::device_error);
      backend->synchronize(event);
    }
    if (auto backend = harness_.make_failing(device_fault::wait, 0)) {
      const auto stream = backend->make_stream();
      const auto event = backend->make_event();
      CHECK_THROWS_AS(backend->wait(stream, event), lanepack::device_error);
      backend->wait(stream, event);
      backend->synchronize(stream);
    }
    if (auto backend = harness_.make_failing(device_fault::query, 0)) {
      const auto event = backend->make_event();
      CHECK_THROWS_AS(backend->query(event), lanepack::device_error);
      CHECK(backend->query(event));
    }
    if (auto backend = harness_.make_failing(device_fault::synchronize, 0)) {
      const auto event = backend->make_event();
      CHECK_THROWS_AS(backend->synchronize(event), lanepack::device_error);
      backend->synchronize(event);
    }
  }

  // What the ring promises on top of it.

  void a_slot_waits_for_its_stream() {
    const backend_type backend = harness_.make();
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
    auto slot = slots.acquire();
    fill_bytes(slot->bytes(), 15);
    REQUIRE(slots.submit(std::move(*slot)));
    stream_gate gate;
    auto lease = slots.next();
    gate.hold(harness_, backend, stream);
    backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
    lease->release_after(stream);
    CHECK_FALSE(lease->active());
    CHECK_FALSE(slots.try_acquire().has_value());
    const joined_thread opener([&gate] {
      pause_us(2000);
      gate.open();
    });
    slot = slots.acquire();
    REQUIRE(slot.has_value());
    fill_bytes(slot->bytes(), 16);
    CHECK(holds_bytes(to.bytes(), 15));
    CHECK(slots.statistics().released_behind_event == 1);
    CHECK(slots.statistics().producer_waits == 1);
  }

  void a_slot_waits_for_its_event() {
    const backend_type backend = harness_.make();
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
    auto slot = slots.acquire();
    fill_bytes(slot->bytes(), 17);
    REQUIRE(slots.submit(std::move(*slot)));
    stream_gate gate;
    auto lease = slots.next();
    gate.hold(harness_, backend, stream);
    backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
    {
      const auto event = backend.make_event();
      backend.record(event, stream);
      lease->release_after(event);
      // Neither recording it again nor its end lets go of the slot.
      const auto idle = backend.make_stream();
      backend.record(event, idle);
      backend.synchronize(event);
    }
    pause_us(1000);
    CHECK_FALSE(slots.try_acquire().has_value());
    gate.open();
    slot = slots.acquire();
    REQUIRE(slot.has_value());
    fill_bytes(slot->bytes(), 18);
    CHECK(holds_bytes(to.bytes(), 17));
  }

  void early_reuse_is_seen() {
    // The same without waiting for the device: this is what the two checks above would find.
    const backend_type backend = harness_.make();
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
    auto slot = slots.acquire();
    fill_bytes(slot->bytes(), 19);
    REQUIRE(slots.submit(std::move(*slot)));
    stream_gate gate;
    auto lease = slots.next();
    gate.hold(harness_, backend, stream);
    backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
    lease->release();
    slot = slots.try_acquire();
    REQUIRE(slot.has_value());
    fill_bytes(slot->bytes(), 20);
    gate.open();
    backend.synchronize(stream);
    CHECK(holds_bytes(to.bytes(), 20));
  }

  void a_slot_waits_for_all_shares() {
    const backend_type backend = harness_.make();
    const auto first_stream = backend.make_stream();
    const auto second_stream = backend.make_stream();
    const auto event = backend.make_event();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
    for (int way = 0; way < 6; ++way) {
      CAPTURE(way);
      auto slot = slots.acquire();
      REQUIRE(slot.has_value());
      REQUIRE(slots.submit(std::move(*slot)));
      stream_gate first_gate;
      stream_gate second_gate;
      auto first = slots.next();
      auto second = std::optional(first->share());
      auto third = std::optional(second->share());
      first_gate.hold(harness_, backend, first_stream);
      second_gate.hold(harness_, backend, second_stream);
      const bool first_by_event = way % 2 == 0;
      if (first_by_event) {
        backend.record(event, first_stream);
        first->release_after(event);
      } else {
        first->release_after(first_stream);
      }
      CHECK_FALSE(slots.try_acquire().has_value());
      const int last = way / 2;
      if (last == 0) {
        second->release_after(second_stream);
        third->release();
      } else if (last == 1) {
        third->release();
        second->release_after(second_stream);
      } else {
        third.reset();
        backend.record(event, second_stream);
        second->release_after(event);
      }
      CHECK_FALSE(slots.try_acquire().has_value());
      first_gate.open();
      backend.synchronize(first_stream);
      pause_us(500);
      CHECK_FALSE(slots.try_acquire().has_value());
      second_gate.open();
    }
  }

  void a_ready_slot_passes_one_that_waits() {
    const backend_type backend = harness_.make();
    const auto stream = backend.make_stream();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = 2 * bytes});
    auto first = slots.acquire();
    auto second = slots.acquire();
    const std::uint32_t free_index = second->index();
    REQUIRE(slots.submit(std::move(*first)));
    REQUIRE(slots.submit(std::move(*second)));
    stream_gate gate;
    gate.hold(harness_, backend, stream);
    slots.next()->release_after(stream);
    slots.next()->release();
    const auto ready = slots.acquire();
    REQUIRE(ready.has_value());
    CHECK(ready->index() == free_index);
  }

  void work_of_a_consumer_that_fails() {
    auto failing = harness_.make_failing(device_fault::copy_run, 0);
    if (!failing) return;
    const backend_type& backend = *failing;
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
    auto slot = slots.acquire();
    REQUIRE(slots.submit(std::move(*slot)));
    auto lease = slots.next();
    backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
    lease->release_after(stream);
    CHECK_THROWS_AS(slots.acquire(), lanepack::device_error);
    CHECK(slots.closed());
    CHECK_FALSE(slots.acquire().has_value());
    CHECK_THROWS_AS(slots.next(), lanepack::device_error);
    CHECK_FALSE(slots.next().has_value());
  }

  void a_mark_that_fails() {
    auto failing = harness_.make_failing(device_fault::record, 0);
    if (!failing) return;
    const backend_type& backend = *failing;
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    stream_gate gate;
    const joined_thread opener([&gate] {
      pause_us(2000);
      gate.open();
    });
    {
      ring slots(backend, {.slot_bytes = bytes, .bytes_limit = bytes});
      auto slot = slots.acquire();
      fill_bytes(slot->bytes(), 21);
      REQUIRE(slots.submit(std::move(*slot)));
      auto lease = slots.next();
      gate.hold(harness_, backend, stream);
      backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
      CHECK_THROWS_AS(lease->release_after(stream), lanepack::device_error);
      CHECK_FALSE(slots.acquire().has_value());
      CHECK_THROWS_AS(slots.next(), lanepack::device_error);
      CHECK_FALSE(slots.next().has_value());
    }
    // The slot did not go before the copy that nothing marks the end of.
    CHECK(holds_bytes(to.bytes(), 21));
  }

  void a_ring_goes_while_the_device_works() {
    const backend_type backend = harness_.make();
    const buffer to = staging(backend);
    const auto stream = backend.make_stream();
    stream_gate gate;
    const joined_thread opener([&gate] {
      pause_us(2000);
      gate.open();
    });
    std::optional<typename ring::lease> kept;
    {
      ring slots(backend, {.slot_bytes = bytes, .bytes_limit = 3 * bytes});
      for (std::uint64_t i = 0; i < 3; ++i) {
        auto slot = slots.acquire();
        fill_bytes(slot->bytes(), 22 + i);
        REQUIRE(slots.submit(std::move(*slot)));
      }
      gate.hold(harness_, backend, stream);
      auto lease = slots.next();
      backend.copy_async(stream, to.data(), lease->bytes().data(), bytes);
      lease->release_after(stream);
      kept.emplace(*slots.next());
    }
    CHECK(holds_bytes(kept->bytes(), 23));
    kept.reset();
    CHECK(holds_bytes(to.bytes(), 22));
  }

  // One producer and `consumers` threads with streams of their own. Every slot is copied by the
  // device while it is leased; all ways of giving it back are mixed; shares go to a neighbour.
  void consumers_with_delays(std::size_t consumers, std::uint64_t seed) {
    CAPTURE(consumers, seed);
    const backend_type backend = harness_.make();
    constexpr std::uint64_t items = 150;
    constexpr std::size_t slot_bytes = 256;
    gen shape(seed);
    const std::size_t depth = shape.between(1, 6);
    CAPTURE(depth);
    const buffer results = staging(backend, items * slot_bytes);
    std::vector<std::atomic<int>> seen(items);
    std::atomic<bool> in_order{true};
    ring slots(backend, {.slot_bytes = slot_bytes, .bytes_limit = depth * slot_bytes});
    {
      std::vector<joined_thread> threads;
      for (std::size_t c = 0; c < consumers; ++c) {
        threads.emplace_back([&, c] {
          gen random(seed * 100 + c);
          const auto stream = backend.make_stream();
          const auto event = backend.make_event();
          std::optional<std::uint64_t> previous;
          while (auto lease = slots.next()) {
            const std::uint64_t item = lease->sequence();
            if (previous && item <= *previous) in_order = false;
            previous = item;
            ++seen[item];
            if (random.one_in(4)) pause_us(random.between(0, 300));
            std::optional<typename ring::lease> other;
            if (random.one_in(3)) other.emplace(lease->share());
            backend.copy_async(stream, results.bytes().data() + item * slot_bytes,
                               lease->bytes().data(), slot_bytes);
            if (random.one_in(4)) {
              harness_.call_async(backend, stream, [us = random.between(0, 300)] { pause_us(us); });
            }
            switch (random.between(0, 2)) {
              case 0:
                lease->release_after(stream);
                break;
              case 1:
                backend.record(event, stream);
                lease->release_after(event);
                break;
              default:
                backend.synchronize(stream);
                lease.reset();
                break;
            }
            if (other) {
              if (random.one_in(2)) other->release_after(stream);
            }
          }
          backend.synchronize(stream);
        });
      }
      const ring_closer closer{slots};
      gen random(seed * 100 + 99);
      std::uint64_t item = 0;
      while (item < items) {
        // Several slots at once, filled in any order, submitted in theirs.
        std::vector<typename ring::slot> held;
        auto first = slots.acquire();
        REQUIRE(first.has_value());
        held.push_back(std::move(*first));
        while (item + held.size() < items && random.one_in(2)) {
          auto more = slots.try_acquire();
          if (!more) break;
          held.push_back(std::move(*more));
        }
        for (std::size_t i = held.size(); i-- > 0;) fill_bytes(held[i].bytes(), item + i);
        for (auto& slot : held) {
          REQUIRE(slots.submit(std::move(slot)));
          ++item;
        }
        if (random.one_in(8)) pause_us(random.between(0, 200));
      }
    }
    CHECK(in_order);
    bool once = true;
    bool right = true;
    for (std::uint64_t item = 0; item < items; ++item) {
      once = once && seen[item] == 1;
      right = right && holds_bytes(results.bytes().subspan(item * slot_bytes, slot_bytes), item);
    }
    CHECK(once);
    CHECK(right);
    const lanepack::ring_statistics statistics = slots.statistics();
    CHECK(statistics.submitted == items);
    CHECK(statistics.delivered == items);
    CHECK(statistics.released == items);
    CHECK(statistics.peak_slots <= depth);
  }

 private:
  // Lets consumers end, before they are joined, also when a requirement fails.
  struct ring_closer {
    ring& slots;
    ~ring_closer() { slots.close(); }
  };

  Harness& harness_;
};

template <class Harness>
void check_device_backend(Harness& harness) {
  device_backend_checks<Harness> checks(harness);
  SECTION("data makes the round trip") {
    checks.round_trip();
  }
  SECTION("work of a stream runs in order") {
    checks.order_in_a_stream();
  }
  SECTION("giving work does not wait for it") {
    checks.giving_work_does_not_wait();
  }
  SECTION("streams overlap") {
    checks.streams_do_not_wait_for_each_other();
  }
  SECTION("an unrecorded event has passed") {
    checks.an_event_that_was_not_recorded_has_passed();
  }
  SECTION("a stream waits for an event") {
    checks.waiting_for_an_event();
  }
  SECTION("recording again replaces the mark") {
    checks.recording_again();
  }
  SECTION("owners can be moved") {
    checks.owners_can_be_moved();
  }
  SECTION("destruction with work in flight") {
    checks.destruction_with_work_in_flight();
  }
  SECTION("many streams") {
    checks.many_streams();
  }
  SECTION("a ring of streams") {
    checks.a_ring_of_streams();
  }
  SECTION("one stream, many threads") {
    checks.one_stream_from_many_threads();
  }
  SECTION("a copy that fails stops its stream") {
    checks.a_copy_that_fails();
  }
  SECTION("a call that fails gives no work") {
    checks.calls_that_fail();
  }
  SECTION("ring: a slot waits for its stream") {
    checks.a_slot_waits_for_its_stream();
  }
  SECTION("ring: a slot waits for its event") {
    checks.a_slot_waits_for_its_event();
  }
  SECTION("ring: early reuse is seen") {
    checks.early_reuse_is_seen();
  }
  SECTION("ring: a slot waits for all shares") {
    checks.a_slot_waits_for_all_shares();
  }
  SECTION("ring: a ready slot passes one that waits") {
    checks.a_ready_slot_passes_one_that_waits();
  }
  SECTION("ring: a consumer's failure reaches both ends") {
    checks.work_of_a_consumer_that_fails();
  }
  SECTION("ring: a slot without a mark is not reused") {
    checks.a_mark_that_fails();
  }
  SECTION("ring: it goes while the device works") {
    checks.a_ring_goes_while_the_device_works();
  }
  SECTION("ring: one to eight consumers with delays") {
    for (std::size_t consumers = 1; consumers <= 8; ++consumers) {
      checks.consumers_with_delays(consumers, consumers);
    }
  }
}

}  // namespace lanepack_test
