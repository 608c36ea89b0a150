#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev soak NAME|all [--preset PRESET] [--percent P] [ARGUMENTS...]: the long tests; each prints its seed.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

name=${1:-none}
[[ " all $(program_names soak tests/soak) " == *" $name "* ]] ||
  die "usage: ./dev soak NAME|all [--preset PRESET] [--percent P], where NAME is one of: $(program_names soak tests/soak)"
shift
preset=release
if [[ ${1:-} == --preset ]]; then
  preset=${2:?--preset needs a name}
  shift 2
fi
build "$preset"
mapfile -t found < <(programs "$preset" soak "$name")
((${#found[@]} > 0)) || die "there is no soak program"
use_build "$preset"
fill_registry "$preset"
failed=()
for program in "${found[@]}"; do
  say "soak ${program##*/soak_} $*"
  "$program" "$@" || failed+=("${program##*/soak_}")
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
