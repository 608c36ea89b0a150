# SPDX-License-Identifier: Apache-2.0
"""Evaluates the ONNX models that the converter writes, in numpy.

onnx.reference would do, but loops over pixels in Python and takes minutes for a detector. These are
the operations that the handlers emit, by the ONNX specification (NCHW), and no more; the tests hold
them against onnx.reference on small tensors.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray
_OPERATIONS: dict[str, Callable[..., "Array | list[Array]"]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": lambda x, y: np.divide(x, y) if x.dtype.kind == "f" else np.trunc(x / y).astype(x.dtype),
    "Mod": np.mod,
    "Max": np.maximum,
    "Min": np.minimum,
    "Abs": np.abs,
    "Neg": np.negative,
    "Exp": np.exp,
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
    "Identity": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Clip": np.clip,
    "LeakyRelu": lambda x, alpha: np.where(x < 0, x * np.float32(alpha), x),
    "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Concat": lambda *xs, axis: np.concatenate(xs, axis),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes)),
    "Squeeze": lambda x, axes: np.squeeze(x, tuple(axes)),
    "Cast": lambda x, to: x.astype(helper.tensor_dtype_to_np_dtype(to)),
    "ArgMax": lambda x, axis, keepdims: np.argmax(x, axis, keepdims=bool(keepdims)),
    "GatherND": lambda x, indices: x[tuple(np.moveaxis(indices, -1, 0))],
}


def _op(function):
    _OPERATIONS[function.__name__] = function
    return function


@_op
def Reshape(x: Array, target: Array) -> Array:
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(target)])


@_op
def Split(x: Array, sizes: Array, axis: int) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@_op
def Pad(x: Array, pads: Array, value: Array | float = 0) -> Array:
    half = len(pads) // 2
    return np.pad(x, list(zip(pads[:half], pads[half:])), constant_values=value)


def _windows(x: Array, kernel, strides, pads, dilations=(1, 1), fill=0.0) -> Array:
    """[N, C, rows, columns, kh, kw]: what every position of the kernel covers."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


@_op
def Conv(x, weights, bias=None, *, kernel_shape, strides, pads, dilations, group) -> Array:
    """One matrix product a tap of the kernel: no im2col copy of kh * kw times the input."""
    windows = _windows(x, kernel_shape, strides, pads, dilations)
    n, _, rows, columns = windows.shape[:4]
    parts = []
    for seen, w in zip(np.split(windows, group, 1), np.split(weights, group, 0)):
        total = np.zeros((n, w.shape[0], rows * columns), x.dtype)
        for i, j in np.ndindex(*kernel_shape):
            total += w[:, :, i, j] @ seen[..., i, j].reshape(n, -1, rows * columns)
        parts.append(total.reshape(n, -1, rows, columns))
    result = np.concatenate(parts, 1)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)


@_op
def ConvTranspose(x, weights, *, kernel_shape, strides, pads, output_padding) -> Array:
    n, _, rows, columns = x.shape
    top, left, bottom, right = pads
    sizes = [(have - 1) * s + k + extra
             for have, s, k, extra in zip((rows, columns), strides, kernel_shape, output_padding)]  # fmt: skip
    out = np.zeros((n, weights.shape[1], *sizes), x.dtype)
    for i, j in np.ndindex(*kernel_shape):
        part = np.einsum("nchw,co->nohw", x, weights[:, :, i, j])
        out[:, :, i : i + (rows - 1) * strides[0] + 1 : strides[0],
            j : j + (columns - 1) * strides[1] + 1 : strides[1]] += part  # fmt: skip
    return out[:, :, top : sizes[0] - bottom, left : sizes[1] - right]


@_op
def MaxPool(x, *, kernel_shape, strides, pads) -> Array:
    return _windows(x, kernel_shape, strides, pads, fill=-np.inf).max((4, 5))


@_op
def AveragePool(x, *, kernel_shape, strides, pads, count_include_pad=0) -> Array:
    sums = _windows(x, kernel_shape, strides, pads).sum((4, 5))
    ones = np.ones_like(x)
    return sums / _windows(ones, kernel_shape, strides, pads, fill=count_include_pad).sum((4, 5))


@_op
def Resize(x, _roi, scales, *, mode, coordinate_transformation_mode) -> Array:
    assert mode == "linear"
    for axis in (2, 3):
        have = x.shape[axis]
        size = int(np.floor(have * scales[axis]))
        out = np.arange(size, dtype=np.float64)
        source = {
            "half_pixel": lambda: (out + 0.5) / scales[axis] - 0.5,
            "asymmetric": lambda: out / scales[axis],
            "align_corners": lambda: out * (have - 1) / max(size - 1, 1),
        }[coordinate_transformation_mode]()
        source = np.clip(source, 0, have - 1)
        low = source.astype(int)
        weight = (source - low).astype(np.float32).reshape((-1,) + (1,) * (3 - axis))
        high = np.minimum(low + 1, have - 1)
        x = np.take(x, low, axis) * (1 - weight) + np.take(x, high, axis) * weight
    return x


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def run(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs by name. KeyError for an operation that the converter does not emit."""
    values: dict[str, Any] = {"": None, **inputs}
    for tensor in model.graph.initializer:
        values[tensor.name] = numpy_helper.to_array(tensor)
    for node in model.graph.node:
        attributes = {a.name: _attribute(a) for a in node.attribute}
        arguments = [values[name] for name in node.input]
        result = _OPERATIONS[node.op_type](*arguments, **attributes)
        values.update(zip(node.output, result if isinstance(result, list) else [result]))
    return {output.name: values[output.name] for output in model.graph.output}
