/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sums of integer products for instruction sets that add four products into each lane: a register
 * of sums holds VF_LANES columns of one row.
 */

#ifndef VLM_KERNELS_SIMD_INT_LANES_H
#define VLM_KERNELS_SIMD_INT_LANES_H

#include "kernels/kernels.h"

#include "int-values.h"

#define INT_INNER 4
#define INT_COLUMNS (INT_VECTORS * VF_LANES)

#ifndef INT_PANEL
#define INT_PANEL INT_COLUMNS
#endif

/* Bytes of INT_INNER values of all columns. */
#define INT_LANE_BYTES (INT_PANEL * INT_INNER)

typedef vi IntSums[INT_ROWS][INT_VECTORS];

vlm_always_inline void
int_start_row (IntSums sum, size_t r, int32_t start)
{
  size_t v;

  VLM_UNROLL
  for (v = 0; v < INT_VECTORS; v++)
    sum[r][v] = vi_set1 (start);
}

/* Columns of the row begin with those of start. */
vlm_always_inline void
int_load_row (IntSums sum, size_t r, const int32_t *start)
{
  size_t v;

  VLM_UNROLL
  for (v = 0; v < INT_VECTORS; v++)
    sum[r][v] = vi_load ((const uint8_t *) (start + v * VF_LANES));
}

/* Vector v of the row. */
vlm_always_inline vi
int_row (IntSums sum, size_t r, size_t v)
{
  return sum[r][v];
}

/* The high bits of four values of k, number lane of a step, as they are in a byte. */
vlm_always_inline vi
int_high_bits (vi high, unsigned bits, int lane)
{
  const int count = (int) bits - 4;

  return vi_shift_bits (high, 4 - count * lane, (16 << count) - 16);
}

/* One step of VF_LANES columns, a byte for each value. */
vlm_always_inline void
int_widen_step (uint8_t *wide, const uint8_t *low, const uint8_t *high, unsigned bits, int is_odd)
{
  const size_t stride = INT_LANE_BYTES;
  vi pairs[2] = { vi_load (low), vi_load (low + stride) }, more = vi_set1 (0);
  int lane;

  if (bits > 4)
    more = vi_load (high);
  if (bits == 5 && is_odd)
    more = vi_high_nibbles (more);
  VLM_UNROLL
  for (lane = 0; lane < 4; lane++) {
    vi value = lane % 2 == 0 ? vi_low_nibbles (pairs[lane / 2]) : vi_high_nibbles (pairs[lane / 2]);

    if (bits > 4)
      value = vi_or (value, int_high_bits (more, bits, lane));
    vi_store (wide + (size_t) lane * stride, value);
  }
}

vlm_always_inline void
int_widen_bits (uint8_t *wide, const IntSmallValues *from, size_t len, unsigned bits)
{
  const size_t unit = bits == 5 ? 32 : 16;
  size_t l, v;

  for (l = from->at; l < from->at + len; l += VLM_K_STEP) {
    VLM_UNROLL
    for (v = 0; v < INT_LANE_BYTES; v += sizeof (vi)) {
      int_widen_step (wide + v, from->low + l / 8 * INT_LANE_BYTES + v,
          from->high + l / unit * INT_LANE_BYTES + v, bits, l % unit != 0);
    }
    wide += VLM_K_STEP * INT_PANEL;
  }
}

/* Weights of four values of k, number lane of the step, vector v. */
vlm_always_inline vi
int_load_weights (const uint8_t *w, int lane, size_t v, IntValues values)
{
  vi pairs;

  if (values != INT_NIBBLES)
    return vi_load (w + (size_t) lane * INT_LANE_BYTES + v * sizeof (vi));

  pairs = vi_load (w + (size_t) lane / 2 * INT_LANE_BYTES + v * sizeof (vi));
  return lane % 2 == 0 ? vi_low_nibbles (pairs) : vi_high_nibbles (pairs);
}

vlm_always_inline vi
int_dot (vi sum, vi w, va x, int lane, IntValues values)
{
#ifdef INT_SPLIT
  if (values == INT_SPLIT_BYTES)
    return vi_dot_split (sum, w, x + 4 * lane);
#endif
  (void) values;
  return vi_dot (sum, w, x, lane);
}

/* Four values of k, number lane of the step. */
vlm_always_inline void
int_step_lane (IntSums sum, const va *x, size_t rows, const vi *weights, int lane, IntValues values)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  size_t r, v;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[r][v] = int_dot (sum[r][v], weights[v], x[r], lane, values);
  }
}

vlm_always_inline void
int_step_lanes (IntSums sum, const va *x, size_t rows, const uint8_t *w, IntValues values)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  vi weights[INT_VECTORS];
  size_t v;
  int lane;

  VLM_UNROLL
  for (lane = 0; lane < 4; lane++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      weights[v] = int_load_weights (w, lane, v, values);
    int_step_lane (sum, x, rows, weights, lane, values);
    VLM_KEEP_ORDER ();
  }
}

#ifdef INT_SMALL_STEP
/* Products of small values add up in 16 bits: a step of one vector of columns at a time. */
vlm_always_inline void
int_step_small (IntSums sum, const va *x, size_t rows, const uint8_t *w, IntValues values)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  size_t r, v;

  VLM_UNROLL
  for (v = 0; v < vectors; v++) {
    vi weights[4] = { int_load_weights (w, 0, v, values), int_load_weights (w, 1, v, values),
      int_load_weights (w, 2, v, values), int_load_weights (w, 3, v, values) };

    VLM_UNROLL
    for (r = 0; r < rows; r++)
      sum[r][v] = vi_step_small (sum[r][v], weights, x[r], values == INT_SIX ? 2 : 4);
    VLM_KEEP_ORDER ();
  }
}
#endif

vlm_always_inline void
int_step (IntSums sum, const int8_t *q, size_t ldq, size_t rows, const uint8_t *w, IntValues values)
{
  va x[INT_ROWS];
  size_t r;

  VLM_UNROLL
  for (r = 0; r < rows; r++)
    x[r] = va_load (q + r * ldq);
#ifdef INT_SMALL_STEP
  if (values != INT_BYTES && values != INT_SPLIT_BYTES) {
    int_step_small (sum, x, rows, w, values);
    return;
  }
#endif
  int_step_lanes (sum, x, rows, w, values);
}

#endif
