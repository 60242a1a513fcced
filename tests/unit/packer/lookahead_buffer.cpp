#include <lanepack/packer/lookahead_buffer.hpp>

#include <vector>

#include "support/catch.hpp"

namespace {

lanepack::candidate record(std::uint64_t arrival, std::uint64_t cost) {
  lanepack::candidate made;
  made.arrival = arrival;
  made.cost = cost;
  return made;
}

std::vector<std::uint64_t> arrivals_by_place(const lanepack::lookahead_buffer& buffer) {
  std::vector<std::uint64_t> found;
  for (std::size_t place = 0; place < buffer.size(); ++place) {
    found.push_back(buffer.at_place(place).arrival);
  }
  return found;
}

}  // namespace

TEST_CASE("packer: the lookahead buffer orders by cost and by arrival", "[packer]") {
  lanepack::lookahead_buffer buffer(8);
  REQUIRE(buffer.capacity() == 8);
  REQUIRE(buffer.empty());
  REQUIRE(buffer.cheapest_sum(0) == 0);

  buffer.insert(std::vector{record(1, 50), record(2, 20), record(5, 50)});
  buffer.insert(std::vector{record(6, 20), record(9, 70)});
  REQUIRE(buffer.size() == 5);
  REQUIRE(arrivals_by_place(buffer) == std::vector<std::uint64_t>{2, 6, 1, 5, 9});
  REQUIRE(buffer.at(0).arrival == 1);
  REQUIRE(buffer.at(4).arrival == 9);
  REQUIRE(buffer.cost(2) == 50);
  REQUIRE(buffer.place(1) == 0);
  REQUIRE(buffer.place(0) == 2);
  REQUIRE(buffer.place(3) == 1);
  REQUIRE(buffer.count_below(20) == 0);
  REQUIRE(buffer.count_below(21) == 2);
  REQUIRE(buffer.count_below(71) == 5);
  REQUIRE(buffer.cheapest_sum(3) == 90);
  REQUIRE(buffer.cheapest_sum(5) == 210);
}

TEST_CASE("packer: picked records leave as a pack in arrival order", "[packer]") {
  lanepack::lookahead_buffer buffer(8);
  buffer.insert(std::vector{record(1, 50), record(2, 20), record(5, 50), record(6, 20)});
  buffer.pick(3);
  buffer.pick(0);
  REQUIRE(buffer.is_picked(0));
  REQUIRE_FALSE(buffer.is_picked(1));
  REQUIRE(buffer.picked_cost() == 70);
  REQUIRE(buffer.picked_records() == 2);
  // The cheapest that are left cost 20 and 50.
  REQUIRE(buffer.cheapest_sum(1) == 20);
  REQUIRE(buffer.cheapest_sum(2) == 70);
  buffer.unpick(0);
  REQUIRE(buffer.cheapest_sum(3) == 90);
  REQUIRE(buffer.picked_cost() == 50);
  buffer.pick(1);

  lanepack::pack_list out;
  buffer.take_picked(out);
  REQUIRE(out.size() == 1);
  REQUIRE(out[0].size() == 2);
  REQUIRE(out[0][0].arrival == 5);
  REQUIRE(out[0][1].arrival == 6);
  REQUIRE(arrivals_by_place(buffer) == std::vector<std::uint64_t>{2, 1});
  REQUIRE(buffer.cheapest_sum(2) == 70);
  REQUIRE(buffer.picked_records() == 0);
  REQUIRE(buffer.picked_cost() == 0);

  buffer.clear();
  REQUIRE(buffer.empty());
  buffer.insert(std::vector{record(1, 1)});
  REQUIRE(buffer.size() == 1);
}

TEST_CASE("packer: the lookahead buffer holds saturated costs exactly", "[packer]") {
  lanepack::lookahead_buffer buffer(4);
  const std::uint64_t most = lanepack::max_record_cost;
  buffer.insert(std::vector{record(0, most), record(1, 0), record(2, most - 1), record(3, most)});
  REQUIRE(arrivals_by_place(buffer) == std::vector<std::uint64_t>{1, 2, 0, 3});
  REQUIRE(buffer.cost(3) == most);
  REQUIRE(buffer.cheapest_sum(4) == 3 * most - 1);
}

TEST_CASE("packer: the lookahead buffer refuses what would break its orders", "[packer]") {
  REQUIRE_THROWS_AS(lanepack::lookahead_buffer(0), lanepack::invalid_option);
  REQUIRE_THROWS_AS(lanepack::lookahead_buffer(lanepack::max_ordered_records + 1),
                    lanepack::invalid_option);

  lanepack::lookahead_buffer buffer(3);
  buffer.insert(std::vector{record(4, 1)});
  REQUIRE_THROWS_MATCHES(
      buffer.insert(std::vector{record(5, 1), record(6, 1), record(7, 1)}), lanepack::state_error,
      Catch::Matchers::Message("lookahead buffer: found 4 records, expected at most 3"));
  REQUIRE_THROWS_MATCHES(
      buffer.insert(std::vector{record(4, 1)}), lanepack::state_error,
      Catch::Matchers::Message("lookahead buffer: found arrival 4 after 4, expected a later one"));
  REQUIRE_THROWS_AS(buffer.insert(std::vector{record(6, 1), record(5, 1)}), lanepack::state_error);
  REQUIRE(buffer.size() == 1);
  buffer.pick(0);
  REQUIRE_THROWS_AS(buffer.insert(std::vector{record(6, 1)}), lanepack::state_error);
  buffer.unpick(0);
  buffer.insert(std::vector{record(6, 1)});
  REQUIRE(buffer.size() == 2);
}
