/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, with SDOT. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_DOTPROD_H
#define VLM_KERNELS_INT_DOTPROD_H

#include "int-common.h"

/* Registers: 16 sums, 4 weights and 4 of nibbles, 4 rows of activations. */
#define INT_ROWS 4
#define INT_VECTORS 4

/* The activations of a step. */
typedef int8x16_t va;

vlm_always_inline va
va_load (const int8_t *p)
{
  return vld1q_s8 (p);
}

/* The lane is a constant once the loop around it is unrolled. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  int8x16_t weights = vreinterpretq_s8_s32 (w);

  switch (lane) {
    case 0:
      return vdotq_laneq_s32 (sum, weights, x, 0);
    case 1:
      return vdotq_laneq_s32 (sum, weights, x, 1);
    case 2:
      return vdotq_laneq_s32 (sum, weights, x, 2);
    default:
      return vdotq_laneq_s32 (sum, weights, x, 3);
  }
}

#endif
