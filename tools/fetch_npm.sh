#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the packages of packaging/npm.txt into the cache and lays out what the build uses of them:
# $PENSTOCK_CACHE/onnxruntime/libonnxruntime.so.1
set -euo pipefail
. "$(dirname "$0")/lib.sh"

case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) die "no ONNX Runtime build for $(uname -m); this runs on x86_64 and aarch64" ;;
esac

# fetch NAME@VERSION SHA256 FILE: FILE exists and has that hash, or this fails.
fetch() {
  local temporary=$PENSTOCK_CACHE/npm/partial attempt
  say "fetching $1 with npm (once)"
  rm -rf "$temporary"
  mkdir -p "$temporary"
  for attempt in 1 2 3; do
    # Its own npm cache, removed afterwards: npm would keep a second copy of the tarball.
    if "$PENSTOCK_REPO/tools/enter.sh" env "npm_config_cache=$temporary/cache" npm_config_update_notifier=false \
      npm pack --silent --pack-destination "$temporary" "$1" </dev/null >/dev/null 2>"$temporary/log"; then
      break
    fi
    ((attempt < 3)) || {
      tail -n 10 "$temporary/log" >&2
      die "npm could not fetch $1; is the network up, and does npm work on this host?"
    }
    say "  npm failed; trying again"
  done
  echo "$2  $(echo "$temporary"/*.tgz)" | sha256sum --check --status ||
    die "$1 as npm gave it is not the file that packaging/npm.txt names (SHA-256 differs); nothing was kept." \
      "It has $(sha256sum <"$(echo "$temporary"/*.tgz)" | cut -d' ' -f1)."
  mv "$temporary"/*.tgz "$3"
  rm -rf "$temporary"
}

while read -r spec sha256; do
  [[ $spec == onnxruntime-node@* ]] || die "packaging/npm.txt: don't know what to do with $spec"
  version=${spec##*@}
  place=$PENSTOCK_CACHE/onnxruntime-$version
  if [[ ! -e $place/libonnxruntime.so.1 ]]; then
    mkdir -p "$PENSTOCK_CACHE/npm"
    exec 8>"$PENSTOCK_CACHE/npm/lock"
    flock 8
    if [[ ! -e $place/libonnxruntime.so.1 ]]; then
      tarball=$PENSTOCK_CACHE/npm/${spec//[@\/]/-}.tgz
      echo "$sha256  $tarball" | sha256sum --check --status 2>/dev/null || fetch "$spec" "$sha256" "$tarball"
      rm -rf "$place.partial"
      mkdir -p "$place.partial"
      tar -xzf "$tarball" -C "$place.partial" --strip-components=5 --no-same-owner \
        "package/bin/napi-v6/linux/$arch/libonnxruntime.so.1"
      mv -T "$place.partial" "$place"
      rm -f "$tarball"
    fi
    exec 8>&-
  fi
  ln -sfn "onnxruntime-$version" "$PENSTOCK_CACHE/onnxruntime"
done < <(rows "$PENSTOCK_REPO/packaging/npm.txt")
