#include <lanepack/sim/step_time.hpp>

#include <cstdint>
#include <limits>

#include "fixture.hpp"
#include "support/catch.hpp"

using lanepack::sync_model;
using lanepack_test::costing;

TEST_CASE("sim: a step takes as long as its slowest rank, or its slowest micro-batches", "[sim]") {
  lanepack::step_assignment assignment;
  assignment.add(costing(5));
  assignment.add(costing(4));
  assignment.close_rank();
  assignment.add(costing(8));
  assignment.close_rank();
  const lanepack::step_time once = lanepack::time_of(assignment, sync_model::step, 10);
  CHECK(once.busy == 29 + 18);
  CHECK(once.elapsed == 29);
  // 8 in the first micro-batch, then 4 while the other rank waits.
  const lanepack::step_time often = lanepack::time_of(assignment, sync_model::micro_batch, 10);
  CHECK(often.busy == 29 + 18);
  CHECK(often.elapsed == 18 + 14);

  // Padding takes time and is no work.
  assignment.clear();
  lanepack::simulated_micro_batch padded = costing(5);
  padded.padding_cost = 3;
  assignment.add(padded);
  assignment.close_rank();
  for (const sync_model sync : {sync_model::step, sync_model::micro_batch}) {
    CHECK(lanepack::time_of(assignment, sync, 1).busy == 6);
    CHECK(lanepack::time_of(assignment, sync, 1).elapsed == 9);
  }
}

TEST_CASE("sim: times beyond 64 bits stay at the largest", "[sim]") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  lanepack::step_assignment assignment;
  assignment.add(costing(5));
  assignment.add(costing(4));
  assignment.close_rank();
  for (const sync_model sync : {sync_model::step, sync_model::micro_batch}) {
    // Twice 2^63 is 2^64, which wraps to 0; 2^64 - 3 and a cost of 5 wrap as well.
    for (const std::uint64_t overhead : {std::uint64_t{1} << 63, most - 2}) {
      CHECK(lanepack::time_of(assignment, sync, overhead).busy == most);
      CHECK(lanepack::time_of(assignment, sync, overhead).elapsed == most);
    }
    CHECK(lanepack::time_of(assignment, sync, std::uint64_t{1} << 62).elapsed ==
          (std::uint64_t{1} << 63) + 9);
  }
}
