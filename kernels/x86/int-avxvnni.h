/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as 256-bit VNNI: VEX, or EVEX where AVX-512 VL is allowed. */

#ifndef VLM_KERNELS_INT_AVXVNNI_H
#define VLM_KERNELS_INT_AVXVNNI_H

#include "int-256.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define INT_FORM ""
#else
#define INT_FORM "%{vex%} "
#endif

/* Registers: 12 sums, 2 weights, the rest for broadcasts. */
#define INT_ROWS 6
#define INT_VECTORS 2

/* Panels are narrow, so that a piece has room for many values; to start a tile takes as long as 40 of them. */
#define INT_PIECE 1024
#define INT_BLOCK_ROWS 144

/* The first factor of vpdpbusd is unsigned. */
#define INT_BIAS 0x80

/* Registers: 8 sums, 2 weights, the rest for broadcasts. */
#define HEAD_ROWS 4
#define HEAD_VECTORS 2

/* Not the intrinsic: gcc 12 then keeps the sums of a tile on the stack. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  __asm__(INT_FORM "vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(vi_broadcast (x + 4 * lane)));
  return sum;
}

/* Adds the products of both halves of each lane of pairs and of the two numbers. */
vlm_always_inline vi
vi_dot_pair (vi sum, vi pairs, const int16_t *two)
{
  __asm__(INT_FORM "vpdpwssd %2, %1, %0"
          : "+x"(sum)
          : "x"(pairs), "x"(vi_broadcast ((const int8_t *) two)));
  return sum;
}

#endif
