# SPDX-License-Identifier: Apache-2.0
"""The converter against naive loops, against hand-computed numbers and against onnx.reference."""

import itertools
import json
import unittest

import numpy as np
from onnx.reference import ReferenceEvaluator

from tests.graphs import Graph
from tfjs2onnx import onnx_eval
from tfjs2onnx.convert import convert, serialize
from tfjs2onnx.graph_model import GraphModel, ModelError, load_graph_model
from tfjs2onnx.reference import evaluate

RANDOM = np.random.default_rng(5)


def random(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


class Seeded(unittest.TestCase):
    def setUp(self) -> None:
        """The same numbers for a test, whichever tests run before it."""
        global RANDOM
        RANDOM = np.random.default_rng(5)


class Conversion(Seeded):
    def check(self, graph: Graph, *outputs: str, want: list | None = None, shape=(1, 5, 6, 4)) -> None:
        """Converts with an open batch; a batch of two must give what the TFJS graph gives for each."""
        model = graph.model(*outputs)
        names = {f"out{i}": f"{name}" for i, name in enumerate(outputs)}
        onnx_model = convert(model, names, dynamic_batch=True)
        x = random(2, *shape[1:])
        got_slow = ReferenceEvaluator(onnx_model).run(None, {"x": x})
        got_quick = list(onnx_eval.run(onnx_model, {"x": x}).values())
        for i in range(2):
            expected = evaluate(model, {"x": x[i : i + 1]}, list(names.values()))
            for slow, quick, reference in zip(got_slow, got_quick, expected):
                np.testing.assert_allclose(slow[i : i + 1], reference, rtol=1e-6, atol=2e-5)
                np.testing.assert_allclose(quick[i : i + 1], reference, rtol=1e-6, atol=2e-5)
        if want is not None:
            for reference, numbers in zip(evaluate(model, {"x": x[:1]}, list(names.values())), want):
                np.testing.assert_allclose(reference, numbers(x[:1]), rtol=1e-6, atol=2e-5)


def naive_conv(x, weights, strides, dilations, padding, depthwise):
    """Six loops, from TensorFlow's definition."""
    kh, kw, channels, count = weights.shape
    spans = [(kh - 1) * dilations[0] + 1, (kw - 1) * dilations[1] + 1]
    if padding == "SAME":
        sizes = [-(-x.shape[1] // strides[0]), -(-x.shape[2] // strides[1])]
        pads = [max((sizes[i] - 1) * strides[i] + spans[i] - x.shape[1 + i], 0) // 2 for i in (0, 1)]
    else:
        sizes = [(x.shape[1 + i] - spans[i]) // strides[i] + 1 for i in (0, 1)]
        pads = [0, 0]
    out = np.zeros((1, *sizes, channels * count if depthwise else count), np.float64)
    for y, z, i, j in itertools.product(range(sizes[0]), range(sizes[1]), range(kh), range(kw)):
        row = y * strides[0] + i * dilations[0] - pads[0]
        column = z * strides[1] + j * dilations[1] - pads[1]
        if not (0 <= row < x.shape[1] and 0 <= column < x.shape[2]):
            continue
        for c, m in itertools.product(range(channels), range(count)):
            out[0, y, z, c * count + m if depthwise else m] += x[0, row, column, c] * weights[i, j, c, m]
    return out


class Picking(Seeded):
    """Integers, and operations that change the number of axes: batch 1."""

    def check(self, graph: Graph, output: str, want, x: np.ndarray) -> None:
        model = graph.model(output)
        onnx_model = convert(model, {"out": output})
        for got in (
            evaluate(model, {"x": x}, [output])[0],
            ReferenceEvaluator(onnx_model).run(None, {"x": x.astype(np.float32)})[0],
            onnx_eval.run(onnx_model, {"x": x.astype(np.float32)})["out"],
        ):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-5)

    def test_the_place_of_the_largest_value_is_found_and_read(self):
        graph = Graph()
        graph.input([1, 3, 4, 2])
        graph.constant("flat", [1, 12, 2], "int32")
        graph.constant("one", 1, "int32")
        graph.constant("four", 4, "int32")
        graph.constant("zeros", [[0, 0]], "int32")
        graph.constant("channels", [[0, 1]], "int32")
        graph.node("Reshape", ["x", "flat"])
        graph.node("ArgMax", ["Reshape", "one"], output_type=Graph.type_of("int32"))
        graph.node("FloorDiv", ["ArgMax", "four"])
        graph.node("Mul", ["FloorDiv", "four"])
        graph.node("Sub", ["ArgMax", "Mul"])
        graph.node("Pack", ["zeros", "FloorDiv", "Sub", "channels"], axis=2)
        graph.node("GatherNd", ["x", "Pack"])
        x = random(1, 3, 4, 2)
        x[0, 2, 1, 0] = x[0, 1, 3, 1] = 9
        self.check(graph, "GatherNd", [[9, 9]], x)
        self.check(graph, "FloorDiv", [[2, 1]], x)
        self.check(graph, "Sub", [[1, 3]], x)

    def test_axes_come_and_go(self):
        graph = Graph()
        graph.input([1, 2, 3])
        graph.constant("axis", 3, "int32")
        graph.node("Unpack", ["x"], axis=1, num=2)
        graph.node("SquaredDifference", ["Unpack", "Unpack:1"])
        graph.node("ExpandDims", ["x", "axis"])
        graph.node("Squeeze", ["ExpandDims"], squeeze_dims=[0, 3])
        graph.node("AddN", ["Squeeze", "Squeeze", "Squeeze"])
        x = random(1, 2, 3)
        self.check(graph, "SquaredDifference", (x[:, 0] - x[:, 1]) ** 2, x)
        self.check(graph, "AddN", 3 * x[0], x)

    def test_an_integer_picture_becomes_a_float_input(self):
        graph = Graph()
        graph.input([1, 2, 2, 3], dtype="int32")
        graph.node("Cast", ["x"], DstT=Graph.type_of("float32"))
        graph.node("Relu", ["Cast"])
        x = np.arange(12, dtype=np.int32).reshape(1, 2, 2, 3)
        self.check(graph, "Relu", x, x)
        graph.node("AddV2", ["x", "x"])
        with self.assertRaisesRegex(ModelError, "AddV2"):
            convert(graph.model("Relu"), {"out": "Relu"})

    def test_floors_are_not_handled_for_fractions(self):
        graph = Graph()
        graph.input([1, 2])
        graph.node("FloorDiv", ["x", "x"])
        with self.assertRaisesRegex(ModelError, "integers"):
            convert(graph.model("FloorDiv"), {"out": "FloorDiv"})


class Convolutions(Conversion):
    def test_a_transposed_conv_is_the_gradient_of_a_conv(self):
        for padding, kernel, size in (("SAME", 2, (10, 12)), ("SAME", 3, (9, 12)), ("VALID", 3, (11, 13))):
            with self.subTest(padding=padding, kernel=kernel, size=size):
                weights = random(kernel, kernel, 3, 4)
                graph = Graph()
                graph.input([1, 5, 6, 4])
                graph.constant("size", [1, *size, 3], "int32")
                graph.constant("w", weights)
                graph.node("Conv2DBackpropInput", ["size", "w", "x"], padding=padding, strides=[1, 2, 2, 1])

                def transposed(x):
                    # <conv(e), x> for every unit picture e is the transposed conv's value there.
                    out = np.zeros((1, *size, 3))
                    for at in np.ndindex(*size, 3):
                        unit = np.zeros((1, *size, 3))
                        unit[(0, *at)] = 1
                        out[(0, *at)] = np.sum(naive_conv(unit, weights, [2, 2], [1, 1], padding, False) * x)
                    return out

                self.check(graph, "Conv2DBackpropInput", want=[transposed])

    def test_conv_matches_six_loops_for_strides_dilations_and_paddings(self):
        for op, padding, stride, dilation, kernel in itertools.product(
            ("Conv2D", "DepthwiseConv2dNative"), ("SAME", "VALID"), (1, 2), (1, 2), ((3, 3), (2, 3), (1, 1))
        ):
            if stride > 1 and dilation > 1:
                continue  # TensorFlow has no such thing
            with self.subTest(op=op, padding=padding, stride=stride, dilation=dilation, kernel=kernel):
                graph = Graph()
                weights = random(*kernel, 4, 2)
                graph.input([1, 5, 6, 4])
                graph.constant("w", weights)
                graph.node(op, ["x", "w"], padding=padding, strides=[1, stride, stride, 1],
                           dilations=[1, dilation, dilation, 1], data_format="NHWC")  # fmt: skip
                self.check(graph, op, want=[
                    lambda x: naive_conv(x, weights, [stride] * 2, [dilation] * 2, padding, "Depth" in op)
                ])  # fmt: skip

    def test_fused_conv_adds_bias_then_activates(self):
        for name in ("Relu", "Relu6", "LeakyRelu", "Elu", "Prelu"):
            for op in ("_FusedConv2D", "FusedDepthwiseConv2dNative"):
                with self.subTest(activation=name, op=op):
                    graph = Graph()
                    channels = 8 if "Depth" in op else 2
                    weights, bias = random(3, 3, 4, 2), 3 * random(channels)
                    graph.input([1, 5, 6, 4])
                    graph.constant("w", weights)
                    graph.constant("b", bias)
                    inputs = ["x", "w", "b"]
                    if name == "Prelu":
                        inputs.append(graph.constant("slope", np.full(channels, 0.25)))
                    graph.node(op, inputs, padding="SAME", strides=[1, 1, 1, 1],
                               fused_ops=["BiasAdd", name], leakyrelu_alpha=0.1)  # fmt: skip
                    act = {
                        "Relu": lambda v: np.maximum(v, 0),
                        "Relu6": lambda v: np.minimum(np.maximum(v, 0), 6),
                        "LeakyRelu": lambda v: np.where(v < 0, 0.1 * v, v),
                        "Prelu": lambda v: np.where(v < 0, 0.25 * v, v),
                        "Elu": lambda v: np.where(v < 0, np.exp(v) - 1, v),
                    }[name]
                    self.check(graph, op, want=[
                        lambda x: act(naive_conv(x, weights, [1, 1], [1, 1], "SAME", "Depth" in op) + bias)
                    ])  # fmt: skip

    def test_pools_ignore_the_padding(self):
        graph = Graph()
        graph.input([1, 5, 6, 4])
        for op in ("MaxPool", "AvgPool"):
            graph.node(op, ["x"], ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")

        def corner(reduce):
            # Output [0, 0] covers rows 0..1 (one row of padding above) and columns 0..2.
            return lambda x: reduce(x[0, 0:2, 0:3], axis=(0, 1))

        self.check(graph, "MaxPool", "AvgPool")
        x = random(1, 5, 6, 4)
        got = evaluate(graph.model("MaxPool", "AvgPool"), {"x": x}, ["MaxPool", "AvgPool"])
        np.testing.assert_allclose(got[0][0, 0, 0], corner(np.max)(x), atol=1e-6)
        np.testing.assert_allclose(got[1][0, 0, 0], corner(np.mean)(x), atol=1e-6)


class Resizing(Conversion):
    def test_resize_follows_each_coordinate_rule(self):
        for attributes in ({"half_pixel_centers": True}, {"align_corners": True}, {}):
            with self.subTest(**attributes):
                graph = Graph()
                graph.input([1, 5, 6, 4])
                graph.constant("size", [10, 12], "int32")
                graph.node("ResizeBilinear", ["x", "size"], **attributes)
                self.check(graph, "ResizeBilinear")

    def test_half_pixel_numbers(self):
        graph = Graph()
        graph.input([1, 1, 2, 1])
        graph.constant("size", [1, 4], "int32")
        graph.node("ResizeBilinear", ["x", "size"], half_pixel_centers=True)
        model = graph.model("ResizeBilinear")
        x = np.array([0, 4], np.float32).reshape(1, 1, 2, 1)
        # Centres of 4 in 2: -0.25, 0.25, 0.75, 1.25.
        np.testing.assert_allclose(evaluate(model, {"x": x}, ["ResizeBilinear"])[0].ravel(), [0, 1, 3, 4])


class ShapesAndOrder(Conversion):
    def test_transposes_cost_nothing_between_convolutions(self):
        graph = Graph()
        graph.input([1, 4, 5, 6])  # NCHW, as graphs that came from ONNX are
        graph.constant("nhwc", [0, 2, 3, 1], "int32")
        graph.constant("nchw", [0, 3, 1, 2], "int32")
        graph.constant("w", random(3, 3, 4, 4))
        graph.constant("bias", random(4))
        graph.constant("pads", [[0, 0], [0, 0], [1, 1], [1, 1]], "int32")
        last = "x"
        for i in range(3):
            graph.node("Pad", [last, "pads"], f"pad{i}")
            graph.node("Transpose", [f"pad{i}", "nhwc"], f"in{i}")
            graph.node("Conv2D", [f"in{i}", "w"], f"conv{i}", padding="VALID", strides=[1, 1, 1, 1])
            graph.node("Add", [f"conv{i}", "bias"], f"add{i}")
            graph.node("Transpose", [f"add{i}", "nchw"], f"out{i}")
            last = graph.node("LeakyRelu", [f"out{i}"], f"act{i}", alpha=0.1)
        self.check(graph, last, shape=(1, 4, 5, 6))
        onnx_model = convert(graph.model(last), {"out": last})
        self.assertNotIn("Transpose", [node.op_type for node in onnx_model.graph.node])

    def test_broadcasting_keeps_tensorflows_axes(self):
        for shape in ((), (4,), (1, 4), (6, 1), (5, 1, 4), (1, 5, 6, 4)):
            for op, numbers in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide}.items():
                with self.subTest(op=op, shape=shape):
                    graph = Graph()
                    other = random(*shape) + 3
                    graph.input([1, 5, 6, 4])
                    graph.constant("w", np.eye(4).reshape(1, 1, 4, 4))
                    graph.constant("other", other)
                    graph.node("Conv2D", ["x", "w"], padding="VALID", strides=[1, 1, 1, 1])  # NCHW inside
                    graph.node(op, ["other", "Conv2D"])
                    self.check(graph, op, want=[lambda x: numbers(other, x)])

    def test_concat_split_pad_and_reshape_after_a_convolution(self):
        graph = Graph()
        graph.input([1, 5, 6, 4])
        weights = random(4, 4)
        graph.constant("w", weights.reshape(1, 1, 4, 4))
        graph.constant("axis", -1, "int32")
        graph.constant("sizes", [3, -1], "int32")
        graph.constant("pads", [[0, 0], [1, 0], [0, 2], [0, 0]], "int32")
        graph.constant("fill", 2.5)
        graph.constant("flat", [1, 30, 8], "int32")
        graph.node("Conv2D", ["x", "w"], padding="VALID", strides=[1, 1, 1, 1])
        graph.node("ConcatV2", ["Conv2D", "x", "axis"])
        graph.node("SplitV", ["ConcatV2", "sizes", "axis"])
        graph.node("Split", ["axis", "ConcatV2"], num_split=2)
        graph.node("PadV2", ["SplitV:1", "pads", "fill"])
        graph.node("Reshape", ["ConcatV2", "flat"])
        both = lambda x: np.concatenate([x @ weights, x], 3)  # noqa: E731
        fill = [(0, 0), (1, 0), (0, 2), (0, 0)]
        self.check(graph, "PadV2", "Split:1", "Reshape", want=[
            lambda x: np.pad(both(x)[..., 3:], fill, constant_values=2.5),
            lambda x: both(x)[..., 4:],
            lambda x: both(x).reshape(1, 30, 8),
        ])  # fmt: skip

    def test_constants_are_computed_while_converting(self):
        graph = Graph()
        graph.input([1, 5, 6, 4])
        graph.constant("where", [[1], [2]], "int32")
        graph.constant("length", [3], "int32")
        graph.constant("values", [30, 4], "int32")
        graph.constant("default", 0, "int32")
        graph.constant("one", [1, 0, 0], "int32")
        graph.node("SparseToDense", ["where", "length", "values", "default"])
        graph.node("AddV2", ["one", "SparseToDense"])
        graph.node("Reshape", ["x", "AddV2"])
        self.check(graph, "Reshape", want=[lambda x: x.reshape(1, 30, 4)])


class Files(unittest.TestCase):
    def test_weights_are_decoded_from_half_and_quantized_storage(self):
        document = json.loads(Graph().topology([]))
        half, bytes_ = np.array([1.5, -2], "<f2"), np.array([0, 255], np.uint8)
        document["weightsManifest"] = [{"paths": ["a", "b"], "weights": [
            {"name": "h", "shape": [2], "dtype": "float32", "quantization": {"dtype": "float16"}},
            {"name": "q", "shape": [2, 1], "dtype": "float32",
             "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},
        ]}]  # fmt: skip
        shards = {"a": half.tobytes() + bytes_.tobytes()[:1], "b": bytes_.tobytes()[1:]}
        model = load_graph_model(json.dumps(document).encode(), shards)
        np.testing.assert_array_equal(model.weights["h"], [1.5, -2])
        np.testing.assert_array_equal(model.weights["q"], [[-1], [126.5]])

    def test_broken_files_are_refused(self):
        graph = Graph()
        graph.input([1, 2])
        graph.constant("w", [1, 2])
        graph.node("Add", ["x", "w"])
        for damage in (b"", graph.data[:-1], graph.data + b"x"):
            with self.subTest(size=len(damage)), self.assertRaises(ModelError):
                load_graph_model(graph.topology(["Add"]), {"w.bin": damage})
        with self.assertRaises(ModelError):
            load_graph_model(graph.topology(["Add"]), {})
        with self.assertRaises(ModelError):
            load_graph_model(b'{"format": "layers-model"}', {})

    def test_unknown_operations_cycles_and_open_shapes_are_refused_by_name(self):
        graph = Graph()
        graph.input([1, 2])
        graph.node("Frobnicate", ["x"], "f")
        with self.assertRaisesRegex(ModelError, "Frobnicate of node 'f'"):
            convert(graph.model("f"), {"y": "f"})
        graph = Graph()
        graph.node("Add", ["b", "b"], "a")
        graph.node("Add", ["a", "a"], "b")
        with self.assertRaisesRegex(ModelError, "cycle"):
            convert(graph.model("a"), {"y": "a"})
        graph = Graph()
        graph.input([-1, 2])
        graph.node("Relu", ["x"])
        with self.assertRaisesRegex(ModelError, "open shape"):
            convert(graph.model("Relu"), {"y": "Relu"})
        with self.assertRaisesRegex(ModelError, "'none' is used"):
            convert(GraphModel({}, {}, []), {"y": "none"})

    def test_the_same_model_gives_the_same_bytes(self):
        def build() -> bytes:
            graph = Graph()
            graph.input([1, 5, 6, 4])
            graph.constant("w", np.arange(36.0).reshape(3, 3, 4, 1))
            graph.node("Conv2D", ["x", "w"], padding="SAME", strides=[1, 1, 1, 1])
            return serialize(convert(graph.model("Conv2D"), {"y": "Conv2D"}, dynamic_batch=True))

        self.assertEqual(build(), build())


if __name__ == "__main__":
    unittest.main()
