#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in the build userland: tools/enter.sh CMD...
# The repository, the cache and the user's folders are at the same paths inside as outside; the root
# itself is read-only. PENSTOCK_USERLAND (host, or the root's folder) is set by ./dev.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export CCACHE_DIR=${CCACHE_DIR:-$PENSTOCK_CACHE/ccache} CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-3G}
# A clone elsewhere finds what another one compiled.
export CCACHE_BASEDIR=$PENSTOCK_REPO CCACHE_NOHASHDIR=1
# What ccache asks for where headers are precompiled.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_PCH_EXTSUM=1
[[ $PENSTOCK_USERLAND != host && -z ${PENSTOCK_INSIDE:-} ]] || exec "$@"
root=$PENSTOCK_USERLAND

# A clean environment, so that a build depends on the userland and not on the host's shell.
keep=(PENSTOCK_INSIDE=1 LC_ALL=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin)
while IFS='=' read -r -d '' name value; do
  case $name in
    HOME | USER | LOGNAME | TERM | CI | NO_COLOR | DISPLAY | WAYLAND_DISPLAY | XDG_RUNTIME_DIR | XDG_DATA_HOME | \
      DEBUG | *_proxy | *_PROXY | SSL_CERT_* | NODE_* | CURL_CA_BUNDLE | REQUESTS_CA_BUNDLE | \
      npm_config_* | NPM_CONFIG_* | PENSTOCK_* | CCACHE_* | CMAKE_BUILD_PARALLEL_LEVEL | CTEST_* | \
      GTEST_* | GST_* | G_* | ASAN_OPTIONS | LSAN_OPTIONS | UBSAN_OPTIONS | TSAN_OPTIONS)
      keep+=("$name=$value") ;;
  esac
done < <(env -0)

# The host's certificates, at their own paths and at the paths that the usual variables name.
lend=(/etc/passwd /etc/group /etc/hosts /etc/ssl/certs /usr/share/ca-certificates)
for name in SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE REQUESTS_CA_BUNDLE; do
  [[ ${!name:-} != /* || ${!name} == /etc/ssl/certs/* ]] || lend+=("${!name}")
done
# The repository of a git worktree lies elsewhere.
repository=$(git -C "$PENSTOCK_REPO" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || repository=
share=()
# What lies beside the system's own folders: videos may be anywhere.
others=()
for path in /*; do
  case $path in
    /bin | /boot | /dev | /etc | /lib* | /lost+found | /proc | /run | /sbin | /sys | /usr | /var) ;;
    *) [[ -L $path ]] || others+=("$path") ;;
  esac
done
for path in "${others[@]}" /var/tmp "$HOME" "${XDG_DATA_HOME:-$HOME}" "$PENSTOCK_CACHE" "$repository" "$PENSTOCK_REPO" "$PWD"; do
  [[ ! -d $path || ! -r $path || $path == / ]] || share+=("$path")
done

# Paths below the read-only folders of the root need a mount point there; elsewhere bwrap makes it.
mount_point() {
  [[ $1 == /usr/* || $1 == /etc/* || $1 == /var/* ]] && [[ -e $1 && ! -e $root$1 ]] || return 0
  if [[ -d $1 ]]; then mkdir -p "$root$1"; else mkdir -p "$root${1%/*}" && touch "$root$1"; fi
}

with_bwrap() {
  local words=$#
  local args=(--die-with-parent --dev-bind /dev /dev --ro-bind /sys /sys --tmpfs /run)
  local dir path
  for path in "${lend[@]}" "${share[@]}"; do mount_point "$path"; done
  for dir in usr etc var; do args+=(--ro-bind "$root/$dir" "/$dir"); done
  for dir in bin sbin lib lib64; do args+=(--symlink "usr/$dir" "/$dir"); done
  for path in "${lend[@]}"; do
    [[ ! -e $path ]] || args+=(--ro-bind "$path" "$path")
  done
  args+=(--ro-bind-try "$(readlink -f /etc/resolv.conf)" /etc/resolv.conf)
  for path in "${share[@]}"; do args+=(--bind "$path" "$path"); done
  [[ -z ${XDG_RUNTIME_DIR:-} || ! -d ${XDG_RUNTIME_DIR:-} ]] || args+=(--bind "$XDG_RUNTIME_DIR" "$XDG_RUNTIME_DIR")
  # Some containers forbid a fresh /proc: theirs is lent instead.
  if env -i bwrap "${args[@]}" --unshare-pid --proc /proc /bin/true 2>/dev/null; then
    args+=(--unshare-pid --proc /proc)
  elif ! env -i bwrap "${args[@]}" --bind /proc /proc /bin/true 2>/dev/null; then
    return 1
  else
    args+=(--bind /proc /proc)
  fi
  run_and_pass_signals env -i "${keep[@]}" bwrap "${args[@]}" --chdir "$PWD" "$@"
}

# bwrap dies of the signal that means the command, and takes it along before it can close its files. So it
# is started deaf, and the command gets what the terminal or a process group sends by itself; what was
# sent to this process alone is passed on.
run_and_pass_signals() {
  local hears=() entry ignored pid status=0 last
  ignored=$((16#$(awk '/^SigIgn:/ { print $2 }' "/proc/$$/status")))
  for entry in HUP:1 INT:2 QUIT:3 TERM:15; do
    ((ignored >> (${entry#*:} - 1) & 1)) || hears+=(--default-signal="${entry%:*}")
  done
  local before=("${@:1:$#-words}") command=("${@:$#-words+1}")
  (
    trap '' HUP INT QUIT TERM
    exec "${before[@]}" /usr/bin/env "${hears[@]}" "${command[@]}"
  ) <&0 &
  pid=$!
  trap 'pass_on TERM "$pid"' TERM
  trap 'pass_on HUP "$pid"' HUP
  # A terminal sends it to the whole foreground group, the command included.
  trap '[[ $(ps -o tpgid= -p $$) -eq $(ps -o pgid= -p $$) ]] || pass_on INT "$pid"' INT
  while wait "$pid" && status=0 || status=$?; kill -0 "$pid" 2>/dev/null; do :; done
  # Interrupted by the last signal, wait says so and not what the command did.
  wait "$pid" 2>/dev/null && last=0 || last=$?
  ((last == 127)) || status=$last
  exit "$status"
}

# pass_on SIGNAL PID: to the first processes below PID that are not bwrap.
pass_on() {
  local child children=()
  { read -ra children <"/proc/$2/task/$2/children"; } 2>/dev/null || true
  for child in "${children[@]}"; do
    if [[ $(cat "/proc/$child/comm" 2>/dev/null) == bwrap ]]; then
      pass_on "$1" "$child"
    else
      kill -s "$1" "$child" 2>/dev/null || true
    fi
  done
}

# Without bubblewrap, root has mount namespaces and chroot. $1 = root, then the shared folders up to
# `--`, then the command.
with_chroot() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  exec env -i "${keep[@]}" unshare --mount --propagation private /bin/bash -euc '
    root=$1 here=$2; shift 2
    bind() { mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; }
    for dir in /dev /proc /sys; do bind "$dir"; done
    while [[ $1 != -- ]]; do
      if [[ -d $1 ]]; then bind "$1"; else touch "$root$1"; mount --bind "$1" "$root$1"; fi
      shift
    done
    shift
    exec chroot "$root" /bin/bash -c "cd \"\$1\" && shift && exec \"\$@\"" - "$here" "$@"' \
    - "$root" "$PWD" "${lend[@]}" /etc/resolv.conf "${share[@]}" -- "$@"
}

if command -v bwrap >/dev/null; then
  with_bwrap "$@" || true
  ((EUID == 0)) ||
    die "bubblewrap may not make namespaces here. On a machine: allow unprivileged user namespaces. In a" \
      "container: start it so that it may, or make it from packaging/Containerfile, which has all inside."
elif ((EUID != 0)); then
  die "this needs bubblewrap. Install once with: sudo apt-get install bubblewrap"
fi
with_chroot "$@"
