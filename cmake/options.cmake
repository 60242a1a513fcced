# What a build makes. As a subproject lanepack only offers its targets.

option(LANEPACK_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LANEPACK_BENCHMARKS "Build the programs in benchmarks/" ${PROJECT_IS_TOP_LEVEL})
option(LANEPACK_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(LANEPACK_INSTALL "Make install rules" ${PROJECT_IS_TOP_LEVEL})
option(LANEPACK_WERROR "Treat warnings in lanepack's own targets as errors" ON)
option(LANEPACK_CHECKED "Compile lanepack's own targets with LANEPACK_CHECKED=1" OFF)
option(LANEPACK_FUZZ "Build tests/fuzz as libFuzzer programs (clang only)" OFF)
option(LANEPACK_PROJECT_TESTS "Test headers, install and use by other projects too" ON)
option(LANEPACK_GOLDEN_VARIANTS "Build the golden programs with other compilers and flags too" ON)
option(LANEPACK_STYLE_TESTS "Test with clang-format and clang-tidy too" OFF)
option(LANEPACK_TIDY_PROGRAMS "With LANEPACK_STYLE_TESTS, run clang-tidy over programs and examples too" OFF)

foreach(component IN ITEMS SENTENCEPIECE CUDA NCCL)
  set(LANEPACK_${component}
      AUTO
      CACHE STRING "The component lanepack::${component}: AUTO (if found), ON (required) or OFF")
  set_property(CACHE LANEPACK_${component} PROPERTY STRINGS AUTO ON OFF)
  if(NOT LANEPACK_${component} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "LANEPACK_${component} is '${LANEPACK_${component}}', expected AUTO, ON or OFF")
  endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  get_property(lanepack_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT lanepack_multi_config AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE
        Release
        CACHE STRING "The build type" FORCE)
  endif()
endif()
