# Each header compiles alone; all headers together link into one program from two translation units; the
# headers keep the project's rules.

add_test(NAME headers.self_contained COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target
                                             all_verify_interface_header_sets)
set_tests_properties(headers.self_contained PROPERTIES LABELS headers TIMEOUT 1200 PROCESSORS 2
                                                       RESOURCE_LOCK build_folder)

set(all_headers "")
foreach(component IN LISTS lanepack_components)
  set(headers ${lanepack_${component}_headers})
  list(FILTER headers INCLUDE REGEX "\\.hpp$")
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${lanepack_include_dir}")
    string(APPEND all_headers "#include <${header}>\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT odr/all_headers.hpp CONTENT "${all_headers}" @ONLY)

add_executable(odr odr/main.cpp odr/other.cpp)
target_include_directories(odr PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/odr")
list(TRANSFORM lanepack_components PREPEND lanepack_ OUTPUT_VARIABLE component_targets)
target_link_libraries(odr PRIVATE lanepack_dev ${component_targets})
add_test(NAME headers.odr COMMAND odr)
set_tests_properties(headers.odr PROPERTIES LABELS headers TIMEOUT ${LANEPACK_TEST_TIMEOUT})

list(JOIN lanepack_headers "," listed_headers)
add_test(NAME headers.rules
         COMMAND ${CMAKE_COMMAND} "-DINCLUDE_DIR=${lanepack_include_dir}" "-DLISTED=${listed_headers}" -P
                 "${CMAKE_CURRENT_SOURCE_DIR}/headers/check_rules.cmake")
set_tests_properties(headers.rules PROPERTIES LABELS headers TIMEOUT ${LANEPACK_TEST_TIMEOUT})

# The same with the other compiler, and without the bodies that are in lanepack::compiled.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(LANEPACK_OTHER_COMPILER g++)
else()
  find_program(LANEPACK_OTHER_COMPILER clang++)
endif()
if(LANEPACK_OTHER_COMPILER)
  set(plain_headers "")
  foreach(component IN ITEMS core fmt json)
    set(headers ${lanepack_${component}_headers})
    list(FILTER headers INCLUDE REGEX "/lanepack/[a-z0-9_]+/[a-z0-9_]+\\.hpp$")
    list(APPEND plain_headers ${headers})
  endforeach()
  list(JOIN plain_headers "\n" plain_headers)
  file(CONFIGURE OUTPUT plain_headers.txt CONTENT "${plain_headers}\n" @ONLY)
  add_test(
    NAME headers.self_contained_other_compiler
    COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/headers/other_compiler.sh" "${LANEPACK_OTHER_COMPILER}"
            "${lanepack_include_dir}" "${CMAKE_CURRENT_BINARY_DIR}/plain_headers.txt"
            "${CMAKE_CURRENT_BINARY_DIR}/other_compiler")
  set_tests_properties(headers.self_contained_other_compiler PROPERTIES LABELS headers TIMEOUT 1200 PROCESSORS 2)
endif()

# What a user waits for: the loop of twenty lines, header-only and with lanepack::compiled: printed, not
# judged.
add_test(
  NAME headers.compile_time
  COMMAND
    ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DSOURCE=${PROJECT_SOURCE_DIR}/examples/twenty_lines.cpp"
    "-DINCLUDE_DIR=${lanepack_include_dir}" "-DOBJECT=${CMAKE_CURRENT_BINARY_DIR}/loop.o" -P
    "${CMAKE_CURRENT_SOURCE_DIR}/headers/compile_time.cmake")
set_tests_properties(headers.compile_time PROPERTIES LABELS headers TIMEOUT 600)
