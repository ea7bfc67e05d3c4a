/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as Armv8.0-A. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_NEON_H
#define VLM_KERNELS_INT_NEON_H

#include "int-common.h"

/* Registers: 16 sums, 4 weights, the rest for products. */
#define INT_ROWS 4
#define INT_VECTORS 4

/* Activations are broadcast from memory. */
typedef const int8_t *va;

vlm_always_inline va
va_load (const int8_t *p)
{
  return p;
}

vlm_always_inline int8x16_t
broadcast_four (const int8_t *p)
{
  int32_t four;

  memcpy (&four, p, sizeof four);
  return vreinterpretq_s8_s32 (vdupq_n_s32 (four));
}

/* Sums of two products fit in 16 bits because activations are never -128. Volatile, or gcc begins
 * more products than there are registers for. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  int8x16_t four = broadcast_four (x + 4 * lane), weights = vreinterpretq_s8_s32 (w);
  int16x8_t low = vmull_s8 (vget_low_s8 (weights), vget_low_s8 (four));
  int16x8_t high = vmull_high_s8 (weights, four);

  sum = vpadalq_s16 (sum, vpaddq_s16 (low, high));
  __asm__ volatile("" : "+w"(sum));
  return sum;
}

#endif
