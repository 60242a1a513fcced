#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::host_backend;
using ring = lanepack::staging_ring<host_backend>;
using lanepack_test::gen;

void write_number(ring::slot& slot, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) slot.bytes()[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t read_number(const ring::lease& lease) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= std::to_integer<std::uint64_t>(lease.bytes()[i]) << (8 * i);
  }
  return value;
}

}  // namespace

TEST_CASE("device: a ring does what a queue and a count of slots do", "[device]") {
  lanepack_test::for_each_seed(150, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const host_backend backend;
    const auto stream = backend.make_stream();
    const auto event = backend.make_event();
    const std::size_t depth = random.between(1, 6);
    ring slots(backend, {.slot_bytes = 16, .bytes_limit = 16 * depth + random.between(0, 15)});
    REQUIRE(slots.depth() == depth);

    std::vector<ring::slot> held;
    std::vector<std::pair<ring::lease, std::uint64_t>> leased;
    std::deque<std::uint64_t> queue;
    std::size_t outstanding = 0;
    std::vector<std::uint32_t> users(depth, 0);
    std::uint64_t written = 0;
    std::uint64_t read = 0;
    bool closed = false;
    bool failed = false;

    for (int operation = 0; operation < 120; ++operation) {
      switch (random.between(0, 9)) {
        case 0:
        case 1:
        case 2: {
          // All work on the stream has run, so a slot is there exactly if one is free.
          backend.synchronize(stream);
          const bool waits = outstanding < depth && random.one_in(2);
          auto slot = waits ? slots.acquire() : slots.try_acquire();
          if (slots.statistics().released_behind_event != 0 && !slot && !closed) {
            // The reclaim stream may still be on its way.
            if (outstanding < depth) slot = slots.acquire();
          }
          REQUIRE(slot.has_value() == (!closed && outstanding < depth));
          if (!slot) break;
          REQUIRE(users[slot->index()] == 0);
          users[slot->index()] = 1;
          ++outstanding;
          held.push_back(std::move(*slot));
          break;
        }
        case 3:
        case 4: {
          if (held.empty()) break;
          const std::size_t which = random.between(0, held.size() - 1);
          ring::slot slot = std::move(held[which]);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
          const std::uint32_t index = slot.index();
          write_number(slot, written);
          REQUIRE(slots.submit(std::move(slot)) == !closed);
          if (closed) {
            users[index] = 0;
            --outstanding;
          } else {
            queue.push_back(written++);
          }
          break;
        }
        case 5:
        case 6: {
          if (queue.empty() && failed) {
            REQUIRE_THROWS_AS(slots.next(), std::runtime_error);
            failed = false;
            break;
          }
          auto lease = queue.empty() && !closed ? slots.try_next() : slots.next();
          REQUIRE(lease.has_value() == !queue.empty());
          if (!lease) break;
          REQUIRE(read_number(*lease) == queue.front());
          REQUIRE(lease->sequence() == read);
          ++read;
          leased.emplace_back(std::move(*lease), queue.front());
          queue.pop_front();
          break;
        }
        case 7: {
          if (leased.empty()) break;
          const auto& [lease, value] = leased[random.between(0, leased.size() - 1)];
          ring::lease other = lease.share();
          ++users[other.index()];
          leased.emplace_back(std::move(other), value);
          break;
        }
        case 8: {
          if (leased.empty()) break;
          const std::size_t which = random.between(0, leased.size() - 1);
          ring::lease lease = std::move(leased[which].first);
          REQUIRE(read_number(lease) == leased[which].second);
          leased.erase(leased.begin() + static_cast<std::ptrdiff_t>(which));
          const std::uint32_t index = lease.index();
          switch (random.between(0, 3)) {
            case 0:
              lease.release();
              break;
            case 1:
              lease.release_after(stream);
              break;
            case 2:
              backend.record(event, stream);
              lease.release_after(event);
              break;
            default:
              break;
          }
          if (--users[index] == 0) --outstanding;
          break;
        }
        default:
          if (!random.one_in(12)) {
            if (held.empty()) break;
            users[held.back().index()] = 0;
            --outstanding;
            held.pop_back();
          } else if (random.one_in(2)) {
            slots.close();
            closed = true;
          } else if (!closed) {
            slots.fail(std::make_exception_ptr(std::runtime_error("failed")));
            closed = true;
            failed = true;
          }
          break;
      }
      REQUIRE(slots.closed() == closed);
      const lanepack::ring_statistics statistics = slots.statistics();
      REQUIRE(statistics.submitted == written);
      REQUIRE(statistics.delivered == read);
      REQUIRE(statistics.peak_slots <= depth);
    }
  });
}
