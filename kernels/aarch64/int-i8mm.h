/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums of integer products with SMMLA: a register holds two rows x two columns. */

#ifndef VLM_KERNELS_INT_I8MM_H
#define VLM_KERNELS_INT_I8MM_H

#include "kernels/kernels.h"
#include "int-common.h"
#include "kernels/simd/int-values.h"

/* Registers: 16 sums, 2 pairs of rows in halves, the rest for weights. */
#define INT_ROWS 4
/* Bytes are made of nibbles once for every tile, which counts for more than with simpler products. */
#define INT_FEW_ROWS 8
#define INT_PANEL 16
#define INT_COLUMNS INT_PANEL
#define INT_INNER 8

typedef vi IntSums[INT_ROWS / 2][INT_PANEL / 2];

/* Rows come in ascending order; the second of a pair replaces its half. */
vlm_always_inline void
int_start_row (IntSums sum, size_t r, int32_t start)
{
  int32x2_t half = vdup_n_s32 (start);
  size_t c;

  VLM_UNROLL
  for (c = 0; c < INT_PANEL / 2; c++) {
    if (r % 2 == 0)
      sum[r / 2][c] = vcombine_s32 (half, half);
    else
      sum[r / 2][c] = vcombine_s32 (vget_low_s32 (sum[r / 2][c]), half);
  }
}

/* Vector v of the row. */
vlm_always_inline vi
int_row (IntSums sum, size_t r, size_t v)
{
  int64x2_t low = vreinterpretq_s64_s32 (sum[r / 2][2 * v]);
  int64x2_t high = vreinterpretq_s64_s32 (sum[r / 2][2 * v + 1]);
  int64x2_t row = r % 2 == 0 ? vzip1q_s64 (low, high) : vzip2q_s64 (low, high);

  return vreinterpretq_s32_s64 (row);
}

/*
 * A step's sixteen values of two rows, the first eight and the others. The row that has no second
 * one is taken twice, in any order: what comes of its second half is never read.
 */
vlm_always_inline void
int_load_pair (int8x16_t *x, const int8_t *q, size_t ldq, int is_single)
{
  int64x2_t a = vreinterpretq_s64_s8 (vld1q_s8 (q)), b;

  if (is_single) {
    x[0] = vreinterpretq_s8_s64 (a);
    x[1] = vreinterpretq_s8_s64 (vextq_s64 (a, a, 1));
    return;
  }
  b = vreinterpretq_s64_s8 (vld1q_s8 (q + ldq));
  x[0] = vreinterpretq_s8_s64 (vzip1q_s64 (a, b));
  x[1] = vreinterpretq_s8_s64 (vzip2q_s64 (a, b));
}

/* Eight values of k of two columns, number c. The second half of a step of nibbles is the high ones. */
vlm_always_inline vi
int_load_weights (const uint8_t *w, size_t half, size_t c, IntValues values)
{
  if (values != INT_NIBBLES)
    return vi_load (w + (half * (INT_PANEL / 2) + c) * 16);

  return half == 0 ? vi_low_nibbles (vi_load (w + c * 16)) : vi_high_nibbles (vi_load (w + c * 16));
}

/* Not the intrinsic: with it gcc 12 moves sums between registers inside of loops. */
vlm_always_inline vi
vi_mmla (vi sum, int8x16_t x, vi weights)
{
  __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(x), "w"(weights));
  return sum;
}

vlm_always_inline void
int_step (IntSums sum, const int8_t *q, size_t ldq, size_t rows, const uint8_t *w, IntValues values)
{
  int8x16_t x[INT_ROWS / 2][2];
  size_t r, c, half;

  VLM_UNROLL
  for (r = 0; r < rows; r += 2)
    int_load_pair (x[r / 2], q + r * ldq, ldq, r + 1 == rows);

  VLM_UNROLL
  for (half = 0; half < 2; half++) {
    VLM_UNROLL
    for (c = 0; c < INT_PANEL / 2; c++) {
      vi weights = int_load_weights (w, half, c, values);

      VLM_UNROLL
      for (r = 0; r < rows; r += 2)
        sum[r / 2][c] = vi_mmla (sum[r / 2][c], x[r / 2][half], weights);
      if (c % 4 == 3)
        VLM_KEEP_ORDER ();
    }
  }
}

/*
 * The high bits of eight values of two columns, from value number l of a unit on, as they are in
 * bytes. Four bytes hold those of a column for the whole unit.
 */
vlm_always_inline uint8x16_t
int_high_bits (const uint8_t *two_columns, unsigned bits, size_t l)
{
  static const uint8_t columns[16] = { 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7 };
  const int count = (int) bits - 4, left = 4 - count * (int) (l / 4);
  int8x8_t shifts = vext_s8 (vdup_n_s8 ((int8_t) left), vdup_n_s8 ((int8_t) (left - count)), 4);
  uint8x8_t bytes = vld1_u8 (two_columns);
  uint8x16_t both = vqtbl1q_u8 (vcombine_u8 (bytes, bytes), vld1q_u8 (columns));

  both = vshlq_u8 (both, vcombine_s8 (shifts, shifts));
  return vandq_u8 (both, vdupq_n_u8 ((uint8_t) ((16 << count) - 16)));
}

/* A byte for each value. */
vlm_always_inline void
int_widen_bits (uint8_t *wide, const IntSmallValues *from, size_t len, unsigned bits)
{
  const size_t half = INT_PANEL * 8, unit = bits == 5 ? 32 : 16;
  size_t l, c;

  for (l = from->at; l < from->at + len; l += VLM_K_STEP) {
    const uint8_t *low = from->low + l / 2 * INT_PANEL;
    const uint8_t *high = from->high + l / unit * 4 * INT_PANEL;

    for (c = 0; c < INT_PANEL / 2; c++) {
      vi pairs = vi_load (low + c * 16),
         values[2] = { vi_low_nibbles (pairs), vi_high_nibbles (pairs) };
      size_t i;

      VLM_UNROLL
      for (i = 0; i < 2; i++) {
        if (bits > 4)
          values[i] = vi_or (values[i],
              vreinterpretq_s32_u8 (int_high_bits (high + c * 8, bits, l % unit + 8 * i)));
        vi_store (wide + i * half + c * 16, values[i]);
      }
    }
    wide += 2 * half;
  }
}

#endif
