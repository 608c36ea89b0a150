#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev shell: a shell in the userland with the release build's programs and plugin.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

use_build "${PENSTOCK_PRESET:-release}"
export PS1='(penstock) \w\$ '
exec bash --norc -i
