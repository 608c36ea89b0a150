#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the root file system of the build userland: tools/make_root.sh DIR
# It is made in DIR.partial and renamed, so DIR either does not exist or is whole.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=$1
partial=$target.partial
log=$target.log
suite=$(rows "$PENSTOCK_REPO/packaging/root.conf" | awk '$1 == "suite" { print $2 }')
packages=$(rows "$PENSTOCK_REPO/packaging/packages.txt" | paste -sd,)

require_tools() {
  local missing=()
  command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
  command -v bwrap >/dev/null || missing+=(bubblewrap)
  # Without newuidmap an ordinary user can't own the user ids that packages ask for.
  ((EUID == 0)) || command -v newuidmap >/dev/null || missing+=(uidmap)
  ((${#missing[@]} == 0)) && return
  command -v apt-get >/dev/null ||
    die "this needs ${missing[*]}, and this host has no apt-get; install them and try again."
  ((EUID == 0)) || die "this needs ${missing[*]}. Install once with:" \
    "sudo apt-get install ${missing[*]}"
  say "installing ${missing[*]} on the host"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "${missing[@]}"; } \
    </dev/null >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "could not install ${missing[*]}"
  }
}

# An ordinary user needs a range of subordinate ids, which Debian's adduser gives by default.
require_subids() {
  ((EUID == 0)) && return
  local user
  user=$(id -un)
  if grep -qsE "^($user|$EUID):" /etc/subuid && grep -qsE "^($user|$EUID):" /etc/subgid; then return; fi
  die "the user $user has no subordinate ids, which making the userland needs. Add them once with:" \
    "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $user"
}

# The host's proxy and TLS settings for apt, as a file that mmdebstrap's apt reads too.
host_apt_conf() {
  command -v apt-config >/dev/null || return 0
  apt-config dump | grep -iE '^Acquire::(http|https)::(Proxy|CaInfo|CaPath|Verify-|SslCert|SslKey)' | grep -v '""' || true
}

# A line every 20 s: installing the packages is otherwise silent for minutes.
heartbeat() {
  local start=$SECONDS
  trap 'kill $!' TERM
  while sleep 20 & wait $!; do
    say "  ... $((SECONDS - start)) s: $(sed -n 's/^I: //p' "$log" | tail -n 1)"
  done
}

bootstrap() {
  local options=(--variant=apt "--include=$packages" '--aptopt=APT::Install-Recommends "false"')
  local key value
  while read -r key value; do
    [[ $key != dpkg ]] || options+=("--dpkgopt=$value")
  done < <(rows "$PENSTOCK_REPO/packaging/root.conf")
  [[ ! -s $target.apt ]] || options+=("--aptopt=$target.apt")
  local mirror=()
  [[ -z ${PENSTOCK_DEBIAN_MIRROR:-} ]] || mirror=("$PENSTOCK_DEBIAN_MIRROR")
  remove_partial
  if ((EUID == 0)); then
    # Its mounts in a namespace of their own, which ends with it however it ends.
    local apart=()
    ! unshare --mount true 2>/dev/null || apart=(unshare --mount)
    "${apart[@]}" mmdebstrap --mode=root "${options[@]}" "$@" "$suite" "$partial" "${mirror[@]}"
  else
    # The tarball is unpacked as the user, so that every file is the user's and can be removed as
    # usual. mmdebstrap works as a subordinate id, which may not enter a private home: /var/tmp it is.
    mkdir "$partial"
    TMPDIR=${PENSTOCK_TMPDIR:-/var/tmp} mmdebstrap --mode=unshare --format=tar "${options[@]}" "$@" \
      "$suite" - "${mirror[@]}" |
      tar -x -C "$partial" --no-same-owner --no-same-permissions --exclude='./dev/*' --delay-directory-restore
  fi
}

remove_partial() {
  local mounted
  [[ -e $partial ]] || return 0
  # What an interrupted set-up left mounted where it could have no namespace of its own; innermost first.
  while read -r mounted; do
    mounted=$(printf '%b' "$mounted")
    [[ $mounted != "$(realpath "$partial")"/* ]] || umount "$mounted"
  done < <(awk '{ print $5 }' /proc/self/mountinfo | tac)
  rm -rf --one-file-system "$partial"
}

attempt() {
  : >"$log"
  heartbeat 9>&- &
  local pulse=$! status=0
  # shellcheck disable=SC2064  # this pulse
  trap "kill $pulse" EXIT
  # `set -o pipefail` inside: the step fails when mmdebstrap does, not when sed does. It keeps the lock: one
  # that outlives a killed script still writes there.
  (bootstrap "$@" 2> >(tee -a "$log" 9>&- | grep --line-buffered -E '^(I|W|E): ' 9>&- | sed -u 's/^/dev:   /' >&2 9>&-)) \
    </dev/null || status=$?
  trap - EXIT
  kill "$pulse"
  wait "$pulse" || true
  return "$status"
}

main() {
  mkdir -p "$PENSTOCK_CACHE"
  exec 9>"$PENSTOCK_CACHE/root.lock"
  if ! flock -n 9; then
    say "another set-up is at work; waiting for it"
    flock 9
  fi
  [[ ! -d $target ]] || exit 0

  require_tools
  require_subids
  remove_partial
  # 3 GB that stay, what apt fetches, and room for the build that follows.
  need_space "$PENSTOCK_CACHE" 7 "set-up" "set PENSTOCK_CACHE to a folder on a larger disk"
  # As an ordinary user the userland is on the disk twice for a moment, once with its packages.
  ((EUID == 0)) || need_space "${PENSTOCK_TMPDIR:-/var/tmp}" 8 "set-up as an ordinary user" \
    "set PENSTOCK_TMPDIR to a folder that all users may enter, on a larger disk"

  host_apt_conf >"$target.apt"
  say "making the Debian $suite userland (about 3 GB, 5 to 7 minutes, once) in $target"
  started=$SECONDS
  if ! attempt; then
    if grep -qE 'Release file .* (is expired|is not valid anymore)|Release file .*expired' "$log"; then
      say "the mirror's Release file is past its Valid-Until date, so the normal way failed." \
        "Its signature is still checked; accepting the date and trying again."
      attempt '--aptopt=Acquire::Check-Valid-Until "false"' || failed=true
    else
      failed=true
    fi
  fi
  if [[ -n ${failed:-} ]]; then
    remove_partial
    grep -vE '^I: ' "$log" | tail -n 25 >&2
    die "could not make the userland; the whole log is $log"
  fi

  # Mount points for what the host lends (tools/enter.sh); the root itself is mounted read-only.
  touch "$partial/etc/resolv.conf" "$partial/etc/hosts"
  mv -T "$partial" "$target"
  rm -f "$target.apt"
  say "userland ready after $((SECONDS - started)) s"
  shopt -s nullglob
  for other in "$PENSTOCK_CACHE"/root-*/; do
    [[ ${other%/} == "$target" ]] || say "an older userland can be removed: rm -rf ${other%/}"
  done
}

main
exit
