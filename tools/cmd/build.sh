#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev build [PRESET] [TARGET...]
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

(($# > 0)) || set -- release
build "$@"
