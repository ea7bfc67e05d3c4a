# SPDX-License-Identifier: LGPL-2.1-or-later
# The Debian packages that this project uses, in one place, and how they are installed.
# Sourced by tests/run.sh and examples/quickstart.sh.

# To build the plugin and the tools.
packages_build="gcc libc6-dev meson ninja-build pkgconf libglib2.0-dev libgstreamer1.0-dev
  libgstreamer-plugins-base1.0-dev libjansson-dev liborc-0.4-dev libpcre2-dev libsqlite3-dev libxxhash-dev"

# To play, draw and write the example's video. textoverlay is in gstreamer1.0-x, and draws nothing
# without a font.
packages_run="gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
  gstreamer1.0-x fonts-dejavu-core"

# To run every test: Python reads the captions from buffers and pictures as PIL does; the kernels
# for aarch64 are built with a cross compiler, run by qemu and looked at by llvm-mca; the .deb is
# built, and installed in a root of its own.
packages_test="python3 python3-gi python3-gst-1.0 python3-jinja2 python3-pil gir1.2-gstreamer-1.0
  gir1.2-gst-plugins-base-1.0 make dpkg-dev debhelper mmdebstrap"
packages_cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user llvm-19"

# What vlm-caption writes: subtitles are read by other people's parsers, contact sheets opened in
# Chromium, videos made and looked at by ffmpeg, and taken apart with all of GStreamer's plugins.
packages_outputs="ffmpeg python3-srt python3-webvtt chromium chromium-driver gstreamer1.0-libav
  gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly"

# To build and run the fuzz targets.
packages_fuzz="clang libclang-rt-dev"

# To build GLib, GStreamer and its plugins for tests/tsan.sh.
packages_tsan="dpkg-dev flex bison libffi-dev zlib1g-dev liborc-0.4-dev libpango1.0-dev libjpeg-dev
  gperf libexpat1-dev libfreetype-dev uuid-dev"

# The one release of clang-format that the sources are formatted with; Debian 13 has none of it.
packages_format="clang-format-14"

# The packages of the tests on this machine: one for aarch64 runs those kernels by itself.
test_packages () {
  echo $packages_test $packages_outputs
  [ "$(uname -m)" = aarch64 ] || echo $packages_cross
}

# Prints those of the named packages that are not installed.
missing_packages () {
  local package

  for package in "$@"; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
      installed) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

# Installs the packages that are missing. Where that cannot be done it says what is needed and
# returns: the tools may be there all the same, and the build tells what is not.
install_packages () {
  local missing log

  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian system: nothing is installed. Needed are what Debian calls:"
    echo "  $*"
    return 0
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "Not root: nothing is installed. As root, run:"
    echo "  apt-get install" $missing
    return 0
  fi

  echo "Installing:" $missing
  log=$(mktemp)
  # The lists may be missing, or older than the mirror.
  apt_install $missing >"$log" 2>&1 \
    || { apt-get -qq update && apt_install $missing; } >"$log" 2>&1 \
    || { cat "$log"; rm -f "$log"; return 1; }
  rm -f "$log"
}

apt_install () {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "$@" </dev/null
}
