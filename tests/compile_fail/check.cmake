# Compiles SOURCE with COMPILER as it is, which must work, and with COMPILE_FAIL defined, which must fail
# with a message that matches the source's `// expect:` line.

cmake_minimum_required(VERSION 3.24)

set(command "${COMPILER}" -std=c++20 -fsyntax-only -I "${INCLUDE_DIR}" "${SOURCE}")
execute_process(
  COMMAND ${command}
  RESULT_VARIABLE result
  ERROR_VARIABLE messages)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile even without COMPILE_FAIL:\n${messages}")
endif()

file(READ "${SOURCE}" text)
if(NOT text MATCHES "// expect: ([^\n]+)")
  message(FATAL_ERROR "${SOURCE} has no line '// expect: REGEX'")
endif()
set(expected "${CMAKE_MATCH_1}")
execute_process(
  COMMAND ${command} -DCOMPILE_FAIL
  RESULT_VARIABLE result
  ERROR_VARIABLE messages)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with COMPILE_FAIL")
endif()
if(NOT messages MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE} fails, but not with '${expected}':\n${messages}")
endif()
