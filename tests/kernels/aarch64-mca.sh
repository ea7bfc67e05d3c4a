#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# aarch64-mca.sh [SOURCE_ROOT]: what llvm-mca makes of the inner loops of the integer products on
# Neoverse N1 and V1. Fails where a loop is further from its limit than mca.py allows.
# Needs Debian's gcc-aarch64-linux-gnu and llvm-19.

set -eu

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}

not_run () {
  echo "not run: kernels-aarch64-mca ($1)"
  exit 1
}

. "$root/tests/lib/aarch64.sh"
need_cross_compiler
command -v llvm-mca-19 > /dev/null || not_run "no llvm-mca-19; install llvm-19"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
compile_aarch64_levels
python3 "$root/tests/kernels/mca.py" $cross-objdump llvm-mca-19 dotprod.o i8mm.o
