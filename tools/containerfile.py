#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes packaging/Containerfile from packages.txt and root.conf; with --check, says whether it is current."""

import pathlib
import sys

PACKAGING = pathlib.Path(__file__).resolve().parent.parent / "packaging"


def rows(name):
    lines = (line.split("#")[0].strip() for line in (PACKAGING / name).read_text().splitlines())
    return [line for line in lines if line]


def containerfile():
    conf = [line.split(maxsplit=1) for line in rows("root.conf")]
    suite = next(value for key, value in conf if key == "suite")
    dpkg = [value for key, value in conf if key == "dpkg"]
    packages = sorted(set(rows("packages.txt")))
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Made by `./dev containerfile` from packages.txt and root.conf; edit those.",
        "# The build userland as an image:",
        "#   podman build -t penstock-build -f packaging/Containerfile packaging",
        "#   podman run --rm -it -v \"$PWD:$PWD\" -w \"$PWD\" penstock-build ./dev test",
        f"FROM debian:{suite}",
        "RUN printf '%s\\n' \\",
        *(f"      '{option}' \\" for option in dpkg),
        "      > /etc/dpkg/dpkg.cfg.d/penstock \\",
        " && apt-get update \\",
        " && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \\",
        *(f"      {package} \\" for package in packages),
        " && rm -rf /var/lib/apt/lists/*",
        "ENV LC_ALL=C.UTF-8 PENSTOCK_USERLAND=host",
        'CMD ["bash"]',
    ]
    return "\n".join(lines) + "\n"


def main():
    target = PACKAGING / "Containerfile"
    if "--check" in sys.argv:
        if not target.exists() or target.read_text() != containerfile():
            print("packaging/Containerfile is not made from the current lists; run ./dev containerfile")
            return 1
        print("packaging/Containerfile is current")
        return 0
    target.write_text(containerfile())
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
