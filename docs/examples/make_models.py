#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small ONNX models and the picture that docs/models.md prepares, into a folder.

Each has a real family's output layout and says the same of every picture, so that it shows what
preparing takes and nothing of what models find.

  python3 make_models.py FOLDER
"""

import math
import pathlib
import struct
import sys
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

SIZE = 64


def model(path, outputs, metadata=(), softmax=False):
    """A model whose outputs are `outputs` = {name: array}, whatever the picture."""
    nodes = [helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
             helper.make_node("ReduceSum", ["mean"], ["level"], keepdims=0),
             helper.make_node("Mul", ["level", "zero"], ["nothing"])]
    constants = [numpy_helper.from_array(np.array(0, np.float32), "zero")]
    infos = []
    for name, values in outputs.items():
        values = np.asarray(values, np.float32)
        constants.append(numpy_helper.from_array(values, name + "_values"))
        nodes.append(helper.make_node("Add", [name + "_values", "nothing"], [name + "_sum" if softmax else name]))
        if softmax:
            nodes.append(helper.make_node("Softmax", [name + "_sum"], [name], axis=-1))
        infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, values.shape))
    picture = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    graph = helper.make_graph(nodes, "example", [picture], infos, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for key, value in dict(metadata).items():
        made.metadata_props.add(key=key, value=value)
    save(made, path)


def rows(width, cells=84):
    """[1, width, cells] of a YOLOv8 head without objects: 84 cells are those of 64 x 64."""
    return np.zeros((1, width, cells), np.float32)


def detector():
    out = rows(4 + 2)
    out[0, :, 10] = [32, 32, 20, 30, 0.1, 0.9]
    return {"output0": out}


def segmenter():
    out = rows(4 + 2 + 4)
    out[0, :, 10] = [32, 32, 20, 30, 0.9, 0.1, 8, 0, 0, 0]
    return {"output0": out, "output1": np.ones((1, 4, 16, 16), np.float32)}


def pose():
    out = rows(4 + 1 + 17 * 3)
    out[0, :5, 10] = [32, 32, 20, 30, 0.9]
    out[0, 5:, 10] = np.stack([np.linspace(24, 40, 17), np.linspace(20, 44, 17), np.full(17, 0.9)], 1).ravel()
    return {"output0": out}


def oriented():
    out = rows(4 + 2 + 1)
    out[0, :, 10] = [32, 32, 30, 10, 0.9, 0.1, math.pi / 6]
    return {"output0": out}


def letters():
    """Six steps of nothing, h and i: nothing, h twice, nothing, i, nothing."""
    out = np.zeros((1, 6, 3), np.float32)
    for step, letter in enumerate([0, 1, 1, 0, 2, 0]):
        out[0, step, letter] = 8
    return {"steps": out}


def picture(path, side=128):
    """A PNG of a gradient."""
    y, x = np.mgrid[0:side, 0:side]
    pixels = np.stack([x * 2, y * 2, np.full_like(x, 90)], axis=2).astype(np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = {"names": "{0: 'cup', 1: 'plate'}"}
    model(folder / "detect.onnx", detector(), names)
    model(folder / "segment.onnx", segmenter(), names | {"task": "segment"})
    model(folder / "pose.onnx", pose(), {"names": "{0: 'person'}", "task": "pose", "kpt_shape": "[17, 3]"})
    model(folder / "turned.onnx", oriented(), names | {"task": "obb"})
    model(folder / "classify.onnx", {"scores": [[0.1, 2.0, 0.3]]}, softmax=True)
    areas = np.zeros((1, 3, SIZE, SIZE), np.float32)
    areas[0, 1, :32] = areas[0, 2, 32:] = 5
    model(folder / "areas.onnx", {"logits": areas})
    model(folder / "embed.onnx", {"embedding": [[3.0, 4.0]]})
    model(folder / "line.onnx", letters(), softmax=True)
    model(folder / "strange.onnx", {"what": np.arange(6).reshape(1, 2, 3)})
    (folder / "colours.txt").write_text("red\ngreen\nblue\n")
    (folder / "letters.txt").write_text("<blank>\nh\ni\n")
    picture(folder / "photo.png")


if __name__ == "__main__":
    main()
