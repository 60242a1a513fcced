# Headers, targets and package files. One export file a component, so that a project that asks for
# core alone needs none of the others' dependencies.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(lanepack_package_dir "${CMAKE_INSTALL_DATAROOTDIR}/cmake/lanepack")

foreach(component IN LISTS lanepack_components)
  install(
    TARGETS lanepack_${component}
    EXPORT lanepack-${component}
    FILE_SET HEADERS
    FILE_SET other_headers)
  install(
    EXPORT lanepack-${component}
    NAMESPACE lanepack::
    DESTINATION "${lanepack_package_dir}")
endforeach()
install(TARGETS lanepack EXPORT lanepack-lanepack)
install(
  EXPORT lanepack-lanepack
  NAMESPACE lanepack::
  DESTINATION "${lanepack_package_dir}")

configure_package_config_file(
  cmake/lanepackConfig.cmake.in lanepackConfig.cmake INSTALL_DESTINATION "${lanepack_package_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  lanepackConfigVersion.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/lanepackConfig.cmake"
              "${PROJECT_BINARY_DIR}/lanepackConfigVersion.cmake" cmake/FindNCCL.cmake cmake/FindSentencePiece.cmake
              cmake/lanepackCompiled.cmake
        DESTINATION "${lanepack_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
