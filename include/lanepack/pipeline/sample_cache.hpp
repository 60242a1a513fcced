#pragma once

/// @file
/// What a pipeline made of inputs lately, bounded by bytes.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Keeps the results that were used last. What is forgotten can be made again.
/// @complexity     O(log entries) a call.
/// @thread_safety  Any number of threads.
class sample_cache {
 public:
  using samples = std::shared_ptr<const std::vector<sample>>;

  explicit sample_cache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// What input `id` became; null where that is not known any more.
  [[nodiscard]] samples find(record_id id) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.end(), order_, found->second.place);
    return found->second.value;
  }

  void add(record_id id, samples value) {
    const std::size_t bytes = bytes_of(*value);
    if (bytes > most_bytes_) return;
    const std::lock_guard lock(mutex_);
    if (entries_.contains(id)) return;
    order_.push_back(id);
    entries_.emplace(id, entry{std::move(value), bytes, std::prev(order_.end())});
    bytes_ += bytes;
    while (bytes_ > most_bytes_) {
      const auto oldest = entries_.find(order_.front());
      bytes_ -= oldest->second.bytes;
      entries_.erase(oldest);
      order_.pop_front();
    }
  }

  [[nodiscard]] std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct entry {
    samples value;
    std::size_t bytes;
    std::list<record_id>::iterator place;
  };

  std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::map<record_id, entry> entries_;
  /// Longest unused first.
  std::list<record_id> order_;
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
