# lanepack_dev: what lanepack's own programs and tests are compiled with, and no one else's.

add_library(lanepack_dev INTERFACE)
target_compile_options(
  lanepack_dev INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>
                         $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${LANEPACK_WERROR}>>:-Werror>)
# g++ 12 warns of overlapping and endless copies inside std::string and std::vector themselves when it
# optimizes (GCC bugs 105651 and 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(lanepack_dev INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow>)
endif()
target_compile_definitions(lanepack_dev INTERFACE $<$<BOOL:${LANEPACK_CHECKED}>:LANEPACK_CHECKED=1>)
target_compile_features(lanepack_dev INTERFACE cxx_std_20)
# Checked code lives in another namespace, so the library must be checked where its users are.
target_link_libraries(lanepack_compiled PRIVATE lanepack_dev)

foreach(dependency IN ITEMS nlohmann_json fmt)
  if(NOT ${dependency}_FOUND)
    message(
      FATAL_ERROR
        "lanepack's programs and tests need ${dependency}. Install it, or configure with "
        "-DLANEPACK_TESTS=OFF -DLANEPACK_BENCHMARKS=OFF -DLANEPACK_EXAMPLES=OFF.")
  endif()
endforeach()
