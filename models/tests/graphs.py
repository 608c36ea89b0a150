# SPDX-License-Identifier: Apache-2.0
"""Builds small TensorFlow.js graph models in memory, as the converter finds them on disk."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from tfjs2onnx.graph_model import GraphModel, load_graph_model

_DTYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32"}


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, str):
        return {"s": base64.b64encode(value.encode()).decode()}
    if isinstance(value, int):
        return {"i": str(value)}
    if isinstance(value, float):
        return {"f": value}
    if value and isinstance(value[0], str):
        return {"list": {"s": [base64.b64encode(item.encode()).decode() for item in value]}}
    return {"list": {"i": [str(item) for item in value]}}


class Graph:
    """graph = Graph(); x = graph.input([1, 4, 4, 3]); graph.node("Relu", [x]); model = graph.model("Relu")."""

    def __init__(self) -> None:
        self.nodes: list[dict] = []
        self.weights: list[dict] = []
        self.data = b""

    @staticmethod
    def type_of(dtype: str) -> dict[str, str]:
        """An attribute that is a type."""
        return {"type": _DTYPES[dtype]}

    def input(self, shape: list[int], name: str = "x", dtype: str = "float32") -> str:
        dims = [{"size": str(size)} for size in shape]
        attr = {"dtype": self.type_of(dtype), "shape": {"shape": {"dim": dims}}}
        self.nodes.append({"name": name, "op": "Placeholder", "attr": attr})
        return name

    def constant(self, name: str, values: Any, dtype: str = "float32") -> str:
        array = np.asarray(values, dtype)
        self.nodes.append({"name": name, "op": "Const", "attr": {"dtype": {"type": _DTYPES[dtype]}}})
        self.weights.append({"name": name, "shape": list(array.shape), "dtype": dtype})
        self.data += array.tobytes()
        return name

    def node(self, op: str, inputs: list[str], name: str | None = None, **attributes: Any) -> str:
        attr = {key: attribute(value) for key, value in attributes.items()}
        self.nodes.append({"name": name or op, "op": op, "input": inputs, "attr": attr})
        return name or op

    def topology(self, outputs: list[str]) -> bytes:
        document = {
            "format": "graph-model",
            "signature": {"outputs": {name: {"name": f"{name}:0"} for name in outputs}},
            "modelTopology": {"node": self.nodes},
            "weightsManifest": [{"paths": ["w.bin"], "weights": self.weights}],
        }
        return json.dumps(document).encode()

    def model(self, *outputs: str) -> GraphModel:
        return load_graph_model(self.topology(list(outputs)), {"w.bin": self.data})
