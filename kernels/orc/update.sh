#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# update.sh [--check]: makes programs-dist.c and programs-dist.h, for builds without orcc, from
# programs.orc; or tells whether they are what this system's orcc makes of it.
# Releases of orcc write different code, so that only the one that wrote the files can tell.

set -eu
cd "$(dirname "$0")"

command -v orcc > /dev/null || {
  echo "no orcc here; install liborc-0.4-dev-bin"
  exit 77
}
version=$(orcc --version | sed -n 's/^Orc Compiler //p')

# generate implementation|header: what the committed file has to be
generate () {
  echo "/* SPDX-License-Identifier: LGPL-2.1-or-later */"
  echo "/* Made from programs.orc by update.sh with orcc $version. */"
  echo "/* clang-format off */"
  orcc "--$1" -o "$work/generated" programs.orc
  cat "$work/generated"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generate implementation > "$work/programs-dist.c"
generate header > "$work/programs-dist.h"

if [ "${1:-}" != --check ]; then
  cp "$work/programs-dist.c" "$work/programs-dist.h" .
  exit
fi
written=$(sed -n 's/^.* with orcc \(.*\)\. \*\/$/\1/p' programs-dist.c)
if [ "$written" != "$version" ]; then
  echo "written by orcc $written, and this is orcc $version"
  exit 77
fi
for file in programs-dist.c programs-dist.h; do
  diff -u $file "$work/$file" || {
    echo "programs.orc has changed, or $file by hand: run kernels/orc/update.sh"
    exit 1
  }
done
