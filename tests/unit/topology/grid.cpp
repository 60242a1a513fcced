#include <cstdint>
#include <vector>

#include <lanepack/topology/grid.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::context_ranks;
using lanepack::grid_coordinates;
using lanepack::grid_options;
using lanepack::grid_order;
using lanepack::invalid_option;
using lanepack::parallel_grid;
using lanepack::rank_index;
using lanepack::world;

// Groups by enumeration: ranks that agree in every dimension outside the group, listed by rank.
// A dimension's stride is the product of the sizes of the dimensions named before it.
enum dimension { tp, cp, dp, pp };

std::vector<std::vector<rank_index>> groups(const std::vector<dimension>& order,
                                            const std::vector<rank_index>& sizes,
                                            const std::vector<dimension>& inside) {
  rank_index ranks = 1;
  for (const rank_index size : sizes) ranks *= size;
  const auto place = [&](rank_index rank) {
    std::vector<rank_index> at(4);
    for (const dimension d : order) {
      at[d] = rank % sizes[d];
      rank /= sizes[d];
    }
    return at;
  };
  std::vector<std::vector<rank_index>> result;
  std::vector<std::vector<rank_index>> keys;
  for (rank_index rank = 0; rank < ranks; ++rank) {
    std::vector<rank_index> key = place(rank);
    for (const dimension d : inside) key[d] = 0;
    std::size_t group = 0;
    while (group < keys.size() && keys[group] != key) ++group;
    if (group == keys.size()) {
      keys.push_back(key);
      result.emplace_back();
    }
    result[group].push_back(rank);
  }
  return result;
}

}  // namespace

TEST_CASE("topology: groups of the grid are those of the rule", "[topology]") {
  for (const bool pipeline_last : {true, false}) {
    const std::vector<dimension> order = pipeline_last ? std::vector<dimension>{tp, cp, dp, pp}
                                                       : std::vector<dimension>{tp, cp, pp, dp};
    for (rank_index t = 1; t <= 3; ++t) {
      for (rank_index c = 1; c <= 3; ++c) {
        for (rank_index d = 1; d <= 4; ++d) {
          for (rank_index p = 1; p <= 3; ++p) {
            CAPTURE(pipeline_last, t, c, d, p);
            const parallel_grid grid(
                t * c * d * p,
                {.tensor = t,
                 .context = c,
                 .pipeline = p,
                 .order = pipeline_last ? grid_order::tp_cp_ep_dp_pp : grid_order::tp_cp_ep_pp_dp});
            REQUIRE(grid.data_size() == d);
            bool right = true;
            const std::vector<rank_index> sizes{t, c, d, p};
            for (const auto& group : groups(order, sizes, {dp})) {
              for (std::size_t i = 0; i < group.size(); ++i) {
                right = right && grid.data_world(group[i]) == world{static_cast<rank_index>(i), d};
              }
            }
            for (const auto& group : groups(order, sizes, {cp, dp})) {
              for (std::size_t i = 0; i < group.size(); ++i) {
                right = right && grid.data_world(group[i], context_ranks::apart) ==
                                     world{static_cast<rank_index>(i), c * d};
              }
            }
            for (const auto& group : groups(order, sizes, {tp})) {
              for (std::size_t i = 0; i < group.size(); ++i) {
                right = right && grid.coordinates(group[i]).tensor == i;
              }
            }
            for (const auto& group : groups(order, sizes, {cp})) {
              for (std::size_t i = 0; i < group.size(); ++i) {
                right = right && grid.coordinates(group[i]).context == i;
              }
            }
            for (const auto& group : groups(order, sizes, {pp})) {
              for (std::size_t i = 0; i < group.size(); ++i) {
                right = right && grid.coordinates(group[i]).pipeline == i;
              }
            }
            for (rank_index rank = 0; rank < grid.size(); ++rank) {
              right = right && grid.rank(grid.coordinates(rank)) == rank;
            }
            CHECK(right);
          }
        }
      }
    }
  }
}

TEST_CASE("topology: worked places of a grid of 24 ranks", "[topology]") {
  // TP 2, CP 2, DP 3, PP 2: rank 17 = 1 + 2 * (0 + 2 * (1 + 3 * 1)).
  const parallel_grid usual(24, {.tensor = 2, .context = 2, .pipeline = 2});
  CHECK(usual.coordinates(17) == grid_coordinates{1, 0, 1, 1});
  CHECK(usual.data_world(17) == world{1, 3});
  CHECK(usual.data_world(17, context_ranks::apart) == world{2, 6});
  // Data slowest: rank 17 = 1 + 2 * (0 + 2 * (0 + 2 * 2)).
  const parallel_grid swapped(
      24, {.tensor = 2, .context = 2, .pipeline = 2, .order = grid_order::tp_cp_ep_pp_dp});
  CHECK(swapped.coordinates(17) == grid_coordinates{1, 0, 2, 0});
  CHECK(swapped.data_world(17) == world{2, 3});
  CHECK(swapped.rank({0, 1, 2, 1}) == 22);
  CHECK(swapped.order() == grid_order::tp_cp_ep_pp_dp);
  CHECK(swapped.tensor_size() == 2);
  CHECK(swapped.context_size() == 2);
  CHECK(swapped.pipeline_size() == 2);
  CHECK(swapped.size() == 24);
}

TEST_CASE("topology: a grid that does not fit is refused", "[topology]") {
  const auto refusal = [](rank_index ranks, const grid_options& options) -> std::string {
    try {
      const parallel_grid grid(ranks, options);
      return "accepted";
    } catch (const invalid_option& refused) {
      return refused.what();
    }
  };
  CHECK(refusal(12, {.tensor = 8}) ==
        "world_size: found 12, expected a multiple of tensor x context x pipeline = 8 x 1 x 1");
  CHECK(refusal(4, {.tensor = 2, .context = 2, .pipeline = 2}) ==
        "world_size: found 4, expected a multiple of tensor x context x pipeline = 2 x 2 x 2");
  CHECK(refusal(0, {}) == "world_size: found 0, expected at least 1");
  CHECK(refusal(8, {.tensor = 0}) == "tensor: found 0, expected at least 1");
  CHECK(refusal(8, {.context = 0}) == "context: found 0, expected at least 1");
  CHECK(refusal(8, {.pipeline = 0}) == "pipeline: found 0, expected at least 1");
  // The product of the sizes does not wrap.
  constexpr rank_index huge = 1U << 31;
  CHECK_THAT(refusal(8, {.tensor = huge, .context = huge, .pipeline = 4}),
             Catch::Matchers::ContainsSubstring("world_size: found 8"));

  const parallel_grid grid(8, {.tensor = 2});
  CHECK_THROWS_AS(grid.coordinates(8), invalid_option);
  CHECK_THROWS_AS(grid.data_world(8), invalid_option);
  CHECK_THROWS_MATCHES(grid.rank({2, 0, 0, 0}), invalid_option,
                       Catch::Matchers::Message("tensor: found 2, expected below 2"));
  CHECK_THROWS_AS(grid.rank({0, 1, 0, 0}), invalid_option);
  CHECK_THROWS_AS(grid.rank({0, 0, 4, 0}), invalid_option);
  CHECK_THROWS_AS(grid.rank({0, 0, 0, 1}), invalid_option);
}
