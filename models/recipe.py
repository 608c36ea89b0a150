# SPDX-License-Identifier: Apache-2.0
"""A recipe says where a model comes from, what it must hash to, and how it becomes a prepared model.

Two formats, `convert.format`: "tfjs-graph" is converted to ONNX and compared with an independent evaluation;
"onnx" is a ready file, which is used byte for byte. Its recipe says under `shapes` what fixed sizes its open
dimensions get. Packages are tarballs (npm) or wheels (PyPI).
"""

from __future__ import annotations

import hashlib
import json
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx

from tfjs2onnx import onnx_eval
from tfjs2onnx.convert import BATCH, convert, serialize
from tfjs2onnx.graph_model import GraphModel, ModelError, load_graph_model, tf_dtype
from tfjs2onnx.reference import evaluate

MODELS = Path(__file__).resolve().parent
_MAX_FILE = 1 << 30
_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}


class RecipeError(Exception):
    """The recipe can't be followed; the message is for the user."""


class HashError(RecipeError):
    """Something fetched is not what the recipe names."""


def known_recipes() -> list[str]:
    return sorted(path.parent.name for path in MODELS.glob("*/recipe.json"))


def load_recipe(name: str) -> dict[str, Any]:
    if name not in known_recipes():
        raise RecipeError(f"no recipe '{name}'; there are: {', '.join(known_recipes())}")
    text = (MODELS / name / "recipe.json").read_bytes()
    return json.loads(text) | {"sha256": sha256(text)}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_size(name: str, size: int) -> None:
    if size > _MAX_FILE:
        raise RecipeError(f"'{name}' has {size} bytes, more than {_MAX_FILE}")


def _read_tar(package: Path, name: str) -> bytes | None:
    with tarfile.open(package) as archive:
        member = archive.getmember(name)
        _check_size(name, member.size)
        stream = archive.extractfile(member) if member.isreg() else None
        return stream.read() if stream else None


def _read_zip(package: Path, name: str) -> bytes | None:
    with zipfile.ZipFile(package) as archive:
        member = archive.getinfo(name)
        _check_size(name, member.file_size)
        # The upper half is st_mode where the archive comes from a system that has it, else 0.
        kind = stat.S_IFMT(member.external_attr >> 16)
        return archive.read(member) if kind in (0, stat.S_IFREG) and not member.is_dir() else None


def extract(package: Path, entry: dict[str, Any]) -> bytes:
    """One file out of the package, read without writing anything to disk."""
    try:
        data = (_read_zip if package.suffix == ".whl" else _read_tar)(package, entry["path"])
    except KeyError:
        raise RecipeError(f"'{package.name}' has no '{entry['path']}'") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise RecipeError(f"'{entry['path']}' in '{package.name}' can't be read: {error}") from None
    if data is None:
        raise RecipeError(f"'{entry['path']}' in '{package.name}' is no ordinary file")
    if sha256(data) != entry["sha256"]:
        raise HashError(f"'{entry['path']}' has SHA-256 {sha256(data)}, the recipe says {entry['sha256']}")
    return data


def load_source(recipe: dict[str, Any], tarball: Path) -> GraphModel:
    files = recipe["files"]
    shards = {Path(entry["path"]).name: extract(tarball, entry) for entry in files["weights"]}
    return load_graph_model(extract(tarball, files["topology"]), shards)


def is_ready(recipe: dict[str, Any]) -> bool:
    return recipe["convert"]["format"] == "onnx"


def load_ready(recipe: dict[str, Any], package: Path) -> tuple[Any, bytes]:
    """A ready ONNX file: the model, to be looked at, and its very bytes."""
    entry = recipe["files"]["model"]
    data = extract(package, entry)
    try:
        model = onnx.load_from_string(data)
        onnx.checker.check_model(model)
    except (google.protobuf.message.DecodeError, onnx.checker.ValidationError) as error:
        raise ModelError(f"'{entry['path']}' is no valid ONNX file: {str(error)[:300]}") from None
    return model, data


def labels(recipe: dict[str, Any], package: Path) -> list[str]:
    """The recipe's own, or the lines of a file of the package, with what it leaves out before and behind."""
    entry = recipe["files"].get("labels")
    if entry is None:
        return recipe["labels"]
    lines = extract(package, entry).decode().split("\n")
    if lines[-1] == "":
        lines.pop()
    return [*entry["before"], *lines, *entry["after"]]


def build(recipe: dict[str, Any], source: GraphModel):
    rules = recipe["convert"]
    return convert(source, rules["outputs"], rules["dynamic_batch"])


def reference(recipe: dict[str, Any], source: GraphModel, model) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random inputs and what the TFJS graph makes of them, by name of the ONNX model's inputs and outputs.

    Where the batch is open there are two different items, each evaluated alone: a batch must give what each gives.
    """
    rules = recipe["convert"]
    generator = np.random.default_rng(20240229)
    batch = 2 if rules["dynamic_batch"] else 1
    inputs = {}
    for value in model.graph.input:
        node = source.nodes[value.name]
        shape = (batch, *node.get("shape")[1:])
        levels = tf_dtype(node.get("dtype")) is not np.float32
        values = generator.integers(0, 256, shape) if levels else generator.normal(size=shape)
        inputs[value.name] = values.astype(np.float32)
    items = [
        evaluate(source, {name: array[i : i + 1] for name, array in inputs.items()}, list(rules["outputs"].values()))
        for i in range(batch)
    ]
    return inputs, {name: np.concatenate([item[k] for item in items]) for k, name in enumerate(rules["outputs"])}


def parity(recipe: dict[str, Any], model, inputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """Largest absolute difference between the reference and the ONNX graph in our own evaluator.

    It shows that the graph says the same; `penstock model compare` shows that the engine computes it.
    """
    rules = recipe["convert"]
    got = onnx_eval.run(model, inputs)
    worst = 0.0
    for name, want in wanted.items():
        difference = np.abs(got[name] - want)
        # A NaN on either side is a difference, however max() would see it.
        worst = max(worst, float(difference.max()) if np.isfinite(difference).all() else np.inf)
    if not worst <= rules["parity"]:
        raise ModelError(f"the conversion differs by {worst:g}, more than {rules['parity']:g}")
    return worst


def _sizes(info, shapes: dict[str, list]) -> list[int | str]:
    """The tensor's sizes, an open batch as BATCH: those of the model, or of `shapes`, which must fit them."""
    dims = info.type.tensor_type.shape.dim
    model = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]
    if not shapes:
        return model
    wanted = shapes.get(info.name)
    if wanted is None or len(wanted) != len(model):
        raise ModelError(f"the model has '{info.name}' {model}, the recipe says {wanted}")
    for size, want in zip(model, wanted):
        if isinstance(size, int) and size != want:
            raise ModelError(f"the model has '{info.name}' {model}, the recipe says {wanted}")
    return wanted


def _tensor(info, recipe: dict[str, Any]) -> dict[str, Any]:
    batch = {"min": 1, "max": recipe["max_batch"], "symbol": BATCH}
    dims = [batch if size == BATCH else size for size in _sizes(info, recipe.get("shapes", {}))]
    return {"name": info.name, "type": _TYPES[info.type.tensor_type.elem_type], "dims": dims}


def manifest(recipe: dict[str, Any], model, onnx_bytes: bytes, names: list[str]) -> dict[str, Any]:
    """manifest.json of schema 2 (docs/manifest.md); `names` are the labels."""
    inputs = [_tensor(info, recipe) for info in model.graph.input]
    for tensor in inputs:
        if tensor["name"] == recipe["preprocess"]["input"]:
            tensor["layout"] = recipe["preprocess"]["layout"]
    return {
        "schema": 2,
        "name": recipe["name"],
        "artefacts": [{"path": "model.onnx", "sha256": sha256(onnx_bytes), "role": "model"}],
        "engine": {"name": "onnxruntime", "provider": "CPUExecutionProvider", "architecture": "any"},
        "inputs": inputs,
        "outputs": [_tensor(info, recipe) for info in model.graph.output],
        "task": recipe["task"],
        "family": recipe["family"],
        "classes": len(names),
        "labels": names,
        "preprocess": recipe["preprocess"],
        "postprocess": recipe["postprocess"],
        "licence": recipe["licence"],
        "origin": recipe["origin"] | {"recipe": recipe["sha256"]},
        "weaknesses": recipe["weaknesses"],
    }


__all__ = [
    "HashError",
    "ModelError",
    "RecipeError",
    "build",
    "is_ready",
    "known_recipes",
    "labels",
    "load_ready",
    "load_recipe",
    "load_source",
    "manifest",
    "parity",
    "reference",
    "serialize",
    "sha256",
]
