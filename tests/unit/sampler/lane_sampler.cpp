#include <lanepack/sampler/lane_sampler.hpp>

#include <cstdint>
#include <vector>

#include <lanepack/core/digest.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::arrival;
using lanepack::epoch_end;
using lanepack::epoch_order;
using lanepack::lane_sampler;
using lanepack::record_domain;
using lanepack::record_role;
using lanepack::schedule_options;
using lanepack::shuffle_kind;
using lanepack::step_schedule;

schedule_options options_of(std::uint32_t lanes, std::uint32_t pack, epoch_end rule) {
  schedule_options options;
  options.lanes = lanes;
  options.records_per_pack = pack;
  options.rule = rule;
  return options;
}

lane_sampler unshuffled(std::uint64_t n, const schedule_options& options) {
  return lane_sampler(epoch_order(record_domain(n), {.kind = shuffle_kind::none}, 0),
                      step_schedule(n, options));
}

std::vector<arrival> of_lane(const lane_sampler& sampler, lanepack::lane_index lane,
                             std::uint64_t first, std::size_t count) {
  std::vector<arrival> arrivals(count);
  sampler.lane_arrivals(lane, first, arrivals);
  return arrivals;
}

arrival regular(std::uint64_t epoch, std::uint64_t id) {
  return {{epoch, id}, record_role::regular};
}

TEST_CASE("lane_sampler: continue deals all epochs as one stream", "[lane_sampler]") {
  // 5 records, 3 lanes: positions 0 1 2 | 3 4 0' | 1' 2' 3' | 4' 0'' 1''.
  const lane_sampler sampler = unshuffled(5, options_of(3, 2, epoch_end::continue_epochs));
  CHECK(of_lane(sampler, 0, 0, 4) ==
        std::vector{regular(0, 0), regular(0, 3), regular(1, 1), regular(1, 4)});
  CHECK(of_lane(sampler, 2, 0, 4) ==
        std::vector{regular(0, 2), regular(1, 0), regular(1, 3), regular(2, 1)});
  std::vector<arrival> stream(7);
  sampler.stream_arrivals(4, stream);
  CHECK(stream == std::vector{regular(0, 4), regular(1, 0), regular(1, 1), regular(1, 2),
                              regular(1, 3), regular(1, 4), regular(2, 0)});
}

TEST_CASE("lane_sampler: more lanes than records wrap through several epochs", "[lane_sampler]") {
  // 2 records, 5 lanes: lane 3 gets positions 3, 8, 13 of the endless stream.
  const lane_sampler sampler = unshuffled(2, options_of(5, 1, epoch_end::continue_epochs));
  CHECK(of_lane(sampler, 3, 0, 3) == std::vector{regular(1, 1), regular(4, 0), regular(6, 1)});
}

TEST_CASE("lane_sampler: drop_last begins every epoch at its position 0", "[lane_sampler]") {
  // 7 records, 3 lanes, one step of 6 an epoch. Epoch 1 begins at position 7 of the run, which is
  // of lane 1, so lane 0 gets its positions 2 and 5.
  schedule_options options = options_of(3, 2, epoch_end::drop_last);
  options.epochs = 2;
  const lane_sampler sampler = unshuffled(7, options);
  CHECK(of_lane(sampler, 0, 0, 4) ==
        std::vector{regular(0, 0), regular(0, 3), regular(1, 2), regular(1, 5)});
  CHECK(of_lane(sampler, 1, 0, 4) ==
        std::vector{regular(0, 1), regular(0, 4), regular(1, 0), regular(1, 3)});
  CHECK(of_lane(sampler, 2, 2, 2) == std::vector{regular(1, 1), regular(1, 4)});
  std::vector<arrival> stream(4);
  sampler.stream_arrivals(4, stream);
  CHECK(stream == std::vector{regular(0, 4), regular(0, 5), regular(1, 0), regular(1, 1)});
  CHECK_THROWS_AS(of_lane(sampler, 0, 4, 1), lanepack::state_error);
  CHECK_THROWS_AS(of_lane(sampler, 0, 3, 2), lanepack::state_error);
}

TEST_CASE("lane_sampler: pad and finite repeat from the start of the epoch", "[lane_sampler]") {
  // 7 records, 3 lanes, two steps of 6: positions 7 to 11 are records 0 to 4 again.
  for (const epoch_end rule : {epoch_end::pad, epoch_end::finite}) {
    const record_role role = rule == epoch_end::pad ? record_role::repeated : record_role::masked;
    const lane_sampler sampler = unshuffled(7, options_of(3, 2, rule));
    CHECK(of_lane(sampler, 0, 0, 4) ==
          std::vector{regular(0, 0), regular(0, 3), regular(0, 6), arrival{{0, 2}, role}});
    CHECK(of_lane(sampler, 1, 2, 2) == std::vector{arrival{{0, 0}, role}, arrival{{0, 3}, role}});
    // 2 records in one step of 6: three times over.
    const lane_sampler small = unshuffled(2, options_of(3, 2, rule));
    std::vector<arrival> stream(6);
    small.stream_arrivals(0, stream);
    CHECK(stream == std::vector{regular(0, 0), regular(0, 1), arrival{{0, 0}, role},
                                arrival{{0, 1}, role}, arrival{{0, 0}, role},
                                arrival{{0, 1}, role}});
  }
}

TEST_CASE("lane_sampler: the largest number of lanes does not wrap", "[lane_sampler]") {
  // Epoch 1 begins at position 5, so the last lane, L - 1, gets its position L - 1 - 5, which is
  // record (L - 6) mod 5 = 4294967289 mod 5 = 4.
  constexpr std::uint32_t lanes = 0xffffffff;
  schedule_options options = options_of(lanes, 1, epoch_end::pad);
  options.epochs = 2;
  CHECK(of_lane(unshuffled(5, options), lanes - 1, 1, 1) ==
        std::vector{arrival{{1, 4}, record_role::repeated}});
}

TEST_CASE("lane_sampler: arrivals go on to the end of the epoch in which steps cut the run",
          "[lane_sampler]") {
  schedule_options options = options_of(1, 2, epoch_end::drop_last);
  const lane_sampler whole = unshuffled(20, options);
  options.steps = 3;
  const lane_sampler cut = unshuffled(20, options);
  CHECK(cut.schedule().steps() == 3u);
  CHECK(of_lane(cut, 0, 0, 20) == of_lane(whole, 0, 0, 20));
  CHECK_THROWS_AS(of_lane(cut, 0, 20, 1), lanepack::state_error);
}

TEST_CASE("lane_sampler: the order and the schedule must count the same records",
          "[lane_sampler]") {
  CHECK_THROWS_WITH(lane_sampler(epoch_order(record_domain(10, {3}), {}, 0),
                                 step_schedule(10, options_of(1, 1, epoch_end::pad))),
                    "feasible_records: found 10, expected 9 as in the epoch's order");
}

TEST_CASE("lane_sampler: positions near 2^64 end in an error", "[lane_sampler]") {
  const std::uint64_t n = std::uint64_t{1} << 63;
  const lane_sampler sampler(epoch_order(record_domain(n), {}, 0),
                             step_schedule(n, options_of(8, 1, epoch_end::continue_epochs)));
  std::vector<arrival> out(4);
  sampler.lane_arrivals(7, (std::uint64_t{1} << 61) - 6, out);
  CHECK(out[0].record.epoch == 1);
  CHECK_THROWS_AS(sampler.lane_arrivals(7, (std::uint64_t{1} << 61) - 2, out),
                  lanepack::state_error);
  CHECK_THROWS_AS(sampler.stream_arrivals(~std::uint64_t{0} - 2, out), lanepack::state_error);
}

TEST_CASE("lane_sampler: golden digests of whole runs", "[lane_sampler]") {
  // From a reference in Python that deals record by record, written from the description.
  const auto digest = [](const lane_sampler& sampler) {
    lanepack::digest_builder builder;
    for (lanepack::lane_index lane = 0; lane < sampler.lanes(); ++lane) {
      for (const arrival& a : of_lane(sampler, lane, 0, 200)) {
        builder.number(a.record.epoch);
        builder.number(a.record.id);
        builder.number(static_cast<std::uint64_t>(a.role));
      }
    }
    return builder.value().hex();
  };
  const auto sampler = [](epoch_end rule, const lanepack::shuffle_options& shuffle) {
    schedule_options options = options_of(6, 4, rule);
    options.changes = {{9, 7}, {20, 3}};
    options.epochs = 10;
    return lane_sampler(epoch_order(record_domain(500, {3, 77, 499}), shuffle, 42),
                        step_schedule(497, options));
  };
  CHECK(digest(sampler(epoch_end::continue_epochs, {})) == "981b12f8dd9cf657ccd1ff280e24843c");
  CHECK(digest(sampler(epoch_end::drop_last, {})) == "6cbbf4585e9bf8ff3d5c89bfee274977");
  CHECK(digest(sampler(epoch_end::pad, {shuffle_kind::block, 16, 4})) ==
        "2b5b3117c7d1c193e3fdc24d3861b946");
  CHECK(digest(sampler(epoch_end::finite, {shuffle_kind::none})) ==
        "4d3186f61435960fb6ac58fc7381c89c");
}

}  // namespace
