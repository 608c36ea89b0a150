#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev check: everything that can be said without running the program. All checks run; the end says which
# failed. --fix formats the sources and rewrites the Containerfile first; --no-tidy leaves clang-tidy out.
set -euo pipefail
. "$(dirname "$0")/../build_lib.sh"

failed=()
# step NAME CMD...
step() {
  local name=$1 started=$SECONDS
  shift
  say "check: $name"
  if "$@"; then
    say "check: $name: ok ($((SECONDS - started)) s)"
  else
    failed+=("$name")
    say "check: $name: FAILED"
  fi
}

sources() { git ls-files -z -- '*.h' '*.cc' '*.c'; }

format() {
  sources | xargs -0 -r clang-format --dry-run -Werror || {
    say "mend with: ./dev check --fix"
    return 1
  }
}

spelling() { git ls-files -z | xargs -0 -r codespell; }

scripts() {
  git ls-files -z -- dev .ci/run '*.sh' | xargs -0 -r shellcheck -x -P SCRIPTDIR
}

fix=no tidy=yes
for word in "$@"; do
  case $word in
    --fix) fix=yes ;;
    --no-tidy) tidy=no ;;
    *) die "usage: ./dev check [--fix] [--no-tidy]" ;;
  esac
done
if [[ $fix == yes ]]; then
  sources | xargs -0 -r clang-format -i
  python3 tools/containerfile.py
fi
step "format" format
step "spelling" spelling
step "shell scripts" scripts
step "rooms" python3 tools/check_rooms.py
step "tree and documents" python3 tools/check_tree.py
step "Containerfile" python3 tools/containerfile.py --check
[[ $tidy == no ]] || step "clang-tidy" tools/tidy.sh
((${#failed[@]} == 0)) || die "check failed: ${failed[*]}"
say "check passed"
