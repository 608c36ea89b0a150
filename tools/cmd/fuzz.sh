#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev fuzz NAME|all [--seconds N]: runs fuzzers from tests/fuzz/NAME/. New inputs go to
# build/fuzz/corpus/NAME, crashing ones to build/fuzz/crashes/.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

name=${1:-none}
seconds=60
if [[ ${2:-} == --seconds ]]; then seconds=${3:?--seconds needs a number}; fi
[[ " all $(program_names fuzz tests/fuzz) " == *" $name "* ]] ||
  die "usage: ./dev fuzz NAME|all [--seconds N], where NAME is one of: $(program_names fuzz tests/fuzz)"
build fuzz fuzzers
mapfile -t found < <(programs fuzz fuzz "$name")
((${#found[@]} > 0)) || die "there is no fuzzer"
failed=()
mkdir -p build/fuzz/crashes
for program in "${found[@]}"; do
  name=${program##*/fuzz_}
  corpus=(build/fuzz/corpus/"$name")
  mkdir -p "${corpus[0]}"
  [[ ! -d tests/fuzz/$name ]] || corpus+=("tests/fuzz/$name")
  say "fuzz $name for $seconds s"
  log=build/fuzz/$name.log
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/crashes/"$name"- "${corpus[@]}" >"$log" 2>&1; then
    grep -E '^(INFO: Seed|stat::number_of_executed_units)' "$log" || true
  else
    tail -n 60 "$log"
    failed+=("$name")
  fi
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}; the inputs are in build/fuzz/crashes/"
