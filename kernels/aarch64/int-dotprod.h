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

/* Registers: 16 sums, 8 keys, 2 queries; or 24 sums, a vector of values, 2 weights. */
#define HEAD_ROWS 8
#define HEAD_VECTORS 2
#define HEAD_DIGITS

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

/* Digits of 7 bits of two times two numbers of 15: 128 high + low, low in -64 .. 63. */
vlm_always_inline void
split_pairs (int8x16_t *high, int8x16_t *low, int16x8_t even, int16x8_t odd)
{
  const int16x8_t half = vdupq_n_s16 (64);

  even = vaddq_s16 (even, half);
  odd = vaddq_s16 (odd, half);
  *high = vreinterpretq_s8_s16 (vsliq_n_s16 (vshrq_n_s16 (even, 7), vshrq_n_s16 (odd, 7), 8));
  *low = vreinterpretq_s8_s16 (vsliq_n_s16 (even, odd, 8));
  *low = vsubq_s8 (vandq_s8 (*low, vdupq_n_s8 (127)), vdupq_n_s8 (64));
}

/* The high digits of four numbers in the bytes of each lane, the low ones, and the sums of both. */
vlm_always_inline void
vi_split (vi *digits, const vi *x)
{
  int8x16_t high, low;

  split_pairs (&high, &low, vreinterpretq_s16_s32 (vsliq_n_s32 (x[0], x[2], 16)),
      vreinterpretq_s16_s32 (vsliq_n_s32 (x[1], x[3], 16)));
  digits[0] = vreinterpretq_s32_s8 (high);
  digits[1] = vreinterpretq_s32_s8 (low);
  digits[2] = vreinterpretq_s32_s8 (vaddq_s8 (high, low));
}

/* What products are of which these are the products of high digits, of low ones and of sums. */
vlm_always_inline vi
vi_join (vi high, vi low, vi both)
{
  vi mixed = vsubq_s32 (both, vaddq_s32 (high, low));

  return vaddq_s32 (vshlq_n_s32 (vaddq_s32 (vshlq_n_s32 (high, 7), mixed), 7), low);
}

#endif
