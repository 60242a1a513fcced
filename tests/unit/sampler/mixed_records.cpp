#include <lanepack/sampler/mixed_records.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <lanepack/sampler/lane_sampler.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Parts of 5, 0 and 3 records, the last of which lacks the record in the middle.
std::vector<mixed_records::part> parts_with(shuffle_kind kind) {
  return {{0, epoch_order(record_domain(5), {.kind = kind}, seed_of_part(1, "a"))},
          {5, epoch_order(record_domain(0), {.kind = kind}, seed_of_part(1, "b"))},
          {5, epoch_order(record_domain(3, {1}), {.kind = kind}, seed_of_part(1, "c"))}};
}

mixed_records mixed(shuffle_kind kind) {
  const mixture_weights weights{0, {1, 0, 1}};
  return {mixture_order({{.records = 5}, {.records = 0}, {.records = 2}}, {&weights, 1}),
          parts_with(kind)};
}

step_schedule schedule_of(std::uint64_t records, epoch_end rule) {
  schedule_options options;
  options.lanes = 3;
  options.rule = rule;
  return {records, options};
}

}  // namespace

TEST_CASE("mixed records: unshuffled parts by hand", "[sampler]") {
  const mixed_records records = mixed(shuffle_kind::none);
  std::vector<record_ref> out(12);
  records.records(0, 1, out);
  REQUIRE(out == std::vector<record_ref>{{0, 0},
                                         {0, 5},
                                         {0, 1},
                                         {0, 7},
                                         {0, 2},
                                         {1, 5},
                                         {0, 3},
                                         {1, 7},
                                         {0, 4},
                                         {2, 5},
                                         {1, 0},
                                         {2, 7}});
  REQUIRE(records.records() == 7);
  REQUIRE(records.part_of(4) == 0);
  REQUIRE(records.part_of(5) == 2);
}

TEST_CASE("mixed records: each part has the order of its own epochs, at any stride", "[sampler]") {
  const mixed_records records = mixed(shuffle_kind::full);
  constexpr std::uint64_t far = std::uint64_t{1} << 50;
  std::vector<record_ref> all(5000);
  records.records(far, 1, all);
  std::vector<record_ref> third(1600);
  records.records(far + 1, 3, third);
  for (std::size_t i = 0; i < third.size(); ++i) REQUIRE(third[i] == all[1 + 3 * i]);
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    const mixed_place place = records.mixture()(far + i);
    const std::uint64_t n = records.order(place.part).size();
    std::uint64_t position = place.index % n;
    record_id id = 0;
    records.order(place.part).records(place.index / n, {&position, 1}, {&id, 1});
    REQUIRE(all[i] == record_ref{place.index / n, id + (place.part == 0 ? 0 : 5)});
  }
}

TEST_CASE("mixed records: a part's order depends on its name and on no other part", "[sampler]") {
  REQUIRE(seed_of_part(1, "a") != seed_of_part(1, "b"));
  REQUIRE(seed_of_part(1, "a") != seed_of_part(2, "a"));
}

TEST_CASE("mixed records: parts that do not match the mixture are refused", "[sampler]") {
  const mixture_weights weights{0, {1, 0, 1}};
  const mixture_order order({{.records = 5}, {.records = 0}, {.records = 3}}, {&weights, 1});
  REQUIRE_THROWS_WITH(mixed_records(order, parts_with(shuffle_kind::none)),
                      ContainsSubstring("parts[2]: found 2 records from id 5"));
  REQUIRE_THROWS_WITH(mixed_records(order, {}), ContainsSubstring("parts: found 0, expected 3"));
}

TEST_CASE("lane_sampler: a mixture is dealt as one stream", "[lane_sampler]") {
  const auto records = std::make_shared<const mixed_records>(mixed(shuffle_kind::full));
  const lane_sampler sampler(records, schedule_of(7, epoch_end::continue_epochs));
  REQUIRE(sampler.mixture() == records.get());
  REQUIRE(sampler.fewest_epoch_records() == 2);
  std::vector<arrival> stream(30);
  sampler.stream_arrivals(60, stream);
  std::vector<record_ref> expected(30);
  records->records(60, 1, expected);
  for (std::size_t i = 0; i < stream.size(); ++i) REQUIRE(stream[i].record == expected[i]);
  std::vector<std::vector<arrival>> own(3, std::vector<arrival>(10));
  for (lane_index lane = 0; lane < 3; ++lane) sampler.lane_arrivals(lane, 20, own[lane]);
  std::set<std::size_t> turns;
  for (std::size_t i = 0; i < 10; ++i) {
    // The three positions go to the lanes in turn, from one of them on.
    std::size_t turn = 0;
    while (own[0][i] != stream[3 * i + turn]) REQUIRE(++turn < 3);
    turns.insert(turn);
    for (std::size_t lane = 0; lane < 3; ++lane) {
      REQUIRE(own[lane][i] == stream[3 * i + (lane + turn) % 3]);
    }
  }
  REQUIRE(turns.size() == 3);
  std::vector<arrival> later(4);
  sampler.lane_arrivals(1, 23, later);
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(later[i] == own[1][i + 3]);
  REQUIRE_THROWS_AS(lane_sampler(records, schedule_of(7, epoch_end::drop_last)), invalid_option);
  REQUIRE_THROWS_AS(lane_sampler(records, schedule_of(8, epoch_end::continue_epochs)),
                    invalid_option);
}
