#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the program on purpose, one patch at a time, and expects the tests to notice.

tests/mutants/CLAUSE*.patch is a unified diff (patch -p1) whose leading lines name the test binary and the
tests that must fail:

  # target: memory_tensor_test
  # tests: *V10*

Works on a copy of the tree in build/mutate/src, built in build/mutate/build. A mutant is killed when the
named tests pass before it and fail with it; it survives when they pass with it. A patch that does not
apply, does not build or names no test is an error.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
WORK = REPO / "build" / "mutate"
SOURCE = WORK / "src"
BUILD = WORK / "build"
JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count())
TIMEOUT = 300


class Invalid(Exception):
    """The mutant says nothing about the tests."""


def run(*command, timeout=None, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=timeout, stdin=subprocess.DEVNULL, **kwargs)


def copy_tree():
    """Brings SOURCE up to the working tree; files that did not change keep their time stamps."""
    listed = run("git", "-c", f"safe.directory={REPO}", "ls-files", "-z", "-co", "--exclude-standard",
                 cwd=REPO).stdout
    wanted = {f for f in listed.split("\0") if f and (REPO / f).is_file()}
    for file in wanted:
        source, target = REPO / file, SOURCE / file
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in SOURCE.rglob("*"):
        if path.is_file() and str(path.relative_to(SOURCE)) not in wanted:
            path.unlink()


def configure():
    if (BUILD / "build.ninja").exists():
        return
    cache = os.environ["PENSTOCK_CACHE"]
    done = run("cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
               "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
               f"-DPENSTOCK_ONNXRUNTIME_DEFAULT={cache}/onnxruntime/libonnxruntime.so.1")
    if done.returncode:
        sys.exit(f"{done.stdout}\ndev: configuring the copy failed")


def read_header(patch):
    """Returns (target, filter) from the lines before the diff."""
    fields = {}
    for line in patch.read_text().splitlines():
        if line.startswith(("--- ", "diff ")):
            break
        for key, value in re.findall(r"\b(target|tests):\s*(\S+)", line):
            fields[key] = value
    if set(fields) != {"target", "tests"}:
        raise Invalid("the leading lines must hold '# target: BINARY' and '# tests: FILTER'")
    return fields["target"], fields["tests"]


def build(target):
    done = run("cmake", "--build", BUILD, "--parallel", JOBS, "--target", target)
    if done.returncode:
        raise Invalid(f"{target} does not build:\n" + "\n".join(done.stdout.splitlines()[-30:]))


def run_tests(target, pattern):
    """Returns (how they failed or "", output) of the tests that the pattern names."""
    binary = next((p for p in BUILD.rglob(target) if p.is_file() and os.access(p, os.X_OK)), None)
    if binary is None:
        raise Invalid(f"there is no program {target}")
    environment = dict(os.environ, GST_PLUGIN_PATH=str(BUILD / "gst"),
                       GST_REGISTRY=str(BUILD / "gst-registry.bin"))
    try:
        done = run(binary, f"--gtest_filter={pattern}", "--gtest_brief=1", timeout=TIMEOUT,
                   cwd=binary.parent, env=environment)
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT} s", ""
    if "Running 0 tests" in done.stdout or re.search(r"\b0 tests? ran", done.stdout):
        raise Invalid(f"the filter {pattern} names no test of {target}")
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}", done.stdout
    return "an assertion" if done.returncode else "", done.stdout


def patch_source(patch, reverse=False):
    done = run("patch", "-p1", "--forward" if not reverse else "--reverse", "--batch", "--fuzz=0", "--no-backup-if-mismatch",
               "-r", "-", "-i", patch, cwd=SOURCE)
    if done.returncode:
        raise Invalid(f"does not apply:\n{done.stdout}")


def try_mutant(patch, clean):
    """Returns what killed the mutant, or "". `clean` remembers what passed without a mutant."""
    target, pattern = read_header(patch)
    if (target, pattern) not in clean:
        build(target)
        failure, output = run_tests(target, pattern)
        if failure:
            raise Invalid(f"the tests fail without the mutant, by {failure}:\n{output[-2000:]}")
        clean.add((target, pattern))
    patch_source(patch)
    try:
        build(target)
        failure, _ = run_tests(target, pattern)
    finally:
        copy_tree()
    return failure


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clause", nargs="*", help="only the mutants of these clauses")
    args = parser.parse_args()
    patches = sorted((REPO / "tests" / "mutants").glob("*.patch"))
    if args.clause:
        patches = [p for p in patches if any(p.name.startswith(c) for c in args.clause)]
    if not patches:
        sys.exit("dev: no such mutant under tests/mutants/" if args.clause else "dev: tests/mutants/ has no patch")
    copy_tree()
    configure()
    killed, bad, clean = 0, [], set()
    for number, patch in enumerate(patches, 1):
        print(f"[{number}/{len(patches)}] {patch.stem} ", end="", flush=True)
        try:
            if failure := try_mutant(patch, clean):
                killed += 1
                print(f"killed by {failure}")
            else:
                bad.append(patch.stem)
                print("SURVIVED: its tests pass although the behaviour is broken")
        except Invalid as error:
            bad.append(patch.stem)
            print(f"INVALID: {error}")
    print(f"{killed} of {len(patches)} mutants killed" + (f"; not: {' '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
