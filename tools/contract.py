#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which clauses of docs/contract.md the tests of the last run hold, and on which device.

Reads build/PRESET/ctest.xml (./dev test writes it). A suite belongs to the clause that its name begins
with (`V10`, `V10_Something`); its device is the instantiation's name (`cpu/V10.KeepsMemories/0`), or the
host when it has none. Host logic is tested once, on whichever device. Only tests that ran and passed are
counted.

  held     every device of the clause's row that software can stand for has a passing test
  part     some have, or the contract states a limit for now
  open     none has
  broken   a test of the clause failed
"""

import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

REPO = pathlib.Path(__file__).resolve().parent.parent
CLAUSE = re.compile(r"^\|\s*([A-Z]\d\d)\s*\|\s*([a-z ]+?)\s*\|")
# A row of the table of limits: | V01 | 2026-11-30 | what is not there yet |
LIMIT = re.compile(r"^\|\s*([A-Z]\d\d)\s*\|\s*\d{4}-\d\d-\d\d\s*\|")
TEST = re.compile(r"^(?:(?P<device>\w+)/)?(?P<clause>[A-Z]\d\d)(?:_\w+)?\.")
# Letter of the column `on`: the devices it needs, and those that only real hardware has.
NEEDED = {"h": ["h"], "c": ["cpu"], "s": ["sim"], "g": ["cuda-sim"], "a": ["hip-sim"]}
HARDWARE = {"g": ["cuda"], "a": ["hip"]}
DEVICES = ["cpu", "sim", "cuda-sim", "cuda", "hip-sim", "hip", "va-sim", "va"]


def device_of(instantiation):
    """`cpu` and `cpu_formats` are the device cpu; a name that is no device is the host's."""
    if instantiation is None:
        return "h"
    name = instantiation.replace("_", "-")
    for device in sorted(DEVICES, key=len, reverse=True):
        if name == device or name.startswith(device + "-"):
            return device
    return "h"


def read_clauses():
    clauses = {}
    for line in (REPO / "docs/contract.md").read_text().splitlines():
        if match := CLAUSE.match(line):
            clauses[match[1]] = match[2].split()
    return clauses


def read_limited():
    lines = (REPO / "docs/contract.md").read_text().splitlines()
    return {match[1] for line in lines if (match := LIMIT.match(line))}


def read_results(path):
    passed = collections.defaultdict(collections.Counter)
    failed = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        match = TEST.match(case.get("name", ""))
        if not match:
            continue
        status = case.get("status")
        if status == "fail" or case.find("failure") is not None:
            failed[match["clause"]].append(case.get("name"))
        elif status == "run" and case.find("skipped") is None:
            passed[match["clause"]][device_of(match["device"])] += 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser(prog="./dev contract", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clause", nargs="*", help="only these")
    parser.add_argument("--preset", default="release")
    args = parser.parse_args()
    results = REPO / "build" / args.preset / "ctest.xml"
    if not results.exists():
        sys.exit(f"dev: {results.relative_to(REPO)} does not exist; run ./dev test first")
    clauses = read_clauses()
    passed, failed = read_results(results)
    limited = read_limited()
    totals = collections.Counter()
    unknown = sorted((set(passed) | set(failed)) - set(clauses))
    for clause, letters in clauses.items():
        if args.clause and clause not in args.clause:
            continue
        needed = [d for letter in letters for d in NEEDED.get(letter, [])]
        shown = [d for letter in letters for d in NEEDED.get(letter, []) + HARDWARE.get(letter, [])]
        shown += sorted(set(passed[clause]) - set(shown))
        counts = passed[clause]
        if failed[clause]:
            word = "broken"
        elif all(counts[d] or (d == "h" and counts) for d in needed):
            word = "part" if clause in limited else "held"
        else:
            word = "part" if counts else "open"
        totals[word] += 1
        print(clause, f"{word:6}", *(f"{d}={counts[d] or '-'}" for d in shown))
        for name in failed[clause]:
            print(f"    failed: {name}")
    print(f"{sum(totals.values())} clauses:", ", ".join(f"{totals[w]} {w}" for w in ("held", "part", "open", "broken")))
    for clause in unknown:
        print(f"tests name {clause}, which docs/contract.md does not have", file=sys.stderr)
    return 1 if totals["broken"] or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
