# SPDX-License-Identifier: Apache-2.0
"""Evaluates a TensorFlow.js graph in numpy: the independent oracle of the conversion.

It follows TensorFlow's definitions (NHWC, SAME padding, its resizing) and shares only the reading of
the files with the converter. Batch 1. Written for checking, but quick enough for it: convolutions are
one matrix product a kernel tap.
"""

from __future__ import annotations

from typing import Callable, Mapping

import numpy as np

from .graph_model import GraphModel, ModelError, Node, split_name, tf_dtype

Array = np.ndarray
OPERATIONS: dict[str, Callable[[Node, list[Array]], "Array | list[Array]"]] = {}


def operation(*names: str):
    def register(function):
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


def evaluate(model: GraphModel, inputs: Mapping[str, Array], outputs: list[str]) -> list[Array]:
    """The values of `outputs` ("Identity:0") for the placeholders' `inputs`."""
    values: dict[str, list[Array]] = {}

    def value_of(reference: str) -> Array:
        name, index = split_name(reference)
        return values[name][index]

    for node in model.order(outputs):
        if node.op == "Const":
            result = model.weights[node.name]
        elif node.op == "Placeholder":
            result = inputs[node.name]
        elif node.op in OPERATIONS:
            result = OPERATIONS[node.op](node, [value_of(name) for name in node.inputs])
        else:
            raise ModelError(f"the reference has no {node.op}")
        values[node.name] = result if isinstance(result, list) else [result]
    return [value_of(reference) for reference in outputs]


for _names, _function in {
    ("Add", "AddV2", "BiasAdd"): np.add,
    ("Sub",): np.subtract,
    ("Mul",): np.multiply,
    ("RealDiv",): np.divide,
    ("Maximum",): np.maximum,
    ("Minimum",): np.minimum,
    ("Tanh",): np.tanh,
    ("Exp",): np.exp,
    ("Sqrt",): np.sqrt,
    ("FloorDiv",): np.floor_divide,
    ("SquaredDifference",): lambda x, y: np.square(x - y),
    ("AddN",): lambda *terms: sum(terms[1:], start=terms[0]),
    ("ExpandDims",): lambda x, axis: np.expand_dims(x, int(axis)),
    ("GatherNd",): lambda x, indices: x[tuple(np.moveaxis(indices, -1, 0))],
    ("Abs",): np.abs,
    ("Neg",): np.negative,
    ("Identity", "StopGradient"): lambda x: x,
    ("Relu",): lambda x: np.maximum(x, 0),
    ("Relu6",): lambda x: np.clip(x, 0, 6),
    ("Sigmoid",): lambda x: 1 / (1 + np.exp(-x)),
    ("Elu",): lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}.items():
    operation(*_names)(lambda node, values, f=_function: f(*values))


def _leaky(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, x * np.float32(alpha))


@operation("LeakyRelu")
def _leaky_relu(node: Node, values: list[Array]) -> Array:
    return _leaky(values[0], node.get("alpha", 0.2))


def _padded(node: Node, x: Array, kernel: tuple[int, int], strides, dilations, fill: float) -> Array:
    """`x` with the rows and columns that the node's padding adds."""
    margins = [(0, 0)] * 4
    for axis in (1, 2):
        reach = (kernel[axis - 1] - 1) * dilations[axis] + 1
        if node.get("padding") == "SAME":
            steps = -(-x.shape[axis] // strides[axis])
            total = max((steps - 1) * strides[axis] + reach - x.shape[axis], 0)
            margins[axis] = (total // 2, total - total // 2)
        elif node.get("padding") == "EXPLICIT":
            margins[axis] = tuple(node.get("explicit_paddings")[2 * axis : 2 * axis + 2])
    return np.pad(x, margins, constant_values=fill)


def _taps(x: Array, kernel: tuple[int, int], strides, dilations):
    """(row, column, the view of `x` that this tap of the kernel sees)."""
    rows = (x.shape[1] - (kernel[0] - 1) * dilations[1] - 1) // strides[1] + 1
    columns = (x.shape[2] - (kernel[1] - 1) * dilations[2] - 1) // strides[2] + 1
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilations[1], j * dilations[2]
            yield i, j, x[
                :,
                top : top + (rows - 1) * strides[1] + 1 : strides[1],
                left : left + (columns - 1) * strides[2] + 1 : strides[2],
            ]


def _fused(node: Node, x: Array, extra: list[Array]) -> Array:
    for name in node.get("fused_ops", []):
        if name == "BiasAdd":
            x = x + extra.pop(0)
        elif name == "LeakyRelu":
            x = _leaky(x, node.get("leakyrelu_alpha", 0.2))
        elif name == "Prelu":
            x = np.where(x > 0, x, x * extra.pop(0))
        else:
            x = OPERATIONS[name](node, [x])
    return x


@operation("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative")
def _conv(node: Node, values: list[Array]) -> Array:
    x, weights = values[:2]
    strides, dilations = node.get("strides"), node.get("dilations") or [1, 1, 1, 1]
    kernel = weights.shape[:2]
    x = _padded(node, x, kernel, strides, dilations, 0)
    total: Array | float = 0.0
    for i, j, seen in _taps(x, kernel, strides, dilations):
        if "Depthwise" in node.op:
            # Channel c gives outputs c * m .. c * m + m - 1.
            part = (seen[..., None] * weights[i, j]).reshape(*seen.shape[:3], -1)
        else:
            groups = x.shape[3] // weights.shape[2]
            parts = zip(np.split(seen, groups, 3), np.split(weights[i, j], groups, 1))
            part = np.concatenate([a.reshape(-1, a.shape[3]) @ w for a, w in parts], 1)
            part = part.reshape(*seen.shape[:3], -1)
        total = total + part
    return _fused(node, total, values[2:])


@operation("MaxPool")
def _max_pool(node: Node, values: list[Array]) -> Array:
    kernel, strides = node.get("ksize")[1:3], node.get("strides")
    x = _padded(node, values[0], kernel, strides, [1, 1, 1, 1], -np.inf)
    return np.max([seen for _, _, seen in _taps(x, kernel, strides, [1, 1, 1, 1])], axis=0)


@operation("AvgPool")
def _avg_pool(node: Node, values: list[Array]) -> Array:
    """Pixels of the padding don't count."""
    kernel, strides = node.get("ksize")[1:3], node.get("strides")
    x = _padded(node, values[0], kernel, strides, [1, 1, 1, 1], 0)
    here = _padded(node, np.ones_like(values[0]), kernel, strides, [1, 1, 1, 1], 0)
    sums = sum(seen for _, _, seen in _taps(x, kernel, strides, [1, 1, 1, 1]))
    return sums / sum(seen for _, _, seen in _taps(here, kernel, strides, [1, 1, 1, 1]))


@operation("ResizeBilinear")
def _resize(node: Node, values: list[Array]) -> Array:
    x = values[0]
    for axis, size in zip((1, 2), values[1]):
        have, size = x.shape[axis], int(size)
        at = np.arange(size, dtype=np.float64)
        if node.get("align_corners") and size > 1:
            at = at * (have - 1) / (size - 1)
        elif node.get("half_pixel_centers"):
            at = np.maximum((at + 0.5) * have / size - 0.5, 0)
        else:
            at = at * have / size
        low = np.minimum(np.floor(at).astype(int), have - 1)
        high = np.minimum(low + 1, have - 1)
        share = (at - low).astype(np.float32).reshape(-1, *[1] * (3 - axis))
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return x


@operation("Pad", "PadV2")
def _pad(node: Node, values: list[Array]) -> Array:
    return np.pad(values[0], values[1], constant_values=values[2] if len(values) > 2 else 0)


@operation("Transpose")
def _transpose(node: Node, values: list[Array]) -> Array:
    return values[0].transpose(values[1])


@operation("Reshape")
def _reshape(node: Node, values: list[Array]) -> Array:
    return values[0].reshape(values[1])


@operation("ConcatV2")
def _concat(node: Node, values: list[Array]) -> Array:
    return np.concatenate(values[:-1], int(values[-1]))


@operation("Split")
def _split(node: Node, values: list[Array]) -> list[Array]:
    return np.split(values[1], node.get("num_split"), int(values[0]))


@operation("SplitV")
def _split_v(node: Node, values: list[Array]) -> list[Array]:
    x, sizes, axis = values[0], [int(size) for size in values[1]], int(values[2])
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@operation("SparseToDense")
def _sparse_to_dense(node: Node, values: list[Array]) -> Array:
    indices, shape, entries, default = values
    dense = np.full(shape, default, entries.dtype)
    rows = np.asarray(indices).reshape(-1, dense.ndim)
    if len(rows):
        dense[tuple(rows.T)] = entries
    return dense


@operation("Cast")
def _cast(node: Node, values: list[Array]) -> Array:
    return values[0].astype(tf_dtype(node.get("DstT")))


@operation("Squeeze")
def _squeeze(node: Node, values: list[Array]) -> Array:
    return np.squeeze(values[0], tuple(node.get("squeeze_dims") or []) or None)


@operation("Unpack")
def _unpack(node: Node, values: list[Array]) -> list[Array]:
    return list(np.moveaxis(values[0], node.get("axis", 0), 0))


@operation("Pack")
def _pack(node: Node, values: list[Array]) -> Array:
    return np.stack(values, node.get("axis", 0))


@operation("ArgMax")
def _arg_max(node: Node, values: list[Array]) -> Array:
    return np.argmax(values[0], int(values[1])).astype(tf_dtype(node.get("output_type", "DT_INT64")))


@operation("Conv2DBackpropInput")
def _conv_transpose(node: Node, values: list[Array]) -> Array:
    """Every input pixel adds its share of the kernel to the output; SAME then cuts the edges."""
    (_, height, width, channels), weights, x = values
    (down, right), (kh, kw) = node.get("strides")[1:3], weights.shape[:2]
    n, rows, columns, _ = x.shape
    full = np.zeros((n, max((rows - 1) * down + kh, height), max((columns - 1) * right + kw, width), channels),
                    x.dtype)  # fmt: skip
    for i, j in np.ndindex(kh, kw):
        part = x @ weights[i, j].T
        full[:, i : i + (rows - 1) * down + 1 : down, j : j + (columns - 1) * right + 1 : right] += part
    top, left = (full.shape[1] - height) // 2, (full.shape[2] - width) // 2
    return full[:, top : top + height, left : left + width]
