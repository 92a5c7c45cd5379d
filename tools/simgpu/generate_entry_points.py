#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the exported functions of the simulated libcudart or libcuda.

CUPTI's headers list every API function with its callback id and the struct of its parameters.
From these come, for the toolkit at hand:

  OUT/<api>_api.hpp       aliases of the parameter structs and declarations of the handlers
  OUT/<api>_exports.cpp   one entry point per function: it fills the struct and runs the handler,
                          with all that surrounds a call (see core/api.hpp)
  OUT/<api>_names.cpp     names by callback id

A handler is any `SIMGPU_RUNTIME(name)`, `SIMGPU_RUNTIME_VOID(name)`, `SIMGPU_DRIVER(name)` or
`SIMGPU_DRIVER_VOID(name)` in the sources given. A function without one returns "not supported":
success with unset outputs would cause garbage far away. A `_ptsz` or `_ptds` form runs the plain
form's handler with stream 0 meaning the thread's own stream.
"""
import argparse
import pathlib
import re

APIS = {
    "runtime": {
        "cbids": "cupti_runtime_cbid.h",
        "cbid": r"CUPTI_RUNTIME_TRACE_CBID_(\w+)\s*=\s*(\d+)",
        "meta": "generated_cuda_runtime_api_meta.h",
        "macro": "SIMGPU_RUNTIME",
        "result": "cudaError_t",
        "unsupported": "cudaErrorNotSupported",
        # Work before initialisation, and on a machine without a device.
        "light": {"cudaGetLastError", "cudaPeekAtLastError", "cudaRuntimeGetVersion",
                  "cudaDriverGetVersion", "cudaGetDriverEntryPoint",
                  "cudaGetDriverEntryPointByVersion", "cudaProfilerStart", "cudaProfilerStop",
                  "cudaThreadExchangeStreamCaptureMode", "cudaGetExportTable"},
        # Have something to say where there is no device.
        "copes_without": {"cudaGetDeviceCount"},
        # Hand out the last error and do not make a new one.
        "queries": {"cudaGetLastError", "cudaPeekAtLastError"},
        # Written by hand: they return no error, or are nvcc's own.
        "by_hand": {"cudaGetErrorString", "cudaGetErrorName", "cudaCreateChannelDesc"},
    },
    "driver": {
        "cbids": "cupti_driver_cbid.h",
        "cbid": r"CUPTI_DRIVER_TRACE_CBID_(\w+)\s*=\s*(\d+)",
        "meta": "generated_cuda_meta.h",
        "macro": "SIMGPU_DRIVER",
        "result": "CUresult",
        "unsupported": "CUDA_ERROR_NOT_SUPPORTED",
        "light": {"cuInit", "cuDriverGetVersion", "cuGetErrorString", "cuGetErrorName",
                  "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"},
        "copes_without": set(),
        "queries": set(),
        "by_hand": set(),
    },
}
PER_THREAD = re.compile(r"_pt[sd][sz]$")


def find_header(folders, name):
    for folder in folders:
        path = pathlib.Path(folder, name)
        if path.exists():
            return path.read_text()
    raise SystemExit(f"{name} is in none of {folders}")


class Function:
    def __init__(self, name, cbid, fields, struct):
        self.name = name      # as exported
        self.cbid = cbid
        self.fields = fields  # [(type, name)]; None: no parameters
        self.struct = struct
        self.plain = PER_THREAD.sub("", name)


def read_functions(api, folders):
    """Newest version of every function; those without a struct take no parameters."""
    runtime = api["macro"] == "SIMGPU_RUNTIME"
    structs = {}
    text = find_header(folders, api["meta"])
    for match in re.finditer(r"typedef struct (\w+)_params_st \{(.*?)\}", text, re.S):
        fields = []
        for line in match[2].split(";"):
            line = " ".join(line.split())
            if line:
                kind, name = re.fullmatch(r"(.*?)(\w+)", line).groups()
                fields.append((kind.strip(), name))
        structs[match[1]] = fields
    functions = {}
    for match in re.finditer(api["cbid"], find_header(folders, api["cbids"])):
        full, cbid = match[1], int(match[2])
        name = re.sub(r"_v\d{4,}$", "", full) if runtime else full
        if name in ("INVALID", "SIZE", "FORCE_INT") or (runtime and "_v" not in full):
            continue
        if full not in structs and name in functions and functions[name].fields is not None:
            continue  # an older version; the newest one has the struct
        functions[name] = Function(name, cbid, structs.get(full), full)
    return functions


def find_handlers(api, sources):
    plain, void = set(), set()
    for source in sources:
        text = pathlib.Path(source).read_text()
        plain |= set(re.findall(rf"^{api['macro']}\((\w+)\)", text, re.M))
        void |= set(re.findall(rf"^{api['macro']}_VOID\((\w+)\)", text, re.M))
    return plain, void


def write_api_header(api, name, functions, plain, void):
    lines = [f"// Written by generate_entry_points.py; do not edit.\n#pragma once\n"]
    for function in functions.values():
        if function.fields is not None and function.name in plain:
            alias = f"{function.name}_params"
            if alias != f"{function.struct}_params":
                lines.append(f"using {alias} = {function.struct}_params;")
    lines.append(f"\nnamespace simgpu::{name} {{")
    for handler in sorted(plain):
        if handler not in functions or functions[handler].fields is None:
            raise SystemExit(f"handler {handler}: the headers know no such function")
        lines.append(f"{api['result']} {handler}(const {handler}_params& p);")
    for handler in sorted(void):
        lines.append(f"{api['result']} {handler}();")
    lines.append("}")
    return "\n".join(lines) + "\n"


def entry_point(api, name, function, plain, void):
    fields = function.fields or []
    # Types are spelt as in the struct; an assembler label sets the exported name, so that the
    # headers' own declarations (which may differ in spelling) do not matter.
    args = ", ".join(f"{kind} a{i}" for i, (kind, _) in enumerate(fields))
    values = ", ".join(f"a{i}" for i in range(len(fields)))
    result = api["result"]
    symbol = f"simgpu_{name}_{function.name}"
    light = function.plain in api["light"]
    domain = f"ApiDomain::{name}"
    out = [f'extern "C" SIMGPU_EXPORT {result} {symbol}({args}) __asm__("{function.name}");',
           f'extern "C" SIMGPU_EXPORT {result} {symbol}({args}) {{',
           f'  static EntryPoint entry{{{domain}, {function.cbid}, "{function.name}", '
           f'{"false" if light else "true"}, '
           f'{"true" if function.plain in api["copes_without"] else "false"}}};']
    pointer = "nullptr"
    call = f"{api['unsupported']}"
    if function.fields:
        out.append(f"  {function.struct}_params params{{{values}}};")
        pointer = "&params"
    if function.plain in plain and function.fields is not None:
        call = (f"{name}::{function.plain}(*reinterpret_cast<const {function.plain}_params*>"
                f"(&params))")
    elif function.plain in void:
        call = f"{name}::{function.plain}()"
    per_thread = "true" if function.plain != function.name else "false"
    symbol_name = "symbol_of(params)" if function.fields else "nullptr"
    how = "query" if function.plain in api["queries"] else "finish"
    out += [f"  return {how}_{name}(entry, {pointer}, {symbol_name}, {per_thread}, [&] {{ return {call}; }});",
            "}"]
    return "\n".join(out)


def write_exports(api, name, functions, plain, void, typedefs=""):
    lines = ["// Written by generate_entry_points.py; do not edit.",
             f'#include "{name}/entry.hpp"', "", "using namespace simgpu;"]
    exported = []
    for function in functions.values():
        if function.name.startswith("__") or function.plain in api["by_hand"]:
            continue
        # Lists also hold functions that were removed, or belong to other systems.
        if function.fields is None and function.plain not in void and not (
                name == "runtime" and re.search("EGL|Egl|cudaGL|GraphicsGL|VDPAU", function.name)):
            continue
        exported.append(function)
        lines.append(entry_point(api, name, function, plain, void))
    if name == "driver":
        lines += driver_symbols(exported, typedefs)
    return "\n".join(lines) + "\n"


def driver_symbols(exported, typedefs):
    """The table of cuGetProcAddress: cudaTypedefs.h says which CUDA version brought which form."""
    versions = {}
    for base, version, per_thread in re.findall(
            r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)", typedefs):
        versions.setdefault((base, bool(per_thread)), set()).add(int(version))
    forms = {}
    for function in exported:
        base = re.sub(r"_v\d$", "", function.plain)
        number = int((re.search(r"_v(\d)$", function.plain) or [0, 1])[1])
        forms.setdefault((base, function.plain != function.name), []).append((number, function))
    rows = []
    for (base, per_thread), known in sorted(forms.items()):
        # The newest form belongs to the newest version, and so on down.
        newest = sorted(versions.get((base, per_thread), {2000}), reverse=True)
        for rank, (_, function) in enumerate(sorted(known, key=lambda form: -form[0])):
            version = newest[min(rank, len(newest) - 1)]
            rows.append(f'    {{"{base}", {version}, {"true" if per_thread else "false"}, '
                        f'reinterpret_cast<void*>(&simgpu_driver_{function.name})}},')
    return ["", '#include "driver/lookup.hpp"', "", "namespace simgpu {",
            "const DriverSymbol kDriverSymbols[] = {", *rows, "};",
            "const std::size_t kDriverSymbolCount = sizeof kDriverSymbols / "
            "sizeof kDriverSymbols[0];", "}  // namespace simgpu"]


def write_names(name, functions):
    lines = ["// Written by generate_entry_points.py; do not edit.",
             "#include <cstdint>", "", "namespace simgpu {",
             f"const char* {name}_api_name(std::uint32_t cbid) noexcept;",
             f"const char* {name}_api_name(std::uint32_t cbid) noexcept {{", "  switch (cbid) {"]
    seen = set()
    for function in functions:
        if function[1] not in seen:
            seen.add(function[1])
            lines.append(f'    case {function[1]}: return "{function[0]}";')
    lines += ["    default: return nullptr;", "  }", "}", "}  // namespace simgpu"]
    return "\n".join(lines) + "\n"


def all_names(api, folders):
    names = []
    for match in re.finditer(api["cbid"], find_header(folders, api["cbids"])):
        if match[1] not in ("INVALID", "SIZE", "FORCE_INT"):
            plain = api["macro"] == "SIMGPU_RUNTIME"
            names.append((re.sub(r"_v\d{4,}$", "", match[1]) if plain else match[1], int(match[2])))
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api", choices=APIS, required=True)
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("sources", nargs="*")
    options = parser.parse_args()
    api = APIS[options.api]
    functions = read_functions(api, options.include)
    plain, void = find_handlers(api, options.sources)
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{options.api}_api.hpp").write_text(
        write_api_header(api, options.api, functions, plain, void))
    (out / f"{options.api}_exports.cpp").write_text(
        write_exports(api, options.api, functions, plain, void,
                      find_header(options.include, "cudaTypedefs.h")))
    (out / f"{options.api}_names.cpp").write_text(
        write_names(options.api, all_names(api, options.include)))


if __name__ == "__main__":
    main()
