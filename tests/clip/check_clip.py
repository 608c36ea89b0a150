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


def persons(line, predicted=False):
    """What the model found; with `predicted` also where the tracker supposes somebody."""
    return [o for o in line["objects"] if o["label"] == "person" and (predicted or "predicted" not in o)]


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
    inside = all("predicted" in o or 0 <= o["x"] and o["x"] + o["w"] <= 768.01 and 0 <= o["y"] and o["y"] + o["h"] <= 576.01
                 and 0.4 <= o["confidence"] <= 1 for line in lines for o in line["objects"])
    expect(inside, "boxes lie in the picture, confidences in 0.4..1")


def parse_places(text):
    """{name: corners in parts of the picture} of penzone's writing; all count persons."""
    places = {}
    for one in text.split(";"):
        name, rest = one.split(":")
        points, _, labels = rest.partition("@")
        assert labels.strip() == "person", one
        places[name.strip()] = [tuple(map(float, point.split(","))) for point in points.split()]
    return places


def foot(o, line):
    return (o["x"] + o["w"] / 2) / line["width"], (o["y"] + o["h"]) / line["height"]


def turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def is_within(corners, point):
    """By the winding number."""
    winding = 0
    for a, b in zip(corners, corners[1:] + corners[:1]):
        if a[1] <= point[1] < b[1] and turn(a, b, point) > 0:
            winding += 1
        if b[1] <= point[1] < a[1] and turn(a, b, point) < 0:
            winding -= 1
    return winding != 0


def is_near(corners, point, closed):
    """Within two pixels of an edge: records of objects are whole pixels, these lines are not."""
    for a, b in zip(corners, corners[1:] + (corners[:1] if closed else [])):
        length = (((b[0] - a[0]) * 768) ** 2 + ((b[1] - a[1]) * 576) ** 2) ** 0.5
        if abs(turn(a, b, point)) * 768 * 576 / length <= 2:
            return True
    return False


def check_tracks(lines):
    repeated = longest = 0
    seen, farthest = {}, 0
    for line in lines:
        ids = [o["track_id"] for o in line["objects"] if "track_id" in o]
        repeated += len(ids) - len(set(ids))
        for o in line["objects"]:
            if "track_id" not in o:
                continue
            x, y = foot(o, line)
            frames, last, place = seen.get(o["track_id"], (0, None, None))
            if last == line["frame"] - 1:
                farthest = max(farthest, abs(x - place[0]) * line["width"])
            seen[o["track_id"]] = (frames + 1, line["frame"], (x, y))
            longest = max(longest, frames + 1)
    expect(repeated == 0, "no id is there twice in a frame")
    # At ten frames a second nobody who walks comes far; half a box's width may be the detector's.
    expect(farthest < 80, f"nobody jumps: at most {farthest:.0f} pixels aside from frame to frame")
    # Another way to follow: boxes of neighbouring frames that overlap, over no gap at all. It breaks where
    # the model misses somebody, so a tracker must need fewer ids for the same people.
    pieces, open_pieces = 0, []
    for line in lines:
        following = []
        for person in persons(line):
            best = max(open_pieces, key=lambda one: iou(one, person), default=None)
            if best is not None and iou(best, person) > 0.3:
                open_pieces.remove(best)
            else:
                pieces += 1
            following.append(person)
        open_pieces = following
    people = {o["track_id"] for line in lines for o in persons(line) if "track_id" in o}
    expect(8 <= len(people) <= pieces / 2, f"{len(people)} ids for persons, where boxes that overlap from frame to frame are {pieces} pieces")
    expect(longest >= 100, f"the longest track has {longest} frames")
    found = sum(len(persons(line)) for line in lines)
    followed = sum("track_id" in o for line in lines for o in persons(line))
    expect(followed / max(found, 1) > 0.8, f"{followed} of {found} persons have an id")


# How many stand or walk at the crossing, counted by eye in the pictures of these frames.
AT_THE_CROSSING = {0: 2, 100: 3, 200: 3, 300: 2, 400: 2, 500: 3, 600: 3, 700: 2}


def check_zones(lines, text):
    for name, corners in parse_places(text).items():
        told = [next(zone for zone in line["zones"] if zone["name"] == name) for line in lines]
        wrong = 0
        inside, entered = {}, 0
        for line, zone in zip(lines, told):
            feet = [(o, foot(o, line)) for o in persons(line, predicted=True)]
            counted = sum(is_within(corners, at) for _, at in feet)
            unsure = sum(is_near(corners, at, True) for _, at in feet)
            wrong += abs(counted - zone["inside"]) > unsure
            for o, at in feet:
                if "track_id" not in o:
                    continue
                # Who is away for two seconds comes as another.
                was, when = inside.get(o["track_id"], (False, line["pts_ns"]))
                was = was and line["pts_ns"] - when < 2_000_000_000
                now = is_within(corners, at)
                entered += now and not was
                inside[o["track_id"]] = (now, line["pts_ns"])
        expect(wrong == 0, f"{name}: who is inside is whose foot is ({wrong} frames differ)")
        expect(abs(told[-1]["entered"] - entered) <= max(2, entered // 10),
               f"{name}: {told[-1]['entered']} entered; by their ways {entered}")
        expect(all(a[key] <= b[key] for a, b in zip(told, told[1:]) for key in ("entered", "left"))
               and all(zone["left"] <= zone["entered"] for zone in told), f"{name}: sums grow, and nobody leaves before coming")
        seen = {frame: told[frame]["inside"] for frame in AT_THE_CROSSING}
        far = [frame for frame, count in AT_THE_CROSSING.items() if abs(seen[frame] - count) > 1]
        total, by_eye = sum(seen.values()), sum(AT_THE_CROSSING.values())
        expect(not far and abs(total - by_eye) <= 3, f"{name}: {list(seen.values())} inside in eight frames; by eye {list(AT_THE_CROSSING.values())}")


def check_crossed(lines, text):
    for name, (a, b) in parse_places(text).items():
        forwards = backwards = unsure = 0
        last = {}
        for line in lines:
            for o in persons(line, predicted=True):
                if "track_id" not in o:
                    continue
                at, before = foot(o, line), last.get(o["track_id"])
                last[o["track_id"]] = at
                if before is None or turn(before, at, a) * turn(before, at, b) > 0:
                    continue
                unsure += is_near([a, b], at, False) or is_near([a, b], before, False)
                # On a line is right of it, as seen: there a turn is not negative.
                was, now = turn(a, b, before) >= 0, turn(a, b, at) >= 0
                forwards += now and not was
                backwards += was and not now
        told = next(one for one in lines[-1]["lines"] if one["name"] == name)
        expect(forwards + backwards > 5 and abs(told["forwards"] - forwards) <= unsure and abs(told["backwards"] - backwards) <= unsure,
               f"{name}: {told['forwards']} and {told['backwards']} crossed; by their ways {forwards} and {backwards}, {unsure} close to the line")


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
    parser.add_argument("--zones", help="the zones that they were counted in, with --track")
    parser.add_argument("--crossed", help="the lines, likewise")
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
        if arguments.zones:
            check_tracks(lines)
            check_zones(lines, arguments.zones)
            check_crossed(lines, arguments.crossed)
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
