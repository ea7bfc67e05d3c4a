/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, with SDOT. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_DOTPROD_H
#define VLM_KERNELS_INT_DOTPROD_H

#include "int-common.h"

/*
 * Registers: 16 sums, 8 rows of activations, 2 weights and what nibbles are masked with; or 4 rows,
 * 4 weights. Many rows, because making bytes of nibbles takes turns with the products: one
 * instruction for as many products as there are rows.
 */
#define INT_ROWS 8
#define INT_VECTORS 4
#define INT_TILE_COLUMNS(rows) ((rows) > 4 ? 8 : 16)

/* The activations of a step. */
typedef int8x16_t va;

vlm_always_inline va
va_load (const int8_t *p)
{
  return vld1q_s8 (p);
}

#define DOT_LANE(lane)                                                                             \
  __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(sum) : "w"(w), "w"(x));                    \
  break

/*
 * The lane is a constant once the loop around it is unrolled. Not the intrinsic: with it gcc 12
 * moves sums between registers inside of loops, on the ports that multiply.
 */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  switch (lane) {
    case 0:
      DOT_LANE (0);
    case 1:
      DOT_LANE (1);
    case 2:
      DOT_LANE (2);
    default:
      DOT_LANE (3);
  }
  return sum;
}

#undef DOT_LANE

#endif
