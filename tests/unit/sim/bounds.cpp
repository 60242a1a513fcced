#include <lanepack/sim/bounds.hpp>

#include <vector>

#include "fixture.hpp"
#include "support/catch.hpp"

namespace {

using lanepack_test::owned_step;

bool close(double found, double expected) {
  const double distance = found - expected;
  return distance < 1e-12 && distance > -1e-12;
}

/// A step of two packs of two records.
owned_step step(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return owned_step({{{1, a}, {1, b}}, {{1, c}, {1, d}}});
}

}  // namespace

TEST_CASE("sim: bounds of two steps on two ranks, worked by hand", "[sim]") {
  lanepack::bound_metrics bounds(2, 2);
  bounds.add(step(10, 2, 1, 1).plan());
  bounds.add(step(9, 1, 2, 2).plan());
  // Means 7 and 7. Alone: 10 with the smallest, 1, and 9 with 1.
  CHECK(close(bounds.step_bound(), 14.0 / (11 + 10)));
  // Together: 10 in one step, the fifth largest, 2, in the other, each with a 1: 14 is more.
  CHECK(close(bounds.window_bound(), 1));
  // Lane 0 has 22 and lane 1 has 6.
  CHECK(close(bounds.lane_total_bound(), 14.0 / 22));
}

TEST_CASE("sim: an outlier bounds a window too", "[sim]") {
  lanepack::bound_metrics bounds(2, 2);
  bounds.add(step(50, 1, 1, 1).plan());
  bounds.add(step(1, 1, 2, 3).plan());
  // 50 + 1 against a mean of 26.5, then 3.5 against 3 + 1; together 50 + 1 and 1 + 1.
  CHECK(close(bounds.step_bound(), 30.0 / (51 + 4)));
  CHECK(close(bounds.window_bound(), 30.0 / (50 + 1 + 1 + 1)));

  // Where counts are free it needs no company.
  lanepack::bound_metrics free(2, 2, false);
  free.add(step(50, 1, 1, 1).plan());
  free.add(step(1, 1, 2, 3).plan());
  CHECK(close(free.step_bound(), 30.0 / (50 + 3.5)));
  CHECK(close(free.window_bound(), 30.0 / (50 + 1)));
}

TEST_CASE("sim: windows that are not full and steps that change size are bounded too", "[sim]") {
  lanepack::bound_metrics bounds(2, 2);
  CHECK(close(bounds.step_bound(), 1));
  CHECK(close(bounds.window_bound(), 1));
  CHECK(close(bounds.lane_total_bound(), 1));
  bounds.add(step(10, 2, 1, 1).plan());
  // An open window of one step is a step.
  CHECK(close(bounds.window_bound(), 7.0 / 11));
  // Steps of two records: 4 and 4 are level, in a window of their own.
  bounds.add(owned_step({{{1, 4}}, {{1, 4}}}).plan());
  CHECK(close(bounds.step_bound(), 11.0 / 15));
  CHECK(close(bounds.window_bound(), 11.0 / 15));
}
