# SPDX-License-Identifier: Apache-2.0
"""Reads a TensorFlow.js graph model: a JSON topology and shards of weights."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Mapping

import numpy as np

_STORED = {"float32": "<f4", "float16": "<f2", "int32": "<i4", "uint8": "u1", "uint16": "<u2", "bool": "u1"}
_LOADED = {"float32": np.float32, "int32": np.int32, "bool": np.bool_}
_TF_TYPES = {
    "DT_FLOAT": np.float32,
    "DT_INT32": np.int32,
    "DT_INT64": np.int64,
    "DT_BOOL": np.bool_,
    "DT_UINT8": np.uint8,
    1: np.float32,
    3: np.int32,
    4: np.uint8,
    9: np.int64,
    10: np.bool_,
}


class ModelError(Exception):
    """The model's files are malformed, or use something that is not handled."""


@dataclass
class Node:
    """One operation. Inputs are "name" or "name:output_index"; control edges are left out."""

    name: str
    op: str
    inputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        value = self.attributes.get(key)
        return default if value is None else value


@dataclass
class GraphModel:
    nodes: dict[str, Node]
    weights: dict[str, np.ndarray]
    outputs: list[str]

    def order(self, roots: list[str]) -> list[Node]:
        """The nodes that `roots` need, each after its inputs."""
        done: set[str] = set()
        active: set[str] = set()
        result: list[Node] = []
        stack = [(split_name(root)[0], False) for root in reversed(roots)]
        while stack:
            name, ready = stack.pop()
            if ready:
                active.discard(name)
                if name not in done:
                    done.add(name)
                    result.append(self.nodes[name])
                continue
            if name in done:
                continue
            if name not in self.nodes:
                raise ModelError(f"node '{name}' is used but not defined")
            if name in active:
                raise ModelError(f"node '{name}' is part of a cycle")
            active.add(name)
            stack.append((name, True))
            for source in reversed(self.nodes[name].inputs):
                if split_name(source)[0] not in done:
                    stack.append((split_name(source)[0], False))
        return result


def split_name(reference: str) -> tuple[str, int]:
    """"name:2" is output 2 of a node; without a number it is output 0."""
    name, _, index = reference.partition(":")
    return name, int(index or 0)


def tf_dtype(value: Any) -> type:
    try:
        return _TF_TYPES[value]
    except KeyError:
        raise ModelError(f"type {value!r} is not handled") from None


def _attribute(value: dict[str, Any]) -> Any:
    """A TensorFlow AttrValue as a plain Python value."""
    if "s" in value:
        return base64.b64decode(value["s"]).decode()
    if "i" in value:
        return int(value["i"])
    for key in ("f", "b", "type"):
        if key in value:
            return value[key]
    if "shape" in value:
        return [int(dim.get("size", -1)) for dim in value["shape"].get("dim", [])]
    if "list" in value:
        items = value["list"]
        if "i" in items:
            return [int(item) for item in items["i"]]
        if "s" in items:
            return [base64.b64decode(item).decode() for item in items["s"]]
        return []
    return None  # "tensor": constants come from the weights


def _decode_weights(manifest: list[dict], shards: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    weights: dict[str, np.ndarray] = {}
    for group in manifest:
        try:
            data = b"".join(shards[path] for path in group["paths"])
        except KeyError as error:
            raise ModelError(f"weight file {error} is missing") from None
        offset = 0
        for weight in group["weights"]:
            quantization = weight.get("quantization", {})
            stored_type = quantization.get("dtype", weight["dtype"])
            if stored_type not in _STORED or weight["dtype"] not in _LOADED:
                raise ModelError(f"weight '{weight['name']}' has type {stored_type}")
            stored = np.dtype(_STORED[stored_type])
            count = int(np.prod(weight["shape"], dtype=np.int64))
            if offset + count * stored.itemsize > len(data):
                raise ModelError(f"weight '{weight['name']}' lies beyond the end of its file")
            values = np.frombuffer(data, stored, count, offset)
            offset += count * stored.itemsize
            if stored_type in ("uint8", "uint16") and quantization:
                values = values.astype(np.float32) * np.float32(quantization["scale"]) + np.float32(
                    quantization["min"]
                )
            weights[weight["name"]] = values.astype(_LOADED[weight["dtype"]]).reshape(weight["shape"])
        if offset != len(data):
            raise ModelError(f"{len(data) - offset} bytes of weights belong to nothing")
    return weights


def load_graph_model(topology: bytes, shards: Mapping[str, bytes]) -> GraphModel:
    """`shards` maps the paths of the topology's weightsManifest to their bytes."""
    document = json.loads(topology)
    if document.get("format") != "graph-model":
        raise ModelError(f"format is {document.get('format')!r}, not 'graph-model'")
    nodes = {}
    for raw in document["modelTopology"]["node"]:
        attributes = {key: _attribute(value) for key, value in raw.get("attr", {}).items()}
        inputs = [name for name in raw.get("input", []) if not name.startswith("^")]
        nodes[raw["name"]] = Node(raw["name"], raw["op"], inputs, attributes)
    signature = document.get("signature") or document.get("userDefinedMetadata", {}).get("signature", {})
    outputs = [entry["name"] for entry in signature.get("outputs", {}).values()]
    return GraphModel(nodes, _decode_weights(document["weightsManifest"], shards), outputs)
