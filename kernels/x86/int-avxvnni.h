/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as 256-bit VNNI: VEX, or EVEX where AVX-512 VL is allowed. */

#ifndef VLM_KERNELS_INT_AVXVNNI_H
#define VLM_KERNELS_INT_AVXVNNI_H

#include "int-256.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define VPDPBUSD "vpdpbusd"
#else
#define VPDPBUSD "%{vex%} vpdpbusd"
#endif

/* Registers: 10 sums, 2 weights, the rest for a broadcast and a mask. */
#define INT_ROWS 5
#define INT_VECTORS 2

/* The first factor of vpdpbusd is unsigned. */
#define INT_BIAS 0x80

/* Not the intrinsic: gcc 12 then keeps the sums of a tile on the stack. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  __asm__(VPDPBUSD " %2, %1, %0" : "+x"(sum) : "x"(w), "x"(vi_broadcast (x + 4 * lane)));
  return sum;
}

#endif
