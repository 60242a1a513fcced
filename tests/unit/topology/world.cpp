#include <map>
#include <string>
#include <vector>

#include <lanepack/topology/world.hpp>

#include "support/catch.hpp"

namespace {

using lanepack::discover_world;
using lanepack::discovery_options;
using lanepack::invalid_option;
using lanepack::launcher;
using lanepack::process_place;
using lanepack::rank_index;
using lanepack::world;

using variables = std::map<std::string, std::string>;

process_place discover(const variables& set, const discovery_options& options = {}) {
  return discover_world(options, [&set](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const variables& set, const discovery_options& options = {}) {
  try {
    const process_place place = discover(set, options);
    return "accepted as rank " + std::to_string(place.world.rank) + " of " +
           std::to_string(place.world.size);
  } catch (const invalid_option& refused) {
    return refused.what();
  }
}

discovery_options only(launcher family) {
  discovery_options options;
  options.family = family;
  return options;
}

variables merged(variables a, const variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

struct family_case {
  launcher family;
  std::string rank;
  std::string size;
  std::string local_rank;
  std::string local_size;
};

const std::vector<family_case> pairs{
    {launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {launcher::mvapich, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {launcher::pmi, "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {launcher::pals, "PALS_RANKID", "PALS_NRANKS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {launcher::flux, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", ""},
    {launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

}  // namespace

TEST_CASE("topology: a world is checked", "[topology]") {
  CHECK_NOTHROW(lanepack::validate(world{}));
  CHECK_NOTHROW(lanepack::validate(world{7, 8}));
  CHECK_THROWS_MATCHES(lanepack::validate(world{0, 0}), invalid_option,
                       Catch::Matchers::Message("world.size: found 0, expected at least 1"));
  CHECK_THROWS_MATCHES(
      lanepack::validate(world{8, 8}), invalid_option,
      Catch::Matchers::Message("world.rank: found 8, expected a rank below world.size = 8"));
}

TEST_CASE("topology: launchers have names", "[topology]") {
  for (int i = 0; i <= static_cast<int>(launcher::none); ++i) {
    const auto family = static_cast<launcher>(i);
    CHECK(lanepack::launcher_from_name(lanepack::name_of(family)) == family);
  }
  CHECK(lanepack::name_of(launcher::open_mpi) == "open_mpi");
  CHECK_THROWS_MATCHES(lanepack::launcher_from_name("mpi"), invalid_option,
                       Catch::Matchers::Message(
                           "launcher: found \"mpi\", expected one of caller, torchrun, open_mpi, "
                           "mvapich, pmi, pals, flux, slurm, none"));
}

TEST_CASE("topology: nothing set is a single process", "[topology]") {
  const process_place place = discover({});
  CHECK(place.world == world{0, 1});
  CHECK(place.family == launcher::none);
  CHECK_FALSE(place.local_rank.has_value());
  CHECK_FALSE(place.local_size.has_value());
}

TEST_CASE("topology: without a lookup the environment of the process is read", "[topology]") {
  CHECK_NOTHROW(discover_world(only(launcher::none)));
}

TEST_CASE("topology: every launcher's variables are understood", "[topology]") {
  for (const family_case& names : pairs) {
    CAPTURE(names.rank, names.local_rank);
    variables set{{names.rank, "5"}, {names.size, "16"}};
    process_place place = discover(set);
    CHECK(place.world == world{5, 16});
    CHECK(place.family == names.family);
    CHECK_FALSE(place.local_rank.has_value());
    CHECK_FALSE(place.local_size.has_value());

    set[names.local_rank] = "1";
    place = discover(set);
    CHECK(place.local_rank == rank_index{1});
    CHECK_FALSE(place.local_size.has_value());
    if (names.local_size.empty()) continue;

    set[names.local_size] = "4";
    place = discover(set);
    CHECK(place.local_rank == rank_index{1});
    CHECK(place.local_size == rank_index{4});
    CHECK(refusal(merged({{names.local_rank, "4"}}, set)) ==
          names.local_rank + ": found 4, expected a rank below " + names.local_size + "=4");
    CHECK(refusal(merged({{names.local_size, "17"}}, set)) ==
          names.local_size + ": found 17, expected from 1 to the number of ranks, 16");
    CHECK(refusal(merged({{names.local_size, "0"}}, set)) ==
          names.local_size + ": found 0, expected from 1 to the number of ranks, 16");
    CHECK(refusal(merged({{names.local_rank, "one"}}, set)) ==
          names.local_rank + ": found \"one\", expected a whole number from 0 to 4294967295");
  }
}

TEST_CASE("topology: half a pair is an error that names both halves", "[topology]") {
  for (const family_case& names : pairs) {
    if (names.family == launcher::slurm || names.family == launcher::pals) continue;
    CAPTURE(names.rank);
    CHECK(refusal({{names.rank, "5"}}) ==
          names.size + ": found nothing, expected the number of ranks, beside " + names.rank +
              "=5");
    CHECK(refusal({{names.size, "8"}}) ==
          names.rank + ": found nothing, expected a rank, beside " + names.size + "=8");
  }
  // A broken pair counts wherever it stands in the order.
  CHECK(refusal({{"RANK", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}) ==
        "WORLD_SIZE: found nothing, expected the number of ranks, beside RANK=1");
  CHECK(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"PMI_SIZE", "2"}}) ==
        "PMI_RANK: found nothing, expected a rank, beside PMI_SIZE=2");
  CHECK(refusal({{"PALS_RANKID", "3"}}) ==
        "PALS_NRANKS and PMI_SIZE: found nothing, expected the number of ranks in one of them, "
        "beside PALS_RANKID=3");
}

TEST_CASE("topology: values that are no ranks are errors", "[topology]") {
  for (const family_case& names : pairs) {
    CAPTURE(names.rank);
    for (const std::string bad :
         {"", " ", "abc", "-1", "+1", " 3", "3 ", "3\n", "0x3", "1.0", "3;", "4294967296",
          "18446744073709551616", "99999999999999999999999"}) {
      CAPTURE(bad);
      const std::string complaint =
          ": found \"" + bad + "\", expected a whole number from 0 to 4294967295";
      CHECK(refusal({{names.rank, bad}, {names.size, "8"}}) == names.rank + complaint);
      CHECK(refusal({{names.rank, "0"}, {names.size, bad}}) == names.size + complaint);
    }
    CHECK(refusal({{names.rank, "8"}, {names.size, "8"}}) ==
          names.rank + ": found 8, expected a rank below " + names.size + "=8");
    CHECK(refusal({{names.rank, "0"}, {names.size, "0"}}) ==
          names.size + ": found 0, expected at least 1, beside " + names.rank + "=0");
    CHECK(discover({{names.rank, "4294967294"}, {names.size, "4294967295"}}).world ==
          world{4294967294, 4294967295});
    CHECK(discover({{names.rank, "007"}, {names.size, "08"}}).world == world{7, 8});
  }
}

TEST_CASE("topology: earlier launchers take precedence where they agree", "[topology]") {
  variables set;
  for (auto names = pairs.rbegin(); names != pairs.rend(); ++names) {
    set[names->rank] = "2";
    set[names->size] = "4";
    CAPTURE(names->rank);
    CHECK(discover(set).family == names->family);
    CHECK(discover(set).world == world{2, 4});
  }
}

TEST_CASE("topology: two launchers with several ranks that disagree are an error", "[topology]") {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t j = i + 1; j < pairs.size(); ++j) {
      const family_case& a = pairs[i];
      const family_case& b = pairs[j];
      if (a.family == b.family || (a.family == launcher::pmi && b.family == launcher::pals)) {
        continue;
      }
      CAPTURE(a.rank, b.rank);
      const variables set{{a.rank, "1"}, {a.size, "2"}, {b.rank, "2"}, {b.size, "3"}};
      CHECK(refusal(set) ==
            "launcher: found " + a.rank + "=1 " + a.size + "=2 (" +
                std::string(lanepack::name_of(a.family)) + ") and " + b.rank + "=2 " + b.size +
                "=3 (" + std::string(lanepack::name_of(b.family)) +
                "), expected one place in one world: unset the stale variables or name the "
                "launcher to believe");
      CHECK(discover(set, only(a.family)).world == world{1, 2});
      CHECK(discover(set, only(b.family)).world == world{2, 3});
      CHECK(discover(set, only(b.family)).family == b.family);

      const variables other_rank{{a.rank, "1"}, {a.size, "4"}, {b.rank, "2"}, {b.size, "4"}};
      CHECK_THAT(refusal(other_rank), Catch::Matchers::ContainsSubstring(a.rank + "=1 ") &&
                                          Catch::Matchers::ContainsSubstring(b.rank + "=2 "));
      const variables single{{a.rank, "0"}, {a.size, "1"}, {b.rank, "2"}, {b.size, "3"}};
      CHECK(discover(single).world == world{0, 1});
      const variables single_below{{a.rank, "1"}, {a.size, "2"}, {b.rank, "0"}, {b.size, "1"}};
      CHECK(discover(single_below).world == world{1, 2});
    }
  }
}

TEST_CASE("topology: the caller's word needs both halves and ends the search", "[topology]") {
  discovery_options options;
  options.rank = 3;
  CHECK(refusal({}, options) ==
        "world_size: found nothing, expected the number of ranks, with rank");
  options.world_size = 4;
  const process_place place = discover({{"RANK", "nonsense"}}, options);
  CHECK(place.world == world{3, 4});
  CHECK(place.family == launcher::caller);
  options.family = launcher::caller;
  CHECK(discover({}, options).world == world{3, 4});
  options.family = launcher::slurm;
  CHECK(refusal({}, options) ==
        "family: found slurm, expected nothing, where rank and world_size are given");
  options.family.reset();
  options.rank = 4;
  CHECK(refusal({}, options) == "world.rank: found 4, expected a rank below world.size = 4");
  options.rank.reset();
  CHECK(refusal({}, options) == "rank: found nothing, expected a rank, with world_size");
  CHECK(refusal({}, only(launcher::caller)) ==
        "rank: found nothing, expected a rank, with world_size");
}

TEST_CASE("topology: a launcher that was asked for is the only one read", "[topology]") {
  const variables set{
      {"RANK", "broken"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  CHECK(discover(set, only(launcher::open_mpi)).world == world{1, 2});
  CHECK(discover(set, only(launcher::none)).world == world{0, 1});
  CHECK(refusal(set, only(launcher::flux)) ==
        "family: found flux, expected a launcher that set its variables for this process");
  CHECK(refusal({{"SLURM_NTASKS", "8"}}, only(launcher::slurm)) ==
        "family: found slurm, expected a launcher that set its variables for this process");
}

TEST_CASE("topology: torchrun under srun is no conflict", "[topology]") {
  // Two nodes of eight, one torchrun a node.
  const variables slurm{{"SLURM_PROCID", "1"},         {"SLURM_NTASKS", "2"},
                        {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "2"},
                        {"SLURM_STEP_ID", "0"},        {"SLURM_LOCALID", "0"}};
  const variables torch{
      {"RANK", "11"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}};
  const process_place place = discover(merged(slurm, torch));
  CHECK(place.world == world{11, 16});
  CHECK(place.local_rank == rank_index{3});
  CHECK(place.local_size == rank_index{8});
  CHECK(place.family == launcher::torchrun);

  // One process a node; the rendezvous need not number nodes as Slurm does.
  const variables elastic{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "7"}};
  CHECK(discover(merged(slurm, elastic)).world == world{0, 2});
  // An elastic run that lost nodes.
  const variables shrunk{{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"TORCHELASTIC_RUN_ID", "7"}};
  CHECK(discover(merged({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}}, shrunk)).world ==
        world{0, 3});
}

TEST_CASE("topology: variables that every task of srun inherited are a conflict", "[topology]") {
  const variables stale{{"RANK", "0"}, {"WORLD_SIZE", "8"}};
  CHECK(refusal(merged({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}}, stale)) ==
        "launcher: found RANK=0 WORLD_SIZE=8 (torchrun) and SLURM_PROCID=3 "
        "SLURM_STEP_NUM_TASKS=8 (slurm), expected one place in one world: unset the stale "
        "variables or name the launcher to believe");
  CHECK_THAT(refusal(merged({{"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "16"}}, stale)),
             Catch::Matchers::ContainsSubstring("SLURM_STEP_NUM_TASKS=16"));
}

TEST_CASE("topology: torchrun under mpirun is no conflict", "[topology]") {
  const variables mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const variables torch{{"RANK", "11"}, {"WORLD_SIZE", "16"}};
  CHECK_THAT(refusal(merged(mpi, torch)), Catch::Matchers::ContainsSubstring("RANK=11"));
  CHECK(discover(merged(mpi, merged(torch, {{"TORCHELASTIC_RUN_ID", "none"}}))).world ==
        world{11, 16});
}

TEST_CASE("topology: mpirun that starts its daemons by srun is no conflict", "[topology]") {
  // Four nodes of eight: daemons on the three nodes where mpirun itself is not.
  const variables set{{"OMPI_COMM_WORLD_RANK", "9"}, {"OMPI_COMM_WORLD_SIZE", "32"},
                      {"SLURM_PROCID", "0"},         {"SLURM_STEP_NUM_TASKS", "3"},
                      {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_NTASKS", "3"}};
  CHECK(discover(set).world == world{9, 32});
  CHECK(discover(set).family == launcher::open_mpi);
  // On mpirun's own node the variables of the batch script are seen.
  CHECK(discover({{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "32"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "32"}})
            .world == world{1, 32});
}

TEST_CASE("topology: a batch script of Slurm without srun", "[topology]") {
  CHECK(discover({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}}).world == world{0, 1});
  CHECK(discover({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).world ==
        world{0, 1});
  // The shell of salloc has no task at all.
  CHECK(discover({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "8"}}).world == world{0, 1});
  const variables several{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  CHECK(refusal(several) ==
        "SLURM_STEP_NUM_TASKS: found nothing, expected the number of tasks, beside SLURM_PROCID=0 "
        "SLURM_NTASKS=8: start a batch script's ranks with srun, or set the launcher to \"none\" "
        "for a single process");
  CHECK(discover(several, only(launcher::none)).world == world{0, 1});
  CHECK(discover(merged(several, {{"RANK", "2"}, {"WORLD_SIZE", "4"}})).world == world{2, 4});
}

TEST_CASE("topology: the size of a Slurm step", "[topology]") {
  // A step of the job has fewer tasks than the job.
  CHECK(discover({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}})
            .world == world{1, 2});
  CHECK(discover({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}}).world ==
        world{0, 8});
  // No batch script has another rank than 0.
  CHECK(discover({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}).world == world{3, 8});
  CHECK(refusal({{"SLURM_PROCID", "3"}}) ==
        "SLURM_NTASKS: found nothing, expected the number of ranks, beside SLURM_PROCID=3");
}

TEST_CASE("topology: the tasks of a node in Slurm's notation", "[topology]") {
  const auto step = [](const std::string& list, const std::string& node) {
    return variables{{"SLURM_PROCID", "0"},
                     {"SLURM_STEP_NUM_TASKS", "100"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_NODEID", node},
                     {"SLURM_STEP_TASKS_PER_NODE", list}};
  };
  const auto local_size = [&step](const std::string& list, const std::string& node) {
    return discover(step(list, node)).local_size;
  };
  CHECK(local_size("8", "0") == rank_index{8});
  CHECK(local_size("8(x4)", "3") == rank_index{8});
  CHECK(local_size("2(x3),1", "2") == rank_index{2});
  CHECK(local_size("2(x3),1", "3") == rank_index{1});
  CHECK(local_size("5,4(x2),7", "0") == rank_index{5});
  CHECK(local_size("5,4(x2),7", "2") == rank_index{4});
  CHECK(local_size("5,4(x2),7", "3") == rank_index{7});
  CHECK_FALSE(local_size("5,4(x2),7", "4").has_value());
  for (const std::string bad : {"", "x", "2(", "2(x", "2(x)", "2(x3", "2(xq)", ",", "1,,1"}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(step(bad, "9")),
               Catch::Matchers::StartsWith("SLURM_STEP_TASKS_PER_NODE: found "));
  }
}

TEST_CASE("topology: PALS takes its size from PMI", "[topology]") {
  const variables set{{"PALS_RANKID", "3"}, {"PALS_LOCAL_RANKID", "1"}, {"PALS_LOCAL_SIZE", "2"}};
  const process_place place =
      discover(merged(set, {{"PMI_RANK", "3"}, {"PMI_SIZE", "6"}}), only(launcher::pals));
  CHECK(place.world == world{3, 6});
  CHECK(place.local_rank == rank_index{1});
  CHECK(place.local_size == rank_index{2});
  // Where someone above knows the place, PALS need not know the size.
  CHECK(discover(merged(set, {{"RANK", "3"}, {"WORLD_SIZE", "6"}})).family == launcher::torchrun);
}
