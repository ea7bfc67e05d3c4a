/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums of integer products with SMMLA: a register holds two rows x two columns. */

#ifndef VLM_KERNELS_INT_I8MM_H
#define VLM_KERNELS_INT_I8MM_H

#include "kernels/kernels.h"
#include "int-common.h"

/* Registers: 16 sums, 2 pairs of rows, the rest for weights. With 24 sums gcc 12 spills some. */
#define INT_ROWS 4
#define INT_PANEL 16
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

vlm_always_inline vf
int_row (IntSums sum, size_t r, size_t v)
{
  int64x2_t low = vreinterpretq_s64_s32 (sum[r / 2][2 * v]);
  int64x2_t high = vreinterpretq_s64_s32 (sum[r / 2][2 * v + 1]);
  int64x2_t row = r % 2 == 0 ? vzip1q_s64 (low, high) : vzip2q_s64 (low, high);

  return vi_to_vf (vreinterpretq_s32_s64 (row));
}

/* Eight values of two rows; without a second row the first one twice. */
vlm_always_inline int8x16_t
load_pair (const int8_t *q, size_t ldq, size_t r, size_t rows)
{
  return vcombine_s8 (vld1_s8 (q + r * ldq), vld1_s8 (q + (r + 1 < rows ? r + 1 : r) * ldq));
}

/* Eight values of k. The second half of a step of nibbles is the high ones. */
vlm_always_inline void
int_step_half (IntSums sum, const int8_t *q, size_t ldq, size_t rows, const uint8_t *w, int half,
    int is_packed)
{
  int8x16_t x[INT_ROWS / 2];
  size_t r, c;

  VLM_UNROLL
  for (r = 0; r < rows; r += 2)
    x[r / 2] = load_pair (q + 8 * half, ldq, r, rows);

  VLM_UNROLL
  for (c = 0; c < INT_PANEL / 2; c++) {
    vi weights;

    if (is_packed)
      weights = half == 0 ? vi_low_nibbles (vi_load (w + c * 16))
                          : vi_high_nibbles (vi_load (w + c * 16));
    else
      weights = vi_load (w + (half * (INT_PANEL / 2) + c) * 16);
    VLM_UNROLL
    for (r = 0; r < rows; r += 2)
      sum[r / 2][c] = vmmlaq_s32 (sum[r / 2][c], x[r / 2], vreinterpretq_s8_s32 (weights));
  }
  VLM_KEEP_ORDER ();
}

vlm_always_inline void
int_step (IntSums sum, const int8_t *q, size_t ldq, size_t rows, const uint8_t *w,
    VlmIntFormat format, int is_wide)
{
  const int is_packed = format == VLM_INT_I4_GROUPS && !is_wide;

  int_step_half (sum, q, ldq, rows, w, 0, is_packed);
  int_step_half (sum, q, ldq, rows, w, 1, is_packed);
}

/* Nibbles of a group, in bytes of their own. */
vlm_always_inline void
int_widen_nibbles (uint8_t *wide, const uint8_t *w, size_t len)
{
  const size_t half = INT_PANEL * 8;
  size_t l, c;

  for (l = 0; l < len; l += VLM_K_STEP) {
    for (c = 0; c < half; c += 16) {
      vi pairs = vi_load (w + c);

      vi_store (wide + c, vi_low_nibbles (pairs));
      vi_store (wide + half + c, vi_high_nibbles (pairs));
    }
    w += half;
    wide += 2 * half;
  }
}

#endif
