#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# count.sh [SOURCE_ROOT]: the plugin that counts instructions by stage is right about a program whose
# instructions are known. Needs Debian's gcc, gcc-aarch64-linux-gnu and qemu-user.

set -eu

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}

not_run () {
  echo "not run: emulator-count ($1)"
  exit 77
}

. "$root/tests/lib/aarch64.sh"
. "$root/tests/emulator/lib.sh"
need_cross_compiler

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
need_plugin
$cross-gcc -nostdlib -static -no-pie -o known "$root/tests/emulator/known.S"
stages="$(stage first known first)$(stage second known second)"
"$qemu" -cpu max -plugin "./stages.so,out=counts$stages" ./known

# Of others: the two instructions before the first stage; two times three in it, and what follows
# its two returns, a call and the end of the program; three in the second, and the call behind it.
cat > expected << 'END'
stage	products	fma	vector	loads	stores	other
start	0	0	0	0	0	2
first	10000	4000	4000	4000	2000	4010
second	70000	0	0	70000	70000	280004
END
diff expected counts
cat counts
