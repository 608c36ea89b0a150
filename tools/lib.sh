# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by ./dev and the scripts in tools/: messages, paths, the pieces that more than one needs.

PENSTOCK_REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
PENSTOCK_CACHE=${PENSTOCK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock}
export PENSTOCK_REPO PENSTOCK_CACHE

say() { printf 'dev: %s\n' "$*"; }
warn() { printf 'dev: %s\n' "$*" >&2; }
die() {
  warn "$*"
  exit 1
}

# rows FILE: the lines of a list without comments and blanks.
rows() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

# Every folder that shows a root's identity: a changed list gives another name, so another root.
root_dir() {
  local hash
  hash=$({ rows "$PENSTOCK_REPO/packaging/packages.txt" | LC_ALL=C sort -u
    rows "$PENSTOCK_REPO/packaging/root.conf"; } | sha256sum | cut -c1-12)
  printf '%s/root-%s\n' "$PENSTOCK_CACHE" "$hash"
}

# need_space DIR GIB WHAT ADVICE: DIR must exist.
need_space() {
  local free
  free=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
  ((free >= $2 * 1024 * 1024)) ||
    die "$3 needs $2 GB of free disk in $1, which has $(awk "BEGIN { printf \"%.1f\", $free / 1048576 }") GB." \
      "Free some space there, or $4."
}
