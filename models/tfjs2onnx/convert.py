# SPDX-License-Identifier: Apache-2.0
"""From a GraphModel to an ONNX model, reproducibly byte for byte."""

from __future__ import annotations

from typing import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .emitter import OPSET, Emitter, Value
from .graph_model import GraphModel, ModelError, Node, split_name, tf_dtype
from .ops import HANDLERS, Context

BATCH = "N"
_IR_VERSION = 8


def convert(model: GraphModel, outputs: Mapping[str, str], dynamic_batch: bool = False) -> onnx.ModelProto:
    """`outputs` maps the names of the ONNX outputs, in order, to TensorFlow tensors ("Identity:0").

    Inputs are float32, also where the TFJS model takes integers.
    With `dynamic_batch` axis 0 of every input and output, 1 in the TFJS model, becomes the symbol N;
    the handlers only emit nodes that do not depend on it.
    """
    emitter = Emitter()
    values: dict[str, list[Value]] = {}
    inputs: list[Value] = []

    def value_of(reference: str) -> Value:
        name, index = split_name(reference)
        return values[name][index]

    for node in model.order(list(outputs.values())):
        if node.op == "Const":
            if node.name not in model.weights:
                raise ModelError(f"constant '{node.name}' has no weights")
            values[node.name] = [Value.of(model.weights[node.name])]
        elif node.op == "Placeholder":
            shape = node.get("shape", [])
            if not shape or min(shape) < 1:
                raise ModelError(f"input '{node.name}' has the open shape {shape}")
            _require_casts(model, node)
            inputs.append(emitter.input(node.name, np.float32, shape))
            values[node.name] = [inputs[-1]]
        elif node.op in HANDLERS:
            context = Context(emitter, node, [value_of(name) for name in node.inputs])
            try:
                result = HANDLERS[node.op](context)
            except ModelError as error:
                raise ModelError(f"{node.op} '{node.name}': {error}") from error
            values[node.name] = result if isinstance(result, list) else [result]
        else:
            raise ModelError(f"operation {node.op} of node '{node.name}' is not handled")

    graph_outputs = []
    for name, reference in outputs.items():
        source = emitter.name_in(value_of(reference))
        emitter.nodes.append(helper.make_node("Identity", [source], [name], name=name))
        graph_outputs.append((name, emitter.elem_type(source), value_of(reference).shape))
    return _assemble(emitter, inputs, graph_outputs, dynamic_batch)


def _require_casts(model: GraphModel, placeholder: Node) -> None:
    """Levels that come as integers become float32 at once: then the input can be float32 itself."""
    if tf_dtype(placeholder.get("dtype")) is np.float32:
        return
    for node in model.nodes.values():
        if placeholder.name not in [split_name(name)[0] for name in node.inputs]:
            continue
        if node.op != "Cast" or tf_dtype(node.get("DstT")) is not np.float32:
            raise ModelError(f"integer input '{placeholder.name}' is used by {node.op} '{node.name}'")


def _assemble(emitter: Emitter, inputs: list[Value], outputs: list[tuple], dynamic: bool) -> onnx.ModelProto:
    def info(name: str, elem: int, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        if dynamic and (not shape or shape[0] != 1):
            raise ModelError(f"'{name}' has shape {list(shape)}: axis 0 is no batch of 1")
        return helper.make_tensor_value_info(name, elem, [BATCH, *shape[1:]] if dynamic else list(shape))

    needed = {name for name, _, _ in outputs}
    nodes = []
    for node in reversed(emitter.nodes):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    nodes.reverse()
    graph = helper.make_graph(
        nodes,
        "tfjs2onnx",
        [info(value.name, emitter.elem_type(value.name), value.shape) for value in inputs],
        [info(*output) for output in outputs],
        [numpy_helper.from_array(a, n) for n, a in emitter.initializers.items() if n in needed],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="penstock tfjs2onnx",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def serialize(model: onnx.ModelProto) -> bytes:
    return model.SerializeToString(deterministic=True)
