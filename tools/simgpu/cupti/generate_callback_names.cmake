# SPDX-License-Identifier: Apache-2.0
#
# Writes the tables of callback names from the installed CUPTI headers, so that they always name
# what the headers number. Run as
#   cmake -DRUNTIME_HEADER=… -DDRIVER_HEADER=… -DNVTX_HEADER=… -DOUTPUT=… -P generate_callback_names.cmake
#
# Each table is indexed by callback id; ids that a header leaves out are null.

function(append_table out table header prefix)
  file(STRINGS "${header}" lines REGEX "^ *${prefix}[A-Za-z0-9_]+ *= *[0-9]+")
  set(next 0)
  set(text "constexpr const char* const ${table}[] = {\n")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "${prefix}([A-Za-z0-9_]+) *= *([0-9]+)" _ "${line}")
    set(name "${CMAKE_MATCH_1}")
    set(id "${CMAKE_MATCH_2}")
    if(name STREQUAL "SIZE")
      break()
    endif()
    while(next LESS id)
      string(APPEND text "    nullptr,\n")
      math(EXPR next "${next} + 1")
    endwhile()
    string(APPEND text "    \"${name}\",\n")
    math(EXPR next "${next} + 1")
  endforeach()
  if(next LESS 10)
    message(FATAL_ERROR "${header} has no callback ids that begin with ${prefix}")
  endif()
  set(${out} "${${out}}${text}};\n" PARENT_SCOPE)
endfunction()

set(tables "// Generated from the CUPTI headers; indexed by callback id.\n")
append_table(tables kRuntimeNames "${RUNTIME_HEADER}" CUPTI_RUNTIME_TRACE_CBID_)
append_table(tables kDriverNames "${DRIVER_HEADER}" CUPTI_DRIVER_TRACE_CBID_)
append_table(tables kNvtxNames "${NVTX_HEADER}" CUPTI_CBID_NVTX_)
file(WRITE "${OUTPUT}" "${tables}")
