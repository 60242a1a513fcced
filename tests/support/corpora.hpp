#pragma once

// Corpora and plans for tests of everything from the planner up.

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/planner.hpp>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "support/gen.hpp"

namespace lanepack_test {

/// Token `index` of record `id`, so that a test knows what it should read.
inline std::int32_t expected_token(std::uint64_t id, std::uint64_t index) {
  std::uint64_t z = id * 0x9e3779b97f4a7c15 + index + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return static_cast<std::int32_t>((z >> 33) & 0x7fffffff);
}

/// A corpus of records with the given lengths and `expected_token` as tokens; every third token of
/// an odd record is context only where `masks` is true.
inline lanepack::memory_source corpus_of(const std::vector<std::uint64_t>& lengths,
                                         bool masks = false) {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint8_t> mask;
  for (std::uint64_t id = 0; id < lengths.size(); ++id) {
    for (std::uint64_t i = 0; i < lengths[id]; ++i) {
      tokens.push_back(expected_token(id, i));
      if (masks) mask.push_back(id % 2 == 1 && i % 3 == 0 ? 0 : 1);
    }
    offsets.push_back(tokens.size());
  }
  return {std::move(tokens), std::move(offsets), std::move(mask)};
}

inline std::vector<std::uint64_t> random_lengths(gen& random, std::uint64_t records,
                                                 unsigned max_bits) {
  std::vector<std::uint64_t> lengths(records);
  for (std::uint64_t& length : lengths) length = 1 + random.heavy_tailed(max_bits);
  return lengths;
}

/// A pack that outlives the plan that it came from.
struct kept_pack {
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t cost = 0;
  std::vector<lanepack::candidate> records;
};

inline std::vector<std::uint32_t> lanes_from(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> lanes(last - first);
  std::iota(lanes.begin(), lanes.end(), first);
  return lanes;
}

/// The packs of some lanes, from `start` on, at most `steps` steps.
inline std::vector<kept_pack> packs_of(const std::shared_ptr<const lanepack::candidate_feed>& feed,
                                       const lanepack::any_policy& policy,
                                       const std::vector<std::uint32_t>& lanes,
                                       std::uint64_t start = 0,
                                       std::uint64_t steps = std::uint64_t{1} << 40) {
  lanepack::planner planner(feed, policy, lanes);
  planner.start_at(start);
  std::vector<kept_pack> packs;
  for (std::uint64_t done = 0; done < steps; ++done) {
    const std::optional<lanepack::step_plan> step = planner.next();
    if (!step) break;
    for (const lanepack::pack_plan& pack : step->packs) {
      packs.push_back(
          {step->step, pack.lane, pack.cost, {pack.records.begin(), pack.records.end()}});
    }
  }
  return packs;
}

inline bool same_packs(const std::vector<kept_pack>& a, const std::vector<kept_pack>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].step != b[i].step || a[i].lane != b[i].lane || a[i].cost != b[i].cost ||
        a[i].records.size() != b[i].records.size()) {
      return false;
    }
    for (std::size_t k = 0; k < a[i].records.size(); ++k) {
      if (a[i].records[k].record != b[i].records[k].record ||
          a[i].records[k].role != b[i].records[k].role) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace lanepack_test
