# Installs BUILD_DIR into an empty PREFIX and checks that every header in LISTED arrived.

cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE "${PREFIX}")
execute_process(
  COMMAND ${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${PREFIX}"
  OUTPUT_QUIET
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cmake --install failed: ${result}")
endif()
string(REPLACE "," ";" headers "${LISTED}")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${INCLUDE_DIR}")
  if(NOT EXISTS "${PREFIX}/include/${header}")
    message(FATAL_ERROR "${header} was not installed")
  endif()
endforeach()
