#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table of docs/assumptions.md against the checks that there are: none missing, none unlisted.

usage: check_list.py docs/assumptions.md DEVICE_CHECKS
"""
import pathlib
import re
import subprocess
import sys


def built(program):
    """Suite.Name of each check in the program."""
    listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names, suite = set(), ""
    for line in listing.splitlines():
        if line.startswith("  "):
            names.add(suite + line.split("#")[0].strip())
        elif line.split("#")[0].strip().endswith("."):
            suite = line.split("#")[0].strip()
    return names


def main():
    rows = [line for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
            if re.match(r"\| *\d+ *\|", line)]
    numbers = [int(re.match(r"\| *(\d+)", row).group(1)) for row in rows]
    listed = {name for row in rows for name in re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", row.split("|")[4])}
    wrong = []
    if numbers != list(range(1, len(numbers) + 1)) or not numbers:
        wrong.append(f"the rows are not numbered from 1 without holes: {numbers}")
    checks = built(sys.argv[2])
    wrong += [f"docs list {name}, and there is no such check" for name in sorted(listed - checks)]
    wrong += [f"{name} is checked and not listed" for name in sorted(checks - listed)]
    print("\n".join(wrong) or f"{len(rows)} assumptions, {len(checks)} checks")
    return 1 if wrong else 0


sys.exit(main())
