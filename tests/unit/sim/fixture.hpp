#pragma once

// Steps that own their records, and what an assignment made of them.

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/sim/step_assignment.hpp>

namespace lanepack_test {

/// Packs that own their records.
struct owned_step {
  explicit owned_step(
      const std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>>& tokens_and_costs) {
    for (const auto& pack : tokens_and_costs) {
      std::vector<lanepack::candidate>& out = records.emplace_back();
      for (const auto& [tokens, cost] : pack) {
        lanepack::candidate record;
        record.tokens = tokens;
        record.cost = cost;
        out.push_back(record);
      }
    }
    number();
  }

  /// One pack of records whose cost is their tokens, or their tokens squared.
  explicit owned_step(const std::vector<std::uint64_t>& tokens, bool squared = false) {
    std::vector<lanepack::candidate>& out = records.emplace_back();
    for (const std::uint64_t count : tokens) {
      lanepack::candidate record;
      record.tokens = count;
      record.cost = squared ? count * count : count;
      out.push_back(record);
    }
    number();
  }

  [[nodiscard]] lanepack::step_plan plan() const { return {.step = 0, .packs = packs}; }

  std::vector<std::vector<lanepack::candidate>> records;
  std::vector<lanepack::pack_plan> packs;

 private:
  void number() {
    for (std::uint32_t lane = 0; lane < records.size(); ++lane) {
      packs.push_back({.lane = lane, .cost = 0, .records = records[lane]});
    }
  }
};

using rows = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

/// (cost, tokens, records) of a rank's micro-batches.
inline rows rows_of(const lanepack::step_assignment& assignment, std::size_t rank) {
  rows out;
  for (const lanepack::simulated_micro_batch& each : assignment[rank]) {
    out.emplace_back(each.cost, each.tokens, each.records);
  }
  return out;
}

/// Tokens of every rank's micro-batches.
inline std::vector<std::vector<std::uint64_t>> tokens_of(
    const lanepack::step_assignment& assignment) {
  std::vector<std::vector<std::uint64_t>> out(assignment.ranks());
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    for (const lanepack::simulated_micro_batch& each : assignment[rank]) {
      out[rank].push_back(each.tokens);
    }
  }
  return out;
}

/// A micro-batch of a cost that nothing else is known of.
inline lanepack::simulated_micro_batch costing(std::uint64_t cost) {
  lanepack::simulated_micro_batch out;
  out.cost = cost;
  return out;
}

/// Groups of a list of micro-batches.
template <class List>
std::vector<std::vector<std::uint32_t>> groups_of(const List& list) {
  std::vector<std::vector<std::uint32_t>> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.emplace_back(list[i].begin(), list[i].end());
  return out;
}

}  // namespace lanepack_test
