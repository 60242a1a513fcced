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

// A program that links `lanepack::compiled` (it defines LANEPACK_COMPILED=1) finds the bodies of
// the functions marked so in that library and does not compile them again.
#if !defined(LANEPACK_COMPILED)
#define LANEPACK_COMPILED 0
#endif
#if LANEPACK_COMPILED
#define LANEPACK_FUNCTION
#else
#define LANEPACK_FUNCTION inline
#endif

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
