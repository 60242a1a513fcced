#pragma once

/// @file
/// The size of a staging ring, and what it has done.

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Size of a staging ring.
struct ring_options {
  /// Bytes of a slot, at least 1.
  std::size_t slot_bytes = std::size_t{1} << 20;
  /// Bytes of all slots together, at least `slot_bytes`; the ring has as many slots as fit.
  std::size_t bytes_limit = std::size_t{64} << 20;
  /// Slots at most, at least 1.
  std::uint32_t slots_limit = 256;
};

/// What a ring has done so far.
struct ring_statistics {
  /// Slots handed to the producer, by the producer to the consumers, and to the consumers.
  std::uint64_t acquired = 0;
  std::uint64_t submitted = 0;
  std::uint64_t delivered = 0;
  /// Slots that came back from the consumers, of those behind an event.
  std::uint64_t released = 0;
  std::uint64_t released_behind_event = 0;
  /// Times that the producer found no slot ready, and how long it waited in all.
  std::uint64_t producer_waits = 0;
  std::chrono::nanoseconds producer_wait_time{0};
  /// Times that a consumer found no slot filled, and how long they waited in all.
  std::uint64_t consumer_waits = 0;
  std::chrono::nanoseconds consumer_wait_time{0};
  /// The most slots that the producer and the consumers held, or had queued, at one time.
  std::uint32_t peak_slots = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
