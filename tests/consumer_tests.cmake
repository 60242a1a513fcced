# What a user's project does: install, find_package, build, run; and add_subdirectory. Both projects
# share main.cpp. A version that is too new and a component that does not exist must be refused.

set(consumer_dir "${CMAKE_CURRENT_BINARY_DIR}/consumer")
set(consumer_common --build-generator "${CMAKE_GENERATOR}" --build-options
                    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_BUILD_TYPE=Release")

function(lanepack_consumer_test name project)
  add_test(
    NAME install.${name}
    COMMAND
      ${CMAKE_CTEST_COMMAND} --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/consumer/${project}"
      "${consumer_dir}/${name}" ${consumer_common} "-DLANEPACK_EXPECTED_VERSION=${PROJECT_VERSION}"
      ${ARGN} --test-command "${consumer_dir}/${name}/consumer")
  set_tests_properties(install.${name} PROPERTIES LABELS install TIMEOUT 300)
endfunction()

lanepack_consumer_test(subdirectory subdirectory "-DLANEPACK_SOURCE_DIR=${PROJECT_SOURCE_DIR}")

if(LANEPACK_INSTALL)
  set(listed_headers "")
  foreach(component IN LISTS lanepack_components)
    list(APPEND listed_headers ${lanepack_${component}_headers})
  endforeach()
  list(JOIN listed_headers "," listed_headers)
  add_test(
    NAME install.install
    COMMAND ${CMAKE_COMMAND} "-DBUILD_DIR=${PROJECT_BINARY_DIR}" "-DPREFIX=${consumer_dir}/prefix"
            "-DINCLUDE_DIR=${lanepack_include_dir}" "-DLISTED=${listed_headers}" -P
            "${CMAKE_CURRENT_SOURCE_DIR}/consumer/install.cmake")
  set_tests_properties(install.install PROPERTIES LABELS install TIMEOUT 120 FIXTURES_SETUP installed)

  set(installed "-DCMAKE_PREFIX_PATH=${consumer_dir}/prefix")
  lanepack_consumer_test(find_package find_package ${installed})
  # ctest --build-and-test deletes nothing, so configuring in a folder of its own shows each refusal.
  lanepack_consumer_test(refuses_newer_version find_package ${installed}
                         "-DLANEPACK_WANTED_VERSION=${PROJECT_VERSION_MAJOR}.99")
  set_tests_properties(
    install.refuses_newer_version
    PROPERTIES PASS_REGULAR_EXPRESSION "compatible with[ \n]+requested version \"${PROJECT_VERSION_MAJOR}.99\"")
  lanepack_consumer_test(refuses_unknown_component find_package ${installed}
                         "-DLANEPACK_WANTED_COMPONENTS=teleport")
  set_tests_properties(
    install.refuses_unknown_component
    PROPERTIES PASS_REGULAR_EXPRESSION "no component[ \n]+'teleport'")
  set_tests_properties(
    install.find_package install.refuses_newer_version install.refuses_unknown_component
    PROPERTIES FIXTURES_REQUIRED installed)
endif()
