#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs everything that can tell whether this tree is sound, and ends with "N passed, N failed".
#
#   bash tests/run.sh [PART...]
#
# Parts, all by default and in this order: unit format sanitize fuzz quickstart deb. docs/testing.md says
# what each does and which tests may be left out where.
set -u

cd "$(dirname "$0")/.." || exit 1
. tests/lib/packages.sh
. tests/lib/results.sh
. tests/fuzz/lib.sh
exec </dev/null
export CI=${CI:-true} LC_ALL=C.UTF-8

unit_build=build-ci
sanitizer_build=build-asan

# Sets up a build directory once and builds in it: build_tree DIRECTORY [MESON-OPTION...]
build_tree () {
  local directory=$1

  shift
  [ -f "$directory/build.ninja" ] || meson setup "$directory" -Dwerror=true "$@" || return 1
  ninja -C "$directory"
}

# Runs the tests of a build directory and counts each case in them:
# run_meson_tests DIRECTORY PREFIX [ARGUMENT OF MESON TEST...]
run_meson_tests () {
  local directory=$1 prefix=$2

  shift 2
  # A wrapper's name becomes part of the log's.
  rm -f "$directory"/meson-logs/testlog*.json
  # Its exit code says nothing that the log does not.
  meson test -C "$directory" --no-rebuild --print-errorlogs "$@" || true
  count_results < <(python3 tests/lib/meson-results.py "$prefix" \
    "$directory"/meson-logs/testlog*.json)
}

part_unit () {
  check "build" build_tree "$unit_build" || return
  run_meson_tests "$unit_build" ""
}

part_format () {
  local tool=clang-format-14

  command -v $tool >/dev/null || tool=clang-format
  if ! $tool --version 2>/dev/null | grep -q 'version 14\.'; then
    not_run "format" "needs clang-format 14"
    return
  fi
  check "format" check_format $tool
}

check_format () {
  find . -path './build*' -prune -o -name .git -prune -o -name '*.[ch]' -print0 \
    | xargs -0 "$1" --dry-run -Werror
}

# The tests that are worth watching: left out are the long comparisons, whose code the sessions run
# too, what is not built here or is loaded by programs without a sanitizer, and copies that are stopped
# early, of which urisourcebin leaks pads.
sanitized_tests () {
  meson test -C "$sanitizer_build" --list 2>/dev/null | sed -n 's/^.* \/ //p' \
    | grep -vE '^(golden-|fidelity|demo-model|tools-|caption-graph|kernels-aarch64|emulator-|check-spills|element-(gi|inspect|pipelines|stills))'
}

part_sanitize () {
  local element_tests other_tests leak_check="bash $PWD/tests/lib/leak-check.sh"

  check "sanitize: build" build_tree "$sanitizer_build" -Db_sanitize=address,undefined \
    -Db_lundef=false -Dexamples=false || return
  element_tests=$(sanitized_tests | grep '^element-')
  other_tests=$(sanitized_tests | grep -v '^element-')
  export G_SLICE=always-malloc LSAN_OPTIONS=suppressions=$PWD/tests/lib/lsan.supp:print_suppressions=0
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
  run_meson_tests "$sanitizer_build" "sanitize: " --timeout-multiplier 6 \
    --wrapper "$leak_check" $other_tests
  # Whole stacks are slow to walk, but without them nobody knows whose a leak is in a program with
  # that many libraries.
  ASAN_OPTIONS+=:fast_unwind_on_malloc=0
  run_meson_tests "$sanitizer_build" "sanitize: " --timeout-multiplier 6 \
    --wrapper "$leak_check" $element_tests
  unset G_SLICE LSAN_OPTIONS UBSAN_OPTIONS ASAN_OPTIONS
}

part_fuzz () {
  local target

  fuzz_prepare || return
  for target in $(fuzz_targets); do
    check "fuzz: $target" fuzz_fixed "$target"
  done
}

part_quickstart () {
  check "quickstart" env BUILD="$unit_build" OUT="$unit_build/quickstart" \
    bash examples/quickstart.sh
}

part_deb () {
  if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
    not_run "deb" "needs root and mmdebstrap"
    return
  fi
  check "deb" bash tests/deb.sh
}

install_everything () {
  install_packages $packages_build $packages_run $(test_packages) $packages_fuzz || return 1
  # Where the system has it.
  if [ -n "$(apt-cache madison $packages_format 2>/dev/null)" ]; then
    install_packages $packages_format
  fi
}

parts=${*:-unit format sanitize fuzz quickstart deb}
for part in $parts; do
  declare -F "part_$part" >/dev/null || {
    echo "tests/run.sh: no part is called $part" >&2
    exit 2
  }
done
check "packages" install_everything
for part in $parts; do
  printf '\n==== %s (%d min %02d s)\n' "$part" $((SECONDS / 60)) $((SECONDS % 60))
  "part_$part"
done
summary
