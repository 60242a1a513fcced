#pragma once

/// @file
/// What taking, saving and restoring the state of a run costs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/json/run_state.hpp>
#include <lanepack/lanepack.hpp>

#include "bench/harness.hpp"
#include "bench/lengths.hpp"
#include "bench/planning.hpp"

namespace lanepack_bench {

/// A planner of all lanes of a run.
inline std::shared_ptr<lanepack::planner> planner_of_lanes(std::uint32_t lanes,
                                                           const std::string& policy) {
  const lanepack::any_source source = lanepack::length_source(record_lengths("dialogues", 100'000));
  lanepack::plan_options options;
  options.seed = 1;
  options.lanes = lanes;
  options.records_per_pack = 16;
  options.rule = lanepack::epoch_end::continue_epochs;
  options.policy = policy;
  options.tuning = lanepack::calendar_tuning{};
  options.limits.infeasible = lanepack::infeasible_policy::truncate;
  const auto feed = lanepack::make_candidate_feed(source, lanepack::summarize(source),
                                                  lanepack::default_cost(), options);
  std::vector<lanepack::lane_index> all(lanes);
  for (lanepack::lane_index lane = 0; lane < lanes; ++lane) all[lane] = lane;
  return std::make_shared<lanepack::planner>(feed, lanepack::make_policy(options, *feed), all);
}

/// The state of a run that has the same buffers so many steps later.
inline lanepack::run_state later(lanepack::run_state state, std::uint64_t steps,
                                 std::uint32_t records_per_pack) {
  state.next_step += steps;
  state.fragments_step += steps;
  for (lanepack::lane_fragment& fragment : state.fragments) {
    fragment.admitted += steps * records_per_pack;
    for (lanepack::held_record& record : fragment.held) {
      record.arrival += steps * records_per_pack;
      record.admitted += steps;
    }
  }
  return state;
}

/// `step.state()` after every step, against planning alone.
inline comparison state_case(std::uint32_t lanes, const settings& how) {
  const std::uint64_t steps = how.quick ? 4 : 32;
  const auto planner = planner_of_lanes(lanes, "calendar");
  for (int i = 0; i < 64; ++i) static_cast<void>(planner->next());
  comparison out;
  out.item = "steps";
  out.items_per_run = static_cast<double>(steps);
  out.note = "a step of a trainer takes 100 ms and more";
  const auto begin = std::make_shared<const lanepack::run_state>(planner->state());
  const auto run = [=](bool take) {
    planner->restore(*begin);
    std::uint64_t sum = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      sum = mixed(sum, planner->next()->packs.front().cost);
      if (take) sum = mixed(sum, planner->state().fragments.front().held.size());
    }
    return sum;
  };
  out.variants.push_back({"planning and state", [=] { return run(true); }});
  out.variants.push_back({"planning", [=] { return run(false); }});
  return out;
}

/// Restoring the state of a run at step 10^6 and planning its next step.
inline comparison restore_case(std::uint32_t lanes, const std::string& policy,
                               const settings& how) {
  const std::uint64_t steps = how.quick ? 1000 : 1'000'000;
  const auto planner = planner_of_lanes(lanes, policy);
  for (int i = 0; i < 64; ++i) static_cast<void>(planner->next());
  const auto state =
      std::make_shared<const lanepack::run_state>(later(planner->state(), steps, 16));
  comparison out;
  out.item = "states";
  out.items_per_run = 1;
  out.wanted = {goal::kind::seconds_at_most, 1};
  out.variants.push_back({"restore and plan a step", [=] {
                            planner->restore(*state);
                            return planner->next()->packs.front().cost;
                          }});
  return out;
}

/// Saving and reading a state.
inline comparison state_bytes_case(std::uint32_t lanes, lanepack::state_format format) {
  const auto planner = planner_of_lanes(lanes, "calendar");
  for (int i = 0; i < 64; ++i) static_cast<void>(planner->next());
  const auto state =
      std::make_shared<const lanepack::run_state>(later(planner->state(), 1'000'000, 16));
  const std::string bytes = lanepack::run_state_bytes(*state, format);
  comparison out;
  out.item = "states";
  out.items_per_run = 1;
  out.bytes_per_run = static_cast<double>(bytes.size());
  out.note = std::to_string(bytes.size() / lanes) + " bytes a lane of 16 x 16 records";
  out.variants.push_back({"write and read", [=] {
                            const std::string written = lanepack::run_state_bytes(*state, format);
                            return lanepack::parse_run_state(written).fragments.size();
                          }});
  return out;
}

inline void add_checkpoint_benchmarks(std::vector<benchmark>& out) {
  out.push_back({"checkpoint/state/L=64", [](const settings& how) { return state_case(64, how); }});
  for (const std::string policy : {"window", "calendar", "replicated"}) {
    out.push_back({"checkpoint/restore/policy=" + policy + "/L=64/step=10^6",
                   [=](const settings& how) { return restore_case(64, policy, how); }});
  }
  out.push_back({"checkpoint/cbor/L=64", [](const settings&) {
                   return state_bytes_case(64, lanepack::state_format::cbor);
                 }});
  out.push_back({"checkpoint/json/L=64", [](const settings&) {
                   return state_bytes_case(64, lanepack::state_format::json);
                 }});
}

}  // namespace lanepack_bench
