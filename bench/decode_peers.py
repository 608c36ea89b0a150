#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The NumPy peer of bench decode: what people write to get boxes out of a model's outputs.

Reads FAMILY INPUT THRESHOLD IOU FILE SHAPE [FILE SHAPE] from its command line (raw float32, sides
joined by x), then a number of frames a line from stdin, and answers milliseconds a frame and the
number of objects. NMS is the vectorised greedy one, class-aware by shifting boxes apart.
"""

import sys
import time

import numpy as np


def nms(boxes, scores, classes, iou):
    shifted = boxes + classes[:, None].astype(np.float32) * 8192
    order = np.argsort(-scores, kind="stable")
    x0, y0, x1, y1 = shifted.T
    area = (x1 - x0) * (y1 - y0)
    kept = []
    while order.size and len(kept) < 300:
        i, rest = order[0], order[1:]
        kept.append(i)
        w = np.minimum(x1[i], x1[rest]) - np.maximum(x0[i], x0[rest])
        h = np.minimum(y1[i], y1[rest]) - np.maximum(y0[i], y0[rest])
        inter = np.maximum(w, 0) * np.maximum(h, 0)
        order = rest[inter <= iou * (area[i] + area[rest] - inter)]
    return np.array(kept, dtype=np.int64)


def result(boxes, scores, classes):
    """What a program goes on with: one array an attribute."""
    return len({"boxes": boxes, "scores": scores, "classes": classes.astype(np.int32)}["boxes"])


def corners(x, y, w, h):
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)


def best(scores, threshold):
    classes = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), classes]
    keep = np.flatnonzero(top >= threshold)
    return keep, top[keep], classes[keep]


def yolov8(out, a, coefficients=0):
    rows = out[0][0].T
    scores = rows[:, 4:rows.shape[1] - coefficients]
    keep, top, classes = best(scores, a.threshold)
    boxes = corners(*rows[keep, :4].T)
    kept = nms(boxes, top, classes, a.iou)
    return rows[keep[kept]], boxes[kept], result(boxes[kept], top[kept], classes[kept])


def yolov5(out, a):
    rows = out[0][0]
    rows = rows[rows[:, 4] >= a.threshold]
    keep, top, classes = best(rows[:, 5:] * rows[:, 4:5], a.threshold)
    boxes = corners(*rows[keep, :4].T)
    kept = nms(boxes, top, classes, a.iou)
    return result(boxes[kept], top[kept], classes[kept])


def grid(size):
    cells, strides = [], []
    for stride in (8, 16, 32):
        side = size // stride
        y, x = np.mgrid[0:side, 0:side]
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        strides.append(np.full(side * side, stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(strides).astype(np.float32)


def yolox(out, a):
    rows = out[0][0]
    keep = np.flatnonzero(rows[:, 4] >= a.threshold)
    rows, cells, strides = rows[keep], a.cells[keep], a.strides[keep]
    chosen, top, classes = best(rows[:, 5:] * rows[:, 4:5], a.threshold)
    rows, cells, strides = rows[chosen], cells[chosen], strides[chosen]
    center = (rows[:, :2] + cells) * strides[:, None]
    sides = np.exp(rows[:, 2:4]) * strides[:, None]
    boxes = corners(center[:, 0], center[:, 1], sides[:, 0], sides[:, 1])
    kept = nms(boxes, top, classes, a.iou)
    return result(boxes[kept], top[kept], classes[kept])


def end_to_end(out, a):
    rows = out[0][0]
    rows = rows[rows[:, 4] >= a.threshold]
    rows = rows[np.argsort(-rows[:, 4], kind="stable")]
    return result(rows[:, :4].copy(), rows[:, 4].copy(), rows[:, 5].astype(np.int32))


def rtdetr(out, a):
    rows = out[0][0]
    keep, top, classes = best(rows[:, 4:], a.threshold)
    order = np.argsort(-top, kind="stable")
    return result(corners(*(rows[keep, :4] * a.size).T)[order], top[order], classes[order])


def yolov8_seg(out, a):
    rows, boxes, count = yolov8(out, a, coefficients=32)
    prototypes = out[1][0]
    m, h, w = prototypes.shape
    masks = 1 / (1 + np.exp(-(rows[:, -m:] @ prototypes.reshape(m, -1)))).reshape(-1, h, w)
    scale = w / a.size
    y, x = np.arange(h)[None, :, None] + 0.5, np.arange(w)[None, None, :] + 0.5
    x0, y0, x1, y1 = (boxes * scale).T[:, :, None, None]
    inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
    return len(np.rint(masks * inside * 255).astype(np.uint8)) if count else 0


class Arguments:
    def __init__(self, argv):
        self.family = argv[0]
        self.size = int(argv[1])
        self.threshold, self.iou = np.float32(argv[2]), np.float32(argv[3])
        self.outputs = []
        for file, shape in zip(argv[4::2], argv[5::2]):
            self.outputs.append(np.fromfile(file, dtype=np.float32).reshape([int(s) for s in shape.split("x")]))
        self.cells, self.strides = grid(self.size)


def main():
    a = Arguments(sys.argv[1:])
    decode = {"yolov8": lambda out, a: yolov8(out, a)[2], "yolov5": yolov5, "yolox": yolox,
              "yolo-end-to-end": end_to_end, "rtdetr": rtdetr, "yolov8-seg": yolov8_seg}[a.family]
    for line in sys.stdin:
        frames = int(line)
        begun = time.perf_counter()
        for _ in range(frames):
            count = decode(a.outputs, a)
        print((time.perf_counter() - begun) * 1e3 / frames, count, flush=True)


if __name__ == "__main__":
    main()
