# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzing of what reads things from elsewhere, with libFuzzer, AddressSanitizer and UBSan.
# Sourced by tests/run.sh and tests/fuzz/run-long.sh, in the root of the tree.
#
# Inputs are those that make-corpus writes, and the committed ones in tests/fuzz/inputs/TARGET, which
# once brought something to light.

fuzz_build=build-fuzz
# Runs that keep a target below ten seconds on a slow machine.
declare -A fuzz_runs=([chat]=20000 [encode]=20000 [image]=6000 [safetensors]=4000 [settings]=6000
  [slm]=2500 [tokenizer]=10000)
# No input is larger than the largest sound one by much, and nothing may allocate far beyond it.
declare -A fuzz_sizes=([chat]=400 [encode]=2000 [image]=32 [safetensors]=40000 [settings]=4000
  [slm]=64000 [tokenizer]=16000)
fuzz_malloc_limit=32

fuzz_build_targets () {
  [ -f $fuzz_build/build.ninja ] || CC=clang meson setup $fuzz_build -Dfuzz=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dexamples=false -Dtools=false \
    -Dc_args=-fsanitize=fuzzer-no-link || return
  ninja -C $fuzz_build tests/fuzz/make-corpus $(printf 'tests/fuzz/fuzz-%s ' "${!fuzz_runs[@]}")
}

fuzz_make_corpus () {
  rm -rf $fuzz_build/seeds
  $fuzz_build/tests/fuzz/make-corpus $fuzz_build/seeds
}

# fuzz_run TARGET ARGUMENT...: artifacts of a failure stay beside the build.
fuzz_run () {
  local target=$1

  shift
  mkdir -p "$fuzz_build/seeds/$target" "tests/fuzz/inputs/$target"
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 G_SLICE=always-malloc \
    $fuzz_build/tests/fuzz/fuzz-"$target" -timeout=60 -malloc_limit_mb=$fuzz_malloc_limit \
    -max_len="${fuzz_sizes[$target]}" -artifact_prefix="$fuzz_build/$target-" -verbosity=0 \
    -print_final_stats=1 "$@"
}

# Every known input once, then new ones.
fuzz_fixed () {
  local target=$1

  fuzz_run "$target" -runs=0 "$fuzz_build/seeds/$target" "tests/fuzz/inputs/$target" \
    && fuzz_run "$target" -seed=1 -runs="${fuzz_runs[$target]}" \
      "$fuzz_build/seeds/$target" "tests/fuzz/inputs/$target"
}

fuzz_targets () {
  printf '%s\n' "${!fuzz_runs[@]}" | sort
}

# Builds, and makes the sound inputs.
fuzz_prepare () {
  if ! command -v clang >/dev/null; then
    not_run "fuzz" "needs clang"
    return 1
  fi
  check "fuzz: build" fuzz_build_targets && check "fuzz: sound inputs" fuzz_make_corpus
}
