#pragma once

/// @file
/// `staging_ring`: slots of staging memory that go from a producer to consumers and back.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/device/buffer.hpp>
#include <lanepack/device/concept.hpp>
#include <lanepack/device/fork_guard.hpp>
#include <lanepack/device/ring_lease.hpp>
#include <lanepack/device/ring_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

#if defined(LANEPACK_CHECKED) && LANEPACK_CHECKED
inline constexpr bool poison_slots = true;
#else
inline constexpr bool poison_slots = false;
#endif

/// What a checked build fills a slot with once nobody may read it.
inline constexpr std::byte slot_poison{0xA5};

/// The ring itself; slots and leases keep it alive.
template <class Backend>
class ring_state {
 public:
  using stream_view = typename Backend::stream_view;
  using event_view = typename Backend::event_view;

  struct submission {
    std::uint32_t index;
    std::size_t used;
  };

  ring_state(const Backend& backend, const ring_options& options)
      : backend_(backend), slot_bytes_(options.slot_bytes), hop_(backend.make_event()) {
    const std::size_t fitting = options.bytes_limit / options.slot_bytes;
    const std::size_t depth = std::min<std::size_t>(fitting, options.slots_limit);
    slots_.reserve(depth);
    free_.reserve(depth);
    filled_.reserve(depth);
    for (std::size_t i = 0; i < depth; ++i) {
      slots_.push_back(std::make_unique<slot_record>(backend_, slot_bytes_));
      free_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  ring_state(const ring_state&) = delete;
  ring_state& operator=(const ring_state&) = delete;

  /// Waits for what consumers still do with the slots, so that the memory can go.
  ~ring_state() {
    for (const auto& slot : slots_) {
      if (slot->pending) settle<event_view>(slot->reusable);
    }
    if (reclaim_) settle<stream_view>(*reclaim_);
  }

  [[nodiscard]] std::uint32_t depth() const noexcept {
    return static_cast<std::uint32_t>(slots_.size());
  }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }

  [[nodiscard]] std::optional<std::uint32_t> acquire() {
    guard_.check("staging_ring");
    std::unique_lock lock(mutex_);
    std::optional<std::uint32_t> found = ready_slot();
    if (!found && !closed_) {
      const auto start = std::chrono::steady_clock::now();
      ++statistics_.producer_waits;
      do {
        if (free_.empty()) {
          slot_freed_.wait(lock, [this] { return closed_ || !free_.empty(); });
          found = ready_slot();
        } else {
          found = wait_for_oldest(lock);
        }
      } while (!found && !closed_);
      statistics_.producer_wait_time += std::chrono::steady_clock::now() - start;
    }
    return take(lock, found);
  }

  [[nodiscard]] std::optional<std::uint32_t> try_acquire() {
    guard_.check("staging_ring");
    std::unique_lock lock(mutex_);
    return take(lock, ready_slot());
  }

  /// Returns a slot that the producer did not fill.
  void put_back(std::uint32_t index) noexcept {
    if (guard_.in_child()) return;
    {
      const std::scoped_lock lock(mutex_);
      free_.insert(free_.begin(), index);
    }
    slot_freed_.notify_one();
  }

  /// False where the ring is closed; the slots are then still the caller's.
  [[nodiscard]] bool submit(std::span<const submission> filled) {
    guard_.check("staging_ring");
    for (const submission& each : filled) {
      if (each.used > slot_bytes_) {
        throw_invalid_option("used bytes of a slot", std::to_string(each.used),
                             "at most slot_bytes = " + std::to_string(slot_bytes_));
      }
    }
    {
      const std::scoped_lock lock(mutex_);
      if (closed_) return false;
      for (const submission& each : filled) {
        slot_record& slot = *slots_[each.index];
        slot.used = each.used;
        slot.sequence = statistics_.submitted++;
        slot.shares = 1;
        filled_.push_back(each.index);
      }
    }
    if (filled.size() == 1) {
      slot_filled_.notify_one();
    } else {
      slot_filled_.notify_all();
    }
    return true;
  }

  [[nodiscard]] std::optional<std::uint32_t> next() {
    guard_.check("staging_ring");
    std::unique_lock lock(mutex_);
    if (filled_.empty() && !closed_) {
      const auto start = std::chrono::steady_clock::now();
      ++statistics_.consumer_waits;
      slot_filled_.wait(lock, [this] { return closed_ || !filled_.empty(); });
      statistics_.consumer_wait_time += std::chrono::steady_clock::now() - start;
    }
    return deliver();
  }

  [[nodiscard]] std::optional<std::uint32_t> try_next() {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    return deliver();
  }

  void share(std::uint32_t index) {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    ++slots_[index]->shares;
  }

  /// Gives up one share without waiting for anything.
  void release(std::uint32_t index) {
    release_behind(index, [](slot_record&, bool) { return false; });
  }

  /// Gives up one share once the work given to `stream` so far has run.
  void release(std::uint32_t index, stream_view stream) {
    release_behind(index, [this, stream](slot_record& slot, bool last) {
      try {
        if (last && !slot.awaits_events) {
          backend_.record(slot.reusable, stream);
          return true;
        }
        backend_.record(hop_, stream);
        backend_.wait(reclaim(), hop_);
      } catch (...) {
        settle(stream);
        throw;
      }
      slot.awaits_events = true;
      return false;
    });
  }

  /// Gives up one share once the mark that `event` has now has passed.
  void release(std::uint32_t index, event_view event) {
    release_behind(index, [this, event](slot_record& slot, bool) {
      try {
        backend_.wait(reclaim(), event);
      } catch (...) {
        settle(event);
        throw;
      }
      slot.awaits_events = true;
      return false;
    });
  }

  void close() {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    close_locked();
  }

  void close_quietly() noexcept {
    if (guard_.in_child()) return;
    const std::scoped_lock lock(mutex_);
    close_locked();
  }

  void fail(std::exception_ptr failure) {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    fail_locked(std::move(failure));
  }

  [[nodiscard]] bool closed() const {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    return closed_;
  }

  [[nodiscard]] ring_statistics statistics() const {
    guard_.check("staging_ring");
    const std::scoped_lock lock(mutex_);
    return statistics_;
  }

  [[nodiscard]] std::span<std::byte> memory(std::uint32_t index) const noexcept {
    return slots_[index]->memory.bytes();
  }
  [[nodiscard]] std::size_t used(std::uint32_t index) const noexcept { return slots_[index]->used; }
  [[nodiscard]] std::uint64_t sequence(std::uint32_t index) const noexcept {
    return slots_[index]->sequence;
  }
  [[nodiscard]] bool in_child() const noexcept { return guard_.in_child(); }

 private:
  struct slot_record {
    slot_record(const Backend& backend, std::size_t bytes)
        : memory(backend, memory_kind::staging, bytes), reusable(backend.make_event()) {}

    device_buffer<Backend> memory;
    /// Recorded behind the last use of the slot.
    typename Backend::event reusable;
    /// `reusable` was recorded and has not been seen to pass.
    bool pending = false;
    /// Shares given up so far made the reclaim stream wait for this slot's consumers.
    bool awaits_events = false;
    bool poisoned = false;
    std::uint32_t shares = 0;
    std::size_t used = 0;
    std::uint64_t sequence = 0;
  };

  template <class View>
  void settle(View work) noexcept {
    try {
      backend_.synchronize(work);
    } catch (...) {  // Its stream has failed and so uses nothing any more.
    }
  }

  /// Takes the oldest free slot that can be rewritten now off the list.
  [[nodiscard]] std::optional<std::uint32_t> ready_slot() {
    if (closed_) return std::nullopt;
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      const std::uint32_t index = *at;
      slot_record& slot = *slots_[index];
      if (slot.pending && !passed(slot)) continue;
      free_.erase(at);
      return index;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool passed(slot_record& slot) {
    try {
      if (!backend_.query(slot.reusable)) return false;
    } catch (...) {
      fail_locked(std::current_exception());
      throw;
    }
    slot.pending = false;
    return true;
  }

  /// Waits, without the lock, until the oldest free slot can be rewritten.
  [[nodiscard]] std::optional<std::uint32_t> wait_for_oldest(std::unique_lock<std::mutex>& lock) {
    const std::uint32_t index = free_.front();
    free_.erase(free_.begin());
    lock.unlock();
    try {
      backend_.synchronize(slots_[index]->reusable);
    } catch (...) {
      lock.lock();
      fail_locked(std::current_exception());
      throw;
    }
    lock.lock();
    slots_[index]->pending = false;
    if (!closed_) return index;
    free_.insert(free_.begin(), index);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::uint32_t> take(std::unique_lock<std::mutex>& lock,
                                                  std::optional<std::uint32_t> found) {
    if (!found) return std::nullopt;
    ++statistics_.acquired;
    statistics_.peak_slots =
        std::max(statistics_.peak_slots, depth() - static_cast<std::uint32_t>(free_.size()));
    if constexpr (poison_slots) {
      slot_record& slot = *slots_[*found];
      lock.unlock();
      if (slot.poisoned) {
        check_poison(*found);
      } else {
        poison(slot);
      }
      slot.poisoned = false;
    }
    return found;
  }

  static void poison(slot_record& slot) noexcept {
    std::memset(slot.memory.data(), std::to_integer<int>(slot_poison), slot.memory.size());
    slot.poisoned = true;
  }

  void check_poison(std::uint32_t index) {
    const std::span<const std::byte> bytes = memory(index);
    const auto changed = std::find_if(bytes.begin(), bytes.end(),
                                      [](std::byte value) { return value != slot_poison; });
    if (changed == bytes.end()) return;
    try {
      throw_state_error("staging_ring: byte " + std::to_string(changed - bytes.begin()) +
                        " of slot " + std::to_string(index) +
                        " was written after the slot's release");
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
  }

  [[nodiscard]] std::optional<std::uint32_t> deliver() {
    if (!filled_.empty()) {
      const std::uint32_t index = filled_.front();
      filled_.erase(filled_.begin());
      ++statistics_.delivered;
      return index;
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::nullopt;
  }

  /// @param give  Puts the end of this use in front of the slot's reuse; true if it recorded
  ///              `reusable` itself. Told whether this is the last share.
  template <class Give>
  void release_behind(std::uint32_t index, const Give& give) {
    if (guard_.in_child()) return;
    slot_record& slot = *slots_[index];
    std::unique_lock lock(mutex_);
    const bool last = --slot.shares == 0;
    try {
      if (give(slot, last)) {
        slot.pending = true;
      } else if (last && slot.awaits_events) {
        backend_.record(slot.reusable, reclaim());
        slot.pending = true;
      }
    } catch (...) {
      // A ring that has failed hands out no slot, so this one needs no mark to be kept from reuse.
      fail_locked(std::current_exception());
      throw;
    }
    if (!last) return;
    ++statistics_.released;
    statistics_.released_behind_event += slot.pending ? 1 : 0;
    slot.awaits_events = false;
    if constexpr (poison_slots) {
      if (!slot.pending) {
        lock.unlock();
        poison(slot);
        lock.lock();
      }
    }
    free_.push_back(index);
    lock.unlock();
    slot_freed_.notify_one();
  }

  /// The stream on which shares of a slot meet.
  [[nodiscard]] typename Backend::stream& reclaim() {
    if (!reclaim_) reclaim_.emplace(backend_.make_stream());
    return *reclaim_;
  }

  void close_locked() noexcept {
    closed_ = true;
    slot_freed_.notify_all();
    slot_filled_.notify_all();
  }

  void fail_locked(std::exception_ptr failure) noexcept {
    if (!failed_) failure_ = std::move(failure);
    failed_ = true;
    close_locked();
  }

  const fork_guard guard_;
  const Backend backend_;
  const std::size_t slot_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable slot_freed_;
  std::condition_variable slot_filled_;
  std::vector<std::unique_ptr<slot_record>> slots_;
  /// Slots that nobody holds, in the order of their return; never grows past the depth.
  std::vector<std::uint32_t> free_;
  /// Slots that wait for a consumer, in the order of their submission; likewise.
  std::vector<std::uint32_t> filled_;
  bool closed_ = false;
  bool failed_ = false;
  std::exception_ptr failure_;
  ring_statistics statistics_;
  /// Carries a mark from a consumer's stream to the reclaim stream.
  typename Backend::event hop_;
  std::optional<typename Backend::stream> reclaim_;
};

/// A share in a ring that a forked child lets go of without touching its locks.
template <device_backend Backend>
[[nodiscard]] std::shared_ptr<ring_state<Backend>> make_ring_state(const Backend& backend,
                                                                   const ring_options& options) {
  return {new ring_state<Backend>(backend, options), [](ring_state<Backend>* state) {
            if (!state->in_child()) delete state;
          }};
}

}  // namespace detail

template <class Backend>
ring_lease<Backend>& ring_lease<Backend>::operator=(ring_lease&& other) noexcept {
  if (this == &other) return *this;
  drop();
  state_ = std::move(other.state_);
  index_ = other.index_;
  return *this;
}

template <class Backend>
ring_lease<Backend>::~ring_lease() {
  drop();
}

template <class Backend>
std::span<const std::byte> ring_lease<Backend>::bytes() const noexcept {
  return state_->memory(index_).first(state_->used(index_));
}

template <class Backend>
std::uint64_t ring_lease<Backend>::sequence() const noexcept {
  return state_->sequence(index_);
}

template <class Backend>
ring_lease<Backend> ring_lease<Backend>::share() const {
  LANEPACK_ASSERT(active());
  state_->share(index_);
  return ring_lease(state_, index_);
}

template <class Backend>
void ring_lease<Backend>::release() {
  if (const auto state = std::exchange(state_, nullptr)) state->release(index_);
}

template <class Backend>
template <class Device>
void ring_lease<Backend>::release_after(typename Device::stream_view stream) {
  if (const auto state = std::exchange(state_, nullptr)) state->release(index_, stream);
}

template <class Backend>
template <class Device>
void ring_lease<Backend>::release_after(typename Device::event_view event) {
  if (const auto state = std::exchange(state_, nullptr)) state->release(index_, event);
}

template <class Backend>
void ring_lease<Backend>::drop() noexcept {
  try {
    release();
  } catch (...) {  // The ring keeps the error for its next consumer.
  }
}

/// A bounded queue of staging memory: the producer acquires a slot, fills it and submits it; a
/// consumer gets it as a lease and gives it back, at once or behind an event of the device.
///
/// Consumers get slots in the order of submission. A slot is rewritten only after all leases on it
/// were released and the work that they were released behind has run. Checked builds
/// (`LANEPACK_CHECKED=1`) fill a slot with 0xA5 once it may be rewritten, so that a late reader
/// sees it, and refuse a slot that was written while nobody held it.
///
/// Slots and leases may outlive the ring. The last owner waits for device work on the slots.
/// @thread_safety  One producer and any number of consumers, each on a thread of its own; `close`,
///                 `fail` and `statistics` from anywhere. In a forked child every call throws
///                 state_error and destruction does nothing.
template <device_backend Backend>
class staging_ring {
 public:
  using stream_view = typename Backend::stream_view;
  using event_view = typename Backend::event_view;

  using lease = ring_lease<Backend>;

  /// The right to fill one slot; returned unused if it goes without having been submitted.
  class slot {
   public:
    slot(slot&&) noexcept = default;
    slot& operator=(slot&& other) noexcept {
      if (this == &other) return *this;
      drop();
      state_ = std::move(other.state_);
      index_ = other.index_;
      return *this;
    }
    ~slot() { drop(); }

    /// The slot's memory, `slot_bytes` long; contents are unspecified.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return state_->memory(index_); }
    /// Number of the slot, in [0, depth); nobody else has it until this slot or the leases made of
    /// it are gone.
    [[nodiscard]] std::uint32_t index() const noexcept { return index_; }

   private:
    friend class staging_ring;
    slot(std::shared_ptr<detail::ring_state<Backend>> state, std::uint32_t index) noexcept
        : state_(std::move(state)), index_(index) {}

    void drop() noexcept {
      if (state_) state_->put_back(index_);
    }

    std::shared_ptr<detail::ring_state<Backend>> state_;
    std::uint32_t index_;
  };

  /// Allocates all slots; starts no thread.
  /// @throws  invalid_option naming the option; the backend's error or std::bad_alloc.
  explicit staging_ring(const Backend& backend, const ring_options& options = {})
      : state_(detail::make_ring_state(backend, checked(options))) {}

  staging_ring(const staging_ring&) = delete;
  staging_ring& operator=(const staging_ring&) = delete;

  /// Closes the ring.
  ~staging_ring() { state_->close_quietly(); }

  /// Number of slots.
  [[nodiscard]] std::uint32_t depth() const noexcept { return state_->depth(); }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return state_->slot_bytes(); }

  /// Takes the oldest free slot that may be rewritten; waits for a consumer, or for the event
  /// behind which the oldest was released. Several slots may be held at once.
  /// @return  nullopt once the ring is closed.
  /// @pre     Fewer than `depth()` slots are held by the producer itself, otherwise deadlock.
  /// @throws  The backend's error where a consumer's work failed, and in checked builds state_error
  ///          where the slot was written after its release; the ring has then failed.
  [[nodiscard]] std::optional<slot> acquire() { return wrap<slot>(state_->acquire()); }

  /// As `acquire`, but nullopt also where no slot may be rewritten now.
  [[nodiscard]] std::optional<slot> try_acquire() { return wrap<slot>(state_->try_acquire()); }

  /// Hands a slot over to the consumers, all of it or its first `used_bytes`.
  /// @return  False if the ring is closed: nobody will read the slot, and it is free again.
  /// @throws  invalid_option if `used_bytes` exceeds `slot_bytes`.
  bool submit(slot filled) { return submit(std::move(filled), slot_bytes()); }
  bool submit(slot filled, std::size_t used_bytes) {
    LANEPACK_ASSERT(filled.state_ == state_);
    const typename state::submission one{filled.index_, used_bytes};
    if (!state_->submit(std::span(&one, 1))) return false;
    filled.state_.reset();
    return true;
  }

  /// Several slots that are filled, in the order in which consumers shall get them.
  /// @thread_safety  None: of the producer.
  class batch {
   public:
    /// Adds a slot of which the first `used_bytes` are filled.
    void add(slot filled, std::size_t used_bytes) {
      submissions_.push_back({filled.index_, used_bytes});
      slots_.push_back(std::move(filled));
    }
    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }

   private:
    friend class staging_ring;
    std::vector<slot> slots_;
    std::vector<typename detail::ring_state<Backend>::submission> submissions_;
  };

  /// As `submit` of each slot in turn, but consumers are woken once: a wake-up costs several
  /// microseconds. The batch is empty afterwards.
  /// @return  False if the ring is closed: nobody will read the slots, and they are free again.
  /// @throws  invalid_option if `used_bytes` of a slot exceeds `slot_bytes`; no slot is submitted.
  bool submit(batch& filled) {
    const bool taken = filled.empty() || state_->submit(filled.submissions_);
    if (taken) {
      for (slot& each : filled.slots_) each.state_.reset();
    }
    filled.slots_.clear();
    filled.submissions_.clear();
    return taken;
  }

  /// Takes the next slot in the order of submission; waits for the producer.
  /// @return  nullopt once the ring is closed and all submitted slots were taken.
  /// @throws  What `fail` was given, in the place where the producer failed, and once.
  [[nodiscard]] std::optional<lease> next() { return wrap<lease>(state_->next()); }

  /// As `next`, but nullopt also where no slot is filled now.
  [[nodiscard]] std::optional<lease> try_next() { return wrap<lease>(state_->try_next()); }

  /// Ends the hand-over: no slot can be acquired or submitted any more, those submitted can still
  /// be taken. Wakes all that wait. From the producer it is the end of the data, from a consumer it
  /// stops the producer.
  void close() { state_->close(); }

  /// Closes the ring with an error for the consumers; the first one counts.
  void fail(std::exception_ptr failure) { state_->fail(std::move(failure)); }

  /// Whether the ring was closed or has failed; submitted slots may be left.
  [[nodiscard]] bool closed() const { return state_->closed(); }

  [[nodiscard]] ring_statistics statistics() const { return state_->statistics(); }

 private:
  using state = detail::ring_state<Backend>;

  static const ring_options& checked(const ring_options& options) {
    if (options.slot_bytes == 0) detail::throw_invalid_option("slot_bytes", "0", "at least 1");
    if (options.slots_limit == 0) detail::throw_invalid_option("slots_limit", "0", "at least 1");
    if (options.bytes_limit < options.slot_bytes) {
      detail::throw_invalid_option(
          "bytes_limit", std::to_string(options.bytes_limit),
          "room for one slot, slot_bytes = " + std::to_string(options.slot_bytes));
    }
    return options;
  }

  template <class Handle>
  [[nodiscard]] std::optional<Handle> wrap(std::optional<std::uint32_t> index) const {
    if (!index) return std::nullopt;
    return Handle(state_, *index);
  }

  std::shared_ptr<detail::ring_state<Backend>> state_;
};

}  // namespace lanepack::inline LANEPACK_ABI
