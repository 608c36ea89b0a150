#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every include between our folders against the table of docs/architecture.md.

A room may include itself, what its row names, and what those may include in turn.
"""

import pathlib
import re
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\|\s*(?P<room>[\w/]+)\s*\|.*\|\s*(?P<may>[^|]+?)\s*\|\s*$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# Rows whose third column is a sentence: the headers that it means.
BY_NAME = {
    "nodes": re.compile(r"^penstock/graph/custom_node\w*\.h$"),
    "audit": re.compile(r"^penstock/\w+/\w*mark\w*\.h$"),
}


def read_table():
    """Returns {room: set of rooms it may include}, closed over the rows that it names."""
    rows = {}
    lines = (REPO / "docs/architecture.md").read_text().splitlines()
    start = next((i for i, l in enumerate(lines) if l.startswith("| room ")), None)
    if start is None:
        sys.exit("docs/architecture.md: no table that starts with '| room '")
    for line in lines[start + 2:]:
        match = ROW.match(line)
        if not match:
            break
        rows[match["room"]] = match["may"]
    short = {room.removeprefix("penstock/"): room for room in rows}
    allowed = {}

    def close(room, path=()):
        if room in path:
            sys.exit(f"docs/architecture.md: the table has a circle: {' -> '.join((*path, room))}")
        if room in allowed:
            return allowed[room]
        may = rows[room]
        above = list(rows)[: list(rows).index(room)]
        if may == "-" or room in BY_NAME:
            named = []
        elif may == "everything":
            named = above
        elif may.startswith("all above"):
            unwanted = [short[n] for n in re.findall(r"\w+", may.removeprefix("all above but"))]
            allowed[room] = {room} | {r for r in above if r not in unwanted}
            return allowed[room]
        elif may.endswith("'s imports"):
            allowed[room] = {room} | close(short[may.removesuffix("'s imports")], (*path, room))
            return allowed[room]
        else:
            try:
                named = [short[name.strip()] for name in may.split(",")]
            except KeyError as error:
                sys.exit(f"docs/architecture.md: row {room} names an unknown room: {error}")
        allowed[room] = {room}.union(*(close(n, (*path, room)) for n in named))
        return allowed[room]

    for room in rows:
        close(room)
    return allowed


def room_of(path, rooms):
    parts = path.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if name in rooms:
            return name
    return None


def main():
    allowed = read_table()
    files = subprocess.run(
        ["git", "-c", f"safe.directory={REPO}", "ls-files", "*.h", "*.cc", "*.c", "*.cu"],
        cwd=REPO, check=True, capture_output=True, text=True).stdout.split()
    problems = []
    for file in files:
        path = REPO / file
        if not path.exists():
            continue
        room = room_of(file, allowed)
        if room is None and file.startswith("penstock/"):
            problems.append(f"{file}: its folder has no row in docs/architecture.md")
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            include = match[1]
            if not (REPO / include).exists() and (path.parent / include).exists():
                problems.append(f'{file}:{number}: write "{include}" from the root of the repository')
            target = room_of(include, allowed)
            if room is None or target is None or target == room:
                continue  # tests/ and bench/ see everything
            if target == "gst" and not include.startswith("gst/"):
                continue
            if target == "gst" and not (REPO / include).exists():
                continue  # GStreamer's own <gst/...>, written with quotes
            if room in BY_NAME:
                if not BY_NAME[room].match(include):
                    problems.append(f"{file}:{number}: {room} may not include {include}")
            elif target not in allowed[room]:
                problems.append(f"{file}:{number}: {room} may not include {include} (docs/architecture.md)")
    print("\n".join(problems) or f"{len(files)} files keep to the table of {len(allowed)} rooms")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
