#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs a test program, and runs it again when LeakSanitizer itself gave up:
#
#   bash leak-check.sh PROGRAM [ARGUMENT...]
#
# At exit LeakSanitizer stops all threads from a process of its own. When a thread comes or goes at
# that very moment, which the pools of GLib and GStreamer are free to do, it ends the program with
# "LeakSanitizer has encountered a fatal error" instead of a verdict. That says nothing about the
# program, good or bad, so the check has to be made again. A leak, a failed test, and a check that
# never comes to an end are reported as they are.
set -u

most=3
out=$(mktemp) err=$(mktemp)
trap 'rm -f "$out" "$err"' EXIT

for ((run = 1; run <= most; run++)); do
  "$@" >"$out" 2>"$err"
  code=$?
  if [ $code = 0 ] || [ $run = $most ] \
    || ! grep -q 'LeakSanitizer has encountered a fatal error' "$err"; then
    break
  fi
  echo "# LeakSanitizer gave up, run $run of at most $most" >&2
done
cat "$out"
cat "$err" >&2
exit $code
