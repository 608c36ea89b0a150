#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev bench NAME [ARGUMENTS...]: a table, and build/bench/NAME.json.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

build release
name=${1:-}
program=$(programs release bench "${name:-none}")
[[ -n $program ]] || die "usage: ./dev bench NAME, where NAME is one of: $(programs release bench | names)"
shift
use_build release
mkdir -p build/bench
exec "$program" "$@"
