#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# aarch64-orc.sh [SOURCE_ROOT]: the orc level with ORC's own code for aarch64, in an emulator. The
# library is the system's where it has that architecture, else Debian's package is unpacked into a
# temporary directory; nothing is installed.
# Needs what aarch64.sh needs, and liborc-0.4-dev.

set -eu

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}

not_run () {
  echo "not run: kernels-aarch64-orc ($1)"
  exit 77
}

. "$root/tests/lib/aarch64.sh"
need_cross_compiler
need_qemu
orc_flags=$(pkg-config --cflags orc-0.4) || not_run "no headers of ORC; install liborc-0.4-dev"
command -v orcc > /dev/null || not_run "no orcc; install liborc-0.4-dev-bin"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

library=/usr/lib/$cross/liborc-0.4.so.0
if [ ! -e $library ]; then
  unpack_arm64 liborc-0.4.so.0
  library=$work/root$library
fi

# Without the hand-written levels.
orcc --header -o programs.h "$root/kernels/orc/programs.orc"
orcc --implementation -o programs.c "$root/kernels/orc/programs.orc"
# shellcheck disable=SC2086
$cross-gcc -O3 -w $orc_flags -c programs.c
# shellcheck disable=SC2086
$cross-gcc $cross_flags -c "$root"/kernels/*.c "$root"/kernels/scalar/*.c "$root/kernels/orc/orc.c"
# shellcheck disable=SC2086
$cross-gcc $cross_flags -O1 -o checkkern "$root"/tests/kernels/*.c "$root/tools/bench-peak.c" ./*.o \
  "$library" -lm ||
  not_run "checkkern does not link; install libc6-dev-arm64-cross"

# ORC tells what it compiles; a program that it cannot would be tested as plain C.
"$qemu" -L /usr/$cross -E LD_LIBRARY_PATH="$(dirname "$library")" -E ORC_DEBUG=4 \
  ./checkkern > output 2> log || {
  cat output
  exit 1
}
compiled=$(grep -c 'finished compiling (success)' log || true)
if [ "$compiled" != "$(grep -c '^\.function' "$root/kernels/orc/programs.orc")" ]; then
  grep compiling log || true
  echo "ORC has compiled $compiled of the programs"
  exit 1
fi
grep "orc" output
grep -q "^ok .* orc quantise_i8$" output
