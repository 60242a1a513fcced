# fuzz/<name>.cpp is a fuzz target; its corpus is fuzz/corpus/<name>/. Normally it is built as a program
# that replays the corpus, a CTest test; with LANEPACK_FUZZ also as a libFuzzer program.

file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cpp)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  if(NOT fuzz_${name} MATCHES "^(${LANEPACK_TEST_TARGETS})$")
    continue()
  endif()
  add_executable(fuzz_${name} ${source})
  target_include_directories(fuzz_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(fuzz_${name} PRIVATE lanepack_dev lanepack)
  add_test(NAME fuzz.${name} COMMAND fuzz_${name} "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
  set_tests_properties(
    fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${LANEPACK_TEST_TIMEOUT}
                            ENVIRONMENT "${lanepack_test_environment}")

  if(LANEPACK_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "LANEPACK_FUZZ needs clang++, found ${CMAKE_CXX_COMPILER_ID}")
    endif()
    add_executable(libfuzzer_${name} ${source})
    target_include_directories(libfuzzer_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_definitions(libfuzzer_${name} PRIVATE LANEPACK_LIBFUZZER=1)
    target_compile_options(libfuzzer_${name} PRIVATE -g -O1 -fsanitize=fuzzer,address,undefined
                                                     -fno-sanitize-recover=all)
    target_link_options(libfuzzer_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    target_link_libraries(libfuzzer_${name} PRIVATE lanepack_dev lanepack)
    # New inputs go into the first folder, not into the repository.
    set(found "${CMAKE_CURRENT_BINARY_DIR}/fuzz/${name}")
    file(MAKE_DIRECTORY "${found}")
    add_test(
      NAME fuzz.libfuzzer.${name}
      COMMAND libfuzzer_${name} -seed=1 -runs=50000 -max_total_time=10 -rss_limit_mb=4096
              "-artifact_prefix=${found}/" "${found}" "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
    set_tests_properties(fuzz.libfuzzer.${name} PROPERTIES LABELS fuzz TIMEOUT ${LANEPACK_TEST_TIMEOUT})
  endif()
endforeach()
