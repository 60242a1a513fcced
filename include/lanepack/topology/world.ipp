#pragma once

/// @file
/// The body of `discover_world`.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/topology/world.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// A variable that was found, or the name to complain about.
struct environment_value {
  std::string name;
  std::optional<std::string> text;

  [[nodiscard]] bool present() const noexcept { return text.has_value(); }

  /// `NAME=value`, or `NAME (not set)`.
  [[nodiscard]] std::string describe() const {
    return present() ? name + "=" + *text : name + " (not set)";
  }

  [[nodiscard]] rank_index number() const {
    constexpr std::uint64_t limit = std::numeric_limits<rank_index>::max();
    std::uint64_t value = 0;
    bool valid = !text->empty();
    for (const char digit : *text) {
      valid = valid && digit >= '0' && digit <= '9';
      if (!valid) break;
      value = value * 10 + static_cast<std::uint64_t>(digit - '0');
      valid = value <= limit;
    }
    if (!valid) {
      throw_invalid_option(name, "\"" + *text + "\"",
                           "a whole number from 0 to " + std::to_string(limit));
    }
    return static_cast<rank_index>(value);
  }
};

/// What one launcher's variables say.
struct family_finding {
  launcher family = launcher::none;
  environment_value rank;
  environment_value size;
  lanepack::world world;

  [[nodiscard]] std::string describe() const {
    return rank.describe() + " " + size.describe() + " (" + std::string(name_of(family)) + ")";
  }
};

/// Reads the variables of all launchers through one lookup.
class environment_reader {
 public:
  explicit environment_reader(const environment_lookup& lookup) : lookup_(lookup) {}

  /// The pair of a launcher, or nullopt where the launcher did not start this process.
  /// @param strict  A launcher that leaves its size open is an error and not an absence.
  [[nodiscard]] std::optional<family_finding> find(launcher family, bool strict) const {
    switch (family) {
      case launcher::torchrun:
        return pair(family, read("RANK"), read("WORLD_SIZE"));
      case launcher::open_mpi:
        return pair(family, read("OMPI_COMM_WORLD_RANK"), read("OMPI_COMM_WORLD_SIZE"));
      case launcher::mvapich:
        return pair(family, read("MV2_COMM_WORLD_RANK"), read("MV2_COMM_WORLD_SIZE"));
      case launcher::pmi:
        return pair(family, read("PMI_RANK"), read("PMI_SIZE"));
      case launcher::pals:
        return pals(strict);
      case launcher::flux:
        return pair(family, read("FLUX_TASK_RANK"), read("FLUX_JOB_SIZE"));
      case launcher::slurm:
        return slurm(strict);
      case launcher::caller:
      case launcher::none:
        break;
    }
    return std::nullopt;
  }

  /// Adds the node-local part to a finding.
  [[nodiscard]] process_place place(const family_finding& found) const {
    process_place result{found.world, std::nullopt, std::nullopt, found.family};
    switch (found.family) {
      case launcher::torchrun:
        local(result, read("LOCAL_RANK"), read("LOCAL_WORLD_SIZE"));
        break;
      case launcher::open_mpi:
        local(result, read("OMPI_COMM_WORLD_LOCAL_RANK"), read("OMPI_COMM_WORLD_LOCAL_SIZE"));
        break;
      case launcher::mvapich:
        local(result, read("MV2_COMM_WORLD_LOCAL_RANK"), read("MV2_COMM_WORLD_LOCAL_SIZE"));
        break;
      case launcher::pmi:
        local(result, first_of("MPI_LOCALRANKID", "PMI_LOCAL_RANK"),
              first_of("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"));
        break;
      case launcher::pals:
        local(result, read("PALS_LOCAL_RANKID"), read("PALS_LOCAL_SIZE"));
        break;
      case launcher::flux:
        local(result, read("FLUX_TASK_LOCAL_ID"), {});
        break;
      case launcher::slurm:
        local(result, read("SLURM_LOCALID"), slurm_tasks_of_node());
        break;
      case launcher::caller:
      case launcher::none:
        break;
    }
    return result;
  }

  /// Whether `outer` may have started the launcher that then started this process as `inner` says.
  [[nodiscard]] bool nested(const family_finding& inner, const family_finding& outer) const {
    // torchrun's workers carry this; their RANK was set by their parent and is never stale.
    if (inner.family == launcher::torchrun && read("TORCHELASTIC_RUN_ID").present()) return true;
    if (outer.family != launcher::slurm || outer.world.size >= inner.world.size) return false;
    // Slurm then counts launchers: one a node, or (mpirun) one on every node but the first.
    const environment_value nodes = read("SLURM_STEP_NUM_NODES");
    return inner.world.size % outer.world.size == 0 ||
           (nodes.present() && nodes.number() == outer.world.size);
  }

 private:
  [[nodiscard]] environment_value read(const char* name) const {
    const char* text = lookup_(name);
    return {name, text == nullptr ? std::nullopt : std::optional<std::string>(text)};
  }

  [[nodiscard]] environment_value first_of(const char* name, const char* other) const {
    environment_value value = read(name);
    return value.present() ? value : read(other);
  }

  static std::optional<family_finding> pair(launcher family, environment_value rank,
                                            environment_value size) {
    if (!rank.present() && !size.present()) return std::nullopt;
    if (!size.present()) {
      throw_invalid_option(size.name, "nothing", "the number of ranks, beside " + rank.describe());
    }
    if (!rank.present()) {
      throw_invalid_option(rank.name, "nothing", "a rank, beside " + size.describe());
    }
    const lanepack::world where{rank.number(), size.number()};
    if (where.size == 0) {
      throw_invalid_option(size.name, *size.text, "at least 1, beside " + rank.describe());
    }
    if (where.rank >= where.size) {
      throw_invalid_option(rank.name, *rank.text, "a rank below " + size.describe());
    }
    return family_finding{family, std::move(rank), std::move(size), where};
  }

  [[nodiscard]] std::optional<family_finding> pals(bool strict) const {
    environment_value rank = read("PALS_RANKID");
    if (!rank.present()) return std::nullopt;
    environment_value size = first_of("PALS_NRANKS", "PMI_SIZE");
    if (!size.present()) {
      if (!strict) return std::nullopt;
      throw_invalid_option("PALS_NRANKS and PMI_SIZE", "nothing",
                           "the number of ranks in one of them, beside " + rank.describe());
    }
    return pair(launcher::pals, std::move(rank), std::move(size));
  }

  [[nodiscard]] std::optional<family_finding> slurm(bool strict) const {
    environment_value rank = read("SLURM_PROCID");
    // An allocation without a task, such as the shell of salloc.
    if (!rank.present()) return std::nullopt;
    environment_value size = read("SLURM_STEP_NUM_TASKS");
    if (size.present()) return pair(launcher::slurm, std::move(rank), std::move(size));
    size = read("SLURM_NTASKS");
    if (read("SLURM_STEP_ID").present() || rank.number() != 0) {
      if (!size.present() && !strict) return std::nullopt;
      return pair(launcher::slurm, std::move(rank), std::move(size));
    }
    // A batch script: one process, whatever number of tasks the job asked for. Rank 0 of a step
    // whose step variables were filtered away looks the same, so with more tasks neither is safe.
    if (!size.present() || size.number() == 1 || !strict) return std::nullopt;
    throw_invalid_option("SLURM_STEP_NUM_TASKS", "nothing",
                         "the number of tasks, beside " + rank.describe() + " " + size.describe() +
                             ": start a batch script's ranks with srun, or set the launcher to "
                             "\"none\" for a single process");
  }

  static void local(process_place& result, const environment_value& rank,
                    const environment_value& size) {
    if (rank.present()) result.local_rank = rank.number();
    if (!size.present()) return;
    result.local_size = size.number();
    if (*result.local_size == 0 || *result.local_size > result.world.size) {
      throw_invalid_option(size.name, *size.text,
                           "from 1 to the number of ranks, " + std::to_string(result.world.size));
    }
    if (result.local_rank && *result.local_rank >= *result.local_size) {
      throw_invalid_option(rank.name, *rank.text, "a rank below " + size.describe());
    }
  }

  /// The entry of this node in a list such as `2(x3),1`; absent where it cannot be told.
  [[nodiscard]] environment_value slurm_tasks_of_node() const {
    const environment_value list = read("SLURM_STEP_TASKS_PER_NODE");
    const environment_value node = read("SLURM_NODEID");
    if (!list.present() || !node.present()) return {};
    const std::uint64_t wanted = node.number();
    const std::string_view text = *list.text;
    std::uint64_t nodes = 0;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      const std::string_view entry = text.substr(at, end - at);
      const std::size_t open = entry.find("(x");
      environment_value tasks{list.name, std::string(entry.substr(0, open))};
      std::uint64_t repeats = 1;
      if (open != std::string_view::npos) {
        std::string_view count = entry.substr(open + 2);
        if (count.empty() || count.back() != ')') count = ")";
        count.remove_suffix(1);
        repeats = environment_value{list.name, std::string(count)}.number();
      }
      static_cast<void>(tasks.number());
      nodes += repeats;
      if (wanted < nodes) return tasks;
      at = end + 1;
    }
    return {};
  }

  const environment_lookup& lookup_;
};

}  // namespace detail

LANEPACK_FUNCTION process_place discover_world(const discovery_options& options,
                                               const environment_lookup& lookup) {
  if (options.rank || options.world_size || options.family == launcher::caller) {
    if (!options.rank) detail::throw_invalid_option("rank", "nothing", "a rank, with world_size");
    if (!options.world_size) {
      detail::throw_invalid_option("world_size", "nothing", "the number of ranks, with rank");
    }
    if (options.family && options.family != launcher::caller) {
      detail::throw_invalid_option("family", std::string(name_of(*options.family)),
                                   "nothing, where rank and world_size are given");
    }
    const world where{*options.rank, *options.world_size};
    validate(where);
    return {where, std::nullopt, std::nullopt, launcher::caller};
  }
  if (options.family == launcher::none) return {};

  const environment_lookup process = [](const char* name) -> const char* {
    return std::getenv(name);
  };
  const environment_lookup& chosen_lookup = lookup ? lookup : process;
  const detail::environment_reader reader(chosen_lookup);
  if (options.family) {
    const auto found = reader.find(*options.family, true);
    if (!found) {
      detail::throw_invalid_option("family", std::string(name_of(*options.family)),
                                   "a launcher that set its variables for this process");
    }
    return reader.place(*found);
  }

  std::optional<detail::family_finding> chosen;
  for (const launcher family : {launcher::torchrun, launcher::open_mpi, launcher::mvapich,
                                launcher::pmi, launcher::pals, launcher::flux, launcher::slurm}) {
    const auto found = reader.find(family, !chosen.has_value());
    if (!found) continue;
    if (!chosen) {
      chosen = found;
      continue;
    }
    if (chosen->world.size > 1 && found->world.size > 1 && chosen->world != found->world &&
        !reader.nested(*chosen, *found)) {
      detail::throw_invalid_option("launcher", chosen->describe() + " and " + found->describe(),
                                   "one place in one world: unset the stale variables or name the "
                                   "launcher to believe");
    }
  }
  return chosen ? reader.place(*chosen) : process_place{};
}

}  // namespace lanepack::inline LANEPACK_ABI
