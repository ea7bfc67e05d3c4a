#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# From a fresh machine to a captioned video: installs what is missing, builds, draws a short video,
# captions it with the built-in model, and checks every caption and every frame of the result.
#
#   bash examples/quickstart.sh
#
# BUILD is the build directory (default: build), OUT the directory of the results (default:
# out/quickstart).
set -euo pipefail

cd "$(dirname "$0")/.."
. tests/lib/packages.sh

build=${BUILD:-build}
out=${OUT:-out/quickstart}

# The first of the test range: scenes that the built-in model never saw in training.
seeds="1 2 3 4 5 6 7 8"
seconds_per_scene=2

step () {
  printf '\n== %s\n' "$*"
}

build_project () {
  if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" -Dtests=false
  fi
  ninja -C "$build"
  export GST_PLUGIN_PATH="$PWD/$build/gst-plugin" GST_REGISTRY="$PWD/$build/registry.bin"
  unset VLMCAPTION_MODEL
  gst-inspect-1.0 vlmcaption >/dev/null || {
    echo "GStreamer does not find the element that was built in $build/gst-plugin" >&2
    return 1
  }
}

# Puts each caption beside what was drawn: "time  ok|WRONG  caption". Fails unless all are equal.
compare_captions () {
  awk -F '\t' '
    NR == FNR { truth[$1] = $3; n_scenes++; next }
    {
      n_captions++
      right = ($1 in truth) && truth[$1] == $2
      n_right += right
      printf "%.11s  %-5s  %s\n", $1, right ? "ok" : "WRONG", $2
      if (!right)
        printf "%20s  %s\n", "drawn:", ($1 in truth) ? truth[$1] : "nothing new at this time"
    }
    END {
      printf "%d of %d captions are true.\n", n_right, n_scenes
      exit n_right != n_scenes || n_captions != n_scenes
    }' "$1" "$2"
}

step "1 Packages"
install_packages $packages_build $packages_run

step "2 Build"
build_project

step "3 A video of drawn scenes: $out/plain.webm"
mkdir -p "$out"
"$build/examples/scene-video" "$out/plain.webm" "$out/truth.tsv" $seeds

step "4 Captions"
"$build/examples/caption-file" "$out/plain.webm" "$out/captioned.webm" $seconds_per_scene \
  >"$out/captions.tsv"
compare_captions "$out/truth.tsv" "$out/captions.tsv"

step "5 The captions in the picture"
"$build/examples/compare-frames" "$out/plain.webm" "$out/captioned.webm" "$out/truth.tsv"
gst-launch-1.0 -q filesrc location="$out/captioned.webm" ! decodebin ! videoconvert \
  ! pngenc snapshot=true compression-level=9 ! filesink location="$out/still.png"

step "Done"
echo "$out/captioned.webm  the video with its captions"
echo "$out/still.png  its first frame"
