#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ledger against the truth of the same run, for each trouble of the example trainer, as a table.

usage: live_table.py [--build build] [--format text|markdown] [--all] [--keep FOLDER] [TROUBLE …]

Per trouble: what its cause really costs (the truth's own replay), gpudiag's replay cost and charge, and the cause
that is furthest off among all others; all in per cent of an iteration's wall time. --all prints every cause of
every device. What may be charged is what is saved by removing the cause first to removing it last; with a *, at any
place in the order. Exit status 1 where anything is wrong.
"""
import argparse
import functools
import pathlib
import sys

from live_judge import judge, judge_runs
from live_run import TROUBLES, read_run, run_trainer

HEAD = ("trouble", "cause", "ms", "true cost", "replay", "charge", "allowed", "worst other", "finding", "right")
ALIGN = {"text": "{:18} {:16} {:>6} {:>9} {:>7} {:>7} {:>14} {:>34} {:16} {}",
         "markdown": "| " + " | ".join(["{}"] * len(HEAD)) + " |"}


def percent(share):
    return f"{100 * share:.1f}"


def off(row):
    worst = row.cost_off if abs(row.cost_off) >= abs(row.charge_off) else row.charge_off
    return f"{row.cause} {'replay' if worst == row.cost_off else 'charge'} {100 * worst:+.2f}"


def conclusion(verdict, cause):
    if verdict.faults:
        return "no"
    if not verdict.misread:
        return "yes"
    return f"by the records ({verdict.misread} batches misread; really {percent(verdict.really.row(cause).true_cost)})"


def line(name, trouble, verdict):
    cause = trouble.cause or verdict.true_findings[0][0]
    row = verdict.row(cause)
    return (name, cause, f"{verdict.wall / 1e6:.2f}", percent(row.true_cost), percent(row.replay_cost),
            percent(row.charge), f"{percent(row.least)} to {percent(row.most)}" + "*" * row.any_place,
            off(verdict.worst_other(cause)), verdict.finding, conclusion(verdict, cause))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--format", choices=ALIGN, default="text")
    parser.add_argument("--all", action="store_true", help="every cause of every device too")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files of each run in this folder")
    parser.add_argument("--again", action="store_true", help="judge the runs that --keep left, and run nothing")
    parser.add_argument("troubles", nargs="*", metavar="TROUBLE", help="of: " + " ".join(TROUBLES))
    arguments = parser.parse_args()
    wrong = 0
    print(ALIGN[arguments.format].format(*HEAD))
    if arguments.format == "markdown":
        print("|---|---|" + "---:|" * 5 + "---|---|---|")
    for name in arguments.troubles or TROUBLES:
        keep = arguments.keep / name if arguments.keep else None
        if arguments.again:
            verdict = judge(read_run(keep))
        else:
            verdict = judge_runs(functools.partial(run_trainer, arguments.build.resolve(), TROUBLES[name], keep))
        print(ALIGN[arguments.format].format(*line(name, TROUBLES[name], verdict)), flush=True)
        for row in verdict.rows if arguments.all else ():
            print(f"    {row}{'' if row.right else '  WRONG'}")
        for fault in verdict.faults[:20]:
            print(f"    wrong: {fault}")
        wrong += bool(verdict.faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
