#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# aarch64.sh [SOURCE_ROOT]: builds the kernels and checkkern for aarch64 and runs them in an
# emulator, as a processor with every extension and as one of the first with dot products.
# Needs Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user.

set -eu

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}

not_run () {
  echo "not run: kernels-aarch64 ($1)"
  exit 1
}

. "$root/tests/lib/aarch64.sh"
need_cross_compiler
need_qemu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ORC's programs as the C that is committed; aarch64-orc.sh has the library.
cd "$work"
cp "$root/kernels/orc/programs-dist.h" programs.h
$cross-gcc -O3 -w -DDISABLE_ORC -c "$root/kernels/orc/programs-dist.c"
# shellcheck disable=SC2086
$cross-gcc $cross_flags -DVLM_KERNELS_AARCH64 -c "$root"/kernels/*.c "$root"/kernels/scalar/*.c \
  "$root/kernels/orc/orc.c"
compile_aarch64_levels
# shellcheck disable=SC2086
$cross-gcc $cross_flags -DVLM_KERNELS_AARCH64 -O1 -static -o checkkern "$root"/tests/kernels/*.c \
  "$root/tools/bench-peak.c" ./*.o -lm -pthread ||
  not_run "checkkern does not link; install libc6-dev-arm64-cross"

# Which levels each must have tested.
for run in max:neon,dotprod,i8mm neoverse-n1:neon,dotprod; do
  cpu=${run%%:*}
  echo "# $cpu"
  "$qemu" -cpu $cpu ./checkkern > output || {
    cat output
    exit 1
  }
  grep -c '^ok' output
  grep -q "^ok .* orc quantise_i8$" output || {
    cat output
    echo "the orc level was not tested"
    exit 1
  }
  for level in $(echo "${run#*:}" | tr ',' ' '); do
    grep -q "^ok .* $level matmul_int$" output || {
      cat output
      echo "the $level level was not tested"
      exit 1
    }
  done
done

python3 "$root/tests/kernels/check_spills.py" $cross-objdump neon.o dotprod.o i8mm.o
