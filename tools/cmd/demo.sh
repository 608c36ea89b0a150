#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev demo: the main job on the pedestrians of OpenCV's vtest.avi.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

clip=/usr/share/doc/opencv-doc/examples/data/vtest.avi
build release
use_build release
penstock model fetch nanodet
mkdir -p demo-out
penstock run --source "$clip" --model nanodet \
  --out video=demo-out/annotated.mp4 --out json=demo-out/detections.jsonl --out report=demo-out/report.html
say "results, in $PENSTOCK_REPO/demo-out:"
say "  report.html       counts, latency, copies, pictures: open it in a browser"
say "  annotated.mp4     the clip with its boxes"
say "  detections.jsonl  one line a frame"
