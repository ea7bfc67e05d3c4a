/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sums of integer products for instruction sets that add four products into each lane: a register
 * of sums holds VF_LANES columns of one row.
 */

#ifndef VLM_KERNELS_SIMD_INT_LANES_H
#define VLM_KERNELS_SIMD_INT_LANES_H

#include "kernels/kernels.h"

#define INT_INNER 4
#define INT_PANEL (INT_VECTORS * VF_LANES)

typedef vi IntSums[INT_ROWS][INT_VECTORS];

vlm_always_inline void
int_start_row (IntSums sum, size_t r, int32_t start)
{
  size_t v;

  VLM_UNROLL
  for (v = 0; v < INT_VECTORS; v++)
    sum[r][v] = vi_set1 (start);
}

/* Vector v of the row, as floats. */
vlm_always_inline vf
int_row (IntSums sum, size_t r, size_t v)
{
  return vi_to_vf (sum[r][v]);
}

/* Four values of k, number lane of the step. */
vlm_always_inline void
int_step_lane (IntSums sum, const va *x, size_t rows, const vi *weights, int lane)
{
  size_t r, v;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < INT_VECTORS; v++)
      sum[r][v] = vi_dot (sum[r][v], weights[v], x[r], lane);
  }
}

vlm_always_inline void
int_step_i8 (IntSums sum, const va *x, size_t rows, const uint8_t *w)
{
  vi weights[INT_VECTORS];
  size_t v;
  int lane;

  VLM_UNROLL
  for (lane = 0; lane < 4; lane++) {
    VLM_UNROLL
    for (v = 0; v < INT_VECTORS; v++)
      weights[v] = vi_load (w + ((size_t) lane * INT_VECTORS + v) * sizeof (vi));
    int_step_lane (sum, x, rows, weights, lane);
    VLM_KEEP_ORDER ();
  }
}

/* Nibbles of a group, in bytes of their own. */
vlm_always_inline void
int_widen_nibbles (uint8_t *wide, const uint8_t *w, size_t len)
{
  size_t l, v;

  for (l = 0; l < len; l += 8) {
    for (v = 0; v < INT_VECTORS; v++) {
      vi pairs = vi_load (w + v * sizeof (vi));

      vi_store (wide + v * sizeof (vi), vi_low_nibbles (pairs));
      vi_store (wide + (INT_VECTORS + v) * sizeof (vi), vi_high_nibbles (pairs));
    }
    w += INT_VECTORS * sizeof (vi);
    wide += 2 * INT_VECTORS * sizeof (vi);
  }
}

/* Weights of four values of k, number lane of the step, vector v. */
vlm_always_inline vi
int_load_nibbles (const uint8_t *w, int lane, size_t v, int is_wide)
{
  vi pairs;

  if (is_wide)
    return vi_load (w + ((size_t) lane * INT_VECTORS + v) * sizeof (vi));

  pairs = vi_load (w + ((size_t) lane / 2 * INT_VECTORS + v) * sizeof (vi));
  return lane % 2 == 0 ? vi_low_nibbles (pairs) : vi_high_nibbles (pairs);
}

#ifdef INT_NIBBLE_STEP

/* Products of nibbles add up in 16 bits: a step of one vector of columns at a time. */
vlm_always_inline void
int_step_i4 (IntSums sum, const va *x, size_t rows, const uint8_t *w, int is_wide)
{
  size_t r, v;

  VLM_UNROLL
  for (v = 0; v < INT_VECTORS; v++) {
    vi weights[4] = { int_load_nibbles (w, 0, v, is_wide), int_load_nibbles (w, 1, v, is_wide),
      int_load_nibbles (w, 2, v, is_wide), int_load_nibbles (w, 3, v, is_wide) };

    VLM_UNROLL
    for (r = 0; r < rows; r++)
      sum[r][v] = vi_step_u4 (sum[r][v], weights, x[r]);
    VLM_KEEP_ORDER ();
  }
}

#else

vlm_always_inline void
int_step_i4 (IntSums sum, const va *x, size_t rows, const uint8_t *w, int is_wide)
{
  vi weights[INT_VECTORS];
  size_t v;
  int lane;

  VLM_UNROLL
  for (lane = 0; lane < 4; lane++) {
    VLM_UNROLL
    for (v = 0; v < INT_VECTORS; v++)
      weights[v] = int_load_nibbles (w, lane, v, is_wide);
    int_step_lane (sum, x, rows, weights, lane);
    VLM_KEEP_ORDER ();
  }
}

#endif

vlm_always_inline void
int_step (IntSums sum, const int8_t *q, size_t ldq, size_t rows, const uint8_t *w,
    VlmIntFormat format, int is_wide)
{
  va x[INT_ROWS];
  size_t r;

  VLM_UNROLL
  for (r = 0; r < rows; r++)
    x[r] = va_load (q + r * ldq);
  if (format == VLM_INT_I4_GROUPS)
    int_step_i4 (sum, x, rows, w, is_wide);
  else
    int_step_i8 (sum, x, rows, w);
}

#endif
