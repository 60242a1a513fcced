# lanepack_add_catch_tests(TARGET LABEL PREFIX SOURCE...): one executable, one CTest test a source.

find_package(Catch2 3 QUIET CONFIG)
if(NOT Catch2_FOUND)
  find_package(Catch2 2.13 REQUIRED CONFIG)
endif()
message(STATUS "Tests with Catch2 ${Catch2_VERSION}")

# The main function of Catch2's second version takes as long to compile as a dozen tests, and with
# sanitizers three times that: once will do, and it is not what is tested.
add_library(lanepack_catch STATIC support/catch_main.cpp)
target_compile_features(lanepack_catch PUBLIC cxx_std_20)
target_compile_options(lanepack_catch PRIVATE -O0 -fno-sanitize=all)
target_include_directories(lanepack_catch PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
if(Catch2_VERSION VERSION_LESS 3)
  target_link_libraries(lanepack_catch PUBLIC Catch2::Catch2)
  set(lanepack_no_tests_is_failure -w NoTests)
else()
  target_link_libraries(lanepack_catch PUBLIC Catch2::Catch2WithMain)
  set(lanepack_no_tests_is_failure "")
endif()

# The bodies that lanepack::compiled has are a minute's work for g++ with sanitizers in every test that
# uses them. Other builds compile the tests with headers only.
set(lanepack_under_test lanepack)
if(LANEPACK_TESTS_COMPILED)
  list(APPEND lanepack_under_test lanepack_compiled)
endif()

# Catch2's header alone takes a test's compilation two seconds: it is compiled once for all.
file(CONFIGURE OUTPUT precompiled.cpp CONTENT "" @ONLY)
add_library(lanepack_precompiled OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
target_link_libraries(lanepack_precompiled PRIVATE lanepack_dev lanepack_catch ${lanepack_under_test})
target_compile_options(lanepack_precompiled PRIVATE ${LANEPACK_TEST_FLAGS})
target_precompile_headers(lanepack_precompiled PRIVATE support/catch.hpp)

function(lanepack_add_catch_tests target label prefix)
  if(NOT ARGN OR NOT target MATCHES "^(${LANEPACK_TEST_TARGETS})$")
    return()
  endif()
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE lanepack_dev lanepack_catch ${lanepack_under_test})
  target_compile_options(${target} PRIVATE ${LANEPACK_TEST_FLAGS})
  target_precompile_headers(${target} REUSE_FROM lanepack_precompiled)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM LAST_ONLY stem)
    add_test(NAME ${prefix}.${stem} COMMAND ${target} --filenames-as-tags
                                            ${lanepack_no_tests_is_failure} "[#${stem}]")
    set_tests_properties(
      ${prefix}.${stem}
      PROPERTIES LABELS ${label}
                 TIMEOUT ${LANEPACK_TEST_TIMEOUT}
                 ENVIRONMENT "${lanepack_test_environment}")
  endforeach()
endfunction()
