# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the commands that run inside the userland: configuring, building, and the environment of a
# build folder.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

JOBS=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# git in a repository that another user owns, as in a container.
git() { command git -c "safe.directory=$PENSTOCK_REPO" "$@"; }

build_dir() { printf '%s/build/%s\n' "$PENSTOCK_REPO" "$1"; }

# configure PRESET: only when it was not yet, or the userland, the presets or the cache folder changed.
configure() {
  local dir stamp
  dir=$(build_dir "$1")
  stamp="1 $PENSTOCK_USERLAND $PENSTOCK_CACHE $(sha256sum <"$PENSTOCK_REPO/CMakePresets.json")"
  if [[ -e $dir/build.ninja && $(cat "$dir/dev-stamp" 2>/dev/null) == "$stamp" ]]; then return; fi
  say "configuring $1"
  mkdir -p "$dir"
  rm -f "$dir/dev-stamp"
  (cd "$PENSTOCK_REPO" && cmake --fresh --preset "$1" --log-level=NOTICE \
    "-DPENSTOCK_ONNXRUNTIME_DEFAULT=$PENSTOCK_CACHE/onnxruntime/libonnxruntime.so.1") ||
    die "configuring $1 failed"
  printf '%s' "$stamp" >"$dir/dev-stamp"
}

# build PRESET [TARGET...]
build() {
  local preset=$1 dir lock started=$SECONDS
  shift
  [[ $preset =~ ^(release|debug|asan|tsan|fuzz)$ ]] ||
    die "no such preset: $preset (release, debug, asan, tsan, fuzz)"
  dir=$(build_dir "$preset")
  [[ -e $dir/build.ninja ]] || need_space "$PENSTOCK_REPO" 3 "building $preset" "clone on a larger disk"
  # Two ninjas in one folder spoil each other's log.
  mkdir -p "$dir"
  exec {lock}>"$dir/dev-lock"
  flock --nonblock "$lock" || {
    say "waiting for another ./dev that builds $preset"
    flock "$lock"
  }
  configure "$preset"
  say "building $preset"
  # ninja redraws one line on a terminal and prints a line a step elsewhere; CI gets its lines.
  NINJA_STATUS='[%f/%t %es] ' cmake --build "$dir" --parallel "$JOBS" ${1:+--target "$@"} ||
    die "building $preset failed"
  exec {lock}>&-
  say "built $preset in $((SECONDS - started)) s"
}

# use_build PRESET: programs on PATH, the plugin and a registry of its own for GStreamer.
use_build() {
  local dir
  dir=$(build_dir "$1")
  export PATH=$dir/apps/penstock:$dir/apps:$PATH
  export GST_PLUGIN_PATH=$dir/gst GST_REGISTRY=$dir/gst-registry.bin
  # The default settings of the sanitizers; what the caller exports wins.
  case $1 in
    asan)
      # GStreamer's plugin scanner is a process without the sanitizer, which could not load the plugin.
      export GST_REGISTRY_FORK=no
      export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1}
      export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
      export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PENSTOCK_REPO/tools/lsan.supp:print_suppressions=0}
      export G_DEBUG=${G_DEBUG:-gc-friendly} ;;
    tsan)
      TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$PENSTOCK_REPO/tools/tsan.supp:halt_on_error=1:second_deadlock_stack=1}
      export TSAN_OPTIONS ;;
  esac
}

# fill_registry PRESET, in the environment of use_build: the first process without a registry scans every
# plugin of the machine, under ASan in itself, and some of their libraries leak: let that be no test.
fill_registry() {
  [[ $1 == asan ]] || return 0
  ASAN_OPTIONS=detect_leaks=0 penstock doctor >/dev/null 2>&1 || say "doctor found something missing"
}

# programs PRESET PREFIX [NAME|all]: paths of the built programs PREFIX_NAME, sorted.
programs() {
  local dir pattern=$2_${3:-all}
  dir=$(build_dir "$1")
  [[ ${3:-all} != all ]] || pattern=$2_'*'
  find "$dir" -name "$pattern" -type f -executable -not -path '*/CMakeFiles/*' | LC_ALL=C sort
}

# program_names PREFIX FOLDER: NAMEs of what PREFIX_NAME.cc there makes, one line; nothing need be built.
program_names() { find "$PENSTOCK_REPO/$2" -name "$1_*.cc" | sed "s|.*/$1_||; s|\.cc$||" | LC_ALL=C sort | paste -sd' '; }


# run_tests PRESET [CTEST-ARGUMENTS...]: results also as JUnit in build/PRESET/ctest.xml, or in
# ctest-part.xml when arguments choose some: ./dev contract reads whole runs.
run_tests() {
  local dir preset=$1 results=ctest.xml
  dir=$(build_dir "$preset")
  shift
  (($# == 0)) || results=ctest-part.xml
  use_build "$preset"
  say "testing $preset"
  fill_registry "$preset"
  # A folder of this run's own: tests name their files after themselves, and other clones run the same.
  local scratch status=0
  scratch=$(mktemp -d)
  TEST_TMPDIR=$scratch ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$JOBS" \
    --output-junit "$dir/$results" "$@" || status=$?
  rm -rf --one-file-system "$scratch"
  return "$status"
}
