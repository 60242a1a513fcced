# Every header but those with fmt compiles with nvcc, which parses it for the host and for the device.
# One generated .cu for all; self-containment is the plain compilers' test. The compiler is called
# directly: CMake 3.25 knows no C++20 for it.

if(NOT TARGET lanepack_cuda OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(STATUS "Header tests with nvcc left out")
  return()
endif()

set(nvcc_includes "")
foreach(component IN LISTS lanepack_components)
  if(component STREQUAL "fmt")
    continue()
  endif()
  set(headers ${lanepack_${component}_headers})
  list(FILTER headers EXCLUDE REGEX "\\.ipp$")
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${lanepack_include_dir}")
    string(APPEND nvcc_includes "#include <${header}>\n")
  endforeach()
endforeach()
set(nvcc_source "${CMAKE_CURRENT_BINARY_DIR}/nvcc/headers.cu")
file(CONFIGURE OUTPUT "${nvcc_source}" CONTENT "${nvcc_includes}" @ONLY)
add_custom_command(
  OUTPUT "${nvcc_source}.o"
  COMMAND
    ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -arch=sm_90a -I "${lanepack_include_dir}"
    $<$<BOOL:${NCCL_INCLUDE_DIR}>:-I${NCCL_INCLUDE_DIR}> -MD -MF "${nvcc_source}.d" -MT "${nvcc_source}.o" -c -o
    "${nvcc_source}.o" "${nvcc_source}"
  DEPENDS "${nvcc_source}"
  DEPFILE "${nvcc_source}.d"
  COMMENT "Compiling the headers with nvcc"
  VERBATIM)

add_custom_target(nvcc_headers DEPENDS "${nvcc_source}.o")
add_test(NAME headers.nvcc COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target nvcc_headers)
set_tests_properties(headers.nvcc PROPERTIES LABELS headers TIMEOUT 1200 RESOURCE_LOCK build_folder)
