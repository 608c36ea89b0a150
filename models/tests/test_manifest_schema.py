# SPDX-License-Identifier: Apache-2.0
"""docs/manifest.schema.json against manifests: the golden one, what fetch writes by each recipe, and what
`penstock model prepare` writes for each task."""

import copy
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import recipe as recipes
from tests.json_schema import Schema

ROOT = recipes.MODELS.parent
SCHEMA = Schema(json.loads((ROOT / "docs/manifest.schema.json").read_text()))
GOLDEN = json.loads((ROOT / "penstock/model/testdata/schema2.json").read_text())
PROGRAM = os.environ.get("PENSTOCK_PROGRAM")


def changed(*steps, to=None):
    """The golden manifest with another value at `steps`; without `to`, without it."""
    manifest = copy.deepcopy(GOLDEN)
    at = manifest
    for step in steps[:-1]:
        at = at[step]
    if to is None:
        del at[steps[-1]]
    else:
        at[steps[-1]] = to
    return manifest


def stand_in(recipe):
    """A model with the recipe's inputs and outputs, without their insides."""
    pre = recipe["preprocess"]
    picture = ["N", pre["height"], pre["width"], 3] if pre["layout"] == "NHWC" else ["N", 3, pre["height"], pre["width"]]
    shapes = recipe.get("shapes") or {pre["input"]: picture} | dict.fromkeys(recipe["convert"].get("outputs", ["y"]), ["N", 9])
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape if recipe.get("shapes") is None else None)
        for name, shape in shapes.items()
    }
    for name, value in values.items():
        if recipe.get("shapes") is not None:
            # Open in the file; the recipe says what they are.
            values[name] = helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(shapes[name]))
    outputs = [value for name, value in values.items() if name != pre["input"]]
    return helper.make_model(helper.make_graph([], "g", [values[pre["input"]]], outputs))


class Schemas(unittest.TestCase):
    def assert_valid(self, manifest):
        self.assertEqual(SCHEMA.errors(manifest), [])

    def test_the_golden_manifest_is_valid(self):
        self.assert_valid(GOLDEN)

    def test_what_the_reader_refuses_is_not_valid(self):
        sha256 = GOLDEN["artefacts"][0]["sha256"]
        for manifest, said in [
            *[(changed(key), f"$.{key} is missing") for key in ("schema", "name", "artefacts", "labels", "licence")],
            (changed("more", to=1), "$.more must not be there"),
            (changed("schema", to=1), "$.schema"),
            (changed("name", to="a/b"), "$.name"),
            (changed("name", to="a" * 129), "$.name"),
            (changed("artefacts", 0, "sha256", to=sha256.upper()), "$.artefacts[0].sha256"),
            (changed("artefacts", 0, "role", to="data"), "$.artefacts has 0"),
            (changed("artefacts", 1, "role", to="model"), "$.artefacts has 2"),
            (changed("engine", "offload_copy", to=True), "$.engine.offload_copy"),
            (changed("engine", "cpu_nodes", to=["a", "a"]), "$.engine.cpu_nodes"),
            (changed("engine", "provider_options", to={"a": 1}), "$.engine.provider_options.a"),
            (changed("inputs", to=[]), "$.inputs"),
            (changed("inputs", 0, "type", to="float"), "$.inputs[0].type"),
            (changed("inputs", 0, "dims", 1, to=-1), "$.inputs[0].dims[1]"),
            (changed("inputs", 0, "dims", 1, to=True), "$.inputs[0].dims[1]"),
            (changed("task", to="magic"), "$.task"),
            (changed("preprocess", "mean", to=[1, 2]), "$.preprocess.mean"),
            (changed("preprocess", "scale", to=-1), "$.preprocess.scale"),
            (changed("preprocess", "width", to=320.5), "$.preprocess.width"),
            (changed("postprocess", "threshold"), "$.postprocess.threshold"),
            (changed("postprocess", "threshold", to=1.5), "$.postprocess.threshold"),
            (changed("postprocess", "top_k", to=5), "$.postprocess.top_k"),
            (changed("postprocess", "keypoints", to=["nose"]), "$.postprocess.keypoints"),
            (changed("postprocess", "class_agnostic", to=1), "$.postprocess.class_agnostic"),
        ]:
            with self.subTest(said):
                self.assertTrue(any(error.startswith(said) for error in SCHEMA.errors(manifest)), SCHEMA.errors(manifest))

    def test_what_fetch_writes_by_each_recipe_is_valid(self):
        self.assertGreater(len(recipes.known_recipes()), 8)
        for name in recipes.known_recipes():
            with self.subTest(name):
                recipe = recipes.load_recipe(name)
                labels = recipe.get("labels", ["", "a"])
                self.assert_valid(recipes.manifest(recipe, stand_in(recipe), b"", labels))

    @unittest.skipUnless(PROGRAM, "PENSTOCK_PROGRAM is not set: a build of the core only")
    def test_what_prepare_writes_for_each_task_is_valid(self):
        raw = ["--family", "raw", "--order", "RGB", "--scale", "1", "--fit", "stretch"]
        whole = ["--order", "BGR", "--scale", "1/255", "--fit", "stretch"]
        for task, output, flags in [
            ("detection", [1, 84, 21], []),
            ("detection", [1, 84, 21], ["--class-agnostic", "--threshold", "0.3", "--iou-threshold", "1"]),
            ("pose", [1, 56, 21], ["--task", "pose", "--mean", "1", "2", "3"]),
            ("oriented-detection", [1, 1, 32, 32], ["--family", "db-text", "--labels=text", *whole]),
            ("classification", [1, 10], ["--task", "classification", "--scores", "logits", "--top-k", "3", *whole]),
            ("semantic-segmentation", [1, 21, 32, 32], ["--scores", "logits", *whole]),
            ("embedding", [1, 64], ["--task", "embedding", "--normalise", *whole]),
            ("text-recognition", [1, 8, 3], ["--task", "text-recognition", "--labels=blank,a,b", "--scores", "logits", *whole]),
            ("raw", [1, 7], raw),
        ]:
            with self.subTest(f"{task} {flags}"):
                self.assert_valid(self.prepared(task, output, flags))
        with self.subTest("constants and weights in other files"):
            manifest = self.prepared("raw", [1, 7], [*raw, "--constant", "extra=1,2.5"], extra=True)
            self.assert_valid(manifest)
            self.assertEqual([a["path"] for a in manifest["artefacts"]], ["model.onnx", "w.bin"])
            self.assertEqual(manifest["constants"], [{"input": "extra", "values": [1, 2.5]}])

    def prepared(self, task, output, flags, extra=False):
        """The manifest that the program writes for a model that answers zeros, whatever the picture."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            zeros = numpy_helper.from_array(np.zeros(output, np.float32), "zeros")
            if extra:
                Path(folder, "w.bin").write_bytes(zeros.raw_data)
                zeros.ClearField("raw_data")
                zeros.data_location = TensorProto.EXTERNAL
                zeros.external_data.add(key="location", value="./w.bin")
            nodes = [
                helper.make_node("ReduceSum", ["images"], ["sum"], keepdims=0),
                helper.make_node("Mul", ["sum", "nothing"], ["none"]),
                helper.make_node("Add", ["zeros", "none"], ["output0" if not extra else "less"]),
            ]
            inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 32, 32])]
            if extra:
                inputs.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, [2]))
                nodes.append(helper.make_node("ReduceSum", ["extra"], ["extra_sum"], keepdims=0))
                nodes.append(helper.make_node("Add", ["less", "extra_sum"], ["output0"]))
            outputs = [helper.make_tensor_value_info("output0", TensorProto.FLOAT, output)]
            nothing = numpy_helper.from_array(np.float32(0), "nothing")
            graph = helper.make_graph(nodes, "g", inputs, outputs, [zeros, nothing])
            file.write_bytes(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())
            labels = Path(folder, "labels.txt")
            for flag in flags:
                if flag.startswith("--labels="):
                    labels.write_text(flag.removeprefix("--labels=").replace(",", "\n"))
            flags = [f"--labels={labels}" if flag.startswith("--labels=") else flag for flag in flags]
            command = [PROGRAM, "model", "prepare", file, "--models", folder, "--name", "made", *flags]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            manifest = json.loads(Path(folder, "made/manifest.json").read_text())
            self.assertEqual(manifest["task"], task)
            return manifest


if __name__ == "__main__":
    unittest.main()
