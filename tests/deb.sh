#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds the Debian package, installs it in a clean Debian root, and looks whether an ordinary user
# can inspect the element there and gets a true caption from it. Needs root, dpkg-buildpackage and
# mmdebstrap.
set -euo pipefail

cd "$(dirname "$0")/.."
. /etc/os-release
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"

# The tree as it would be committed, without what was built in it.
copy_tree () {
  mkdir "$work/source"
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      [ ! -e "$file" ] || printf '%s\0' "$file"
    done
  else
    find . -path './build*' -prune -o -path ./out -prune -o -type f -print0
  fi | tar -c --null -T - | tar -x -C "$work/source"
}

build_package () {
  (cd "$work/source" && dpkg-buildpackage -b -us -uc) >"$work/build.log" 2>&1 || {
    cat "$work/build.log"
    return 1
  }
}

# The machine's own Debian mirrors, as lines of a sources.list.
debian_sources () {
  apt-get indextargets --format '$(ORIGIN)|deb $(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' | sed -n 's/^Debian|//p' | sort -u
}

# How this machine reaches its mirror (proxy, retries, checks of dates) holds in the new root too.
write_apt_options () {
  apt-config dump | grep -E '^Acquire::(http|https|Check|Retries|ForceIPv)' >"$work/apt.conf" || :
}

install_in_clean_root () {
  local package=$1

  write_apt_options
  debian_sources >"$work/sources.list"
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$work/apt.conf" \
    --include=gstreamer1.0-tools,gstreamer1.0-plugins-base \
    --customize-hook="copy-in '$package' /tmp" \
    --customize-hook='chroot "$1" sh -c "apt-get install -y --no-install-recommends /tmp/*.deb"' \
    "$VERSION_CODENAME" "$work/root" "$work/sources.list" >"$work/root.log" 2>&1 || {
    cat "$work/root.log"
    return 1
  }
}

# A home of its own, for the registry, which must not be root's.
as_user () {
  chroot "$work/root" su nobody -s /bin/sh -c 'export HOME=$(mktemp -d) && cd "$HOME" && '"$1"
}

copy_tree
build_package
package=$(echo "$work"/gstreamer1.0-vlmcaption_*.deb)
dpkg-deb --info "$package"
dpkg-deb --contents "$package"
install_in_clean_root "$package"

as_user 'id -un && gst-inspect-1.0 vlmcaption'
as_user 'gst-launch-1.0 -m videotestsrc pattern=red num-buffers=2 ! vlmcaption mode=sync ! fakesink' \
  >"$work/messages"
# In the messages of gst-launch a blank within a text is written "\ ".
grep -F 'text=(string)"A\ plain\ red\ picture."' "$work/messages" || {
  cat "$work/messages"
  echo "the caption of a red picture is another" >&2
  exit 1
}
