#pragma once

// Documents in memory, and executors that make trouble.

#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/pipeline/executor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/gen.hpp"

namespace lanepack_test {

/// A `document_source` of texts in memory.
class memory_documents {
 public:
  explicit memory_documents(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  [[nodiscard]] std::uint64_t size() const { return texts_.size(); }
  void read(std::span<const lanepack::record_id> ids, std::span<std::string> out) const {
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = texts_.at(ids[i]);
  }
  void sizes(std::span<const lanepack::record_id> ids, std::span<std::uint64_t> out) const {
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = texts_.at(ids[i]).size();
  }
  [[nodiscard]] lanepack::digest128 fingerprint() const {
    lanepack::digest_builder digest;
    for (const std::string& text : texts_) digest.number(text.size());
    return digest.value();
  }
  [[nodiscard]] std::string describe() const {
    return "memory: " + std::to_string(size()) + " documents";
  }

 private:
  std::vector<std::string> texts_;
};

static_assert(lanepack::document_source<memory_documents>);

/// Texts of lower-case letters with a heavy tail of lengths, some of them empty.
inline std::vector<std::string> random_texts(gen& random, std::uint64_t count, unsigned max_bits) {
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    text.resize(static_cast<std::size_t>(random.heavy_tailed(max_bits)));
    for (char& letter : text) letter = static_cast<char>('a' + random.between(0, 25));
  }
  return texts;
}

/// Runs tasks on a thread each, begun in a shuffled order and delayed at random.
class shuffling_executor {
 public:
  explicit shuffling_executor(std::uint64_t seed) : seed_(seed) {}

  void run(const lanepack::task_list& tasks) {
    gen random(seed_);
    std::vector<std::uint64_t> order(tasks.size());
    for (std::uint64_t i = 0; i < order.size(); ++i) order[i] = i;
    random.shuffle(std::span(order));
    std::vector<std::thread> threads;
    constexpr std::size_t most = 4;
    for (std::size_t first = 0; first < order.size(); first += most) {
      threads.clear();
      for (std::size_t i = first; i < std::min(first + most, order.size()); ++i) {
        const bool late = random.one_in(8);
        threads.emplace_back([&tasks, task = order[i], late] {
          if (late) std::this_thread::sleep_for(std::chrono::microseconds(200));
          tasks.run(task);
        });
      }
      for (std::thread& each : threads) each.join();
    }
  }
  [[nodiscard]] unsigned threads() const { return 3; }

 private:
  std::uint64_t seed_;
};

static_assert(lanepack::executor<shuffling_executor>);

}  // namespace lanepack_test
