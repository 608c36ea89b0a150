#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev bench NAME [ARGUMENTS...]: a table, and build/bench/NAME.json.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

name=${1:-}
[[ -n $name && " $(program_names bench bench) " == *" $name "* ]] ||
  die "usage: ./dev bench NAME, where NAME is one of: $(program_names bench bench)"
shift
build release
# What only this bench is measured beside.
[[ $name != burst ]] || build release packaged_peer
program=$(programs release bench "$name")
use_build release
mkdir -p build/bench
exec "$program" "$@"
