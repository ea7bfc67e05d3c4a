/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX-512 VNNI. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX512VNNI_H
#define VLM_KERNELS_INT_AVX512VNNI_H

#include "int-512.h"

/* Registers: 24 sums, 4 weights, the rest for broadcasts. */
#define INT_ROWS 6
#define INT_VECTORS 4

/* Panels come from memory for longer than a tile takes. */
#define INT_CALLS_NEXT() INT_CALLS_AHEAD ()

/* The first factor of vpdpbusd is unsigned. */
#define INT_BIAS 0x80

/* Registers: 16 sums, 2 weights, the rest for broadcasts. */
#define HEAD_ROWS 8
#define HEAD_VECTORS 2
#define HEAD_BATCH 4
#define HEAD_FLOAT_EXPONENT
#define HEAD_TRANSPOSE

/* Not the intrinsic: gcc 12 then keeps the sums of a tile on the stack. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(vi_broadcast (x + 4 * lane)));
  return sum;
}

/* Adds the products of both halves of each lane of pairs and of the two numbers. */
vlm_always_inline vi
vi_dot_pair (vi sum, vi pairs, const int16_t *two)
{
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(pairs), "v"(vi_broadcast ((const int8_t *) two)));
  return sum;
}

#endif
