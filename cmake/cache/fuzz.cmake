# cmake -C cmake/cache/fuzz.cmake ...: the libFuzzer programs bin/libfuzzer_<name>, with clang++. To look
# for new cases: bin/libfuzzer_<name> -max_total_time=60 NEW_CASES_FOLDER tests/fuzz/corpus/<name>

set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_COMPILER clang++ CACHE STRING "")
set(LANEPACK_FUZZ ON CACHE BOOL "")
set(LANEPACK_CUDA OFF CACHE STRING "")
set(LANEPACK_BENCHMARKS OFF CACHE BOOL "")
set(LANEPACK_EXAMPLES OFF CACHE BOOL "")
set(LANEPACK_PROJECT_TESTS OFF CACHE BOOL "")
set(LANEPACK_TEST_TARGETS "fuzz_.*" CACHE STRING "")
