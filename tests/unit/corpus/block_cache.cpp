#include <lanepack/corpus/block_cache.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;

namespace {

struct number_block {
  std::uint64_t value;
};

}  // namespace

TEST_CASE("corpus: a block tells where each of its records lies", "[corpus]") {
  lanepack_test::for_each_seed(5, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    detail::record_block block;
    const std::size_t count = random.between(1, detail::record_block::records);
    for (std::size_t i = 0; i < count; ++i) {
      block.lengths[i] = static_cast<std::uint32_t>(random.heavy_tailed(32));
    }
    std::uint64_t start = random.heavy_tailed(50);
    const std::uint64_t first = start;
    REQUIRE(block.fill_starts(first, count) >= first);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(block.extent(i) == token_extent{start, block.lengths[i]});
      start += block.lengths[i];
    }
    REQUIRE(block.fill_starts(first, count) == start);
  });
}

TEST_CASE("corpus: a block is loaded once and then found", "[corpus]") {
  const detail::block_cache<number_block> cache(3, 1000);
  int loads = 0;
  const auto load = [&](number_block& block) { block.value = 40 + static_cast<unsigned>(++loads); };
  REQUIRE(cache.find(1) == nullptr);
  REQUIRE(cache.find_or_load(1, load)->value == 41);
  REQUIRE(cache.find_or_load(1, load)->value == 41);
  REQUIRE(cache.find(1)->value == 41);
  REQUIRE(cache.find(0) == nullptr);
  REQUIRE(cache.find(3) == nullptr);
  REQUIRE(loads == 1);
}

TEST_CASE("corpus: no more blocks are kept than there is room for", "[corpus]") {
  const detail::block_cache<number_block> none(3, sizeof(number_block) - 1);
  const auto load = [](number_block& block) { block.value = 1; };
  REQUIRE(none.find_or_load(0, load) == nullptr);
  const detail::block_cache<number_block> two(5, 2 * sizeof(number_block));
  REQUIRE(two.find_or_load(4, load) != nullptr);
  REQUIRE(two.find_or_load(0, load) != nullptr);
  REQUIRE(two.find_or_load(1, load) == nullptr);
  REQUIRE(two.find_or_load(4, load) != nullptr);
}

TEST_CASE("corpus: a block that cannot be loaded takes no room", "[corpus]") {
  const detail::block_cache<number_block> cache(2, sizeof(number_block));
  REQUIRE_THROWS_AS(cache.find_or_load(0, [](number_block&) { throw std::runtime_error("bad"); }),
                    std::runtime_error);
  REQUIRE(cache.find_or_load(1, [](number_block& block) { block.value = 1; }) != nullptr);
}

TEST_CASE("corpus: threads that want the same block see the same", "[corpus]") {
  for (int round = 0; round < 20; ++round) {
    const detail::block_cache<number_block> cache(4, 4 * sizeof(number_block));
    std::array<std::array<const number_block*, 4>, 4> seen{};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < seen.size(); ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 4; ++i) {
          seen[t][i] = cache.find_or_load(i, [i](number_block& block) { block.value = i; });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < 4; ++i) {
      // While two threads load one block there may be no room for it for a moment.
      for (const auto& row : seen) {
        if (row[i] == nullptr) continue;
        REQUIRE(row[i]->value == i);
        REQUIRE(row[i] == cache.find(i));
      }
    }
  }
}
