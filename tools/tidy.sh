#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on what changed: since the branch left origin/main, or in the last commit when on it, and
# what is not committed. A changed header stands for the .cc beside it. At most PENSTOCK_TIDY_LIMIT files, the most
# recently committed first. Runs inside the userland.
set -euo pipefail
. "$(dirname "$0")/build_lib.sh"
limit=${PENSTOCK_TIDY_LIMIT:-40}

base=$(git merge-base HEAD origin/main 2>/dev/null || true)
[[ -n $base && $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-parse -q --verify 'HEAD~1' || true)

# All paths that changed, the latest commit's first.
changed() {
  git diff --name-only --diff-filter=d HEAD
  if [[ -n $base ]]; then
    git log --format= --name-only --diff-filter=d "$base..HEAD"
  else
    git ls-files
  fi
}

# Not release: its unity sources stand for the files that tidy is asked about.
configure debug
database=$(build_dir debug)/compile_commands.json
mapfile -t files < <(changed | sed -n -e 's/\.h$/.cc/p' -e '/\.cc$/p' | awk '!seen[$0]++' |
  while read -r file; do
    if [[ -f $file ]] && grep -qF "/$file\"" "$database"; then echo "$file"; fi
  done)
if ((${#files[@]} > limit)); then
  say "clang-tidy: ${#files[@]} files changed; looking at the latest $limit"
  files=("${files[@]:0:limit}")
fi
((${#files[@]} > 0)) || { say "clang-tidy: no source changed"; exit 0; }
say "clang-tidy: ${#files[@]} files"
# -w: the compiler's own warnings are gcc's, in the build.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$JOBS" clang-tidy --quiet -p "$(build_dir debug)" --extra-arg=-w \
    2> >(grep -vE 'warnings? generated|Suppressed [0-9]+ warnings|Use -header-filter' >&2)
