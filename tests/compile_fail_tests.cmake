# compile_fail/*.cpp: code that must not compile. The wrong line stands under #ifdef COMPILE_FAIL, and
# a comment `// expect: REGEX` says what the compiler must complain of. Without COMPILE_FAIL the file must
# compile, so that it fails for the reason it names and no other.

file(GLOB compile_fail_sources CONFIGURE_DEPENDS compile_fail/*.cpp)
foreach(source IN LISTS compile_fail_sources)
  cmake_path(GET source STEM name)
  add_test(NAME compile_fail.${name}
           COMMAND ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DSOURCE=${source}"
                   "-DINCLUDE_DIR=${lanepack_include_dir}" -P
                   "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.cmake")
  set_tests_properties(compile_fail.${name} PROPERTIES LABELS headers TIMEOUT ${LANEPACK_TEST_TIMEOUT})
endforeach()
