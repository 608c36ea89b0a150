#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints what the host lacks of packaging/host.txt, one line; nothing when the host suffices.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

missing=()
have_pkgconfig=true
command -v pkg-config >/dev/null || { have_pkgconfig=false; missing+=(pkg-config); }
while read -r kind name minimum; do
  case $kind in
    pkg)
      $have_pkgconfig || continue
      found=$(pkg-config --modversion "$name" 2>/dev/null) || { missing+=("$name >= $minimum"); continue; }
      pkg-config --atleast-version="$minimum" "$name" || missing+=("$name >= $minimum (found $found)") ;;
    cmd) command -v "$name" >/dev/null || missing+=("$name") ;;
    file) [[ -e $name ]] || missing+=("$name") ;;
    *) die "packaging/host.txt: unknown kind '$kind'" ;;
  esac
done < <(rows "$PENSTOCK_REPO/packaging/host.txt")
((${#missing[@]} == 0)) || { IFS=,; printf '%s\n' "${missing[*]}" | sed 's/,/, /g'; }
