# Every header but those with fmt compiles with nvcc, which parses it for the host and for the device.
# One generated .cu a component; self-containment is the plain compilers' test. The compiler is called
# directly: CMake 3.25 knows no C++20 for it.

if(NOT TARGET lanepack_cuda OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(STATUS "Header tests with nvcc left out")
  return()
endif()

set(nvcc_objects "")
foreach(component IN LISTS lanepack_components)
  if(component STREQUAL "fmt")
    continue()
  endif()
  set(includes "")
  set(headers ${lanepack_${component}_headers})
  list(FILTER headers EXCLUDE REGEX "\\.ipp$")
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${lanepack_include_dir}")
    string(APPEND includes "#include <${header}>\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/nvcc/${component}.cu")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${includes}" @ONLY)
  add_custom_command(
    OUTPUT "${source}.o"
    COMMAND
      ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -arch=sm_90a -I "${lanepack_include_dir}"
      $<$<BOOL:${NCCL_INCLUDE_DIR}>:-I${NCCL_INCLUDE_DIR}> -MD -MF "${source}.d" -MT "${source}.o" -c -o
      "${source}.o" "${source}"
    DEPENDS "${source}"
    DEPFILE "${source}.d"
    COMMENT "Compiling the headers of lanepack::${component} with nvcc"
    VERBATIM)
  list(APPEND nvcc_objects "${source}.o")
endforeach()

add_custom_target(nvcc_headers DEPENDS ${nvcc_objects})
add_test(NAME headers.nvcc COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target nvcc_headers)
set_tests_properties(headers.nvcc PROPERTIES LABELS headers TIMEOUT 1200 PROCESSORS 2
                                             RESOURCE_LOCK build_folder)
