# golden/*.cpp print lines "name digest". Every build of them, whatever compiler, library or flags, must
# print exactly the lines of golden/expected.txt.

file(GLOB golden_sources CONFIGURE_DEPENDS golden/*.cpp)
if(NOT golden_sources)
  return()
endif()
set(golden_expected "${CMAKE_CURRENT_SOURCE_DIR}/golden/expected.txt")

function(lanepack_add_golden_test variant)
  list(JOIN ARGN "," programs)
  add_test(NAME golden.${variant}
           COMMAND ${CMAKE_COMMAND} "-DPROGRAMS=${programs}" "-DEXPECTED=${golden_expected}" -P
                   "${CMAKE_CURRENT_SOURCE_DIR}/golden/check.cmake")
  set_tests_properties(
    golden.${variant} PROPERTIES LABELS golden TIMEOUT ${LANEPACK_TEST_TIMEOUT}
                                 ENVIRONMENT "${lanepack_test_environment}")
endfunction()

set(programs "")
foreach(source IN LISTS golden_sources)
  cmake_path(GET source STEM name)
  if(golden_${name} MATCHES "^(${LANEPACK_TEST_TARGETS})$")
    add_executable(golden_${name} ${source})
    target_include_directories(golden_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(golden_${name} PRIVATE lanepack_dev lanepack_core)
    list(APPEND programs $<TARGET_FILE:golden_${name}>)
  endif()
endforeach()
if(programs)
  lanepack_add_golden_test(this_build ${programs})
endif()

# The other builds are plain compiler calls, since one CMake build has one C++ compiler.
function(lanepack_add_golden_variant variant compiler)
  set(programs "")
  foreach(source IN LISTS golden_sources)
    cmake_path(GET source STEM name)
    set(program "${CMAKE_CURRENT_BINARY_DIR}/golden_${variant}/${name}")
    add_custom_command(
      OUTPUT "${program}"
      COMMAND ${compiler} -std=c++20 ${ARGN} -pthread -I "${PROJECT_SOURCE_DIR}/include" -I
              "${CMAKE_CURRENT_SOURCE_DIR}" -MD -MF "${program}.d" -MT "${program}" -o "${program}"
              "${source}"
      DEPENDS "${source}"
      DEPFILE "${program}.d"
      COMMENT "Building the golden program ${name} as ${variant}"
      VERBATIM)
    list(APPEND programs "${program}")
  endforeach()
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/golden_${variant}")
  add_custom_target(golden_${variant} ALL DEPENDS ${programs})
  lanepack_add_golden_test(${variant} ${programs})
endfunction()

if(LANEPACK_GOLDEN_VARIANTS AND LANEPACK_PROJECT_TESTS)
  find_program(LANEPACK_GXX g++)
  find_program(LANEPACK_CLANGXX clang++)
  if(LANEPACK_GXX)
    lanepack_add_golden_variant(gcc_O0 ${LANEPACK_GXX} -O0)
    lanepack_add_golden_variant(gcc_O3_native_fast_math ${LANEPACK_GXX} -O3 -march=native -ffast-math)
  endif()
  if(LANEPACK_CLANGXX)
    # A build with clang++ is itself this variant.
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      lanepack_add_golden_variant(clang_libstdcxx ${LANEPACK_CLANGXX} -O2)
    endif()
    execute_process(
      COMMAND ${LANEPACK_CLANGXX} -std=c++20 -stdlib=libc++ -x c++
              "${CMAKE_CURRENT_SOURCE_DIR}/golden/libcxx_probe.in" -o
              "${CMAKE_CURRENT_BINARY_DIR}/libcxx_probe"
      RESULT_VARIABLE libcxx_missing
      OUTPUT_QUIET ERROR_QUIET)
    if(libcxx_missing)
      message(STATUS "Golden programs with libc++ left out: clang++ finds no libc++")
    else()
      lanepack_add_golden_variant(clang_libcxx ${LANEPACK_CLANGXX} -O1 -stdlib=libc++)
    endif()
  endif()
endif()
