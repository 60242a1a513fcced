// A checked build has an ABI namespace of its own, so this file can be one among unchecked ones.
#if !defined(LANEPACK_CHECKED)
#define LANEPACK_CHECKED 1
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>

#include "support/catch.hpp"

#if LANEPACK_CHECKED

namespace {

using lanepack::host_backend;
using ring = lanepack::staging_ring<host_backend>;

bool poisoned(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte value) { return value == std::byte{0xA5}; });
}

}  // namespace

TEST_CASE("device: a checked ring shows late readers that a slot is gone", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 64, .bytes_limit = 64});
  auto slot = slots.acquire();
  CHECK(poisoned(slot->bytes()));
  std::memset(slot->bytes().data(), 1, 64);
  REQUIRE(slots.submit(std::move(*slot)));
  auto lease = slots.next();
  const std::span<const std::byte> late = lease->bytes();
  CHECK_FALSE(poisoned(late));
  auto share = lease->share();
  lease->release();
  CHECK_FALSE(poisoned(late));
  share.release();
  CHECK(poisoned(late));
  // A slot that the producer wrote to and dropped is no fault.
  slot = slots.acquire();
  std::memset(slot->bytes().data(), 2, 64);
  slot.reset();
  slot = slots.acquire();
  CHECK(poisoned(slot->bytes()));
}

TEST_CASE("device: a checked ring leaves a slot alone until its event", "[device]") {
  const host_backend backend;
  const auto stream = backend.make_stream();
  const auto event = backend.make_event();
  ring slots(backend, {.slot_bytes = 64, .bytes_limit = 64});
  for (int round = 0; round < 3; ++round) {
    auto slot = slots.acquire();
    std::memset(slot->bytes().data(), 1, 64);
    REQUIRE(slots.submit(std::move(*slot)));
    auto lease = slots.next();
    const std::span<const std::byte> late = lease->bytes();
    if (round % 2 == 0) {
      lease->release_after(stream);
    } else {
      backend.record(event, stream);
      lease->release_after(event);
    }
    backend.synchronize(stream);
    CHECK_FALSE(poisoned(late));
    slot = slots.acquire();
    CHECK(poisoned(late));
  }
}

TEST_CASE("device: a checked ring refuses a slot that was written too late", "[device]") {
  ring slots(host_backend{}, {.slot_bytes = 64, .bytes_limit = 64});
  auto slot = slots.acquire();
  const std::span<std::byte> late = slot->bytes();
  REQUIRE(slots.submit(std::move(*slot)));
  slots.next()->release();
  late[17] = std::byte{0};
  CHECK_THROWS_MATCHES(slots.acquire(), lanepack::state_error,
                       Catch::Matchers::Message(
                           "staging_ring: byte 17 of slot 0 was written after the slot's release"));
  CHECK_THROWS_AS(slots.next(), lanepack::state_error);
  CHECK_FALSE(slots.acquire().has_value());
}

#endif
