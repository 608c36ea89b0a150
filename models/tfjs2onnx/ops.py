# SPDX-License-Identifier: Apache-2.0
"""One handler an operation: from TensorFlow Values to emitted ONNX nodes.

A handler for a new operation is a function with @handles(...). It must not bake the batch size (axis 0)
into a node, and should keep the stored order of its input where the operation does not care.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import onnx
from onnx import helper

from .emitter import NCHW, Emitter, Value
from .graph_model import ModelError, Node, tf_dtype


@dataclass
class Context:
    emitter: Emitter
    node: Node
    inputs: list[Value]

    def constant(self, index: int) -> np.ndarray:
        value = self.inputs[index].constant
        if value is None:
            raise ModelError(f"input {index} must be a constant")
        return value

    def emit(self, op: str, inputs: list[str], order: tuple[int, ...] | None = None, **attributes: Any) -> Value:
        return self.emitter.wrap(self.emitter.emit(op, inputs, **attributes)[0], order)


Handler = Callable[[Context], "Value | list[Value]"]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


@handles("Identity", "StopGradient")
def _identity(c: Context) -> Value:
    return c.inputs[0]


# Elementwise.

_BINARY: dict[str, tuple[str, Callable]] = {
    "Add": ("Add", np.add),
    "AddV2": ("Add", np.add),
    "BiasAdd": ("Add", np.add),
    "Sub": ("Sub", np.subtract),
    "Mul": ("Mul", np.multiply),
    "RealDiv": ("Div", np.divide),
    "Maximum": ("Max", np.maximum),
    "Minimum": ("Min", np.minimum),
}
_UNARY = {
    "Relu": "Relu",
    "Sigmoid": "Sigmoid",
    "Tanh": "Tanh",
    "Exp": "Exp",
    "Sqrt": "Sqrt",
    "Abs": "Abs",
    "Neg": "Neg",
    "Elu": "Elu",
}


def _broadcast(emitter: Emitter, value: Value, order: tuple[int, ...]) -> str:
    """`value` so that ONNX broadcasting in `order` means TensorFlow's broadcasting in its own axes."""
    missing = len(order) - value.rank
    if missing and value.constant is not None:
        array = value.constant.reshape((1,) * missing + value.shape).transpose(order)
        # Leading ones only matter between axes: [C,1,1], not [1,C,1,1], is what Conv + Add fusions know.
        while array.ndim > 1 and array.shape[0] == 1:
            array = array[0]
        return emitter.constant(array)
    if missing and order != tuple(range(len(order))):
        name = emitter.emit("Unsqueeze", [emitter.name_in(value), emitter.ints(*range(missing))])[0]
        return emitter.name_in(emitter.wrap(name), order)
    return emitter.name_in(value, None if missing else order)


@handles(*_BINARY)
def _binary(c: Context) -> Value:
    op, fold = _BINARY[c.node.op]
    left, right = c.inputs
    if left.constant is not None and right.constant is not None:
        return Value.of(fold(left.constant, right.constant))
    rank = max(left.rank, right.rank)
    widest = [v for v in (left, right) if v.rank == rank and v.constant is None]
    order = widest[0].order if widest else tuple(range(rank))
    return c.emit(op, [_broadcast(c.emitter, v, order) for v in (left, right)], order)


@handles(*_UNARY)
def _unary(c: Context) -> Value:
    return c.emit(_UNARY[c.node.op], [c.inputs[0].name], c.inputs[0].order)


@handles("Relu6")
def _relu6(c: Context) -> Value:
    return _activate(c, c.inputs[0], "Relu6")


@handles("LeakyRelu")
def _leaky_relu(c: Context) -> Value:
    alpha = float(c.node.get("alpha", 0.2))
    return c.emit("LeakyRelu", [c.inputs[0].name], c.inputs[0].order, alpha=alpha)


def _activate(c: Context, value: Value, name: str, extra: list[Value] | None = None) -> Value:
    """A fused operation's activation."""
    e = c.emitter
    if name in ("Relu", "Elu", "Sigmoid", "Tanh"):
        return c.emit(name, [value.name], value.order)
    if name == "Relu6":
        bounds = [e.constant(np.float32(0)), e.constant(np.float32(6))]
        return c.emit("Clip", [value.name, *bounds], value.order)
    if name == "LeakyRelu":
        return c.emit("LeakyRelu", [value.name], value.order, alpha=float(c.node.get("leakyrelu_alpha", 0.2)))
    if name == "Prelu" and extra:
        return c.emit("PRelu", [value.name, _broadcast(e, extra[0], value.order)], value.order)
    raise ModelError(f"fused operation {name} is not handled")


# Convolution, pooling, resizing: NCHW in ONNX.


def _require_nhwc(c: Context) -> None:
    if c.node.get("data_format", "NHWC") != "NHWC":
        raise ModelError("only data_format NHWC is handled")


def window_pads(node: Node, sizes: list[int], kernel: list[int], strides: list[int], dilations: list[int]) -> list[int]:
    """ONNX pads [top, left, bottom, right]. SAME puts an odd pixel at the end, as TensorFlow does."""
    padding = node.get("padding", "VALID")
    if padding == "VALID":
        return [0, 0, 0, 0]
    if padding == "EXPLICIT":
        pads = node.get("explicit_paddings")
        return [pads[2], pads[4], pads[3], pads[5]]
    if padding != "SAME":
        raise ModelError(f"padding {padding} is not handled")
    before, after = [], []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations):
        total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return before + after


@handles("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative")
def _conv(c: Context) -> Value:
    _require_nhwc(c)
    data, weights = c.inputs[0], c.constant(1)
    kh, kw, channels, count = weights.shape
    if "Depthwise" in c.node.op:
        # [kh, kw, C, m] -> [C * m, 1, kh, kw]
        weights = weights.reshape(kh, kw, 1, channels * count)
        group = channels
    else:
        group = data.shape[3] // channels
    strides = c.node.get("strides")[1:3]
    dilations = (c.node.get("dilations") or [1, 1, 1, 1])[1:3]
    fused, extra = list(c.node.get("fused_ops", [])), c.inputs[2:]
    e = c.emitter
    names = [e.name_in(data, NCHW), e.constant(weights.transpose(3, 2, 0, 1), "weights")]
    if fused and fused[0] == "BiasAdd":
        names.append(e.constant(c.constant(2), "bias"))
        fused, extra = fused[1:], extra[1:]
    result = c.emit(
        "Conv",
        names,
        NCHW,
        kernel_shape=[kh, kw],
        strides=strides,
        dilations=dilations,
        group=group,
        pads=window_pads(c.node, list(data.shape[1:3]), [kh, kw], strides, dilations),
    )
    for name in fused:
        result = _activate(c, result, name, extra)
    return result


@handles("MaxPool", "AvgPool")
def _pool(c: Context) -> Value:
    _require_nhwc(c)
    kernel, strides = c.node.get("ksize")[1:3], c.node.get("strides")[1:3]
    op, extra = ("MaxPool", {}) if c.node.op == "MaxPool" else ("AveragePool", {"count_include_pad": 0})
    pads = window_pads(c.node, list(c.inputs[0].shape[1:3]), kernel, strides, [1, 1])
    data = c.emitter.name_in(c.inputs[0], NCHW)
    return c.emit(op, [data], NCHW, kernel_shape=kernel, strides=strides, pads=pads, **extra)


@handles("ResizeBilinear")
def _resize(c: Context) -> Value:
    if c.node.get("align_corners"):
        mode = "align_corners"
    else:
        mode = "half_pixel" if c.node.get("half_pixel_centers") else "asymmetric"
    data, target = c.inputs[0], [int(size) for size in c.constant(1)]
    # By scales, so that the batch stays open. Sizes would name it.
    scales = np.array([1, 1, *(t / s for t, s in zip(target, data.shape[1:3]))], np.float32)
    result = c.emit(
        "Resize",
        [c.emitter.name_in(data, NCHW), "", c.emitter.constant(scales, "scales")],
        NCHW,
        mode="linear",
        coordinate_transformation_mode=mode,
    )
    if list(result.shape[1:3]) != target:
        raise ModelError(f"scales {scales} give {result.shape[1:3]}, not {target}")
    return result


# Shape and order.


@handles("Transpose")
def _transpose(c: Context) -> Value:
    value, perm = c.inputs[0], [int(axis) for axis in c.constant(1)]
    if value.constant is not None:
        return Value.of(value.constant.transpose(perm))
    shape = tuple(value.shape[axis] for axis in perm)
    return Value(shape, tuple(perm.index(axis) for axis in value.order), value.name)


@handles("Reshape")
def _reshape(c: Context) -> Value:
    value, target = c.inputs[0], [int(size) for size in c.constant(1)]
    if value.constant is not None:
        return Value.of(value.constant.reshape(target))
    if target and value.rank and value.shape[0] == 1 and target[0] == 1:
        target[0] = 0  # "as the input": the batch stays open
    return c.emit("Reshape", [c.emitter.name_in(value), c.emitter.ints(*target)])


@handles("ConcatV2")
def _concat(c: Context) -> Value:
    values, axis = c.inputs[:-1], int(c.constant(len(c.inputs) - 1))
    if all(v.constant is not None for v in values):
        return Value.of(np.concatenate([v.constant for v in values], axis))
    order = next(v.order for v in values if v.constant is None)
    stored_axis = order.index(axis % len(order))
    return c.emit("Concat", [c.emitter.name_in(v, order) for v in values], order, axis=stored_axis)


@handles("Split", "SplitV")
def _split(c: Context) -> list[Value]:
    if c.node.op == "Split":
        value, axis, count = c.inputs[1], int(c.constant(0)), c.node.get("num_split")
        sizes = [value.shape[axis] // count] * count
    else:
        value, sizes, axis = c.inputs[0], [int(size) for size in c.constant(1)], int(c.constant(2))
    axis %= value.rank
    if -1 in sizes:
        sizes[sizes.index(-1)] = value.shape[axis] - sum(sizes) - 1
    names = c.emitter.emit(
        "Split", [value.name, c.emitter.ints(*sizes)], len(sizes), axis=value.order.index(axis)
    )
    return [c.emitter.wrap(name, value.order) for name in names]


@handles("Pad", "PadV2")
def _pad(c: Context) -> Value:
    value = c.inputs[0]
    pads = c.constant(1)[list(value.order)]
    names = [value.name, c.emitter.ints(*pads[:, 0], *pads[:, 1])]
    if c.node.op == "PadV2":
        names.append(c.emitter.constant(np.float32(c.constant(2))))
    return c.emit("Pad", names, value.order)


@handles("SparseToDense")
def _sparse_to_dense(c: Context) -> Value:
    indices, shape, values, default = (c.constant(i) for i in range(4))
    dense = np.full([int(size) for size in np.atleast_1d(shape)], default, values.dtype)
    for row, index in enumerate(np.asarray(indices).reshape(-1, dense.ndim)):
        dense[tuple(index)] = values if values.ndim == 0 else values[row]
    return Value.of(dense)


# Integers, and what picks out of tensors. Shapes change here, so everything is in TensorFlow's order.


@handles("Cast")
def _cast(c: Context) -> Value:
    wanted = tf_dtype(c.node.get("DstT"))
    value = c.inputs[0]
    if value.constant is not None:
        return Value.of(value.constant.astype(wanted))
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(wanted))
    if c.emitter.elem_type(value.name) == elem:
        return value
    return c.emit("Cast", [value.name], value.order, to=elem)


@handles("ExpandDims")
def _expand_dims(c: Context) -> Value:
    value, axis = c.inputs[0], int(c.constant(1))
    if value.constant is not None:
        return Value.of(np.expand_dims(value.constant, axis))
    return c.emit("Unsqueeze", [c.emitter.name_in(value), c.emitter.ints(axis)])


@handles("Squeeze")
def _squeeze(c: Context) -> Value:
    value = c.inputs[0]
    axes = c.node.get("squeeze_dims") or [axis for axis, size in enumerate(value.shape) if size == 1]
    if value.constant is not None:
        return Value.of(np.squeeze(value.constant, tuple(axes)))
    return c.emit("Squeeze", [c.emitter.name_in(value), c.emitter.ints(*axes)])


@handles("Unpack")
def _unpack(c: Context) -> list[Value]:
    value, axis = c.inputs[0], c.node.get("axis", 0) % c.inputs[0].rank
    count = value.shape[axis]
    name = c.emitter.name_in(value)
    parts = [name]
    if count > 1:
        parts = c.emitter.emit("Split", [name, c.emitter.ints(*[1] * count)], count, axis=axis)
    return [c.emit("Squeeze", [part, c.emitter.ints(axis)]) for part in parts]


@handles("Pack")
def _pack(c: Context) -> Value:
    axis = c.node.get("axis", 0)
    if all(v.constant is not None for v in c.inputs):
        return Value.of(np.stack([v.constant for v in c.inputs], axis))
    e = c.emitter
    parts = [e.emit("Unsqueeze", [e.name_in(v), e.ints(axis)])[0] for v in c.inputs]
    return c.emit("Concat", parts, axis=axis % (c.inputs[0].rank + 1))


@handles("ArgMax")
def _arg_max(c: Context) -> Value:
    axis = int(c.constant(1)) % c.inputs[0].rank
    # The first of equals, in both.
    name = c.emitter.emit("ArgMax", [c.emitter.name_in(c.inputs[0])], axis=axis, keepdims=0)[0]
    wanted = tf_dtype(c.node.get("output_type", "DT_INT64"))
    return c.emit("Cast", [name], to=helper.np_dtype_to_tensor_dtype(np.dtype(wanted)))


@handles("FloorDiv")
def _floor_div(c: Context) -> Value:
    e = c.emitter
    left, right = (e.name_in(v) for v in c.inputs)
    if e.elem_type(left) == onnx.TensorProto.FLOAT:
        raise ModelError("only integers are handled")
    # ONNX divides towards zero; its Mod has the divisor's sign, as Python's.
    whole = e.emit("Sub", [left, e.emit("Mod", [left, right])[0]])[0]
    return c.emit("Div", [whole, right])


@handles("SquaredDifference")
def _squared_difference(c: Context) -> Value:
    order = next(v.order for v in c.inputs if v.constant is None)
    order = order if c.inputs[0].rank == c.inputs[1].rank else tuple(range(max(v.rank for v in c.inputs)))
    name = c.emitter.emit("Sub", [_broadcast(c.emitter, v, order) for v in c.inputs])[0]
    return c.emit("Mul", [name, name], order)


@handles("AddN")
def _add_n(c: Context) -> Value:
    order = next(v.order for v in c.inputs if v.constant is None)
    names = [c.emitter.name_in(v, order) for v in c.inputs]
    total = names[0]
    for name in names[1:]:
        total = c.emitter.emit("Add", [total, name])[0]
    return c.emitter.wrap(total, order)


@handles("GatherNd")
def _gather_nd(c: Context) -> Value:
    e, indices = c.emitter, c.inputs[1]
    if indices.constant is not None:
        at = e.constant(indices.constant.astype(np.int64))
    else:
        at = e.emit("Cast", [e.name_in(indices)], to=onnx.TensorProto.INT64)[0]
    return c.emit("GatherND", [e.name_in(c.inputs[0]), at])


@handles("Conv2DBackpropInput")
def _conv_transpose(c: Context) -> Value:
    _require_nhwc(c)
    sizes, weights, data = [int(size) for size in c.constant(0)][1:3], c.constant(1), c.inputs[2]
    strides = c.node.get("strides")[1:3]
    kernel = list(weights.shape[:2])
    before, after, extra = [], [], []
    for size, have, k, stride in zip(sizes, data.shape[1:3], kernel, strides):
        surplus = (have - 1) * stride + k - size
        if surplus > 0 and c.node.get("padding") != "SAME":
            raise ModelError(f"padding {c.node.get('padding')} does not give {size} of {have}")
        before.append(max(surplus, 0) // 2)
        after.append(max(surplus, 0) - max(surplus, 0) // 2)
        extra.append(max(-surplus, 0))
    e = c.emitter
    names = [e.name_in(data, NCHW), e.constant(weights.transpose(3, 2, 0, 1), "weights")]
    return c.emit("ConvTranspose", names, NCHW, kernel_shape=kernel, strides=strides,
                  pads=before + after, output_padding=extra)  # fmt: skip
