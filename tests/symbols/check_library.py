# SPDX-License-Identifier: Apache-2.0
"""Checks what a shared library of ours needs, exports and keeps in thread-local storage.

Usage: check_library.py gpudiag|gpudiag_inject FILE

Prints each breach on a line; exit status 1 if there is any.
"""
import dataclasses
import re
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Rules:
    needed: frozenset  # libraries it may depend on
    newest_glibc: tuple  # newest GLIBC_x.y symbol version it may ask for
    exports: str  # what its exported symbols must match
    must_export: tuple
    thread_local_bytes: int  # most static thread-local storage


LIBC_PARTS = frozenset(
    ["libc.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"]
)
RULES = {
    # libm is part of every libc, and what libstdc++, linked in statically, asks for.
    "gpudiag": Rules(
        LIBC_PARTS | {"libm.so.6"},
        (2, 36),
        r"gpudiag_\w+",
        ("gpudiag_start", "gpudiag_stop", "gpudiag_step", "gpudiag_range_push", "gpudiag_api_v1"),
        1024,
    ),
    "gpudiag_inject": Rules(
        LIBC_PARTS,
        (2, 17),
        r"InitializeInjection|InitializeInjectionNvtx2|InitializeInjectionNvtxExtension|ncclProfiler_v\d+",
        ("InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension", "ncclProfiler_v4",
         "ncclProfiler_v5", "ncclProfiler_v6"),
        0,
    ),
}


def readelf(option, path):
    command = ["readelf", "--wide", option, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_needed(rules, path):
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", path))
    return [f"depends on {name}" for name in needed if name not in rules.needed]


def check_versions(rules, path):
    """Symbols by the version of libc they need, and of any other library: there is no other."""
    breaches = []
    for name, version in re.findall(r"UND (\S+)@(\S+)", readelf("--dyn-syms", path)):
        numbers = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
        if not numbers:
            breaches.append(f"asks for {name} of {version}")
        elif tuple(map(int, numbers[1].split("."))) > rules.newest_glibc:
            breaches.append(f"asks for {name} of {version}, newer than {rules.newest_glibc}")
    return breaches


def check_exports(rules, path):
    # Num: Value Size Type Bind Vis Ndx Name, where Ndx is UND for what is asked for.
    exported = set()
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[0][:-1].isdigit() and fields[6] not in ("UND", "ABS"):
            exported.add(fields[7].split("@")[0])
    breaches = [f"exports {name}" for name in sorted(exported)
                if not re.fullmatch(rules.exports, name)]
    return breaches + [f"lacks {name}" for name in rules.must_export if name not in exported]


def check_thread_local(rules, path):
    sizes = re.findall(r"^\s+TLS\s+\S+ \S+ \S+ \S+ (0x[0-9a-f]+)", readelf("--segments", path), re.M)
    total = sum(int(size, 16) for size in sizes)
    breaches = []
    if total > rules.thread_local_bytes:
        breaches.append(f"keeps {total} bytes thread-local, over {rules.thread_local_bytes}")
    # The flag of initial-exec storage, which a process has little of once it runs.
    if "STATIC_TLS" in readelf("--dynamic", path):
        breaches.append("uses initial-exec thread-local storage")
    return breaches


def check(kind, path):
    rules = RULES[kind]
    return [
        breach
        for part in (check_needed, check_versions, check_exports, check_thread_local)
        for breach in part(rules, path)
    ]


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(__doc__)
    breaches = check(sys.argv[1], sys.argv[2])
    for breach in breaches:
        print(f"{sys.argv[2]} {breach}")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
