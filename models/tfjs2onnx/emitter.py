# SPDX-License-Identifier: Apache-2.0
"""Collects ONNX nodes and constants, and knows the type and shape of every name.

A Value is a TensorFlow tensor during the conversion. `order[i]` says which TensorFlow axis the i-th
axis of the ONNX tensor holds, so a Transpose costs nothing until somebody needs another order: the
network of an NHWC graph stays NCHW from one Conv to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

OPSET = 17
NCHW = (0, 3, 1, 2)  # of a TensorFlow NHWC tensor


@dataclass(frozen=True)
class Value:
    """A tensor in TensorFlow's axes: either a constant or the ONNX tensor `name`."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    name: str = ""
    constant: np.ndarray | None = None

    @staticmethod
    def of(array: np.ndarray) -> "Value":
        return Value(array.shape, tuple(range(array.ndim)), constant=array)

    @property
    def rank(self) -> int:
        return len(self.shape)


class Emitter:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, np.ndarray] = {}
        self._types: dict[str, onnx.TypeProto] = {}
        self._transposed: dict[tuple[str, tuple[int, ...]], str] = {}
        self._counts: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}_{count}"

    def input(self, name: str, dtype: type, shape: Sequence[int]) -> Value:
        elem = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._types[name] = helper.make_tensor_type_proto(elem, list(shape))
        return Value(tuple(shape), tuple(range(len(shape))), name)

    def constant(self, array: np.ndarray, hint: str = "const") -> str:
        name = self.fresh(hint)
        array = np.asarray(array)  # ascontiguousarray would turn a scalar into a vector
        self.initializers[name] = array if array.flags.c_contiguous else array.copy()
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        self._types[name] = helper.make_tensor_type_proto(elem, array.shape)
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64), "ints")

    def emit(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Adds a node; returns the names of its outputs."""
        names = [self.fresh(op.lower()) for _ in range(outputs)]
        node = helper.make_node(op, list(inputs), names, name=names[0], **attributes)
        known = {name: self._types[name] for name in inputs if name}
        data = {
            name: numpy_helper.from_array(self.initializers[name], name)
            for name in known
            if name in self.initializers and self.initializers[name].size <= 64
        }
        inferred = shape_inference.infer_node_outputs(
            defs.get_schema(op, OPSET, ""), node, known, data, [helper.make_opsetid("", OPSET)]
        )
        for name in names:
            self._types[name] = inferred[name]
        self.nodes.append(node)
        return names

    def stored_shape(self, name: str) -> tuple[int, ...]:
        """In the ONNX tensor's own axes."""
        return tuple(dim.dim_value for dim in self._types[name].tensor_type.shape.dim)

    def elem_type(self, name: str) -> int:
        return self._types[name].tensor_type.elem_type

    def wrap(self, name: str, order: Sequence[int] | None = None) -> Value:
        """The Value of an emitted tensor that is stored in `order`."""
        stored = self.stored_shape(name)
        order = tuple(order) if order is not None else tuple(range(len(stored)))
        shape = [0] * len(stored)
        for position, axis in enumerate(order):
            shape[axis] = stored[position]
        return Value(tuple(shape), order, name)

    def name_in(self, value: Value, order: Sequence[int] | None = None) -> str:
        """The ONNX tensor that holds `value` in `order` (default: TensorFlow's)."""
        wanted = tuple(order) if order is not None else tuple(range(value.rank))
        if value.constant is not None:
            return self.constant(value.constant.transpose(wanted))
        if value.order == wanted:
            return value.name
        key = (value.name, wanted)
        if key not in self._transposed:
            perm = [value.order.index(axis) for axis in wanted]
            self._transposed[key] = self.emit("Transpose", [value.name], perm=perm)[0]
        return self._transposed[key]
