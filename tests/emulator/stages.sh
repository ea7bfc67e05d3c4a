#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# stages.sh [TOKENS [MODEL]]: the instructions that each stage of a caption takes on aarch64, counted
# in an emulator, as a table. The picture has 512 x 512 pixels; the model is the built-in one unless
# another is given. CPUS names the processors, by default one with each level of kernels.
#
# Needs Debian's gcc, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user and what the engine is
# built with; the engine's libraries for aarch64 come from a mirror of Debian and are only unpacked.

set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
tokens=${1:-17}
model=${2:+$(readlink -f "$2")}

not_run () {
  echo "not run: emulator-stages ($1)"
  exit 77
}

. "$root/tests/lib/aarch64.sh"
. "$root/tests/emulator/lib.sh"
need_cross_compiler
engine_flags=$(pkg-config --cflags gio-2.0 jansson libpcre2-8 libxxhash) ||
  not_run "no headers of the engine's libraries"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
need_plugin

engine_libraries="libgio-2.0.so.0 libgobject-2.0.so.0 libglib-2.0.so.0 libjansson.so.4
  libpcre2-8.so.0 libxxhash.so.0"
# shellcheck disable=SC2086
unpack_arm64 $engine_libraries
libraries=$work/root/usr/lib/$cross

echo '#define PACKAGE_VERSION "0"' > config.h
for kind in source header; do
  glib-compile-resources --generate-$kind --sourcedir="$root/engine/builtin" --c-name vlm_builtin \
    --manual-register --target=builtin-resource.$([ $kind = source ] && echo c || echo h) \
    "$root/engine/builtin/builtin.gresource.xml"
done
cp "$root/kernels/orc/programs-dist.h" programs.h
$cross-gcc -O3 -w -DDISABLE_ORC -c "$root/kernels/orc/programs-dist.c"
compile_aarch64_levels
# The headers of this system's GLib are the same but for names of systems.
# shellcheck disable=SC2046,SC2086
$cross-gcc $cross_flags $engine_flags -DVLM_KERNELS_AARCH64 -DG_LOG_DOMAIN='"vlm"' \
  -no-pie -fno-pie -o answer "$root/tests/emulator/answer.c" \
  "$root"/kernels/*.c "$root"/kernels/scalar/*.c "$root/kernels/orc/orc.c" \
  $(find "$root/engine" -name '*.c') builtin-resource.c ./*.o \
  $(for library in $engine_libraries; do echo "$libraries/$library"; done) \
  -Wl,-rpath-link,"$libraries" -Wl,--allow-shlib-undefined -lm -pthread

stages=$(stage image answer vlm_image_crops vlm_crop_patches)
stages=$stages$(stage vision answer vlm_vision_tower)
stages=$stages$(stage prefill answer vlm_cache_reset)
stages=$stages$(stage decode answer vlm_detokenizer_new)
stages=$stages$(stage end answer vlm_detokenizer_free)

cpus=${CPUS:-cortex-a72 neoverse-n1 max}
for cpu in $cpus; do
  "$qemu" -cpu "$cpu" -L "$work/root" -plugin "./stages.so,out=counts-$cpu$stages" \
    ./answer "$tokens" ${model:+"$model"} > "done-$cpu"
done
# shellcheck disable=SC2086
python3 "$root/tests/emulator/table.py" $cpus
