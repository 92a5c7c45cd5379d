#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tests/cases.tsv against the tests that CTest knows.

Each row is: id, 'test' or 'later' or 'no', names of tests (comma separated) or what will cover it,
and a remark. Exit status 1 and one line a fault if a named test is not registered, a row is
malformed or double, or (where the table of cases is at hand) a case is missing from the list.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys


def registered_tests(ctest, build):
    listing = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"],
                             check=True, capture_output=True, text=True).stdout
    return {test["name"] for test in json.loads(listing)["tests"]}


def rows(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            yield number, line.split("\t")


def faults(cases, registered):
    seen = set()
    for number, fields in rows(cases):
        where = f"{cases.name}:{number}"
        if len(fields) != 4:
            yield f"{where}: {len(fields)} fields instead of 4 (id, state, tests, remark)"
            continue
        case, state, tests, remark = fields
        if case in seen:
            yield f"{where}: {case} stands twice"
        seen.add(case)
        if state == "test":
            for name in filter(None, tests.split(",")):
                if name not in registered:
                    yield f"{where}: {case} names the test {name}, which CTest does not know"
            if not tests:
                yield f"{where}: {case} names no test"
        elif state not in ("later", "no"):
            yield f"{where}: state '{state}' is none of test, later, no"
        elif not remark:
            yield f"{where}: {case} is '{state}' without a reason"


def known_cases(table):
    return re.findall(r"^\| ([DT]\d+) \|", table.read_text(), flags=re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--ctest", default="ctest")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()

    found = list(faults(options.cases, registered_tests(options.ctest, options.build)))
    listed = {fields[0] for _, fields in rows(options.cases)}
    if options.table and options.table.exists():
        found += [f"{case} is not listed" for case in known_cases(options.table) if case not in listed]
    for fault in found:
        print(fault)
    print(f"{len(listed)} cases listed, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
