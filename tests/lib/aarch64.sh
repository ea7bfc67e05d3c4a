# SPDX-License-Identifier: LGPL-2.1-or-later
# Building for aarch64 with Debian's cross compiler. Sourced by the scripts that do, which define
# not_run REASON and set root to the source tree, and work to a directory of their own.

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

# The package lists of the other architecture are fetched beside the system's.
apt_arm64 () {
  apt-get -qq -o Dir::State="$work/apt" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$work/apt" -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

# unpack_arm64 LIBRARY...: the packages of these libraries and all that they need, unpacked into
# $work/root; nothing is installed. This system must have the same ones for itself: releases of
# Debian name the packages differently.
unpack_arm64 () {
  local library package packages=

  for library in "$@"; do
    packages="$packages $(dpkg-query -S "*/$library" 2> /dev/null | sed -n '1s/:.*//p')" || :
    case $packages in *" ") not_run "no $library, or this is no Debian system" ;; esac
  done
  mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/root"
  # shellcheck disable=SC2086
  {
    apt_arm64 update
    apt_arm64 install -y --download-only --no-install-recommends $packages < /dev/null
  } > "$work/log" 2>&1 || not_run "no packages for arm64: $(tail -n 1 "$work/log")"
  for package in "$work"/apt/archives/*.deb; do
    dpkg-deb -x "$package" "$work/root"
  done
}
