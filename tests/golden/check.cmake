# Runs PROGRAMS (separated by commas) and compares all that they print with the file EXPECTED.
# Lines starting with # and empty lines of that file do not count.

cmake_minimum_required(VERSION 3.24)

string(REPLACE "," ";" programs "${PROGRAMS}")
set(printed "")
foreach(program IN LISTS programs)
  execute_process(
    COMMAND "${program}"
    OUTPUT_VARIABLE output
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} failed: ${result}\n${output}")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  list(APPEND printed ${lines})
endforeach()

file(STRINGS "${EXPECTED}" expected REGEX "^[^#]")
set(difference "")
foreach(line IN LISTS expected)
  if(NOT line IN_LIST printed)
    string(APPEND difference "- ${line}\n")
  endif()
endforeach()
foreach(line IN LISTS printed)
  if(NOT line IN_LIST expected)
    string(APPEND difference "+ ${line}\n")
  endif()
endforeach()
if(NOT printed)
  string(APPEND difference "nothing was printed\n")
endif()
if(difference)
  message(FATAL_ERROR "Digests differ (- expected, + printed):\n${difference}")
endif()
