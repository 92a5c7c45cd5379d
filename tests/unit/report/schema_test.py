# SPDX-License-Identifier: Apache-2.0
"""Checks docs/schema against the code: the schemas name exactly what the code can print, and accept
what it prints. Arguments: the folder of the schemas and the program schema_samples."""

import copy
import json
import pathlib
import subprocess
import sys

import jsonschema


def load(folder, name):
    schema = json.loads((folder / f"{name}-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def samples(program):
    output = subprocess.run([program], check=True, capture_output=True).stdout
    for line in output.decode("utf-8").splitlines():
        yield json.loads(line, parse_constant=lambda word: sys.exit(f"{word} is no JSON"))


def check_names(schemas, names):
    """Each enumeration of each schema holds the names of the code's table, in its order."""
    verdicts = [cause for cause in names["cause"] if cause != "unknown"]
    tables = {**names, "verdict": verdicts + names["finding_only_cause"] + names["verdict_only"]}
    found = set()
    for kind, schema in schemas.items():
        for table, definition in schema["$defs"].items():
            if "enum" in definition:
                assert definition["enum"] == tables[table], f"{kind}: {table}"
                found.add(table)
        defs = schema["$defs"]
        if "quality" in defs:
            quality = defs["quality"]["properties"]
            assert quality["grade"]["enum"] == names["grade"], kind
            assert list(quality["defects"]["properties"]) == names["defect"], kind
        if "idle" in defs:
            assert list(defs["idle"]["properties"]) == [f"{c}_ns" for c in names["cause"]], kind
        if "finding" in defs:
            assert defs["finding"]["properties"]["confidence"]["enum"] == names["confidence"], kind
        if "collectives" in defs:
            culprit = defs["collectives"]["properties"]["culprits"]["items"]["properties"]
            assert culprit["kind"]["enum"] == names["culprit_kind"], kind
            assert culprit["pattern"]["enum"] == names["late_pattern"], kind
            assert defs["operation"]["properties"]["kind"]["enum"] == names["collective_kind"], kind
    expected = {"cause", "sub_cause", "finding_only_cause", "verdict", "invalid_reason", "defect",
                "phase", "opened_by"}
    assert found == expected, found ^ expected


def check_refusal(validators, iteration, report):
    """A check that accepts everything is none."""
    def refuse(kind, document, change):
        changed = copy.deepcopy(document)
        change(changed)
        assert not validators[kind].is_valid(changed), f"accepts a wrong {kind}"

    refuse("iteration", iteration, lambda d: d.update(wall_ns="5"))
    refuse("iteration", iteration, lambda d: d["idle"].pop("sync_ns"))
    refuse("iteration", iteration, lambda d: d["evidence"][0].update(cause="moon"))
    refuse("iteration", iteration, lambda d: d.update(invalid_counts={"moon": 1}))
    refuse("iteration", iteration, lambda d: d.update(schema="gpudiag.iteration/2"))
    refuse("report", report, lambda d: d.update(verdict="moon"))
    refuse("report", report, lambda d: d.update(origin_unix_ns=1736412345678901235))
    refuse("report", report, lambda d: d["findings"][0].update(sub_cause="moon"))
    refuse("report", report, lambda d: d["ranks"][0]["devices"][0]["iterations"][0].pop("phase"))
    refuse("report", report, lambda d: d["ranks"][0]["quality"]["defects"].update(moon=1))


def main():
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    schemas = {name: load(folder, name) for name in ("iteration", "session", "report")}
    validators = {name: jsonschema.Draft202012Validator(s) for name, s in schemas.items()}
    documents = {}
    for kind, document in samples(program):
        if kind == "names":
            check_names(schemas, document)
            continue
        for error in validators[kind].iter_errors(document):
            sys.exit(f"{kind}: {error.message} at {list(error.absolute_path)}")
        documents.setdefault(kind, document)
    assert documents.keys() == validators.keys(), "a kind has no sample"
    check_refusal(validators, documents["iteration"], documents["report"])


main()
