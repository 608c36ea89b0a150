#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev run -- CMD...: runs CMD in the userland with the release build's programs and plugin.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

[[ ${1:-} != -- ]] || shift
(($# > 0)) || die "usage: ./dev run -- CMD..."
use_build "${PENSTOCK_PRESET:-release}"
[[ $1 != penstock || -x $(build_dir "${PENSTOCK_PRESET:-release}")/apps/penstock/penstock ]] ||
  die "penstock is not built yet: run ./dev demo or ./dev build first"
exec "$@"
