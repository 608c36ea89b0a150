#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev test [--preset PRESET] [CTEST-ARGUMENTS...]: builds and runs all tests.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

preset=release
if [[ ${1:-} == --preset ]]; then
  preset=${2:?--preset needs a name}
  shift 2
fi
build "$preset"
run_tests "$preset" "$@"
