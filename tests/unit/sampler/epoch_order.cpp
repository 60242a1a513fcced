#include <lanepack/sampler/epoch_order.hpp>

#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::epoch_order;
using lanepack::record_domain;
using lanepack::shuffle_kind;
using lanepack::shuffle_options;

std::vector<lanepack::record_id> records_of(const epoch_order& order, lanepack::epoch_index epoch) {
  std::vector<std::uint64_t> positions(order.size());
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  std::vector<lanepack::record_id> ids(order.size());
  order.records(epoch, positions, ids);
  return ids;
}

TEST_CASE("epoch_order: without a shuffle every epoch is in corpus order", "[epoch_order]") {
  const epoch_order order(record_domain(6, {2}), {.kind = shuffle_kind::none}, 1);
  CHECK(order.size() == 5);
  CHECK(records_of(order, 0) == std::vector<lanepack::record_id>{0, 1, 3, 4, 5});
  CHECK(records_of(order, 9) == std::vector<lanepack::record_id>{0, 1, 3, 4, 5});
}

TEST_CASE("epoch_order: every epoch holds every feasible record once, in another order",
          "[epoch_order]") {
  for (const shuffle_options& options :
       {shuffle_options{}, shuffle_options{shuffle_kind::block, 16, 4}}) {
    const epoch_order order(record_domain(1000, {0, 1, 500, 999}), options, 3);
    std::vector<lanepack::record_id> previous;
    for (const lanepack::epoch_index epoch : {0u, 1u, 2u, 1000000u}) {
      CAPTURE(epoch);
      const std::vector<lanepack::record_id> ids = records_of(order, epoch);
      std::vector<int> seen(1000);
      for (const lanepack::record_id id : ids) ++seen[id];
      for (lanepack::record_id id = 0; id < 1000; ++id) {
        REQUIRE(seen[id] == (id == 0 || id == 1 || id == 500 || id == 999 ? 0 : 1));
      }
      CHECK(ids != previous);
      previous = ids;

      const lanepack::ordered_epoch kept = order.epoch(epoch);
      CHECK(kept.epoch() == epoch);
      CHECK(kept.size() == 996);
      for (std::uint64_t position = 0; position < ids.size(); ++position) {
        REQUIRE(kept.position_of(ids[position]) == position);
      }
      CHECK_FALSE(kept.position_of(500).has_value());
      CHECK_FALSE(kept.position_of(1000).has_value());
    }
  }
}

TEST_CASE("epoch_order: the seed decides, and nothing that was asked before", "[epoch_order]") {
  const epoch_order a(record_domain(500), {}, 3);
  const epoch_order b(record_domain(500), {}, 4);
  const std::vector<lanepack::record_id> first = records_of(a, 5);
  CHECK(first != records_of(b, 5));
  static_cast<void>(records_of(a, 6));
  CHECK(first == records_of(a, 5));
  CHECK(first == records_of(epoch_order(record_domain(500), {}, 3), 5));
}

TEST_CASE("epoch_order: the order of feasible records depends on their number alone",
          "[epoch_order]") {
  // Records 0 to 9 are left out, so the rest are those of a corpus of 490, ten ids higher.
  std::vector<lanepack::record_id> excluded(10);
  std::iota(excluded.begin(), excluded.end(), std::uint64_t{0});
  std::vector<lanepack::record_id> ids =
      records_of(epoch_order(record_domain(500, excluded), {}, 3), 1);
  for (lanepack::record_id& id : ids) id -= 10;
  CHECK(ids == records_of(epoch_order(record_domain(490), {}, 3), 1));
}

TEST_CASE("epoch_order: threads may share one", "[epoch_order]") {
  const epoch_order order(record_domain(5000, {17}), {shuffle_kind::block, 16, 4}, 3);
  std::vector<std::vector<lanepack::record_id>> expected;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) expected.push_back(records_of(order, epoch));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 12; ++i) {
        const std::uint64_t epoch = (i + t) % 4;
        wrong[t] += records_of(order, epoch) == expected[epoch] ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("epoch_order: bad options are refused when it is made", "[epoch_order]") {
  CHECK_THROWS_AS(epoch_order(record_domain(10), {shuffle_kind::block, 0, 1}, 1),
                  lanepack::invalid_option);
  CHECK_THROWS_AS(epoch_order(record_domain(10), {static_cast<shuffle_kind>(9), 1, 1}, 1),
                  lanepack::invalid_option);
}

}  // namespace
