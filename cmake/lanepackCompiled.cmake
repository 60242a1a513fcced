# lanepack::compiled: lanepack::core with the bodies of the loader, of open_corpus and of discover_world in
# a static library. It is built with the flags of the project that links it, and only there; everything
# else of that program sees declarations. All files of a program must link it, or none.

if(NOT TARGET lanepack_compiled)
  file(CONFIGURE OUTPUT lanepack_compiled.cpp CONTENT "#include <lanepack/compiled.ipp>\n" @ONLY)
  add_library(lanepack_compiled STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/lanepack_compiled.cpp")
  add_library(lanepack::compiled ALIAS lanepack_compiled)
  target_compile_definitions(lanepack_compiled PUBLIC LANEPACK_COMPILED=1)
  set_target_properties(lanepack_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(lanepack_compiled PUBLIC lanepack::core)
endif()
