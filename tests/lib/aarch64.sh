# SPDX-License-Identifier: LGPL-2.1-or-later
# Building the kernels for aarch64 with Debian's cross compiler. Sourced by the scripts that do, which
# define not_run REASON and set root to the source tree.

cross=aarch64-linux-gnu

need_cross_compiler () {
  command -v $cross-gcc > /dev/null || not_run "no $cross-gcc; install gcc-aarch64-linux-gnu"
  command -v $cross-objdump > /dev/null || not_run "no $cross-objdump; install binutils-$cross"
}

# Sets qemu to the emulator.
need_qemu () {
  qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
    not_run "no qemu-aarch64; install qemu-user"
}

cross_flags="-std=gnu11 -O3 -fno-math-errno -ffp-contract=off -fno-strict-aliasing -Wall -Wextra
  -Werror -Wno-sign-compare -Wno-unused-parameter -I$root -I."

# Compiles the levels of kernels/aarch64 into objects in the current directory.
compile_aarch64_levels () {
  # shellcheck disable=SC2086
  $cross-gcc $cross_flags -c "$root"/kernels/aarch64/neon.c "$root"/kernels/aarch64/resample-neon.c
  # shellcheck disable=SC2086
  $cross-gcc $cross_flags -march=armv8.2-a+dotprod -c "$root"/kernels/aarch64/dotprod.c
  # shellcheck disable=SC2086
  $cross-gcc $cross_flags -march=armv8.2-a+dotprod+i8mm -c "$root"/kernels/aarch64/i8mm.c
}
