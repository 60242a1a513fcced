#pragma once

/// @file
/// The `device_backend` concept: ordered queues of copies, and events that tell how far they are.

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A device or its driver failed; backends derive from it.
class device_error : public error {
 public:
  using error::error;
};

/// Where a backend allocates.
enum class memory_kind : std::uint8_t {
  /// Host memory that the device can copy from and to while the host goes on (page-locked).
  staging,
  /// Memory of the device; the host must not touch it.
  device,
};

/// What a device offers to move data: streams of work, events on them, memory.
///
/// `stream` and `event` own and are moved; `stream_view` and `event_view` are copied and must not
/// outlive what they view. A backend is a handle: copies share the device.
///
/// Semantic requirements on a model:
/// - work given to one stream runs in the order given; streams do not wait for each other unless
///   told to; giving work does not wait for it;
/// - `copy_async(stream, dst, src, bytes)` copies between memory of either kind; both ends must
///   stay valid, and the source unchanged, until the copy has run;
/// - `record(event, stream)` marks the end of the work given so far; recording again replaces the
///   mark. An event that was never recorded counts as passed;
/// - `wait(stream, event)` makes later work of the stream wait for the mark that the event has at
///   the time of the call; recording or destroying the event afterwards changes nothing;
/// - `query(event)` tells without waiting whether the mark has passed; `synchronize(event)` and
///   `synchronize(stream)` wait for the mark, and for all work given so far. What was done before a
///   mark happens before the return that reports it;
/// - a call that fails throws device_error or a type derived from it, and has given no work. Work
///   that fails stops its stream for good: later work is skipped, and `query`, `synchronize` and
///   waiting streams behind it meet the first error, never a mark that looks as if it had passed;
/// - destroying a stream lets its work finish; destroying an event, or memory through `deallocate`,
///   does not throw. The caller makes sure that no work still uses memory when it goes;
/// - all calls but those on one owner's destruction may come from any thread.
template <class Backend>
concept device_backend =
    std::copy_constructible<Backend> && std::movable<typename Backend::stream> &&
    std::movable<typename Backend::event> && std::copyable<typename Backend::stream_view> &&
    std::copyable<typename Backend::event_view> &&
    !std::same_as<typename Backend::stream_view, typename Backend::event_view> &&
    std::convertible_to<const typename Backend::stream&, typename Backend::stream_view> &&
    std::convertible_to<const typename Backend::event&, typename Backend::event_view> &&
    requires(const Backend& backend, typename Backend::stream_view stream,
             typename Backend::event_view event, void* destination, const void* source,
             std::size_t bytes, memory_kind kind) {
  { backend.make_stream() } -> std::same_as<typename Backend::stream>;
  { backend.make_event() } -> std::same_as<typename Backend::event>;
  { backend.allocate(kind, bytes) } -> std::same_as<void*>;
  { backend.deallocate(kind, destination, bytes) }
  noexcept;
  backend.copy_async(stream, destination, source, bytes);
  backend.record(event, stream);
  backend.wait(stream, event);
  { backend.query(event) } -> std::same_as<bool>;
  backend.synchronize(event);
  backend.synchronize(stream);
};

}  // namespace lanepack::inline LANEPACK_ABI
