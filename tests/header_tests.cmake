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

# Headers that leave their bodies to lanepack::compiled stand alone without them too.
set(compiled_mode_sources "")
foreach(header IN LISTS lanepack_core_headers)
  if(header MATCHES "/lanepack/(.+)/([^/]+)\\.ipp$")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/compiled_mode/${CMAKE_MATCH_1}_${CMAKE_MATCH_2}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <lanepack/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.hpp>\n" @ONLY)
    list(APPEND compiled_mode_sources "${source}")
  endif()
endforeach()
add_library(compiled_mode OBJECT ${compiled_mode_sources})
target_link_libraries(compiled_mode PRIVATE lanepack_dev lanepack_compiled)

# What a user waits for: the loop of twenty lines, header-only and with lanepack::compiled: printed, not
# judged.
add_test(
  NAME headers.compile_time
  COMMAND
    ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DSOURCE=${PROJECT_SOURCE_DIR}/examples/twenty_lines.cpp"
    "-DINCLUDE_DIR=${lanepack_include_dir}" "-DOBJECT=${CMAKE_CURRENT_BINARY_DIR}/loop.o" -P
    "${CMAKE_CURRENT_SOURCE_DIR}/headers/compile_time.cmake")
set_tests_properties(headers.compile_time PROPERTIES LABELS headers TIMEOUT 600)
