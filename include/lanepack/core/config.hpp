#pragma once

/// @file
/// Build-mode macros: the ABI namespace, assertions of checked builds and the host/device seam.

#include <lanepack/version.hpp>

// A checked build has another layout of some classes, so it lives in another inline namespace:
// mixing the two in one program is a link error instead of undefined behaviour.
#if defined(LANEPACK_CHECKED) && LANEPACK_CHECKED
#define LANEPACK_ABI v0_1_checked
#else
#define LANEPACK_ABI v0_1
#endif

/// Expands to `__host__ __device__` under nvcc and to nothing elsewhere.
#if defined(__CUDACC__)
#define LANEPACK_HD __host__ __device__
#else
#define LANEPACK_HD
#endif

/// Keeps an error path out of the hot code that reaches it.
#define LANEPACK_COLD [[gnu::cold, gnu::noinline]]

/// Stops the program on a broken precondition in checked builds (`LANEPACK_CHECKED=1`).
#if defined(LANEPACK_CHECKED) && LANEPACK_CHECKED
#include <cstdio>
#include <cstdlib>
#define LANEPACK_ASSERT(condition)                                                         \
  ((condition) ? static_cast<void>(0)                                                      \
               : (std::fprintf(stderr, "%s:%d: lanepack assertion failed: %s\n", __FILE__, \
                               __LINE__, #condition),                                      \
                  std::abort()))
#else
#define LANEPACK_ASSERT(condition) static_cast<void>(0)
#endif
