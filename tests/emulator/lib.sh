# SPDX-License-Identifier: LGPL-2.1-or-later
# The plugin that counts instructions. Sourced by the scripts beside it, after tests/lib/aarch64.sh.

# Compiles stages.c into the current directory. Debian 13's emulator is linked statically, and those
# take no plugins.
need_plugin () {
  need_qemu
  "$qemu" --help | grep -q -e '^-plugin' ||
    not_run "$("$qemu" --version | head -n 1) was built without plugins"
  ${CC:-gcc} -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -o stages.so \
    "$root/tests/emulator/stages.c"
}

# stage NAME PROGRAM FUNCTION... prints the plugin's arguments for a stage that these functions begin.
stage () {
  local name=$1 program=$2 function address

  shift 2
  for function in "$@"; do
    address=$($cross-nm "$program" | sed -n "s/^\([0-9a-f]*\) [Tt] $function\$/\1/p")
    [ -n "$address" ] || { echo "$program has no function $function" >&2; return 1; }
    printf ',stage=%s:0x%s' "$name" "$address"
  done
}
