#include <lanepack/sampler/schedule.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::epoch_end;
using lanepack::run_of_steps;
using lanepack::schedule_counts;
using lanepack::schedule_options;
using lanepack::step_schedule;

schedule_options options_of(std::uint32_t lanes, std::uint32_t pack, epoch_end rule) {
  schedule_options options;
  options.lanes = lanes;
  options.records_per_pack = pack;
  options.rule = rule;
  return options;
}

TEST_CASE("schedule: names are read and written", "[schedule]") {
  for (const epoch_end rule :
       {epoch_end::drop_last, epoch_end::pad, epoch_end::continue_epochs, epoch_end::finite}) {
    CHECK(lanepack::parse_epoch_end(lanepack::to_string(rule)) == rule);
  }
  CHECK(lanepack::to_string(epoch_end::continue_epochs) == "continue");
  CHECK_THROWS_WITH(
      lanepack::parse_epoch_end("continue_epochs"),
      "epoch_end: found 'continue_epochs', expected drop_last, pad, continue or finite");
}

TEST_CASE("schedule: drop_last gives every epoch its whole steps", "[schedule]") {
  // 20 records in steps of 4 x 2: two steps, 4 records dropped.
  schedule_options options = options_of(4, 2, epoch_end::drop_last);
  CHECK(step_schedule(20, options).steps() == 2u);
  options.epochs = 3;
  const step_schedule schedule(20, options);
  CHECK(schedule.steps() == 6u);
  CHECK(schedule.counts() == schedule_counts{48, 0, 0, 12});
  CHECK(schedule.lane_records_before(0) == 0);
  CHECK(schedule.lane_records_before(5) == 10);
  CHECK(schedule.step_of_lane_record(9) == 4);
  CHECK(schedule.step_of_lane_record(10) == 5);
  CHECK(schedule.run(3) == run_of_steps{2, 4, 2, 1, true, 4});
  CHECK(schedule.epoch_of_step(3) == lanepack::epoch_extent{1, 2, 4, 4, 8});
  CHECK_THROWS_AS(schedule.run(6), lanepack::state_error);
}

TEST_CASE("schedule: pad and finite fill the last step of every epoch", "[schedule]") {
  schedule_options options = options_of(4, 2, epoch_end::pad);
  options.epochs = 3;
  const step_schedule padded(20, options);
  CHECK(padded.steps() == 9u);
  CHECK(padded.counts() == schedule_counts{60, 12, 0, 0});
  CHECK(padded.filling_role() == lanepack::record_role::repeated);
  CHECK(padded.run(8) == run_of_steps{6, 9, 2, 2, true, 9});

  options.rule = epoch_end::finite;
  const step_schedule finite(20, options);
  CHECK(finite.steps() == 9u);
  CHECK(finite.counts() == schedule_counts{60, 0, 12, 0});
  CHECK(finite.filling_role() == lanepack::record_role::masked);
}

TEST_CASE("schedule: an epoch smaller than a step is repeated by pad", "[schedule]") {
  // 3 records in a step of 8: repeated 5 times.
  schedule_options options = options_of(4, 2, epoch_end::pad);
  options.epochs = 2;
  const step_schedule schedule(3, options);
  CHECK(schedule.steps() == 2u);
  CHECK(schedule.counts() == schedule_counts{6, 10, 0, 0});
}

TEST_CASE("schedule: continue runs through epochs", "[schedule]") {
  schedule_options options = options_of(4, 2, epoch_end::continue_epochs);
  const step_schedule endless(20, options);
  CHECK_FALSE(endless.steps().has_value());
  CHECK_FALSE(endless.counts().has_value());
  CHECK_FALSE(endless.drains());
  CHECK(endless.run(1000) == run_of_steps{0, std::nullopt, 2, 0, false, std::nullopt});
  CHECK_THROWS_AS(endless.epoch_of_step(0), lanepack::state_error);

  // 60 records in steps of 8: 7 steps, 4 records left over.
  options.epochs = 3;
  CHECK(step_schedule(20, options).steps() == 7u);
  CHECK(step_schedule(20, options).counts() == schedule_counts{56, 0, 0, 4});
  options.steps = 5;
  CHECK(step_schedule(20, options).steps() == 5u);
  CHECK(step_schedule(20, options).counts() == schedule_counts{40, 0, 0, 0});
  options.epochs.reset();
  options.steps = 1000;
  CHECK(step_schedule(20, options).steps() == 1000u);
  // Smaller than a step: epochs are cycled.
  CHECK(step_schedule(3, options).counts() == schedule_counts{8000, 0, 0, 0});
}

TEST_CASE("schedule: steps cut a run and take as many epochs as they need", "[schedule]") {
  schedule_options options = options_of(4, 2, epoch_end::pad);
  options.steps = 7;
  const step_schedule schedule(20, options);
  CHECK(schedule.steps() == 7u);
  // Two whole epochs of three steps, and 8 records of the third.
  CHECK(schedule.counts() == schedule_counts{48, 8, 0, 0});
  // The plan does not know of the cut.
  CHECK(schedule.run(6) == run_of_steps{6, 9, 2, 2, true, 9});

  options.rule = epoch_end::drop_last;
  options.epochs = 2;
  CHECK(step_schedule(20, options).steps() == 4u);
  options.epochs = 9;
  CHECK(step_schedule(20, options).steps() == 7u);
  CHECK(step_schedule(20, options).counts() == schedule_counts{56, 0, 0, 12});
}

TEST_CASE("schedule: the pack size may change inside an epoch", "[schedule]") {
  // 20 records, 2 lanes: steps of 4, from step 3 on of 6. Epoch 0 has 4 + 4 + 4 + 6 = 18 records,
  // later ones 6 + 6 + 6.
  schedule_options options = options_of(2, 2, epoch_end::drop_last);
  options.changes = {{3, 3}};
  options.epochs = 2;
  const step_schedule schedule(20, options);
  CHECK(schedule.steps() == 7u);
  CHECK(schedule.counts() == schedule_counts{36, 0, 0, 4});
  CHECK(schedule.records_per_pack(2) == 2);
  CHECK(schedule.records_per_pack(3) == 3);
  CHECK(schedule.lane_records_before(3) == 6);
  CHECK(schedule.lane_records_before(7) == 18);
  CHECK(schedule.step_of_lane_record(5) == 2);
  CHECK(schedule.step_of_lane_record(6) == 3);
  CHECK(schedule.step_of_lane_record(8) == 3);
  CHECK(schedule.step_of_lane_record(9) == 4);
  CHECK(schedule.run(1) == run_of_steps{0, 3, 2, 0, false, 4});
  CHECK(schedule.run(3) == run_of_steps{3, 4, 3, 0, true, 4});
  CHECK(schedule.run(5) == run_of_steps{4, 7, 3, 1, true, 7});
  CHECK(schedule.epoch_of_step(3) == lanepack::epoch_extent{0, 0, 4, 0, 9});

  options.rule = epoch_end::continue_epochs;
  options.epochs.reset();
  const step_schedule endless(20, options);
  CHECK(endless.run(2) == run_of_steps{0, 3, 2, 0, false, std::nullopt});
  CHECK(endless.run(3) == run_of_steps{3, std::nullopt, 3, 0, false, std::nullopt});
  // 40 records: 12 in the first three steps, then four steps of 6.
  options.epochs = 2;
  CHECK(step_schedule(20, options).steps() == 7u);
  CHECK(step_schedule(20, options).counts() == schedule_counts{36, 0, 0, 4});
}

TEST_CASE("schedule: drop_last uses room that a smaller pack size makes at an epoch's end",
          "[schedule]") {
  // 21 records, one lane: four steps of 5, then one of 1 that still fits.
  schedule_options options = options_of(1, 5, epoch_end::drop_last);
  options.changes = {{4, 1}};
  CHECK(step_schedule(21, options).steps() == 5u);
  CHECK(step_schedule(21, options).counts() == schedule_counts{21, 0, 0, 0});
  CHECK(step_schedule(20, options).steps() == 4u);
}

TEST_CASE("schedule: a change to the same pack size is none", "[schedule]") {
  schedule_options options = options_of(2, 2, epoch_end::continue_epochs);
  options.changes = {{3, 2}, {5, 4}, {6, 4}};
  const step_schedule schedule(20, options);
  CHECK(schedule.run(4) == run_of_steps{0, 5, 2, 0, false, std::nullopt});
  CHECK(schedule.run(7) == run_of_steps{5, std::nullopt, 4, 1, false, std::nullopt});
}

TEST_CASE("schedule: skipped steps keep their numbers and their records", "[schedule]") {
  schedule_options options = options_of(2, 2, epoch_end::continue_epochs);
  options.steps = 100;
  const step_schedule plain(20, options);
  options.skip_steps = {{50, 60}, {10, 12}, {12, 13}, {55, 70}, {99, 200}};
  const step_schedule schedule(20, options);
  CHECK(schedule.steps() == plain.steps());
  CHECK(schedule.counts() == plain.counts());
  CHECK(schedule.lane_records_before(80) == plain.lane_records_before(80));
  for (std::uint64_t step = 0; step < 100; ++step) {
    CAPTURE(step);
    const bool skipped = (step >= 10 && step < 13) || (step >= 50 && step < 70) || step >= 99;
    CHECK(schedule.skipped(step) == skipped);
    CHECK_FALSE(plain.skipped(step));
  }
  CHECK(schedule.first_not_skipped(9) == 9);
  CHECK(schedule.first_not_skipped(10) == 13);
  CHECK(schedule.first_not_skipped(56) == 70);
  CHECK(schedule.first_not_skipped(99) == 200);
}

TEST_CASE("schedule: the numbers of records and epochs cost nothing", "[schedule]") {
  // 10^10 records in steps of 65536: 152587 whole ones, 58368 records left over.
  schedule_options options = options_of(4096, 16, epoch_end::drop_last);
  options.epochs = 1000000;
  const step_schedule schedule(10000000000, options);
  CHECK(schedule.steps() == 152587000000u);
  CHECK(schedule.counts() == schedule_counts{9999941632000000, 0, 0, 58368000000});
  CHECK(schedule.run(152586999999) ==
        run_of_steps{152586847413, 152587000000, 16, 999999, true, 152587000000});
  CHECK(schedule.step_of_lane_record(schedule.lane_records_before(123456789012)) == 123456789012);

  options.rule = epoch_end::pad;
  options.changes = {{1, 1}, {1000000000, 8}, {2000000000, 32}, {100000000000, 64}};
  const step_schedule changing(10000000000, options);
  const std::uint64_t last = *changing.steps() - 1;
  CHECK(changing.run(last).epoch == 999999);
  CHECK(changing.run(last).drains);
  CHECK(changing.counts()->regular == 10000000000000000);

  options.rule = epoch_end::continue_epochs;
  options.epochs.reset();
  const step_schedule endless(std::uint64_t{1} << 63, options);
  CHECK(endless.lane_records_before(1000000000000) ==
        16 + 999999999 + 8ull * 1000000000 + 32ull * 98000000000 + 64ull * 900000000000);
}

TEST_CASE("schedule: an epoch without a step is refused with the ways out", "[schedule]") {
  schedule_options options = options_of(4, 8, epoch_end::drop_last);
  CHECK_THROWS_WITH(
      step_schedule(20, options),
      "records_per_pack: found 8 (a step of 4 lanes takes 32 records, an epoch of 20 feasible "
      "records fill none), expected at most 5, or epoch_end pad, finite or continue");
  CHECK_THROWS_WITH(
      step_schedule(3, options),
      "records_per_pack: found 8 (a step of 4 lanes takes 32 records, an epoch of 3 feasible "
      "records fill none), expected at most 3 lanes, or epoch_end pad, finite or continue");
  options.rule = epoch_end::continue_epochs;
  options.epochs = 1;
  CHECK_THROWS_AS(step_schedule(20, options), lanepack::invalid_option);
  options.epochs = 2;
  CHECK(step_schedule(20, options).steps() == 1u);

  // A pack size that is too large matters only where an epoch begins with it.
  options = options_of(4, 5, epoch_end::drop_last);
  options.changes = {{1, 100}};
  CHECK(step_schedule(20, options).steps() == 1u);
  options.epochs = 2;
  CHECK_THROWS_AS(step_schedule(20, options), lanepack::invalid_option);
}

TEST_CASE("schedule: options out of range are refused", "[schedule]") {
  const schedule_options good = options_of(4, 2, epoch_end::pad);
  CHECK_NOTHROW(step_schedule(20, good));
  CHECK_THROWS_WITH(step_schedule(0, good),
                    "records: found 0, expected at least one feasible record");
  CHECK_THROWS_AS(step_schedule((std::uint64_t{1} << 63) + 1, good), lanepack::invalid_option);

  const auto refused = [&](void (*change)(schedule_options&)) -> std::string {
    schedule_options options = good;
    change(options);
    try {
      step_schedule schedule(20, options);
    } catch (const lanepack::invalid_option& found) {
      return found.what();
    }
    return "accepted";
  };
  CHECK(refused([](schedule_options& o) { o.lanes = 0; }) == "lanes: found 0, expected at least 1");
  CHECK(refused([](schedule_options& o) { o.records_per_pack = 0; }) ==
        "records_per_pack: found 0, expected at least 1");
  CHECK(refused([](schedule_options& o) { o.epochs = 0; }) ==
        "epochs: found 0, expected at least 1");
  CHECK(refused([](schedule_options& o) { o.steps = 0; }) == "steps: found 0, expected at least 1");
  CHECK(refused([](schedule_options& o) {
          o.changes = {{0, 1}};
        }) == "changes[0].step: found 0, expected a step after 0");
  CHECK(refused([](schedule_options& o) {
          o.changes = {{5, 1}, {5, 2}};
        }) == "changes[1].step: found 5, expected a step after 5");
  CHECK(refused([](schedule_options& o) {
          o.changes = {{5, 0}};
        }) == "changes[0].records_per_pack: found 0, expected at least 1");
  CHECK(refused([](schedule_options& o) {
          o.skip_steps = {{5, 5}};
        }) == "skip_steps[0]: found 5 to 5, expected an end after the first step");
}

TEST_CASE("schedule: a run of more records than can be counted is refused", "[schedule]") {
  const std::uint64_t large = std::uint64_t{1} << 63;
  for (const epoch_end rule :
       {epoch_end::drop_last, epoch_end::pad, epoch_end::finite, epoch_end::continue_epochs}) {
    CAPTURE(lanepack::to_string(rule));
    schedule_options options = options_of(4, 2, rule);
    options.epochs = 1;
    CHECK(step_schedule(large, options).steps() == large / 8);
    for (const std::uint64_t epochs : {std::uint64_t{2}, large, ~std::uint64_t{0}}) {
      options.epochs = epochs;
      CHECK_THROWS_AS(step_schedule(large, options), lanepack::invalid_option);
    }
    options.steps = 100;
    CHECK(step_schedule(large, options).steps() == 100u);
    options.epochs.reset();
    options.steps = ~std::uint64_t{0};
    CHECK_THROWS_AS(step_schedule(1000, options), lanepack::invalid_option);
    options.changes = {{large, 7}};
    CHECK_THROWS_AS(step_schedule(1000, options), lanepack::invalid_option);
    options.steps = 100;
    CHECK(step_schedule(1000, options).records_per_pack(99) == 2);
    CHECK_THROWS_AS(step_schedule(1000, options).lane_records_before(large), lanepack::state_error);
  }
  schedule_options options = options_of(0xffffffff, 0xffffffff, epoch_end::pad);
  CHECK(step_schedule(large, options).steps() == 1u);
  CHECK(step_schedule(large, options).counts()->repeated == 0xffffffffull * 0xffffffffull - large);
  options.steps = 2;
  CHECK_THROWS_AS(step_schedule(large, options), lanepack::invalid_option);
}

}  // namespace
