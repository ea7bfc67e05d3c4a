#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Fuzzes for as long as one likes; what is found is kept in build-fuzz/corpus and used again:
#
#   bash tests/fuzz/run-long.sh SECONDS [TARGET...]
#
# SECONDS are for each target; without targets, all of them.
set -u

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/packages.sh
. tests/lib/results.sh
. tests/fuzz/lib.sh

seconds=${1:?seconds for each target}
shift

fuzz_long () {
  local target=$1

  mkdir -p "$fuzz_build/corpus/$target"
  fuzz_run "$target" -max_total_time="$seconds" "$fuzz_build/corpus/$target" \
    "$fuzz_build/seeds/$target" "tests/fuzz/inputs/$target"
}

install_packages $packages_build $packages_fuzz || exit 1
if fuzz_prepare; then
  for target in ${*:-$(fuzz_targets)}; do
    printf '==== %s\n' "$target"
    check "fuzz: $target" fuzz_long "$target"
  done
fi
summary
