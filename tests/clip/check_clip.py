#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the real model on the real clips of the demo: `./dev demo --check` runs it.

    check_clip.py [--penstock PROGRAM] [--models FOLDER] [--work FOLDER] [--lines FILE]

It fails, and does not skip, when the model or a clip is missing. What it expects are counts that were
measured with another implementation, symmetry, and boxes read off two still pictures by eye; there is no
ground truth for the clips.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPENCV = pathlib.Path("/usr/share/doc/opencv-doc/examples/data")
DARKNET = pathlib.Path("/usr/share/darknet/data")
FRAMES = 795
MIRRORED = 240  # Enough for a thousand sure persons, in a third of the time.

failures = []


def expect(condition, text):
    print(("ok      " if condition else "FAILED  ") + text)
    if not condition:
        failures.append(text)


class Checker:
    def __init__(self, penstock, models, work):
        self.penstock = penstock
        self.models = models
        self.work = work

    def run(self, source, *more):
        out = self.work / (pathlib.Path(source).name + ".jsonl")
        command = [self.penstock, "run", "--quiet", "--source", str(source), "--model", "nanodet",
                   "--out", f"json={out}", *more]
        if self.models:
            command += ["--models", self.models]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"check_clip: {' '.join(command)}\nexit code {done.returncode}: {done.stderr}")
        return [json.loads(line) for line in out.read_text().splitlines()]

    def transcode(self, source, effect, name):
        path = self.work / name
        subprocess.run(["gst-launch-1.0", "-q", "filesrc", f"location={source}", "!", "decodebin3", "!",
                        "videoconvert", "!", *effect, "!", "avenc_ffv1", "!", "matroskamux", "!",
                        "filesink", f"location={path}"], check=True)
        return path


def persons(line):
    return [o for o in line["objects"] if o["label"] == "person"]


def iou(a, b):
    width = min(a["x"] + a["w"], b["x"] + b["w"]) - max(a["x"], b["x"])
    height = min(a["y"] + a["h"], b["y"] + b["h"]) - max(a["y"], b["y"])
    common = max(width, 0) * max(height, 0)
    return common / (a["w"] * a["h"] + b["w"] * b["h"] - common)


def check_pedestrians(lines):
    expect(len(lines) == FRAMES, f"vtest.avi has {FRAMES} lines ({len(lines)})")
    expect([line["frame"] for line in lines] == list(range(len(lines))), "frames are numbered in order")
    expect(all(a["pts_ns"] < b["pts_ns"] for a, b in zip(lines, lines[1:])), "times rise")
    expect(all(line["width"] == 768 and line["height"] == 576 for line in lines), "frames are 768x576")
    mean = sum(len(persons(line)) for line in lines) / max(len(lines), 1)
    expect(5.5 <= mean <= 6.6, f"about 6 persons a frame ({mean:.2f}; 6.06 was measured elsewhere)")
    inside = all(0 <= o["x"] and o["x"] + o["w"] <= 768.01 and 0 <= o["y"] and o["y"] + o["h"] <= 576.01
                 and 0.4 <= o["confidence"] <= 1 for line in lines for o in line["objects"])
    expect(inside, "boxes lie in the picture, confidences in 0.4..1")


def check_mirror(checker, lines):
    # identity drops the frame that it counts to.
    effect = ["identity", f"eos-after={MIRRORED + 1}", "!", "videoflip", "method=horizontal-flip"]
    mirrored = checker.run(checker.transcode(OPENCV / "vtest.avi", effect, "mirrored.mkv"), "--threshold", "0.4")
    expect(len(mirrored) == MIRRORED, f"the mirrored clip has {MIRRORED} lines ({len(mirrored)})")
    strong = found = 0
    for line, mirror in zip(lines, mirrored):
        for person in persons(line):
            if person["confidence"] < 0.6:
                continue
            strong += 1
            place = dict(person, x=768 - person["x"] - person["w"])
            found += any(iou(place, other) > 0.6 for other in persons(mirror))
    share = found / max(strong, 1)
    expect(strong > 1000 and share > 0.95, f"mirrored boxes: {found} of {strong} sure persons are found mirrored")


def check_nobody(checker):
    lines = checker.run(OPENCV / "tree.avi", "--threshold", "0.4", "--convert")
    count = sum(len(persons(line)) for line in lines)
    expect(len(lines) > 50 and count / len(lines) < 0.1, f"tree.avi shows about nobody ({count} in {len(lines)} frames)")


def check_still(checker, name, things):
    """`things`: the labels that are right, and where it is (x, y, width, height)."""
    lines = checker.run(DARKNET / name, "--threshold", "0.35", "--convert")
    expect(len(lines) == 1, f"{name} is one frame ({len(lines)})")
    for labels, place in things:
        box = dict(zip("xywh", place))
        found = max((o for o in lines[0]["objects"] if o["label"] in labels), key=lambda o: iou(o, box), default=None)
        seen = f"{found['label']}, overlap {iou(found, box):.2f}" if found else "not found"
        expect(found is not None and iou(found, box) > 0.7, f"{name} shows a {' or '.join(labels)} ({seen})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penstock", default="penstock")
    parser.add_argument("--models", default="")
    parser.add_argument("--work", help="keep the results here")
    parser.add_argument("--lines", type=pathlib.Path, help="JSON lines of vtest.avi at threshold 0.4, to save running it")
    arguments = parser.parse_args()
    if shutil.which(arguments.penstock) is None:
        sys.exit(f"check_clip: no program '{arguments.penstock}'; build it and name it with --penstock")
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(arguments.work or temporary)
        work.mkdir(parents=True, exist_ok=True)
        checker = Checker(arguments.penstock, arguments.models, work)
        if arguments.lines:
            lines = [json.loads(line) for line in arguments.lines.read_text().splitlines()]
        else:
            lines = checker.run(OPENCV / "vtest.avi", "--threshold", "0.4")
        check_pedestrians(lines)
        check_mirror(checker, lines)
        check_nobody(checker)
        # The pick-up: an evaluation of the model in numpy, with a letterbox of its own, says car 0.52 and truck
        # 0.35 for its best cell. With the picture stretched to a square both score 0.36. So the model can't
        # tell, and the place is what counts. The same goes for the horse, which it calls a cow.
        check_still(checker, "dog.jpg", [(["dog"], (133, 220, 176, 320)), (["bicycle"], (126, 133, 440, 287)),
                                         (["car", "truck"], (468, 75, 222, 95))])
        check_still(checker, "person.jpg", [(["person"], (191, 99, 84, 275)), (["dog"], (65, 264, 140, 80)),
                                            (["horse", "cow"], (405, 139, 197, 207))])
    if failures:
        sys.exit(f"check_clip: {len(failures)} checks failed")
    print("check_clip: all checks passed")


if __name__ == "__main__":
    main()
