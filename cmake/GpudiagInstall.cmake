# SPDX-License-Identifier: Apache-2.0
#
# Install rules: both libraries, the public headers, the command (by its own folder's target) and
# the package that find_package(gpudiag) reads, with the target gpudiag::gpudiag.
include(CMakePackageConfigHelpers)

if(TARGET gpudiag)
  # A wheel cannot hold links; the package's CMake files name the library in full.
  set(namelink "")
  if(SKBUILD)
    set(namelink NAMELINK_SKIP)
  endif()
  install(
    TARGETS gpudiag gpudiag_headers
    EXPORT gpudiagTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${namelink})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/libgpudiag/include/gpudiag"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

  set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gpudiag")
  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/gpudiagConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/gpudiagConfig.cmake" INSTALL_DESTINATION "${package_dir}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/gpudiagConfigVersion.cmake"
                                   COMPATIBILITY SameMajorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/gpudiagConfig.cmake"
                "${PROJECT_BINARY_DIR}/gpudiagConfigVersion.cmake" DESTINATION "${package_dir}")
  install(EXPORT gpudiagTargets NAMESPACE gpudiag:: DESTINATION "${package_dir}")
endif()
if(TARGET gpudiag_inject)
  install(TARGETS gpudiag_inject LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
# The command's target has another name than its program, because the library is called gpudiag.
if(TARGET gpudiag_command)
  install(TARGETS gpudiag_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
