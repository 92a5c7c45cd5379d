#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects what tests/device/run left in its output folder: a table, and results.json.

usage: collect.py OUTPUT DEVICE
"""
import json
import pathlib
import sys


def first_failure(case):
    """Where and what, without GoogleTest's line breaks."""
    return " ".join(case["failures"][0]["failure"].split())[:160]


def read_check(status_file):
    """The result of one check; one that left no result has crashed or was stopped."""
    name = status_file.name.removesuffix(".status")
    status = int(status_file.read_text(encoding="utf-8"))
    result = {"name": name, "row": 0, "status": "failed", "measured": f"no result, status {status}"}
    if status == 124:
        result["measured"] = "stopped after 40 s"
    file = status_file.with_suffix(".json")
    if not file.exists():
        return result
    try:
        cases = [case for suite in json.loads(file.read_text(encoding="utf-8"))["testsuites"]
                 for case in suite["testsuite"]]
    except (ValueError, KeyError):
        return result
    if len(cases) != 1:
        return result
    case = cases[0]
    result["row"] = int(case.get("row", 0))
    result["measured"] = case.get("measured", "")
    if case["result"] == "SKIPPED":
        result["status"] = "skipped"
    elif case.get("failures"):
        result["failure"] = first_failure(case)
    elif status == 0:
        result["status"] = "passed"
    else:
        result["failure"] = f"passed, and the process ended with status {status}"
    return result


def main():
    output = pathlib.Path(sys.argv[1])
    results = [read_check(file) for file in sorted((output / "checks").glob("*.status"))]
    jobs = output / "jobs.json"
    if jobs.exists():
        results += json.loads(jobs.read_text(encoding="utf-8"))
    else:
        results.append({"name": "WholeJobs", "row": 45, "status": "failed", "measured": "did not finish"})
    results.sort(key=lambda result: (result["row"], result["name"]))
    (output / "results.json").write_text(
        json.dumps({"device": sys.argv[2], "results": results}, indent=1) + "\n", encoding="utf-8")
    for result in results:
        print(f"{result['row']:3} {result['status']:8} {result['name']:<72} {result['measured']}")
        if "failure" in result:
            print(f"             {result['failure']}")
    counts = {status: sum(r["status"] == status for r in results) for status in ("passed", "failed", "skipped")}
    print(f"{counts['passed']} hold, {counts['failed']} do not, {counts['skipped']} not run; {output / 'results.json'}")
    return 1 if counts["failed"] else 0


sys.exit(main())
