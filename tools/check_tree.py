#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what every committed file must hold: licence line, size, no host names of registries or
mirrors, no paths of one machine, no sleeping tests, and that the documents name real commands."""

import pathlib
import re
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 400 * 1024
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".h", ".cc", ".c", ".cu", ".py", ".sh", ".cmake"}
HOSTS = re.compile(
    r"\b(deb|ftp|security|snapshot)\.debian\.org|\bregistry\.(npmjs|yarnpkg)\b|\bnpmjs\.(org|com)|"
    r"\bpypi\.org|\bpythonhosted\.org|\bcrates\.io|\bproxy\.golang\.org|"
    r"\b(docker|ghcr|quay|gcr)\.io\b|\bunpkg\.com|\bjsdelivr\.net|\barchive\.ubuntu\.com", re.I)
MACHINE = re.compile(r"(?<![\w.])/(work/(main|shared)|tmp/w)\b")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|u?sleep|g_usleep|(clock_)?nanosleep)\s*\(")
# A command in a document: at the start of a code line or of an inline code span.
COMMAND = re.compile(r"(?:^|`|\$ |-- )(\./dev|penstock) ([a-z][\w-]*)", re.M)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def git_files():
    out = subprocess.run(["git", "-c", f"safe.directory={REPO}", "ls-files", "-z"],
                         cwd=REPO, check=True, capture_output=True, text=True).stdout
    return [f for f in out.split("\0") if f and (REPO / f).is_file()]


def dev_commands():
    text = (REPO / "dev").read_text()
    return set(re.findall(r"^  ([a-z]+)\b", text.split("usage: ./dev COMMAND")[1].split("EOF")[0], re.M))


def penstock_commands(files):
    found = set()
    for file in files:
        if file.startswith("apps/penstock") and file.endswith(".cc"):
            found |= set(re.findall(r'add_subcommand\(\s*"([\w-]+)"', (REPO / file).read_text()))
    return found


def check_file(file, text, problems):
    suffix = pathlib.PurePath(file).suffix
    name = pathlib.PurePath(file).name
    script = text.startswith("#!")
    if (suffix in SOURCES or script or name == "CMakeLists.txt") and LICENCE not in text[:400]:
        problems.append(f"{file}: the first lines lack '{LICENCE}'")
    is_test = file.endswith("_test.cc") or (file.startswith("tests/") and suffix in SOURCES)
    for number, line in enumerate(text.splitlines(), 1):
        if match := HOSTS.search(line):
            problems.append(f"{file}:{number}: names the host {match[0]}; the tools' defaults serve")
        if match := MACHINE.search(line):
            problems.append(f"{file}:{number}: has a path of one machine: {match[0]}")
        if is_test and (match := SLEEP.search(line)):
            problems.append(f"{file}:{number}: a test sleeps ({match[1]}); use the Clock seam or a condition")


def check_document(file, text, dev, penstock, problems):
    promised = file in ("docs/contract.md", "docs/architecture.md") or file.startswith("docs/design/")
    for tool, command in COMMAND.findall("" if promised else text):  # those speak of what is to come, too
        known = dev if tool == "./dev" else penstock
        if command not in known and not (tool == "penstock" and not penstock):
            problems.append(f"{file}: {tool} has no command '{command}'")
    for target, _ in LINK.findall(text):
        if not (REPO / file).parent.joinpath(target).exists():
            problems.append(f"{file}: links to {target}, which does not exist")


def main():
    files = git_files()
    dev, penstock = dev_commands(), penstock_commands(files)
    problems = []
    for name in ("demo", "test"):
        readme = REPO / "README.md"
        if not readme.exists() or f"./dev {name}" not in readme.read_text():
            problems.append(f"README.md: does not show ./dev {name}")
    for file in files:
        if file.endswith((".orig", ".rej", ".patch.orig")):
            problems.append(f"{file}: what a merge left behind")
        path = REPO / file
        size = path.stat().st_size
        if size > MAX_BYTES:
            problems.append(f"{file}: {size // 1024} KiB; files over {MAX_BYTES // 1024} KiB are fetched or made")
        data = path.read_bytes()
        if b"\0" in data[:8192]:
            continue
        text = data.decode("utf-8", "replace")
        check_file(file, text, problems)
        if file in ("README.md", "CONTRIBUTING.md", "SECURITY.md") or (
                file.startswith("docs/") and file.endswith(".md")):
            check_document(file, text, dev, penstock, problems)
    print("\n".join(problems) or f"{len(files)} files are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
