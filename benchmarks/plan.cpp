// lanepack-plan: prints the packs of a run as JSON Lines, so that anyone can check them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json.hpp>
#include <lanepack/lanepack.hpp>

#include "support/memory_bound.hpp"
#include "support/mix_arguments.hpp"
#include "support/plan_arguments.hpp"
#include "support/program.hpp"

namespace {

using lanepack_programs::add_number;
using lanepack_programs::command_line;
using lanepack_programs::exit_code;

/// JSON numbers are exact up to 2^53 in most readers; larger ones are written as text.
nlohmann::ordered_json exact(std::uint64_t value) {
  if (value > (std::uint64_t{1} << 53)) return std::to_string(value);
  return value;
}

void print_pack(const lanepack::step_plan& step, const lanepack::pack_plan& pack,
                lanepack::rank_index rank) {
  nlohmann::ordered_json ids = nlohmann::json::array();
  nlohmann::ordered_json epochs = nlohmann::json::array();
  bool filling = false;
  nlohmann::ordered_json roles = nlohmann::json::array();
  for (const lanepack::candidate& record : pack.records) {
    ids.push_back(exact(record.record.id));
    epochs.push_back(exact(record.record.epoch));
    roles.push_back(to_string(record.role));
    filling = filling || record.role != lanepack::record_role::regular;
  }
  nlohmann::ordered_json line;
  line["step"] = exact(step.step);
  line["lane"] = pack.lane;
  line["rank"] = rank;
  line["records"] = std::move(ids);
  line["epochs"] = std::move(epochs);
  if (filling) line["roles"] = std::move(roles);
  line["cost"] = exact(pack.cost);
  line["digest"] = lanepack::plan_digest(pack.records).hex();
  lanepack_programs::print(lanepack_programs::json_text(line) + "\n");
}

exit_code run(command_line& line) {
  line.describe(
      "Prints the plan of a run as JSON Lines, one object per pack: step, lane, rank, records "
      "(ids), epochs (one per record), cost and digest; roles too where a record is repeated or "
      "masked to fill a last step. No payload is read. Numbers above 2^53 are written as text. "
      "With "
      "--mix, ids run through the corpora in their order, and stderr has their shares.",
      "lanepack-plan --lengths lengths.u32 --world 4 --rank 0 --lanes 8 --records-per-pack 16 "
      "--steps 2");
  lanepack_programs::plan_arguments arguments;
  arguments.add_to(line.app());
  std::uint32_t world_size = 1;
  std::string rank_text = "all";
  std::uint64_t start_step = 0;
  bool uneven = false;
  add_number(line.app(), "--world", world_size, "Number of data-parallel ranks", {.least = 1});
  line.app().add_option("--rank", rank_text, "Rank whose packs are printed, or 'all'");
  add_number(line.app(), "--start-step", start_step, "First step to print");
  line.app().add_flag("--uneven", uneven, "Let ranks own numbers of lanes that differ by one");
  line.parse();

  const lanepack_programs::opened_plan plan = arguments.open();
  std::optional<lanepack::rank_index> only;
  if (rank_text != "all") {
    const std::uint64_t rank = lanepack_programs::parse_number("--rank", rank_text);
    if (rank >= world_size) {
      lanepack::detail::throw_invalid_option(
          "--rank", rank_text,
          "'all' or a number below the world size " + std::to_string(world_size));
    }
    only = static_cast<lanepack::rank_index>(rank);
  }
  const lanepack::lane_ownership ownership(
      plan.options.lanes, {.rank = only.value_or(0), .size = world_size},
      uneven ? lanepack::uneven_lanes::allow : lanepack::uneven_lanes::refuse);
  const lanepack::lane_range range =
      only ? ownership.owned() : lanepack::lane_range{0, plan.options.lanes};
  lanepack_programs::check_memory("--lanes", plan.options, range.size());
  std::vector<lanepack::lane_index> lanes(range.size());
  std::iota(lanes.begin(), lanes.end(), range.first);

  lanepack::planner planner(plan.feed, plan.policy, lanes);
  planner.start_at(start_step);
  while (const std::optional<lanepack::step_plan> step = planner.next()) {
    for (const lanepack::pack_plan& pack : step->packs) {
      print_pack(*step, pack, ownership.owner(pack.lane));
    }
  }
  lanepack_programs::print_shares(plan.feed->source(), planner.statistics().parts);
  return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
