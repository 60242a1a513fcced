#pragma once

// Random cases for property tests. A case is a pure function of one 64-bit seed that the failing
// test prints; LANEPACK_TEST_SEED picks the first seed, LANEPACK_TEST_RUNS the number of cases.

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace lanepack_test {

/// SplitMix64 as a stream, with the few draws that tests need.
class gen {
 public:
  explicit gen(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// A number in [low, high], both ends included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t range = high - low + 1;
    return range == 0 ? bits() : low + bits() % range;
  }

  /// True once in `n` draws on average.
  bool one_in(std::uint64_t n) { return between(1, n) == 1; }

  /// One of the elements of an array, vector or span.
  template <class Choices>
  const auto& pick(const Choices& choices) {
    return choices[between(0, std::size(choices) - 1)];
  }

  /// A length with a heavy tail: the number of bits is uniform in [0, max_bits].
  std::uint64_t heavy_tailed(unsigned max_bits) {
    const auto width = static_cast<unsigned>(between(0, max_bits));
    return width == 0
               ? 0
               : (std::uint64_t{1} << (width - 1)) + bits() % (std::uint64_t{1} << (width - 1));
  }

  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[between(0, i - 1)]);
    }
  }

 private:
  std::uint64_t state_;
};

inline std::uint64_t environment_number(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

/// Calls `property(seed, generator)` for `runs` seeds; the body should CAPTURE(seed).
template <class Property>
void for_each_seed(std::uint64_t runs, Property&& property) {
  const std::uint64_t first = environment_number("LANEPACK_TEST_SEED", 1);
  const std::uint64_t count = environment_number("LANEPACK_TEST_RUNS", runs);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    gen generator(seed);
    property(seed, generator);
  }
}

}  // namespace lanepack_test
