#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Which lines of the readers no fuzzed input has ever reached:
#
#   bash tests/fuzz/coverage.sh
#
# builds the targets once more with counters, replays the sound inputs, the committed ones and what
# run-long.sh has found (build-fuzz/corpus), and writes build-fuzz-coverage/report.txt: a table of
# files, then each run of lines that was never reached.
set -u

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/packages.sh
. tests/lib/results.sh
. tests/fuzz/lib.sh

coverage=build-fuzz-coverage
# The readers alone: not the libraries, the arithmetic, the network and the tests.
others='(^|/)(usr|kernels|tests|engine/(model|runtime|builtin))/'

build_counting () {
  [ -f $coverage/build.ninja ] || CC=clang meson setup $coverage -Dfuzz=true -Db_lundef=false \
    -Dexamples=false -Dtools=false \
    -Dc_args='-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping' \
    -Dc_link_args='-fprofile-instr-generate' || return
  ninja -C $coverage $(fuzz_targets | sed 's/^/tests\/fuzz\/fuzz-/')
}

replay () {
  local target=$1 inputs=()

  for directory in "$fuzz_build/seeds/$target" "$fuzz_build/corpus/$target" \
    "tests/fuzz/inputs/$target"; do
    [ -d "$directory" ] && inputs+=("$directory")
  done
  LLVM_PROFILE_FILE=$coverage/$target.profraw \
    $coverage/tests/fuzz/fuzz-"$target" -runs=0 -timeout=60 -verbosity=0 "${inputs[@]}"
}

# The tool of the compiler's release: find_tool NAME
find_tool () {
  "$(clang -print-prog-name="$1")" --version >/dev/null 2>&1 && clang -print-prog-name="$1" \
    || command -v "$1"
}

write_report () {
  local objects=() target cov profdata

  cov=$(find_tool llvm-cov) && profdata=$(find_tool llvm-profdata) || return
  "$profdata" merge -sparse $coverage/*.profraw -o $coverage/all.profdata || return
  # The first one goes without the option.
  for target in $(fuzz_targets); do
    objects+=(${objects[0]+-object} "$coverage/tests/fuzz/fuzz-$target")
  done
  set -o pipefail
  {
    "$cov" report -instr-profile $coverage/all.profdata -ignore-filename-regex="$others" \
      "${objects[@]}" \
      && "$cov" show -instr-profile $coverage/all.profdata -ignore-filename-regex="$others" \
        "${objects[@]}" | awk '/^\/.*:$/ { print; next } /^ *[0-9]+\| +0\|/ { print }'
  } >$coverage/report.txt
}

install_packages $packages_build $packages_fuzz llvm || exit 1
fuzz_prepare && check "counting build" build_counting && {
  for target in $(fuzz_targets); do
    check "replay: $target" replay "$target"
  done
  check "report" write_report
}
summary
