# programs/*.sh are tests of the command-line programs: POSIX shell scripts that exit with 0 if all is
# well, and with 77 if this machine lacks what they need. They are given LANEPACK_BIN, the folder of the
# programs, LANEPACK_SOURCE, the folder of the repository, and an empty folder of their own to run in.

file(GLOB program_scripts CONFIGURE_DEPENDS programs/*.sh)
if(NOT LANEPACK_BENCHMARKS)
  return()
endif()
foreach(script IN LISTS program_scripts)
  cmake_path(GET script STEM name)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/programs/${name}")
  add_test(
    NAME program.${name}
    COMMAND sh -c "rm -rf \"$1\" && mkdir -p \"$1\" && cd \"$1\" && sh \"$2\"" sh "${folder}"
            "${script}")
  set_tests_properties(
    program.${name}
    PROPERTIES LABELS program
               TIMEOUT ${LANEPACK_TEST_TIMEOUT}
               SKIP_RETURN_CODE 77
               ENVIRONMENT
               "LANEPACK_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};LANEPACK_SOURCE=${PROJECT_SOURCE_DIR};${lanepack_test_environment}")
endforeach()
