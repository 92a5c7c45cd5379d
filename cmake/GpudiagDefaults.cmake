# SPDX-License-Identifier: Apache-2.0
#
# What all targets of the project are built with. Set as directory variables, so that a project
# that adds us by add_subdirectory keeps its own.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# The build tree has the layout of an installation, so what runs there runs installed:
# bin/gpudiag finds ../lib/libgpudiag.so.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# Link to this privately in every target of ours.
add_library(gpudiag_warnings INTERFACE)
target_compile_options(
  gpudiag_warnings
  INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
option(GPUDIAG_WARNINGS_AS_ERRORS "Treat warnings as errors" OFF)
if(GPUDIAG_WARNINGS_AS_ERRORS)
  target_compile_options(gpudiag_warnings INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
endif()

# Sanitizers must cover every object of a program alike, so they are set for the whole folder.
if(GPUDIAG_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GPUDIAG_SANITIZE};-fno-omit-frame-pointer>"
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>")
  add_link_options("-fsanitize=${GPUDIAG_SANITIZE}")
endif()

# The fuzzers steer by the coverage of our libraries.
if(GPUDIAG_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
