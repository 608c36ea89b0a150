#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the worked examples of a document: each block fenced as ```sh example, in order, in one
temporary folder, with $EXAMPLES naming docs/examples. The block fenced as ```text that follows says
what the output must contain, line by line in order; "..." stands for whatever comes.

  docs_examples.py DOCUMENT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(sh example|text)\n(.*?)^```$", re.M | re.S)


def missing(wanted, output):
    """The first wanted line that the output lacks, in order; None when all are there."""
    at = 0
    for line in wanted.splitlines():
        if not line.strip():
            continue
        pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
        found = re.compile(pattern).search(output, at)
        if not found:
            return line
        at = found.end()
    return None


def main():
    document = pathlib.Path(sys.argv[1])
    blocks = BLOCK.findall(document.read_text())
    failures = count = 0
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"EXAMPLES": str(REPO / "docs/examples"), "XDG_DATA_HOME": folder + "/data"}
        for i, (kind, text) in enumerate(blocks):
            if kind != "sh example":
                continue
            count += 1
            ran = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=100)
            follows = blocks[i + 1][1] if i + 1 < len(blocks) and blocks[i + 1][0] == "text" else ""
            lacking = missing(follows, ran.stdout)
            if ran.returncode != 0 or lacking is not None:
                failures += 1
                print(f"example {count} of {document.name} ended with {ran.returncode}"
                      + (f", and its output lacks: {lacking}" if lacking else "") + f"\n{text}\n{ran.stdout}")
    print(f"{count} examples, {failures} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
