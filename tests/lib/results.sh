# SPDX-License-Identifier: LGPL-2.1-or-later
# Counting of results. Sourced by tests/run.sh.

n_passed=0
n_failed=0
failures=()

pass () {
  n_passed=$((n_passed + 1))
}

fail () {
  n_failed=$((n_failed + 1))
  failures+=("$1")
  printf 'FAILED: %s\n' "$1"
}

# A test that was left out counts as failed unless docs/testing.md lists it, where * stands for any
# characters: not_run NAME REASON
not_run () {
  local listed

  printf 'not run: %s (%s)\n' "$1" "$2"
  while IFS= read -r listed; do
    # shellcheck disable=SC2053
    [[ $1 == $listed ]] && return
  done < <(sed -n 's/^    not run: //p' docs/testing.md)
  fail "$1 (not run: $2)"
}

# Runs a command as one test: check NAME COMMAND...; returns whether it passed.
check () {
  local name=$1

  shift
  if ("$@"); then
    pass
  else
    fail "$name"
    return 1
  fi
}

# Reads lines of "pass|fail|skip<TAB>name<TAB>reason".
count_results () {
  local result name reason n=0

  while IFS=$'\t' read -r result name reason; do
    n=$((n + 1))
    case $result in
      pass) pass ;;
      skip) not_run "$name" "$reason" ;;
      *) fail "$name${reason:+ ($reason)}" ;;
    esac
  done
  [ "$n" -gt 0 ] || fail "no test has run"
}

# The last line; the exit code says the same.
summary () {
  local failure

  echo
  for failure in "${failures[@]}"; do
    printf 'FAILED: %s\n' "$failure"
  done
  printf '%d passed, %d failed\n' "$n_passed" "$n_failed"
  [ "$n_failed" = 0 ]
}
