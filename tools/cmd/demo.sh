#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev demo [--check]: the main job on the pedestrians of OpenCV's vtest.avi: found, followed, and counted at a
# crossing. --check then checks what was found there, on still pictures, on drawn texts and on a drawn street.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

case ${1:-} in
  '' | --check) ;;
  *) die "usage: ./dev demo [--check]" ;;
esac
clip=/usr/share/doc/opencv-doc/examples/data/vtest.avi
# What the demo runs; the tests' half of a full build can wait.
build release penstock gstpenstock
use_build release
penstock model fetch nanodet
mkdir -p demo-out
# The place where the ways meet, right of the lamp post, and a line across the way left of it.
zones='crossing: 0.6,0.37 0.9,0.3 1,0.55 1,0.85 0.6,0.64 @ person'
lines='way: 0.45,0.3 0.45,0.7 @ person'
penstock run --source "$clip" --model nanodet --track --zones "$zones" --lines "$lines" \
  --out video=demo-out/annotated.mp4 --out json=demo-out/detections.jsonl --out report=demo-out/report.html
say "results, in $PENSTOCK_REPO/demo-out:"
say "  report.html       counts, zones, latency, copies, pictures: open it in a browser"
say "  annotated.mp4     the clip with boxes, track ids and how many are at the crossing"
say "  detections.jsonl  one line a frame"
if [[ ${1:-} == --check ]]; then
  started=$SECONDS
  say "checking the model on real clips"
  python3 tests/clip/check_clip.py --lines demo-out/detections.jsonl --zones "$zones" --crossed "$lines"
  say "checking the readers of text and the face finders"
  for model in pp-ocrv4-det pp-ocr-cls pp-ocrv4-rec blazeface-front blazeface-back; do penstock model fetch "$model"; done
  python3 tests/clip/check_texts_and_faces.py
  say "checking the model on a drawn street"
  python3 docs/images/make_demo_picture.py --out build/street.png
  say "checked in $((SECONDS - started)) s"
fi
