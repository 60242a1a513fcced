# Compiles SOURCE with COMPILER and fails if that takes more than SECONDS of processor time.

cmake_minimum_required(VERSION 3.24)

execute_process(
  COMMAND sh -c "\"$@\" && times" sh "${COMPILER}" -std=c++20 -I "${INCLUDE_DIR}" -c -o "${OBJECT}"
          "${SOURCE}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE times)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile")
endif()
# The last line has the time of child processes, "0m1.250s 0m0.125s", the digits after the point vary.
string(REGEX MATCH "([0-9]+)m([0-9]+)[.,]([0-9])[0-9]*s ([0-9]+)m([0-9]+)[.,]([0-9])[0-9]*s[ \n]*$"
             line "${times}")
if(NOT line)
  message(FATAL_ERROR "sh printed no times: ${times}")
endif()
math(EXPR tenths "600 * ${CMAKE_MATCH_1} + 10 * ${CMAKE_MATCH_2} + ${CMAKE_MATCH_3} + \
                  600 * ${CMAKE_MATCH_4} + 10 * ${CMAKE_MATCH_5} + ${CMAKE_MATCH_6}")
math(EXPR whole "${tenths} / 10")
math(EXPR rest "${tenths} % 10")
message("${SOURCE}: ${whole}.${rest} s of processor time")
math(EXPR limit "10 * ${SECONDS}")
if(tenths GREATER limit)
  message(FATAL_ERROR "That is more than ${SECONDS} s")
endif()
