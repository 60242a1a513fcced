#pragma once

/// @file
/// Which rank this process is: `world`, `process_place` and their discovery from the environment.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// One rank among `size`.
struct world {
  /// In [0, size).
  rank_index rank = 0;
  /// Number of ranks (W), at least 1.
  rank_index size = 1;

  friend bool operator==(const world&, const world&) = default;
};

/// Checks that `where.rank` is below `where.size`, which also keeps the size from being 0.
/// @throws  invalid_option naming `world.size` or `world.rank`.
inline void validate(const world& where) {
  if (where.size == 0) detail::throw_invalid_option("world.size", "0", "at least 1");
  if (where.rank >= where.size) {
    detail::throw_invalid_option("world.rank", std::to_string(where.rank),
                                 "a rank below world.size = " + std::to_string(where.size));
  }
}

/// Who told this process its rank, in order of precedence.
enum class launcher : std::uint8_t {
  /// The caller, by `discovery_options`.
  caller,
  /// `RANK`, `WORLD_SIZE`: torchrun and all that imitate it.
  torchrun,
  /// `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`.
  open_mpi,
  /// `MV2_COMM_WORLD_RANK`, `MV2_COMM_WORLD_SIZE`.
  mvapich,
  /// `PMI_RANK`, `PMI_SIZE`: MPICH, Intel MPI and srun with PMI-2.
  pmi,
  /// `PALS_RANKID` with `PALS_NRANKS` or `PMI_SIZE`.
  pals,
  /// `FLUX_TASK_RANK`, `FLUX_JOB_SIZE`.
  flux,
  /// `SLURM_PROCID` with `SLURM_STEP_NUM_TASKS` or `SLURM_NTASKS`: srun.
  slurm,
  /// Nobody: a single process.
  none,
};

namespace detail {

constexpr std::array<std::string_view, 9> launcher_names{
    "caller", "torchrun", "open_mpi", "mvapich", "pmi", "pals", "flux", "slurm", "none"};

}  // namespace detail

/// The enumerator's name, as text for people and options.
[[nodiscard]] constexpr std::string_view name_of(launcher family) noexcept {
  return detail::launcher_names[static_cast<std::size_t>(family)];
}

/// The launcher of that name.
/// @throws  invalid_option naming `launcher` and the names that exist.
[[nodiscard]] inline launcher launcher_from_name(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < detail::launcher_names.size(); ++i) {
    if (detail::launcher_names[i] == name) return static_cast<launcher>(i);
    known += (i == 0 ? "" : ", ") + std::string(detail::launcher_names[i]);
  }
  detail::throw_invalid_option("launcher", "\"" + std::string(name) + "\"", "one of " + known);
}

/// Reads one environment variable: its value, or null where it is not set.
using environment_lookup = std::function<const char*(const char* name)>;

/// What the caller knows better than the environment.
struct discovery_options {
  /// Rank in [0, world_size); needs `world_size`. With it the environment is not read.
  std::optional<rank_index> rank;
  /// Number of ranks, at least 1; needs `rank`.
  std::optional<rank_index> world_size;
  /// The only launcher whose variables are read; `none` is a single process whatever is set, and
  /// `caller` demands `rank` and `world_size`.
  std::optional<launcher> family;
};

/// Where this process stands among all and among those of its node.
struct process_place {
  lanepack::world world;
  /// Rank among the processes of this node, where the launcher tells.
  std::optional<rank_index> local_rank;
  /// Processes of this node, where the launcher tells.
  std::optional<rank_index> local_size;
  /// Whose variables were taken.
  launcher family = launcher::none;
};

/// Finds out which rank this process is: by the caller's word, else by the variables of torchrun,
/// Open MPI, MVAPICH, PMI (MPICH, Intel MPI), PALS, Flux and Slurm in that order, else it is a
/// single process.
///
/// A launcher that was itself started by another is no conflict: torchrun's workers under any
/// launcher (they have `TORCHELASTIC_RUN_ID`), and launchers that srun started once a node. A Slurm
/// batch script that does not use srun is a single process unless its job has several tasks.
///
/// @param options  What the caller knows; `family` restricts reading to one launcher.
/// @param lookup   Reads a variable; default is the environment of the process.
/// @throws         invalid_option naming the variables, the values found and what was expected:
///                 half a pair, not a number, a rank that is not below its size, two launchers that
///                 each tell of more than one rank and contradict each other, or a launcher that
///                 was asked for and set nothing.
/// @thread_safety  Any number of threads, as long as none changes the environment.
[[nodiscard]] LANEPACK_FUNCTION process_place discover_world(const discovery_options& options = {},
                                                             const environment_lookup& lookup = {});

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/topology/world.ipp>
#endif
