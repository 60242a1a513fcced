#pragma once

/// @file
/// `host_backend`: streams and events on the threads of the host, with injectable faults.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/device/concept.hpp>
#include <lanepack/device/fork_guard.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The calls that `host_backend_options::before_call` sees.
enum class host_call : std::uint8_t {
  make_stream,
  make_event,
  allocate,
  copy,
  record,
  wait,
  query,
  /// Of an event or of a stream.
  synchronize,
  /// A copy that was given earlier is about to run, on the thread of its stream.
  run_copy,
};

/// Faults and delays of a `host_backend`.
struct host_backend_options {
  /// Time that a stream sleeps before each copy.
  std::chrono::microseconds copy_delay{0};
  /// Called before each call with its number among those of its kind, from 0; for `run_copy` that
  /// is the number of the `copy` that gave it. It may sleep. What it throws, the call throws; from
  /// `run_copy` it fails the stream. Several threads may be in it at once.
  std::function<void(host_call call, std::uint64_t number)> before_call;
};

/// What a `host_backend` and its copies have done so far.
struct host_counters {
  std::uint64_t streams = 0;
  std::uint64_t events = 0;
  std::uint64_t allocations = 0;
  std::uint64_t deallocations = 0;
  /// Bytes that are allocated now.
  std::uint64_t live_bytes = 0;
  /// Copies that were given.
  std::uint64_t copies = 0;
  /// Copies that have run, and their bytes.
  std::uint64_t copies_run = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t waits = 0;
  std::uint64_t queries = 0;
  std::uint64_t synchronizations = 0;
  /// Threads that were started; a stream starts its own with its first work.
  std::uint64_t threads = 0;
};

/// A `before_call` that throws device_error from call number `number` of one kind.
[[nodiscard]] inline std::function<void(host_call, std::uint64_t)> fail_call(host_call call,
                                                                             std::uint64_t number) {
  return [call, number](host_call now, std::uint64_t count) {
    if (now != call || count != number) return;
    throw device_error("injected failure of call " + std::to_string(number));
  };
}

namespace detail {

/// One mark of an event: passed or not, and the error of the stream that should have passed it.
class host_mark {
 public:
  void pass(const std::optional<std::string>& error) {
    {
      const std::scoped_lock lock(mutex_);
      passed_ = true;
      error_ = error;
    }
    changed_.notify_all();
  }

  /// The error, once the mark has passed.
  [[nodiscard]] std::optional<std::string> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_; });
    return error_;
  }

  [[nodiscard]] bool passed() {
    const std::scoped_lock lock(mutex_);
    if (passed_ && error_) throw device_error(*error_);
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool passed_ = false;
  std::optional<std::string> error_;
};

/// The latest mark of an event.
class host_event_state {
 public:
  void set(std::shared_ptr<host_mark> mark) {
    const std::scoped_lock lock(mutex_);
    mark_ = std::move(mark);
  }

  [[nodiscard]] std::shared_ptr<host_mark> mark() {
    const std::scoped_lock lock(mutex_);
    return mark_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<host_mark> mark_;
};

/// What all copies of a backend share.
struct host_backend_state {
  explicit host_backend_state(host_backend_options o) : options(std::move(o)) {}

  /// Counts a call and lets the hook act on it.
  std::uint64_t enter(host_call call) {
    guard.check("host_backend");
    const std::uint64_t number = calls[static_cast<std::size_t>(call)].fetch_add(1);
    if (options.before_call) options.before_call(call, number);
    return number;
  }

  const host_backend_options options;
  const fork_guard guard;
  std::array<std::atomic<std::uint64_t>, 9> calls{};
  std::atomic<std::uint64_t> deallocations{0};
  std::atomic<std::uint64_t> live_bytes{0};
  std::atomic<std::uint64_t> copies_run{0};
  std::atomic<std::uint64_t> copied_bytes{0};
  std::atomic<std::uint64_t> threads{0};
};

/// A queue of work and the thread that runs it.
class host_stream_state : public std::enable_shared_from_this<host_stream_state> {
 public:
  explicit host_stream_state(std::shared_ptr<host_backend_state> backend)
      : backend_(std::move(backend)) {}

  struct operation {
    /// Runs unless the stream has failed; may be empty.
    std::function<void()> work;
    /// Awaited before `work`.
    std::shared_ptr<host_mark> awaited;
    /// Passed afterwards.
    std::shared_ptr<host_mark> passed;
  };

  /// Gives work; the first starts the thread.
  void give(operation next) {
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back(std::move(next));
      if (!thread_.joinable()) {
        try {
          thread_ = std::thread([self = shared_from_this()] { self->run(); });
        } catch (const std::system_error& failure) {
          queue_.pop_back();
          throw device_error(std::string("host_backend: no thread for a stream: ") +
                             failure.what());
        }
        backend_->threads.fetch_add(1);
      }
    }
    changed_.notify_one();
  }

  /// Lets the work finish and ends the thread.
  void close() noexcept {
    // The thread does not exist in a forked child; its own hold on this object keeps the locks from
    // being destroyed there.
    if (backend_->guard.in_child()) return;
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_one();
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

 private:
  void run() {
    std::optional<std::string> error;
    while (true) {
      operation next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      if (next.awaited && !error) error = next.awaited->wait();
      if (next.work && !error) {
        try {
          next.work();
        } catch (const std::exception& failure) {
          error = std::string("host_backend: a stream failed: ") + failure.what();
        } catch (...) {
          error = "host_backend: a stream failed";
        }
      }
      if (next.passed) next.passed->pass(error);
    }
  }

  const std::shared_ptr<host_backend_state> backend_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<operation> queue_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace detail

/// A `device_backend` without a device: both kinds of memory are the heap, and every stream has a
/// thread that runs its work in order.
///
/// It is what the loader prefetches with where there is no device, and what the tests of everything
/// above it run on: delays and failures can be injected, calls are counted.
/// @thread_safety  Any number of threads, on the same stream or event too. In a forked child every
///                 call throws state_error and destruction does nothing.
class host_backend {
 public:
  class stream_view;
  class event_view;

  /// Owns a stream; destruction runs what was given to it.
  class stream {
   public:
    stream(stream&&) noexcept = default;
    stream& operator=(stream&& other) noexcept {
      if (this == &other) return *this;
      if (state_) state_->close();
      state_ = std::move(other.state_);
      return *this;
    }
    ~stream() {
      if (state_) state_->close();
    }

   private:
    friend class host_backend;
    friend class stream_view;
    explicit stream(std::shared_ptr<detail::host_stream_state> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::host_stream_state> state_;
  };

  /// A stream that somebody else owns.
  class stream_view {
   public:
    stream_view(const stream& owner)  // NOLINT(google-explicit-constructor): owner to view
        : state_(owner.state_.get()) {}

   private:
    friend class host_backend;
    detail::host_stream_state* state_;
  };

  /// Owns an event.
  class event {
   public:
    event(event&&) noexcept = default;
    event& operator=(event&&) noexcept = default;
    ~event() = default;

   private:
    friend class host_backend;
    friend class event_view;
    explicit event(std::unique_ptr<detail::host_event_state> state) : state_(std::move(state)) {}
    std::unique_ptr<detail::host_event_state> state_;
  };

  /// An event that somebody else owns.
  class event_view {
   public:
    event_view(const event& owner)  // NOLINT(google-explicit-constructor): owner to view
        : state_(owner.state_.get()) {}

   private:
    friend class host_backend;
    detail::host_event_state* state_;
  };

  explicit host_backend(host_backend_options options = {})
      : state_(std::make_shared<detail::host_backend_state>(std::move(options))) {}

  /// A stream without work; its thread starts with the first.
  [[nodiscard]] stream make_stream() const {
    state_->enter(host_call::make_stream);
    return stream(std::make_shared<detail::host_stream_state>(state_));
  }

  /// An event that was not recorded.
  [[nodiscard]] event make_event() const {
    state_->enter(host_call::make_event);
    return event(std::make_unique<detail::host_event_state>());
  }

  /// Memory on a boundary of 64 bytes.
  /// @throws  std::bad_alloc.
  [[nodiscard]] void* allocate(memory_kind, std::size_t bytes) const {
    state_->enter(host_call::allocate);
    void* memory = ::operator new(bytes, alignment);
    state_->live_bytes.fetch_add(bytes);
    return memory;
  }

  void deallocate(memory_kind, void* memory, std::size_t bytes) const noexcept {
    ::operator delete(memory, alignment);
    state_->deallocations.fetch_add(1);
    state_->live_bytes.fetch_sub(bytes);
  }

  void copy_async(stream_view target, void* destination, const void* source,
                  std::size_t bytes) const {
    const std::uint64_t number = state_->enter(host_call::copy);
    detail::host_backend_state* const shared = state_.get();
    const auto copy = [shared, destination, source, bytes, number] {
      if (shared->options.copy_delay.count() != 0) {
        std::this_thread::sleep_for(shared->options.copy_delay);
      }
      if (shared->options.before_call) shared->options.before_call(host_call::run_copy, number);
      if (bytes != 0) std::memcpy(destination, source, bytes);
      shared->copies_run.fetch_add(1);
      shared->copied_bytes.fetch_add(bytes);
    };
    target.state_->give({copy, nullptr, nullptr});
  }

  void record(event_view mark, stream_view target) const {
    state_->enter(host_call::record);
    auto next = std::make_shared<detail::host_mark>();
    target.state_->give({nullptr, nullptr, next});
    mark.state_->set(std::move(next));
  }

  void wait(stream_view target, event_view mark) const {
    state_->enter(host_call::wait);
    auto awaited = mark.state_->mark();
    if (awaited) {
      target.state_->give({nullptr, std::move(awaited), nullptr});
    }
  }

  [[nodiscard]] bool query(event_view mark) const {
    state_->enter(host_call::query);
    const auto latest = mark.state_->mark();
    return !latest || latest->passed();
  }

  void synchronize(event_view mark) const {
    state_->enter(host_call::synchronize);
    if (const auto latest = mark.state_->mark()) await(*latest);
  }

  void synchronize(stream_view target) const {
    state_->enter(host_call::synchronize);
    const auto end = std::make_shared<detail::host_mark>();
    target.state_->give({nullptr, nullptr, end});
    await(*end);
  }

  /// Runs `work` on the stream's thread, in its turn; what it throws fails the stream.
  void call_async(stream_view target, std::function<void()> work) const {
    state_->guard.check("host_backend");
    target.state_->give({std::move(work), nullptr, nullptr});
  }

  /// What was done so far by this object and its copies.
  [[nodiscard]] host_counters counters() const {
    const auto count = [this](host_call call) {
      return state_->calls[static_cast<std::size_t>(call)].load();
    };
    host_counters result;
    result.streams = count(host_call::make_stream);
    result.events = count(host_call::make_event);
    result.allocations = count(host_call::allocate);
    result.deallocations = state_->deallocations.load();
    result.live_bytes = state_->live_bytes.load();
    result.copies = count(host_call::copy);
    result.copies_run = state_->copies_run.load();
    result.copied_bytes = state_->copied_bytes.load();
    result.records = count(host_call::record);
    result.waits = count(host_call::wait);
    result.queries = count(host_call::query);
    result.synchronizations = count(host_call::synchronize);
    result.threads = state_->threads.load();
    return result;
  }

 private:
  static constexpr std::align_val_t alignment{64};

  static void await(detail::host_mark& mark) {
    if (const auto error = mark.wait()) throw device_error(*error);
  }

  std::shared_ptr<detail::host_backend_state> state_;
};

static_assert(device_backend<host_backend>);

}  // namespace lanepack::inline LANEPACK_ABI
