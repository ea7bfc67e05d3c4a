#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The element's tests at full length: a minute beside a slow model, thousands of random changes, and
# eight streams, the load limit and flushes on a model of the 450M shape with random weights.
#
#   tests/element/long.sh BUILD [STORM_BUILD]
#
# BUILD is a build directory with optimisation, STORM_BUILD one with sanitizers for the random
# changes (by default BUILD). VLM_TEST_MODEL may name a model; else one is written to a temporary
# directory (about a gigabyte while it is made). Takes a quarter of an hour on two idle cores.

set -euo pipefail

build=$(realpath "${1:?usage: long.sh BUILD [STORM_BUILD]}")
storm_build=$(realpath "${2:-$build}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

export G_DEBUG=fatal-criticals VLMCAPTION_MODEL=

run() { # BUILD PROGRAM [NAME=VALUE...]
  local where=$1 program=$2
  shift 2
  echo "== $program $*"
  env GST_REGISTRY="$scratch/registry-$(basename "$where").bin" \
    GST_PLUGIN_PATH="$where/gst-plugin" "$@" "$where/tests/element/$program"
}

# Where it is allowed, the streaming threads come before all else: a machine with other work delays any
# thread by more than the milliseconds that are to be shown. The model's threads compete with that work.
realtime=()
chrt -f 20 true 2>/dev/null && realtime=(VLM_TEST_REALTIME=1)

run "$build" test-element-live VLM_TEST_SECONDS=60 "${realtime[@]}"
run "$storm_build" test-element-storm VLM_TEST_STORM=2000

if [ -z "${VLM_TEST_MODEL:-}" ]; then
  VLM_TEST_MODEL=$scratch/model.slm
  "$build/tools/vlm-model" synth --preset lfm2.5-vl-450m "$scratch/model"
  "$build/tools/vlm-model" convert --type int4 "$scratch/model" "$VLM_TEST_MODEL"
  rm -r "$scratch/model"
fi
run "$build" test-element-share VLM_TEST_MODEL="$VLM_TEST_MODEL" \
  VLM_TEST_CAPTIONS="${VLM_TEST_CAPTIONS:-20}" VLM_TEST_TOKENS="${VLM_TEST_TOKENS:-4}" VLM_TEST_SECONDS=60 "${realtime[@]}"
