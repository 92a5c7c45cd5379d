#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a stand-in of one of the vendor's libraries: every symbol in a list, and a version script.

Each function returns the library's own "not supported", never success with unset outputs: that
would cause garbage far away. The definitions are weak, so that a function written by hand in the
same library takes their place.
"""
import argparse
import pathlib

# Return value by library, and the version of its symbols where it has one.
STATUS = {
    "libcublas.so.13": "15 /* CUBLAS_STATUS_NOT_SUPPORTED */",
    "libcublasLt.so.13": "15 /* CUBLAS_STATUS_NOT_SUPPORTED */",
    "libcudnn.so.9": "3000 /* CUDNN_STATUS_NOT_SUPPORTED */",
    "libcufft.so.12": "16 /* CUFFT_NOT_SUPPORTED */",
    "libcufile.so.0": "-5001 /* the negative of CU_FILE_DRIVER_NOT_INITIALIZED */",
    "libcurand.so.10": "0 /* never called */",
    "libcusolver.so.12": "9 /* CUSOLVER_STATUS_NOT_SUPPORTED */",
    "libcusparse.so.12": "10 /* CUSPARSE_STATUS_NOT_SUPPORTED */",
    "libcusparseLt.so.0": "10 /* CUSPARSE_STATUS_NOT_SUPPORTED */",
    "libnccl.so.2": "5 /* ncclInvalidUsage */",
    "libnvrtc.so.13": "11 /* NVRTC_ERROR_INTERNAL_ERROR */",
    "libnvshmem_host.so.3": "7 /* NVSHMEMX_ERROR_INTERNAL */",
}
VERSION = {"libnvshmem_host.so.3": "NVSHMEM", "libnccl.so.2": "", "libcufile.so.0": "",
           "libcusparseLt.so.0": ""}
# Written by hand beyond what PyTorch imports: for other programs.
ALSO_EXPORTED = {"libnccl.so.2": ["nccl*"]}
# These return a pointer: null says that there is none.
NULL = {"nvshmem_malloc", "nvshmem_ptr", "nvshmemx_mc_ptr"}
# These return a struct of two ints, the error and a CUresult.
CUFILE_ERROR = {"cuFileHandleRegister", "cuFileBufRegister", "cuFileBufDeregister"}


def stub(soname, name):
    status = STATUS[soname]
    if name in NULL:
        status = "0 /* null */"
    elif name in CUFILE_ERROR:
        status = "5001 /* CU_FILE_DRIVER_NOT_INITIALIZED */"
    return (f'extern "C" __attribute__((weak, visibility("default"))) long {name}();\n'
            f"long {name}() {{\n"
            f'  simgpu::tell_unmodelled("{name}");\n  return {status};\n}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soname", choices=STATUS, required=True)
    parser.add_argument("--symbols", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder")
    options = parser.parse_args()
    names = options.symbols.read_text().split()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = ["// Written by generate_stubs.py; do not edit.", '#include "stubs/unmodelled.hpp"', ""]
    lines += [stub(options.soname, name) for name in names]
    (options.out / f"{options.soname}.cpp").write_text("\n".join(lines))
    version = VERSION.get(options.soname, options.soname)
    names += ALSO_EXPORTED.get(options.soname, [])
    exported = "".join(f"    {name};\n" for name in names)
    exported = f"  global:\n{exported}" if names else ""
    (options.out / f"{options.soname}.map").write_text(
        f"{version + ' ' if version else ''}{{\n{exported}  local:\n    *;\n}};\n")


if __name__ == "__main__":
    main()
