#include <lanepack/packer/candidate.hpp>

#include "support/catch.hpp"

namespace {

lanepack::candidate record(std::uint64_t arrival) {
  lanepack::candidate made;
  made.arrival = arrival;
  return made;
}

}  // namespace

TEST_CASE("packer: a pack list holds packs of any size in order", "[packer]") {
  lanepack::pack_list packs;
  REQUIRE(packs.empty());

  packs.add(record(4));
  packs.add(record(7));
  packs.close();
  packs.close();
  packs.add(record(1));
  packs.close();

  REQUIRE(packs.size() == 3);
  REQUIRE(packs[0].size() == 2);
  REQUIRE(packs[0][0].arrival == 4);
  REQUIRE(packs[0][1].arrival == 7);
  REQUIRE(packs[1].empty());
  REQUIRE(packs[2].size() == 1);
  REQUIRE(packs[2][0].arrival == 1);
  REQUIRE(packs.records().size() == 3);

  packs.clear();
  REQUIRE(packs.empty());
  REQUIRE(packs.records().empty());
}

TEST_CASE("packer: packs of one size are added to a list at once", "[packer]") {
  lanepack::pack_list packs;
  for (int round = 0; round < 2; ++round) {
    packs.add(record(4));
    packs.close();
    const std::span<lanepack::candidate> records = packs.add_packs(2, 3);
    REQUIRE(records.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) records[i] = record(10 + i);
    packs.add(record(20));
    packs.close();

    REQUIRE(packs.size() == 4);
    REQUIRE(packs[0][0].arrival == 4);
    REQUIRE(packs[1][2].arrival == 12);
    REQUIRE(packs[2][0].arrival == 13);
    REQUIRE(packs[3][0].arrival == 20);
    REQUIRE(packs.records().size() == 8);
    // What was there before the list was emptied does not come back.
    packs.clear();
  }
}
