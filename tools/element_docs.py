#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps pads and property tables of docs/elements.md as the plugin has them.

  element_docs.py DESCRIBER PLUGIN [--check] [--document FILE]

DESCRIBER is the program of tools/describe_elements.cc, PLUGIN the built plugin. Between the markers

  <!-- generated: NAME pads --> ... <!-- end -->
  <!-- generated: NAME properties --> ... <!-- end -->

the text is written anew; everything else is prose, kept by hand. Every element and tracer of the plugin
must have its markers. --check changes nothing and fails when something is missing or stale.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- generated: (\S+) (pads|properties) -->\n(.*?)<!-- end -->", re.S)
PRESENCE = {"always": "", "sometimes": "   (comes and goes)", "on request": "   (on request)"}


def structures(caps):
    """The caps' parts, one a line; a ; inside a list would be no border, and there is none."""
    return [part.strip() for part in caps.replace("(string)", "").split(";") if part.strip()]


def pads(item):
    """Pads with the same caps stand together: "sink, src:  video/x-raw"."""
    groups = {}
    # By name: a plugin that was scanned lists them in another order than one out of the registry.
    for pad in sorted(item["pads"], key=lambda pad: pad["name"]):
        groups.setdefault((pad["caps"], pad["presence"]), []).append(pad)
    heads = [", ".join(pad["name"] for pad in members) + ":" for members in groups.values()]
    width = max(map(len, heads)) + 2
    lines = []
    for head, (caps, presence) in zip(heads, groups):
        for at, text in enumerate(structures(caps)):
            note = "   (tests only)" if "PenstockSim" in text else ""
            lines.append((head if at == 0 else "").ljust(width) + text + (PRESENCE[presence] if at == 0 else "") + note)
    return "```\n" + "\n".join(lines) + "\n```\n"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def default(one):
    if one["changes"] == "never":
        return ""
    return f"`{one['default']}`" if one["default"] else "empty"


def properties(item):
    if not item["properties"]:
        return "It has no properties of its own.\n"
    lines = ["| property | type, range | default | changes in | meaning |", "|---|---|---|---|---|"]
    lines += [f"| `{one['name']}` | {cell(one['type'])} | {cell(default(one))} | {one['changes']} | {cell(one['meaning'])} |"
              for one in item["properties"]]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("describer")
    parser.add_argument("plugin")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--document", type=pathlib.Path, default=REPO / "docs/elements.md")
    arguments = parser.parse_args()
    told = subprocess.run([arguments.describer, arguments.plugin], stdout=subprocess.PIPE, text=True)
    if told.returncode != 0:
        sys.exit(f"element_docs: {arguments.describer} ended with {told.returncode}")
    items = {item["name"]: item for item in json.loads(told.stdout)}
    wanted = {(name, "properties") for name in items} | {
        (name, "pads") for name, item in items.items() if item["kind"] == "element"}
    text = arguments.document.read_text()
    found, problems = set(), []

    def written(match):
        key = (match[1], match[2])
        if key not in wanted:
            problems.append(f"'{match[1]} {match[2]}' is of nothing that the plugin has")
            return match[0]
        if key in found:
            problems.append(f"'{match[1]} {match[2]}' is there twice")
        found.add(key)
        content = pads(items[match[1]]) if match[2] == "pads" else properties(items[match[1]])
        return f"<!-- generated: {match[1]} {match[2]} -->\n{content}<!-- end -->"

    made = BLOCK.sub(written, text)
    problems += [f"has no markers for '{name} {what}'" for name, what in sorted(wanted - found)]
    if arguments.check and made != text:
        stale = [f"'{old[1]} {old[2]}'" for old, new in zip(BLOCK.finditer(text), BLOCK.finditer(made)) if old[0] != new[0]]
        problems.append(f"is stale: {', '.join(stale)}; write it anew with "
                        "`./dev run -- tools/element_docs.sh`")
    if problems:
        sys.exit("\n".join(f"{arguments.document.name}: {problem}" for problem in problems))
    if not arguments.check and made != text:
        arguments.document.write_text(made)
    print(f"{arguments.document.name}: {len(found)} generated parts of {len(items)} elements and tracers are "
          + ("as the plugin has them" if made == text else "written"))


if __name__ == "__main__":
    main()
