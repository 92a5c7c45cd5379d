#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes symbols/*.txt: what an installed PyTorch imports from each of the vendor's libraries.

Run it when the simulation shall serve another version of PyTorch:

  list_symbols.py .../site-packages/torch
"""
import argparse
import collections
import pathlib
import re
import subprocess

# The symbols of a library are told by version, and where they have none by their prefix.
PREFIXES = {
    "libnccl.so.2": "nccl",
    "libcusparseLt.so.0": "cusparseLt",
    "libcufile.so.0": "cuFile",
    "libnvshmem_host.so.3": "nvshmem",
}
VERSIONS = {"NVSHMEM": "libnvshmem_host.so.3"}
# The first tier has these.
FOREIGN = ("libcudart", "libcuda.", "libcupti", "libc.", "libm.", "libstdc", "libgcc", "libdl",
           "libpthread", "librt", "ld-linux", "libgomp")


def imported(library):
    lines = subprocess.run(["nm", "-D", "--undefined-only", "--with-symbol-versions", library],
                           capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@")


def owner(name, version):
    version = VERSIONS.get(version, version)
    if version.startswith("lib") and not version.startswith(FOREIGN):
        return version
    if version:
        return None
    for library, prefix in PREFIXES.items():
        if re.match(prefix + r"(_|x_|[A-Z])", name):
            return library
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("torch", type=pathlib.Path)
    options = parser.parse_args()
    found = collections.defaultdict(set)
    for library in sorted((options.torch / "lib").glob("*.so")):
        for name, version in imported(library):
            if soname := owner(name, version):
                found[soname].add(name)
    folder = pathlib.Path(__file__).parent / "symbols"
    for soname, names in sorted(found.items()):
        text = "".join(f"{name}\n" for name in sorted(names))
        (folder / f"{soname}.txt").write_text(text)
        print(f"{soname}: {len(names)}")


if __name__ == "__main__":
    main()
