#pragma once

/// @file
/// What every source does alike: bounds of ids and ranges, loss tokens without a mask, progress.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_no_such_record(record_id id, std::uint64_t size) {
  throw_state_error("found record " + std::to_string(id) + ", expected one of the corpus's " +
                    std::to_string(size) + " records");
}

[[noreturn]] LANEPACK_COLD inline void throw_no_such_range(const record_read& read,
                                                           std::uint64_t length) {
  throw_state_error("record " + std::to_string(read.id) + ": found a read of tokens [" +
                    std::to_string(read.first_token) + ", " + std::to_string(read.first_token) +
                    " + " + std::to_string(read.tokens.size()) + ") with a loss mask of " +
                    std::to_string(read.loss_mask.size()) + ", expected a range in [0, " +
                    std::to_string(length) + ") with no mask or one as long as the range");
}

/// @throws state_error  `id` is not below `size`.
inline void check_record(record_id id, std::uint64_t size) {
  if (id >= size) throw_no_such_record(id, size);
}

/// Whether the range is in a record of `length` tokens and the mask fits.
[[nodiscard]] inline bool read_fits(const record_read& read, std::uint64_t length) noexcept {
  return read.first_token <= length && read.tokens.size() <= length - read.first_token &&
         (read.loss_mask.empty() || read.loss_mask.size() == read.tokens.size());
}

/// @throws state_error  The range is not in a record of `length` tokens or the mask does not fit.
inline void check_read(const record_read& read, std::uint64_t length) {
  if (!read_fits(read, length)) throw_no_such_range(read, length);
}

/// Loss tokens of a record of `tokens` tokens that are all to be predicted: the first cannot be.
[[nodiscard]] constexpr std::uint64_t unmasked_loss_tokens(std::uint64_t tokens) noexcept {
  return tokens == 0 ? 0 : tokens - 1;
}

[[nodiscard]] constexpr record_shape unmasked_shape(std::uint64_t tokens) noexcept {
  return {.tokens = tokens, .loss_tokens = unmasked_loss_tokens(tokens), .patches = 0};
}

/// Writes 1 for every token whose mask the caller wants.
inline void fill_loss_masks(std::span<const record_read> reads) {
  for (const record_read& read : reads) {
    std::fill(read.loss_mask.begin(), read.loss_mask.end(), std::uint8_t{1});
  }
}

/// Tells a listener how much is done; threads that come while it is being told go on.
class chunk_progress {
 public:
  chunk_progress(const progress_callback& callback, std::uint64_t total)
      : callback_(callback), total_(total) {}

  void advance(std::uint64_t amount) {
    done_.fetch_add(amount, std::memory_order_relaxed);
    if (!callback_) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const std::uint64_t done = done_.load(std::memory_order_relaxed);
    if (done < total_) callback_(done, total_);
  }

  void finish() const {
    if (callback_) callback_(total_, total_);
  }

 private:
  const progress_callback& callback_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
};

/// A digest that is made by whoever asks for it first.
/// @thread_safety  Any number of threads; one of them calls `make`, the others wait.
class lazy_digest {
 public:
  /// With a value, `make` is never called.
  explicit lazy_digest(const std::optional<digest128>& known = std::nullopt)
      : state_(std::make_unique<state>()) {
    state_->value = known;
  }

  template <class Make>
  [[nodiscard]] digest128 value(Make&& make) const {
    const std::lock_guard lock(state_->mutex);
    if (!state_->value) state_->value = make();
    return *state_->value;
  }

 private:
  struct state {
    std::mutex mutex;
    std::optional<digest128> value;
  };
  std::unique_ptr<state> state_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
