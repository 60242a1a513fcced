#pragma once

/// @file
/// How many threads there is work for.

#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Processors that this process may use, at least 1.
[[nodiscard]] inline unsigned available_threads() noexcept {
#if defined(__linux__)
  ::cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
    return static_cast<unsigned>(CPU_COUNT(&set));
  }
#endif
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<unsigned>(online) : 1;
}

}  // namespace lanepack::inline LANEPACK_ABI
