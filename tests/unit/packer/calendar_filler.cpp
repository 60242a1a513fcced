#include <cstdint>
#include <vector>

#include <lanepack/packer/calendar_filler.hpp>

#include "support/catch.hpp"

namespace {

struct case_of_equal_records {
  lanepack::cost_distribution costs{{{.cost = 100, .tokens = 1, .records = 1}}};
  lanepack::calendar_tuning tuning;
  lanepack::calendar_caps caps{costs, 2, tuning};
  lanepack::lookahead_buffer buffer{16};
  lanepack::detail::calendar_filler filler;

  void add(std::uint64_t arrival, std::uint64_t cost, std::uint64_t admitted) {
    lanepack::candidate record;
    record.arrival = arrival;
    record.cost = cost;
    record.admitted = admitted;
    buffer.insert({&record, 1});
  }
};

}  // namespace

TEST_CASE("packer: a calendar's pack holds only as many due records as it must", "[packer]") {
  case_of_equal_records c;
  for (std::uint64_t i = 0; i < 6; ++i) c.add(i, 100, 0);
  // Two leave a step: the six records need the steps 3, 4 and 5 where 5 is the last one.
  for (const std::uint64_t step : {0U, 1U, 2U}) {
    c.filler.start(2);
    REQUIRE(c.filler.pick_due(c.buffer, {.max_steps = 5, .min_records_per_pack = 2}, step) == 0);
  }
  c.filler.start(2);
  REQUIRE(c.filler.pick_due(c.buffer, {.max_steps = 5, .min_records_per_pack = 2}, 3) == 2);
  lanepack::pack_list out;
  c.buffer.take_picked(out);
  REQUIRE(out[0][0].arrival == 0);
  REQUIRE(out[0][1].arrival == 1);
}

TEST_CASE("packer: a later pack may be smaller", "[packer]") {
  case_of_equal_records c;
  for (std::uint64_t i = 0; i < 6; ++i) c.add(i, 100, 0);
  // Four now and at least one a step later: the last of six must not be the third of its queue.
  c.filler.start(4);
  REQUIRE(c.filler.pick_due(c.buffer, {.max_steps = 5, .min_records_per_pack = 1}, 3) == 4);
}

TEST_CASE("packer: a slot takes its heavy record with cheap ones and stays below the cap",
          "[packer]") {
  case_of_equal_records c;
  c.add(0, 100, 0);
  c.add(1, 100, 0);
  c.add(2, 900, 0);
  c.add(3, 60, 0);
  lanepack::calendar_slot slot;
  slot.cap = 970;
  slot.share = 960;
  slot.light_fill = 970;
  slot.counted_cost = 970;
  slot.counted_mean = 100;
  c.filler.fill(c.buffer, slot, c.caps, c.tuning, {.max_steps = 50, .min_records_per_pack = 2}, 1,
                2, 1000);
  REQUIRE(c.buffer.picked_cost() == 960);
}
