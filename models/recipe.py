# SPDX-License-Identifier: Apache-2.0
"""A recipe says where a model comes from, what it must hash to, and how it becomes a prepared model."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

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


def extract(tarball: Path, entry: dict[str, str]) -> bytes:
    """One file out of the package, read without writing anything to disk."""
    with tarfile.open(tarball) as archive:
        try:
            member = archive.getmember(entry["path"])
        except KeyError:
            raise RecipeError(f"'{tarball.name}' has no '{entry['path']}'") from None
        stream = archive.extractfile(member) if member.isreg() and member.size <= _MAX_FILE else None
        if stream is None:
            raise RecipeError(f"'{entry['path']}' in '{tarball.name}' is no ordinary file")
        data = stream.read()
    if sha256(data) != entry["sha256"]:
        raise HashError(f"'{entry['path']}' has SHA-256 {sha256(data)}, the recipe says {entry['sha256']}")
    return data


def load_source(recipe: dict[str, Any], tarball: Path) -> GraphModel:
    files = recipe["files"]
    shards = {Path(entry["path"]).name: extract(tarball, entry) for entry in files["weights"]}
    return load_graph_model(extract(tarball, files["topology"]), shards)


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


def _tensor(info, maximum: int) -> dict[str, Any]:
    tensor = info.type.tensor_type
    dims = [
        {"min": 1, "max": maximum, "symbol": dim.dim_param} if dim.dim_param == BATCH else dim.dim_value
        for dim in tensor.shape.dim
    ]
    return {"name": info.name, "type": _TYPES[tensor.elem_type], "dims": dims}


def manifest(recipe: dict[str, Any], model, onnx_bytes: bytes) -> dict[str, Any]:
    """manifest.json of schema 2 (docs/manifest.md)."""
    inputs = [_tensor(info, recipe["max_batch"]) for info in model.graph.input]
    for tensor in inputs:
        if tensor["name"] == recipe["preprocess"]["input"]:
            tensor["layout"] = recipe["preprocess"]["layout"]
    return {
        "schema": 2,
        "name": recipe["name"],
        "artefacts": [{"path": "model.onnx", "sha256": sha256(onnx_bytes), "role": "model"}],
        "engine": {"name": "onnxruntime", "provider": "CPUExecutionProvider", "architecture": "any"},
        "inputs": inputs,
        "outputs": [_tensor(info, recipe["max_batch"]) for info in model.graph.output],
        "task": recipe["task"],
        "family": recipe["family"],
        "classes": len(recipe["labels"]),
        "labels": recipe["labels"],
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
    "known_recipes",
    "load_recipe",
    "load_source",
    "manifest",
    "parity",
    "reference",
    "serialize",
    "sha256",
]
