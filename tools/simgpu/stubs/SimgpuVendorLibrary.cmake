# SPDX-License-Identifier: Apache-2.0

# A stand-in of `soname` with every symbol of its list; `ARGN` are the functions written by hand.
function(simgpu_vendor_library target soname)
  set(out "${SIMGPU_GENERATED}/vendor")
  set(symbols "${simgpu_SOURCE_FOLDER}/stubs/symbols/${soname}.txt")
  set(generator "${simgpu_SOURCE_FOLDER}/stubs/generate_stubs.py")
  add_custom_command(
    OUTPUT "${out}/${soname}.cpp" "${out}/${soname}.map"
    COMMAND Python3::Interpreter "${generator}" --soname "${soname}" --symbols "${symbols}" --out
            "${out}"
    DEPENDS "${generator}" "${symbols}"
    COMMENT "Writing the stubs of ${soname}"
    VERBATIM)
  simgpu_library(${target} ${soname} "" ${ARGN} "${out}/${soname}.cpp" "${out}/${soname}.map")
  target_include_directories(${target} PRIVATE "${simgpu_SOURCE_FOLDER}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${out}/${soname}.map")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${out}/${soname}.map")
endfunction()
