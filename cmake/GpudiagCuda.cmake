# SPDX-License-Identifier: Apache-2.0
#
# Finds the CUDA toolkit's headers and nvcc, and NVML's header. Nothing is downloaded: tools/setup
# prepares `.deps/` where the machine has no toolkit. Sets
#
#   GPUDIAG_CUDA_ROOT      the toolkit's folder
#   GPUDIAG_CUDA_INCLUDE   folders with cuda.h, cuda_runtime.h, cupti.h and nvtx3/
#   GPUDIAG_NVML_INCLUDE   folder with nvml.h; empty where there is none
#   GPUDIAG_NVCC           the compiler; empty where there is none
#
# and the target gpudiag_cuda_headers, which carries the include folders as system headers. The
# pure core (record, timeline, attribution, report) must build without any of these, so a missing
# toolkit is an error only for those who call gpudiag_require_cuda().

set(_gpudiag_cuda_hints "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}")
find_program(_gpudiag_nvcc_on_path nvcc NO_CACHE)
if(_gpudiag_nvcc_on_path)
  # nvcc may be a link or a one-line script outside the toolkit; it knows its own root.
  execute_process(
    COMMAND "${_gpudiag_nvcc_on_path}" --dryrun --cuda -x cu /dev/null -o /dev/null
    ERROR_VARIABLE _gpudiag_dryrun
    OUTPUT_QUIET RESULT_VARIABLE _gpudiag_rc)
  if(_gpudiag_dryrun MATCHES "#\\$ TOP=([^\n]+)")
    get_filename_component(_gpudiag_nvcc_root "${CMAKE_MATCH_1}" REALPATH)
    list(APPEND _gpudiag_cuda_hints "${_gpudiag_nvcc_root}")
  endif()
endif()
list(APPEND _gpudiag_cuda_hints /usr/local/cuda /opt/cuda "${PROJECT_SOURCE_DIR}/.deps/cuda")

# True when `root` holds all the headers we need, of CUDA 12 or newer.
function(_gpudiag_check_cuda_root result root)
  set(${result} FALSE PARENT_SCOPE)
  foreach(header cuda.h cuda_runtime.h nvtx3/nvToolsExt.h)
    if(NOT EXISTS "${root}/include/${header}")
      return()
    endif()
  endforeach()
  if(NOT EXISTS "${root}/include/cupti.h" AND NOT EXISTS "${root}/extras/CUPTI/include/cupti.h")
    return()
  endif()
  file(STRINGS "${root}/include/cuda.h" version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" version "${version}")
  if(version GREATER_EQUAL 12000)
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

set(GPUDIAG_CUDA_ROOT "" CACHE PATH "CUDA toolkit (12 or newer) with CUPTI; found if empty")
if(NOT GPUDIAG_CUDA_ROOT)
  foreach(hint IN LISTS _gpudiag_cuda_hints)
    if(hint)
      _gpudiag_check_cuda_root(_gpudiag_ok "${hint}")
      if(_gpudiag_ok)
        set_property(CACHE GPUDIAG_CUDA_ROOT PROPERTY VALUE "${hint}")
        break()
      endif()
    endif()
  endforeach()
endif()

set(GPUDIAG_CUDA_INCLUDE "")
set(GPUDIAG_NVCC "")
if(GPUDIAG_CUDA_ROOT)
  set(GPUDIAG_CUDA_INCLUDE "${GPUDIAG_CUDA_ROOT}/include")
  if(EXISTS "${GPUDIAG_CUDA_ROOT}/extras/CUPTI/include/cupti.h")
    list(APPEND GPUDIAG_CUDA_INCLUDE "${GPUDIAG_CUDA_ROOT}/extras/CUPTI/include")
  endif()
  if(EXISTS "${GPUDIAG_CUDA_ROOT}/bin/nvcc")
    set(GPUDIAG_NVCC "${GPUDIAG_CUDA_ROOT}/bin/nvcc")
  endif()
endif()

find_path(
  GPUDIAG_NVML_INCLUDE nvml.h
  HINTS ${GPUDIAG_CUDA_INCLUDE} "${PROJECT_SOURCE_DIR}/.deps/cuda/include"
        "${PROJECT_SOURCE_DIR}/.deps/nvml/include"
  DOC "Folder with nvml.h")
if(NOT GPUDIAG_NVML_INCLUDE)
  set(GPUDIAG_NVML_INCLUDE "")
endif()

add_library(gpudiag_cuda_headers INTERFACE)
target_include_directories(gpudiag_cuda_headers SYSTEM INTERFACE ${GPUDIAG_CUDA_INCLUDE}
                                                                 ${GPUDIAG_NVML_INCLUDE})
if(GPUDIAG_CUDA_ROOT)
  message(STATUS "CUDA toolkit: ${GPUDIAG_CUDA_ROOT}; NVML header: ${GPUDIAG_NVML_INCLUDE}")
else()
  message(STATUS "CUDA toolkit: none found")
endif()

# Ends the configuration with a hint where `what` cannot be built without CUDA's headers.
function(gpudiag_require_cuda what)
  if(NOT GPUDIAG_CUDA_ROOT)
    message(FATAL_ERROR "${what} needs the headers of CUDA 12 or newer, CUPTI and NVTX 3: run "
                        "tools/setup, which fetches them into .deps/, or name a toolkit by "
                        "-DGPUDIAG_CUDA_ROOT=DIR")
  endif()
endfunction()

# Enables CUDA as a language of the calling folder, with the runtime linked as a shared library
# (the simulated GPU stands in for libcudart.so and cannot serve a static copy). Call it before
# the first target with a .cu file.
macro(gpudiag_enable_cuda_language what)
  gpudiag_require_cuda("${what}")
  if(NOT GPUDIAG_NVCC)
    message(FATAL_ERROR "${what} needs nvcc, and ${GPUDIAG_CUDA_ROOT}/bin has none: run tools/setup "
                        "or configure with -DGPUDIAG_BUILD_EXAMPLES=OFF")
  endif()
  if(NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER "${GPUDIAG_NVCC}")
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  # On a machine without the simulated GPU in front, programs find the real runtime.
  foreach(_gpudiag_dir lib64 lib targets/x86_64-linux/lib)
    if(EXISTS "${GPUDIAG_CUDA_ROOT}/${_gpudiag_dir}/libcudart.so")
      set(GPUDIAG_CUDART_DIR "${GPUDIAG_CUDA_ROOT}/${_gpudiag_dir}")
      list(APPEND CMAKE_BUILD_RPATH "${GPUDIAG_CUDART_DIR}")
      break()
    endif()
  endforeach()
  # RUNPATH, not RPATH: LD_LIBRARY_PATH must be able to put the simulated GPU in front.
  add_link_options("LINKER:--enable-new-dtags")
endmacro()
