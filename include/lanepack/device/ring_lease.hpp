#pragma once

/// @file
/// `ring_lease`: the right to read one slot of a staging ring.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/device/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

template <device_backend Backend>
class staging_ring;

namespace detail {

template <class Backend>
class ring_state;

}  // namespace detail

/// The right to read one slot of a `staging_ring`. Going out of scope is `release()`.
///
/// The bodies are in staging_ring.hpp.
/// @thread_safety  None: one thread per lease; `share` makes another for another thread.
template <class Backend>
class ring_lease {
 public:
  ring_lease(ring_lease&&) noexcept = default;
  ring_lease& operator=(ring_lease&& other) noexcept;
  ~ring_lease();

  /// The bytes that were filled; valid until this lease is released.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  /// Number of the slot, as the producer saw it.
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// Place in the order of submission, from 0.
  [[nodiscard]] std::uint64_t sequence() const noexcept;
  /// Whether this object still has the right to read.
  [[nodiscard]] bool active() const noexcept { return state_ != nullptr; }

  /// Another lease on the same slot, which is reused only after both were released.
  [[nodiscard]] ring_lease share() const;

  /// Ends reading at once: for consumers on the host.
  /// @throws  The backend's error if an earlier share's event is lost; the ring has then failed.
  void release();

  /// Ends reading when the work given to `stream` so far has run.
  /// @throws  The backend's error; the ring has then failed and the slot is never reused.
  template <class Device = Backend>
  void release_after(typename Device::stream_view stream);

  /// Ends reading when the mark that `event` has now has passed; the event may be recorded again
  /// or destroyed right after the call. Slots released this way become free in the order of the
  /// calls.
  /// @throws  The backend's error; the ring has then failed and the slot is never reused.
  template <class Device = Backend>
  void release_after(typename Device::event_view event);

 private:
  template <device_backend Other>
  friend class staging_ring;
  ring_lease(std::shared_ptr<detail::ring_state<Backend>> state, std::uint32_t index) noexcept
      : state_(std::move(state)), index_(index) {}

  void drop() noexcept;

  std::shared_ptr<detail::ring_state<Backend>> state_;
  std::uint32_t index_;
};

}  // namespace lanepack::inline LANEPACK_ABI
