// The lookahead buffer against a list that is sorted anew for every question.

#include <algorithm>
#include <vector>

#include <lanepack/packer/lookahead_buffer.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::candidate;

std::vector<candidate> by_cost(std::vector<candidate> records) {
  std::sort(records.begin(), records.end(), [](const candidate& a, const candidate& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.arrival < b.arrival;
  });
  return records;
}

}  // namespace

TEST_CASE("packer: the lookahead buffer agrees with a sorted list after every operation",
          "[packer]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::size_t capacity = gen.between(1, 120);
    const auto bits = static_cast<unsigned>(gen.between(0, 40));
    lanepack::lookahead_buffer buffer(capacity);
    std::vector<candidate> model;
    std::uint64_t next_arrival = 0;

    for (int step = 0; step < 40; ++step) {
      std::vector<candidate> arrivals(gen.between(0, capacity - model.size()));
      for (candidate& record : arrivals) {
        record.cost = gen.heavy_tailed(bits);
        record.arrival = next_arrival += gen.between(1, 3);
      }
      buffer.insert(arrivals);
      model.insert(model.end(), arrivals.begin(), arrivals.end());

      std::vector<char> picked(model.size(), 0);
      const std::vector<candidate> sorted = by_cost(model);
      const std::size_t tries = model.empty() ? 0 : gen.between(0, 2 * model.size());
      for (std::size_t i = 0; i < tries; ++i) {
        const std::size_t place = gen.between(0, model.size() - 1);
        if (picked[place] == 0) {
          buffer.pick(place);
        } else {
          buffer.unpick(place);
        }
        picked[place] = picked[place] == 0 ? 1 : 0;
      }

      REQUIRE(buffer.size() == model.size());
      std::uint64_t sum = 0;
      std::uint64_t picked_cost = 0;
      std::size_t left = 0;
      REQUIRE(buffer.cheapest_sum(0) == 0);
      for (std::size_t place = 0; place < sorted.size(); ++place) {
        const std::uint64_t cost = sorted[place].cost;
        REQUIRE(buffer.at_place(place).arrival == sorted[place].arrival);
        REQUIRE(buffer.cost(place) == cost);
        REQUIRE(buffer.is_picked(place) == (picked[place] != 0));
        REQUIRE(buffer.count_below(cost) ==
                static_cast<std::size_t>(
                    std::count_if(model.begin(), model.end(),
                                  [cost](const candidate& record) { return record.cost < cost; })));
        if (picked[place] != 0) {
          picked_cost += cost;
        } else {
          sum += cost;
          REQUIRE(buffer.cheapest_sum(++left) == sum);
        }
      }
      for (std::size_t position = 0; position < model.size(); ++position) {
        REQUIRE(buffer.at(position).arrival == model[position].arrival);
        REQUIRE(sorted[buffer.place(position)].arrival == model[position].arrival);
      }
      REQUIRE(buffer.picked_cost() == picked_cost);
      REQUIRE(buffer.picked_records() == model.size() - left);

      std::vector<std::uint64_t> taken;
      for (std::size_t place = 0; place < sorted.size(); ++place) {
        if (picked[place] == 0) continue;
        taken.push_back(sorted[place].arrival);
        model.erase(std::find_if(model.begin(), model.end(), [&](const candidate& record) {
          return record.arrival == sorted[place].arrival;
        }));
      }
      std::sort(taken.begin(), taken.end());
      lanepack::pack_list out;
      buffer.take_picked(out);
      REQUIRE(out.size() == 1);
      REQUIRE(out[0].size() == taken.size());
      for (std::size_t i = 0; i < taken.size(); ++i) REQUIRE(out[0][i].arrival == taken[i]);

      // What is held is canonical: a buffer filled with it at once has the same orders.
      lanepack::lookahead_buffer refilled(capacity);
      std::vector<candidate> held;
      buffer.list(held);
      refilled.insert(held);
      REQUIRE(refilled.size() == model.size());
      for (std::size_t i = 0; i < model.size(); ++i) {
        REQUIRE(held[i].arrival == model[i].arrival);
        REQUIRE(refilled.place(i) == buffer.place(i));
      }
      if (gen.one_in(10)) {
        buffer.clear();
        model.clear();
      }
    }
  });
}
