# Compiles SOURCE with COMPILER, header-only and as a program that links lanepack::compiled, and prints the
# processor time that each took. The time is no verdict: it differs several times over between machines, and
# between two moments on a shared one.

cmake_minimum_required(VERSION 3.24)

foreach(compiled IN ITEMS 0 1)
  execute_process(
    COMMAND sh -c "\"$@\" && times" sh "${COMPILER}" -std=c++20 -DLANEPACK_COMPILED=${compiled} -I "${INCLUDE_DIR}" -c
            -o "${OBJECT}" "${SOURCE}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE times)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} does not compile with LANEPACK_COMPILED=${compiled}")
  endif()
  # The last line has the user and system time of child processes.
  string(REGEX MATCH "[0-9]+m[0-9.,]+s [0-9]+m[0-9.,]+s[ \n]*$" line "${times}")
  string(STRIP "${line}" line)
  message("${SOURCE}, LANEPACK_COMPILED=${compiled}: ${line} of user and system time")
endforeach()
