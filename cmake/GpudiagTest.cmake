# SPDX-License-Identifier: Apache-2.0
#
# How tests are added, here and in the tools' own folders.

if(GPUDIAG_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  # The scripts of the tests use the packages that tools/setup puts there.
  if(NOT Python3_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.deps/venv/bin/python3")
    set(Python3_EXECUTABLE "${PROJECT_SOURCE_DIR}/.deps/venv/bin/python3")
  endif()
  find_package(Python3 COMPONENTS Interpreter)
endif()

# Adds a GoogleTest program; each of its tests becomes a test of CTest.
#
#   gpudiag_add_test(record_test SOURCES a_test.cpp … LIBRARIES gpudiag_record … LABEL unit)
#
# Further options: ENVIRONMENT A=1 …; TIMEOUT seconds (default 120).
function(gpudiag_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "SOURCES;LIBRARIES;ENVIRONMENT")
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main
                                        GTest::gmock gpudiag_warnings)
  if(arg_LABEL STREQUAL "unit" AND NOT GPUDIAG_SANITIZE)
    # The tests' own code runs for microseconds: optimising it would take half of the build's time.
    target_compile_options(${name} PRIVATE -O0 -g1)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  set_property(GLOBAL APPEND PROPERTY GPUDIAG_TEST_TARGETS_${arg_LABEL} ${name})
  gtest_discover_tests(
    ${name}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    NO_PRETTY_VALUES
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT "${arg_TIMEOUT}")
  # gtest_discover_tests() takes a list among its properties apart, so several variables need a file
  # of their own, which CTest reads once the tests are known.
  if(arg_ENVIRONMENT)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}_environment.cmake")
    file(WRITE "${file}" "foreach(test IN LISTS ${name}_TESTS)\n"
         "  set_tests_properties(\"\${test}\" PROPERTIES ENVIRONMENT [==[${arg_ENVIRONMENT}]==])\n"
         "endforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
  endif()
endfunction()

# Adds a libFuzzer program over SOURCES (which define LLVMFuzzerTestOneInput), as a test that runs it
# for GPUDIAG_FUZZ_SECONDS from the seeds in CORPUS. Only where the preset `fuzz` builds.
#
#   gpudiag_add_fuzzer(kineto_fuzzer SOURCES a.cpp LIBRARIES gpudiag_files CORPUS corpus/kineto)
set(GPUDIAG_FUZZ_SECONDS 60 CACHE STRING "Seconds each fuzzer runs as a test")
add_custom_target(gpudiag_fuzzers)
function(gpudiag_add_fuzzer name)
  if(NOT GPUDIAG_FUZZ)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;LIBRARIES")
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  add_dependencies(gpudiag_fuzzers ${name})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} gpudiag_warnings)
  # What the fuzzer finds goes to a folder of the build; the seeds are only read.
  set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.found")
  file(MAKE_DIRECTORY "${found}")
  add_test(
    NAME fuzz.${name}
    COMMAND ${name} -max_total_time=${GPUDIAG_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048
            -print_final_stats=1 "-artifact_prefix=${found}/" "${found}"
            "${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS}")
  math(EXPR limit "${GPUDIAG_FUZZ_SECONDS} + 120")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()

# Adds each folder directly below `parent` that has a CMakeLists.txt.
function(gpudiag_add_subfolders parent)
  file(GLOB lists CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${parent}/*/CMakeLists.txt")
  foreach(list IN LISTS lists)
    get_filename_component(folder "${list}" DIRECTORY)
    add_subdirectory("${folder}")
  endforeach()
endfunction()
