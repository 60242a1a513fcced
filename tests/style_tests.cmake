# The sources are formatted by .clang-format and clean under .clang-tidy. Both tools judge differently
# from version to version, so another version than the one named here leaves the tests out.

set(style_llvm_major 14)
function(lanepack_find_style_tool variable name)
  find_program(${variable} NAMES ${name}-${style_llvm_major} ${name})
  if(${variable})
    execute_process(COMMAND ${${variable}} --version OUTPUT_VARIABLE version)
    if(version MATCHES "version ${style_llvm_major}\\.")
      return()
    endif()
  endif()
  message(STATUS "Style tests with ${name} left out: version ${style_llvm_major} not found")
  set(${variable}
      ""
      PARENT_SCOPE)
endfunction()
lanepack_find_style_tool(LANEPACK_CLANG_FORMAT clang-format)
lanepack_find_style_tool(LANEPACK_CLANG_TIDY clang-tidy)

if(LANEPACK_CLANG_FORMAT)
  set(formatted "")
  foreach(folder IN ITEMS include tests benchmarks examples)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.[ch]pp"
         "${PROJECT_SOURCE_DIR}/${folder}/*.ipp"
         "${PROJECT_SOURCE_DIR}/${folder}/*.cu" "${PROJECT_SOURCE_DIR}/${folder}/*.cuh")
    list(APPEND formatted ${sources})
  endforeach()
  add_test(NAME style.format COMMAND ${LANEPACK_CLANG_FORMAT} --dry-run --Werror ${formatted})
  set_tests_properties(style.format PROPERTIES LABELS style TIMEOUT 120)
endif()

# The headers are seen through the one file that includes them all.
if(LANEPACK_CLANG_TIDY)
  set(tidy_sources "${CMAKE_CURRENT_SOURCE_DIR}/odr/main.cpp")
  # The programs take minutes each, most of it in headers that are not ours.
  if(LANEPACK_TIDY_PROGRAMS)
    foreach(folder IN ITEMS benchmarks examples)
      file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
      list(APPEND tidy_sources ${sources})
    endforeach()
  endif()
  foreach(source IN LISTS tidy_sources)
    cmake_path(GET source STEM name)
    if(name STREQUAL "main")
      set(name all_headers)
    endif()
    add_test(NAME style.tidy.${name} COMMAND ${LANEPACK_CLANG_TIDY} -p "${PROJECT_BINARY_DIR}" --quiet
                                             --warnings-as-errors=* "${source}")
    set_tests_properties(style.tidy.${name} PROPERTIES LABELS style TIMEOUT 600)
  endforeach()
endif()
