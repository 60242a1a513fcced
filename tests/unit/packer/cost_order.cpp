#include <lanepack/packer/cost_order.hpp>

#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

std::vector<std::uint32_t> sorted_indices(const std::vector<std::uint64_t>& costs) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });
  return order;
}

}  // namespace

TEST_CASE("packer: costs are ordered as a stable sort orders them", "[packer]") {
  lanepack::detail::cost_order order;
  // Sizes on both sides of every change of method, in an order that reuses larger scratch.
  constexpr std::size_t sizes[] = {0, 1, 2, 24, 25, 5000, 256, 4096, 4097, 3};
  for (const std::size_t n : sizes) {
    for (const unsigned bits : {1U, 4U, 20U, 40U}) {
      CAPTURE(n, bits);
      lanepack_test::gen gen(n * 64 + bits);
      std::vector<std::uint64_t> costs(n);
      for (std::uint64_t& cost : costs) cost = gen.heavy_tailed(bits);
      // Half of the sizes have many records cut at a capacity.
      if (bits > 4 && n % 2 == 0) {
        for (std::uint64_t& cost : costs) cost = std::min(cost, std::uint64_t{1} << (bits / 2));
      }
      const std::span<const std::uint64_t> keys = order.sort_descending(costs);
      REQUIRE(keys.size() == n);
      const std::vector<std::uint32_t> expected = sorted_indices(costs);
      bool equal = true;
      for (std::size_t i = 0; i < n; ++i) {
        equal = equal && lanepack::detail::descending_key_index(keys[i]) == expected[i] &&
                lanepack::detail::descending_key_cost(keys[i]) == costs[expected[i]];
      }
      REQUIRE(equal);
    }
  }
}

TEST_CASE("packer: the extreme costs are ordered exactly", "[packer]") {
  lanepack::detail::cost_order order;
  std::vector<std::uint64_t> costs(100, lanepack::max_record_cost);
  costs[3] = 0;
  costs[7] = lanepack::max_record_cost - 1;
  costs[90] = 0;
  const std::span<const std::uint64_t> keys = order.sort_descending(costs);
  REQUIRE(lanepack::detail::descending_key_index(keys[0]) == 0);
  REQUIRE(lanepack::detail::descending_key_cost(keys[96]) == lanepack::max_record_cost);
  REQUIRE(lanepack::detail::descending_key_index(keys[97]) == 7);
  REQUIRE(lanepack::detail::descending_key_index(keys[98]) == 3);
  REQUIRE(lanepack::detail::descending_key_index(keys[99]) == 90);
  REQUIRE(lanepack::detail::descending_key_cost(keys[99]) == 0);
}
