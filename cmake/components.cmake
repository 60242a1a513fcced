# The components: INTERFACE targets whose names in this tree (by alias) and once installed are the
# same, lanepack::<component>. A header belongs to the component its path names, else to core.

set(lanepack_include_dir "${PROJECT_SOURCE_DIR}/include")
file(GLOB_RECURSE lanepack_headers CONFIGURE_DEPENDS "${lanepack_include_dir}/lanepack/*.hpp"
     "${lanepack_include_dir}/lanepack/*.cuh" "${lanepack_include_dir}/lanepack/*.ipp")

set(lanepack_core_headers ${lanepack_headers})
foreach(component IN ITEMS json fmt sentencepiece cuda nccl)
  set(lanepack_${component}_headers ${lanepack_headers})
  set(path_pattern "/include/lanepack/${component}(/|\\.hpp$|\\.cuh$)")
  list(FILTER lanepack_${component}_headers INCLUDE REGEX "${path_pattern}")
  list(FILTER lanepack_core_headers EXCLUDE REGEX "${path_pattern}")
endforeach()

# CMake compiles each header of a verified set alone, as C++; headers for nvcc and the bodies that headers
# include (.ipp) go into another set.
if(LANEPACK_TESTS)
  set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
endif()

set(lanepack_components "")
function(lanepack_add_component component)
  add_library(lanepack_${component} INTERFACE)
  add_library(lanepack::${component} ALIAS lanepack_${component})
  set_target_properties(lanepack_${component} PROPERTIES EXPORT_NAME ${component})
  target_compile_features(lanepack_${component} INTERFACE cxx_std_20)
  target_link_libraries(lanepack_${component} INTERFACE ${ARGN})

  set(headers ${lanepack_${component}_headers})
  list(FILTER headers INCLUDE REGEX "\\.hpp$")
  target_sources(
    lanepack_${component} INTERFACE FILE_SET HEADERS BASE_DIRS "${lanepack_include_dir}" FILES
                                    ${headers})
  set(other_headers ${lanepack_${component}_headers})
  list(FILTER other_headers EXCLUDE REGEX "\\.hpp$")
  target_sources(
    lanepack_${component}
    INTERFACE FILE_SET
              other_headers
              TYPE
              HEADERS
              BASE_DIRS
              "${lanepack_include_dir}"
              FILES
              ${other_headers})
  set_target_properties(lanepack_${component} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)

  list(APPEND lanepack_components ${component})
  set(lanepack_components
      ${lanepack_components}
      PARENT_SCOPE)
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
lanepack_add_component(core Threads::Threads)
include(lanepackCompiled)

# Linked by name: a project that uses core alone need not have them.
find_package(nlohmann_json 3.10 QUIET CONFIG)
lanepack_add_component(json lanepack_core nlohmann_json::nlohmann_json)
find_package(fmt 8 QUIET CONFIG)
lanepack_add_component(fmt lanepack_core fmt::fmt)

if(LANEPACK_SENTENCEPIECE STREQUAL "ON")
  find_package(SentencePiece REQUIRED)
elseif(LANEPACK_SENTENCEPIECE STREQUAL "AUTO")
  find_package(SentencePiece QUIET)
endif()
if(SentencePiece_FOUND AND NOT LANEPACK_SENTENCEPIECE STREQUAL "OFF")
  lanepack_add_component(sentencepiece lanepack_core SentencePiece::SentencePiece)
  message(STATUS "lanepack::sentencepiece with ${SentencePiece_LIBRARY}")
else()
  message(STATUS "lanepack::sentencepiece left out")
endif()

if(LANEPACK_CUDA STREQUAL "ON")
  find_package(CUDAToolkit 12 REQUIRED)
elseif(LANEPACK_CUDA STREQUAL "AUTO")
  find_package(CUDAToolkit 12 QUIET)
endif()
if(CUDAToolkit_FOUND AND NOT LANEPACK_CUDA STREQUAL "OFF")
  lanepack_add_component(cuda lanepack_core CUDA::cudart)
  message(STATUS "lanepack::cuda with CUDA ${CUDAToolkit_VERSION}")
else()
  message(STATUS "lanepack::cuda left out")
endif()

if(LANEPACK_NCCL STREQUAL "ON")
  find_package(NCCL 2.10 REQUIRED)
elseif(LANEPACK_NCCL STREQUAL "AUTO")
  find_package(NCCL 2.10 QUIET)
endif()
if(NCCL_FOUND
   AND TARGET lanepack_cuda
   AND NOT LANEPACK_NCCL STREQUAL "OFF")
  lanepack_add_component(nccl lanepack_cuda NCCL::NCCL)
  message(STATUS "lanepack::nccl with NCCL ${NCCL_VERSION}")
elseif(LANEPACK_NCCL STREQUAL "ON")
  message(FATAL_ERROR "LANEPACK_NCCL=ON needs the component cuda, which is left out")
else()
  message(STATUS "lanepack::nccl left out")
endif()

add_library(lanepack INTERFACE)
add_library(lanepack::lanepack ALIAS lanepack)
target_link_libraries(lanepack INTERFACE lanepack_core lanepack_json lanepack_fmt)
