#include <lanepack/packer/levelled_packs.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

std::vector<std::uint64_t> sorted_keys(lanepack_test::gen& gen, std::size_t n, unsigned bits) {
  std::vector<std::uint64_t> keys(n);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = lanepack::detail::descending_key(1000 + gen.heavy_tailed(bits), i);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

TEST_CASE("packer: levelled packs hold every record once and have the costs they say", "[packer]") {
  lanepack_test::for_each_seed(40, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const auto b = static_cast<std::uint32_t>(gen.between(1, 20));
    const std::size_t packs = gen.between(0, 1200);
    const std::vector<std::uint64_t> keys = sorted_keys(gen, packs * b, 20);
    lanepack::detail::levelled_packs former({});
    lanepack::detail::formed_packs out;
    out.keys = {1, 2};
    out.costs = {3};
    former.form(keys, b, out);
    REQUIRE(out.costs.size() == packs + 1);
    REQUIRE(out.costs[0] == 3);
    for (std::size_t pack = 0; pack < packs; ++pack) {
      std::uint64_t cost = 0;
      for (std::size_t i = 0; i < b; ++i) {
        cost += lanepack::detail::descending_key_cost(out.keys[2 + pack * b + i]);
      }
      REQUIRE(out.costs[pack + 1] == cost);
    }
    std::vector<std::uint64_t> found(out.keys.begin() + 2, out.keys.end());
    std::sort(found.begin(), found.end());
    REQUIRE(found == keys);
  });
}

TEST_CASE("packer: levelled packs of many records have nearly the same cost", "[packer]") {
  lanepack_test::gen gen(11);
  // 2048 packs are dealt into 16 groups, 2049 = 3 x 683 into 3.
  for (const std::size_t packs : {2048, 2049}) {
    const std::vector<std::uint64_t> keys = sorted_keys(gen, packs * 16, 12);
    lanepack::detail::levelled_packs former({.swap_rounds = 2, .tolerance_shift = 8});
    lanepack::detail::formed_packs out;
    former.form(keys, 16, out);
    const auto [least, most] = std::minmax_element(out.costs.begin(), out.costs.end());
    CAPTURE(packs, *least, *most);
    REQUIRE(*most - *least <= *most / 50);
  }
}
