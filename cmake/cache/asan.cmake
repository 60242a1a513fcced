# cmake -C cmake/cache/asan.cmake ...: g++ with AddressSanitizer and UndefinedBehaviorSanitizer, the
# library's and the standard library's own checks on.

set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_COMPILER g++ CACHE STRING "")
# At -O1 both sanitizers together make g++ four times as slow as at -Og.
set(CMAKE_CXX_FLAGS
    "-Og -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS"
    CACHE STRING "")
set(CMAKE_CXX_FLAGS_DEBUG "-g1" CACHE STRING "")
set(LANEPACK_CHECKED ON CACHE BOOL "")
set(LANEPACK_CUDA OFF CACHE STRING "")
# The programs and examples take minutes each to compile with these checks; their parts have tests of
# their own.
set(LANEPACK_BENCHMARKS OFF CACHE BOOL "")
set(LANEPACK_EXAMPLES OFF CACHE BOOL "")
# What other builds test as well without them.
set(LANEPACK_PROJECT_TESTS OFF CACHE BOOL "")
set(LANEPACK_TEST_TARGETS "(unit|property|fuzz)_.*|conformance" CACHE STRING "")
set(LANEPACK_TESTS_COMPILED ON CACHE BOOL "")
set(LANEPACK_TEST_TIMEOUT 600 CACHE STRING "")
