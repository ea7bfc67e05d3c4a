#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Does in a fresh Debian 13 what is done here: runs examples/quickstart.sh and then tests/run.sh on
# what is committed (HEAD), and ends with "N passed, N failed".
#
#   bash tests/debian13.sh [PART...]
#
# PART: those of tests/run.sh, all by default. Needs root and mmdebstrap. DEBIAN13_CACHE is where the
# bare system and the downloaded packages are kept from one run to the next (default: build-debian13);
# DEBIAN13_MIRROR is the archive (default: the one that this system uses).
set -u

cd "$(dirname "$0")/.." || exit 1
. tests/lib/results.sh
exec </dev/null

release=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${DEBIAN13_CACHE:-build-debian13}
root=$cache/root

# Mounts and processes live in namespaces of their own, which end with this script however it ends.
if [ -z "${DEBIAN13_INSIDE:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "tests/debian13.sh must be run as root" >&2; exit 2; }
  for tool in mmdebstrap unshare git; do
    command -v $tool >/dev/null || { echo "tests/debian13.sh needs $tool" >&2; exit 2; }
  done
  exec env DEBIAN13_INSIDE=1 unshare --mount --propagation private --pid --fork --kill-child \
    bash "$0" "$@"
fi

# ---- The bare system ----------------------------------------------------------------------------

# The archive that this system, if it is Debian, has its own release from.
mirror () {
  local found

  . /etc/os-release
  found=$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' \
    'Created-By: Packages' 2>/dev/null | sed -n "s/^Debian|$VERSION_CODENAME|//p" | head -n 1)
  echo "${DEBIAN13_MIRROR:-${found:-http://deb.debian.org/debian}}"
}

# How this machine reaches its archive (proxy, retries, checks of dates) holds there too.
make_system () {
  mkdir -p "$cache"
  [ ! -f "$cache/$release.tar" ] || return 0
  apt-config dump | grep -E '^Acquire::(http|https|Check|Retries|ForceIPv)' >"$cache/apt.conf" || :
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$cache/apt.conf" --keyring=$keyring \
    $release "$cache/new.tar" "deb $(mirror) $release main" || return 1
  mv "$cache/new.tar" "$cache/$release.tar"
}

unpack_system () {
  rm -rf --one-file-system "$root"
  mkdir -p "$root" "$cache/archives/partial"
  tar -x -C "$root" --numeric-owner -f "$cache/$release.tar" || return 1
  # A link there may lead out of the root.
  rm -f "$root/etc/resolv.conf" "$root/etc/hosts"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/" || return 1
  # What is thrown away need not be safe on the disk.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
  mkdir "$root/src"
  git archive HEAD | tar -x -C "$root/src"
}

mount_system () {
  mount -t proc proc "$root/proc" \
    && mount --rbind /dev "$root/dev" \
    && mount --rbind /sys "$root/sys" \
    && mount --bind "$cache/archives" "$root/var/cache/apt/archives"
}

# ---- Inside it ----------------------------------------------------------------------------------

# Runs a command in the sources there, with nothing of this system's environment but its proxies.
inside () {
  local kept=() name

  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
  done
  chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 CI=true \
    "${kept[@]}" sh -c 'cd /src && exec "$@"' sh "$@"
}

# Runs tests/run.sh there and adds its numbers to ours.
run_tests () {
  local log=$cache/run.log numbers

  inside bash tests/run.sh "$@" 2>&1 | tee "$log"
  numbers=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
  if [ -z "$numbers" ]; then
    fail "tests/run.sh ended without its last line"
    return
  fi
  n_passed=$((n_passed + ${numbers% *}))
  n_failed=$((n_failed + ${numbers#* }))
}

# The mounts are made where nobody else sees them, but what is below them must not be removed.
clean_up () {
  umount -R -l "$root/var/cache/apt/archives" "$root/sys" "$root/dev" "$root/proc" 2>/dev/null
  rm -rf --one-file-system "$root"
}
trap clean_up EXIT

if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "What is not committed yet is not tested here."
fi
check "debian 13: system" make_system || { summary; exit 1; }
check "debian 13: unpack" unpack_system || { summary; exit 1; }
check "debian 13: mounts" mount_system || { summary; exit 1; }
printf '==== Debian %s, %s\n' "$(cat "$root/etc/debian_version")" "$(git log -1 --format=%h)"
check "debian 13: quickstart on a bare system" inside bash examples/quickstart.sh
run_tests "$@"
summary
