#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev run -- tools/element_docs.sh [--check]: pads and properties of docs/elements.md from the built plugin.
set -euo pipefail
. "$(dirname "$0")/build_lib.sh"

dir=$(build_dir "${PENSTOCK_PRESET:-release}")
exec python3 "$PENSTOCK_REPO/tools/element_docs.py" "$dir/gst/describe_elements" "$dir/gst/libgstpenstock.so" "$@"
