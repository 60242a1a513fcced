# cmake -C cmake/cache/tsan.cmake ...: g++ with ThreadSanitizer, only for the tests that use threads.

set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_COMPILER g++ CACHE STRING "")
set(CMAKE_CXX_FLAGS "-O1 -fsanitize=thread -fno-omit-frame-pointer" CACHE STRING "")
set(CMAKE_CXX_FLAGS_DEBUG "-g1" CACHE STRING "")
set(LANEPACK_CHECKED ON CACHE BOOL "")
set(LANEPACK_CUDA OFF CACHE STRING "")
set(LANEPACK_BENCHMARKS OFF CACHE BOOL "")
set(LANEPACK_EXAMPLES OFF CACHE BOOL "")
set(LANEPACK_INSTALL OFF CACHE BOOL "")
set(LANEPACK_PROJECT_TESTS OFF CACHE BOOL "")
set(LANEPACK_TEST_TARGETS
    "unit_(core|corpus|device|loader|pipeline)|property_(corpus|device|loader|pipeline)|conformance"
    CACHE STRING "")
set(LANEPACK_TESTS_COMPILED ON CACHE BOOL "")
set(LANEPACK_TEST_TIMEOUT 600 CACHE STRING "")
