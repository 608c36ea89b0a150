#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev soak NAME|all [--percent P] [ARGUMENTS...]: the long tests; each prints its seed.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

build release
name=${1:-none}
mapfile -t found < <(programs release soak "$name")
if ((${#found[@]} == 0)); then
  [[ $name != all ]] || die "there is no soak program"
  die "usage: ./dev soak NAME|all [--percent P], where NAME is one of: $(programs release soak | names)"
fi
shift
use_build release
failed=()
for program in "${found[@]}"; do
  say "soak ${program##*/soak_} $*"
  "$program" "$@" || failed+=("${program##*/soak_}")
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
