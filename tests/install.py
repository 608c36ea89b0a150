#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a build into a temporary prefix, moves that, and looks whether the program, the plugin and
the recipes there work without anything of the build's (docs/install.md).

  install.py CMAKE BUILD
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def said(command, env):
    ran = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    if ran.returncode != 0:
        sys.exit(f"{command} ended with {ran.returncode}:\n{ran.stdout}")
    return ran.stdout


def main():
    cmake, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": os.environ["PATH"], "HOME": folder, "GST_REGISTRY": f"{folder}/registry.bin"}
        said([cmake, "--install", build, "--prefix", f"{folder}/first"], env)
        prefix = pathlib.Path(folder, "moved")
        pathlib.Path(folder, "first").rename(prefix)
        (plugin,) = prefix.glob("lib*/**/gstreamer-1.0/libgstpenstock.so")
        env["GST_PLUGIN_PATH"] = str(plugin.parent)
        for element in ("peninfer", "pentrack", "penzone", "penmux", "pendemux", "penaggregate"):
            if str(plugin) not in said(["gst-inspect-1.0", element], env):
                sys.exit(f"{element} does not come from {plugin}")
        program = str(prefix / "bin/penstock")
        libraries = said(["ldd", program], env)
        (own,) = (line for line in libraries.splitlines() if "libpenstock_gst.so" in line)
        if str(prefix) not in os.path.realpath(own.split()[2]):
            sys.exit(f"the program takes another library: {own}")
        listed = said([program, "model", "list"], env)
        if "nanodet" not in listed or not (prefix / "share/penstock/models/fetch.py").exists():
            sys.exit(f"the recipes are not there:\n{listed}")
        # Contract L01: what only tests may do can't be done with what is installed.
        for file in (os.path.realpath(own.split()[2]), str(plugin), program):
            seams = re.findall(r"\b(?:set_\w*clock|\w+_for_tests?)\(", said(["nm", "--defined-only", "-C", file], env))
            if seams:
                sys.exit(f"{file} has {', '.join(seams)}, which are for tests")
    print("the installation works")


if __name__ == "__main__":
    main()
