#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes demo.png of the README: draws a clip of a street, lets `penstock run` find what is on it, and
keeps one frame of the video that it wrote.

    ./dev run -- python3 docs/images/make_demo_picture.py [--out FILE]

Every shape is drawn here, so the picture is ours, and what is to be found where is known exactly. It
fails when the model misses something on the kept frame, finds it elsewhere, or sees what is not there.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 864, 576
FRAMES, KEPT = 25, 19
MAX_BYTES = 200 * 1024


def around(x, y, radius, turns):
    """The point at `turns` clockwise from straight up."""
    return x + radius * math.sin(2 * math.pi * turns), y - radius * math.cos(2 * math.pi * turns)


def line(start, end, width, colour):
    return (f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}"'
            f' stroke-width="{width:.1f}" stroke-linecap="round"/>')


def circle(x, y, radius, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>'


def rect(x, y, width, height, colour, more=""):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" {more}/>'


def path(x, y, scale, commands, colour):
    return f'<path transform="translate({x:.1f} {y:.1f}) scale({scale:.3f})" d="{commands}" fill="{colour}"/>'


def text(x, y, size, words, colour, family):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-family="{family}" font-weight="bold" font-size="{size:.1f}"'
            f' text-anchor="middle" fill="{colour}">{words}</text>')


def background():
    shapes = ['<defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="#7fb2e0"/><stop offset="1"'
              ' stop-color="#dcebf5"/></linearGradient></defs>', rect(0, 0, WIDTH, HEIGHT, "url(#sky)")]
    houses = ((0, 190, 290, "#b89b80"), (190, 150, 220, "#9d8f8a"), (340, 226, 330, "#a86f58"),
              (566, 134, 250, "#a8a294"), (700, 164, 300, "#8f9aa3"))
    for x, width, height, colour in houses:
        shapes.append(rect(x, 385 - height, width, height, colour))
    shapes += [rect(0, 375, WIDTH, 55, "#b4b0a8"), rect(0, 428, WIDTH, 8, "#8f8b84"), rect(0, 436, WIDTH, 140, "#58595b")]
    shapes += [rect(x, 512, 80, 7, "#e8e4d0") for x in range(-40, WIDTH, 145)]
    return "".join(shapes)


def stop_sign(x, y, radius):
    def octagon(size, colour):
        points = (around(x, y, size, (2 * i + 1) / 16) for i in range(8))
        return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="{colour}"/>'
    side = radius * math.cos(math.pi / 8)
    return (rect(x - radius * .09, y, radius * .18, radius * 3.9, "#8a8d90") + octagon(radius, "#fff")
            + octagon(radius * .93, "#b8141f") + text(x, y + radius * .21, radius * .57, "STOP", "#fff", "DejaVu Sans"),
            ("stop sign", x - side, y - side, 2 * side, 2 * side))


def traffic_light(x, y, size):
    shapes = [rect(x - size * .08, y, size * .16, size * 5.2, "#50565a"),
              rect(x - size * .45, y - size * 1.2, size * .9, size * 2.4, "#1c1e1c", f'rx="{size * .16:.1f}"')]
    for row, colour in zip((-1, 0, 1), ("#e02020", "#4a3a10", "#103a18")):
        shapes.append(circle(x, y + row * size * .72, size * .29, colour))
    shapes.append(circle(x, y - size * .72, size * .17, "#ff8070"))
    return "".join(shapes), ("traffic light", x - size * .45, y - size * 1.2, size * .9, size * 2.4)


def clock(x, y, radius, minutes):
    shapes = [circle(x, y, radius * 1.12, "#2c2420"), circle(x, y, radius, "#faf6e8")]
    for hour in range(1, 13):
        a, b = around(x, y, radius * .68, hour / 12)
        shapes.append(text(a, b + radius * .09, radius * .25, hour, "#111", "DejaVu Serif"))
        shapes.append(line(around(x, y, radius * .86, hour / 12), around(x, y, radius * .92, hour / 12), radius * .05, "#111"))
    shapes.append(line((x, y), around(x, y, radius * .45, minutes / 720), radius * .09, "#111"))
    shapes.append(line((x, y), around(x, y, radius * .75, minutes / 60), radius * .06, "#111"))
    return "".join(shapes), ("clock", x - radius * 1.12, y - radius * 1.12, radius * 2.24, radius * 2.24)


def person(x, y, height, stride):
    """Walks to the right with the feet at y; `stride` is the angle of the legs in radians."""
    unit, skin, dark = height / 8, "#d9a37c", "#20232b"
    hip, shoulder = (x, y - 4 * unit), (x, y - 6.2 * unit)

    def bone(start, length, angle, width, colour):
        end = start[0] + length * unit * math.sin(angle), start[1] + length * unit * math.cos(angle)
        return line(start, end, width * unit, colour), end

    def leg(angle, colour):
        thigh, knee = bone(hip, 2, angle, .95, colour)
        shin, foot = bone(knee, 1.75, angle - .25 * abs(angle) - .05, .72, colour)
        return thigh + shin + path(*foot, unit, "M-.35-.1h.55l.6.32v.22h-1.15z", "#222")

    def arm(angle, colour):
        upper, elbow = bone(shoulder, 1.45, angle, .58, colour)
        lower, hand = bone(elbow, 1.2, angle + .25, .42, skin)
        return upper + lower + circle(*hand, .28 * unit, skin)

    torso = path(x, y, unit, "M-.75-6.6q.75-.35 1.5 0l.08 1.6-.15 1.3h-1.36l-.15-1.3z", "#2f5fa8")
    head = (rect(x - .25 * unit, y - 7.1 * unit, .5 * unit, .6 * unit, skin)
            + path(x, y, unit, "M-.41-7.5a.44.55 0 1 0 .88 0a.44.55 0 1 0-.88 0z", skin)
            + path(x, y, unit, "M-.45-7.35q-.1-.85.5-.8q.5 0 .45.5q-.3-.15-.55-.1q-.1.25-.2.45z", "#33221a"))
    shapes = arm(stride, "#264d88") + leg(-stride, dark) + leg(stride, "#2a2d36") + torso + head + arm(-stride, "#2a569a")
    half = (1.9 * abs(math.sin(stride)) * 2 + .9) * unit
    return shapes, ("person", x - half, y - 8.1 * unit, 2 * half, 8.2 * unit)


def car(x, y, length):
    """Drives to the right with the wheels at y."""
    unit, colour, glass = length / 10, "#b02a2a", "#20303c"
    shapes = [f'<ellipse cx="{x + length / 2:.1f}" cy="{y:.1f}" rx="{length / 2:.1f}" ry="{.3 * unit:.1f}" opacity=".35"/>']
    shapes.append(path(x, y, unit, "M.15-.9q-.1-1.3.5-1.55l1.2-.25q1.1-1.35 2.2-1.45h2q1 .1 1.9 1.35q1.6.15 1.9.7q.25.5.1 1.2"
                                   "l-.3.2h-9.2z", colour))
    shapes += [path(x, y, unit, "M2.2-2.75q.85-1 1.75-1.1h.95v1.1z", glass),
               path(x, y, unit, "M5.15-2.75v-1.1h.9q.75.1 1.45 1.1z", glass),
               path(x, y, unit, "M2.6-2.85l.7-.75h.25l-.5.75z", "#5c7484"),
               path(x, y, unit, "M4.2-2.3h.5v.12h-.5zM6.6-2.3h.5v.12h-.5zM5-2.7h.05v1.75h-.05zM.2-1.15h9.6v.25h-9.6z", "#6b1717"),
               path(x, y, unit, "M.3-2.2h.5v.5h-.6z", "#ffb050"), path(x, y, unit, "M9.2-2.1l.5.1.1.4h-.5z", "#fff6c8")]
    for wheel in (x + 2.05 * unit, x + 7.75 * unit):
        shapes += [circle(wheel, y - .85 * unit, .95 * unit, "#161616"), circle(wheel, y - .85 * unit, .55 * unit, "#b9bec4")]
        turn = (wheel - x) / 7 + x / (2 * math.pi * .95 * unit)
        shapes += [line((wheel, y - .85 * unit), around(wheel, y - .85 * unit, .48 * unit, turn + spoke / 5), .13 * unit, "#70757a")
                   for spoke in range(5)]
    return "".join(shapes), ("car", x, y - 4.15 * unit, length, 4.25 * unit)


def street(frame):
    """The SVG of a frame, and (label, x, y, width, height) of what is on it."""
    things = [clock(453, 128, 54, 609), traffic_light(232, 222, 36), stop_sign(758, 200, 64),
              person(84 + 2 * frame, 430, 240, .42 * math.sin(frame / 4)), car(290 + 2 * frame, 545, 330)]
    drawing = background() + "".join(shapes for shapes, _ in things)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{drawing}</svg>',
            [place for _, place in things])


def launch(*pipeline):
    subprocess.run(["gst-launch-1.0", "-q", *pipeline], check=True)


def make_clip(work):
    for frame in range(FRAMES):
        (work / f"{frame:03}.svg").write_text(street(frame)[0])
    clip = work / "street.mkv"
    launch("multifilesrc", f"location={work}/%03d.svg", "caps=image/svg+xml,framerate=25/1", "!", "rsvgdec", "!", "videoconvert",
           "!", "video/x-raw,format=I420,colorimetry=bt709", "!", "avenc_ffv1", "!", "matroskamux", "!", "filesink", f"location={clip}")
    return clip


def overlap(a, b):
    """Intersection over union of two (x, y, width, height)."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def compare(objects, drawn):
    """Problems, one a line; prints what was found."""
    problems, left = [], list(objects)
    for label, *place in drawn:
        found = max((o for o in left if o["label"] == label), default=None,
                    key=lambda o: overlap(place, (o["x"], o["y"], o["w"], o["h"])))
        share = overlap(place, (found["x"], found["y"], found["w"], found["h"])) if found else 0
        if share < .6:
            problems.append(f"the {label} was not found where it was drawn (overlap {share:.2f})")
            continue
        left.remove(found)
        print(f"{label:14} confidence {found['confidence']:.2f}, overlap with what was drawn {share:.2f}")
    return problems + [f"a {o['label']} was seen that was not drawn, at {o['x']:.0f}, {o['y']:.0f}" for o in left]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_name("demo.png"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        subprocess.run(["penstock", "run", "--quiet", "--source", make_clip(work), "--model", "nanodet", "--out",
                        f"video={work}/boxes.mp4", "--out", f"json={work}/objects.jsonl", "--out", f"report={work}/report.html"],
                       check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (work / "objects.jsonl").read_text().splitlines()]
        if len(lines) != FRAMES:
            sys.exit(f"make_demo_picture: {len(lines)} of {FRAMES} frames were analysed")
        problems = compare(lines[KEPT]["objects"], street(KEPT)[1])
        launch("filesrc", f"location={work}/boxes.mp4", "!", "decodebin3", "!", "videoconvert", "!", "video/x-raw,format=RGB", "!",
               "pngenc", "compression-level=9", "!", "multifilesink", f"location={work}/%03d.png")
        picture = (work / f"{KEPT:03}.png").read_bytes()
    out.write_bytes(picture)
    print(f"{out}: {len(picture) // 1024} KiB")
    if len(picture) > MAX_BYTES:
        problems.append(f"the picture is larger than {MAX_BYTES // 1024} KiB")
    if problems:
        sys.exit("make_demo_picture: " + "; ".join(problems))


if __name__ == "__main__":
    main()
