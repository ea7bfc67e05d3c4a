/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Values and their weights as digits of 7 bits, for instructions that multiply bytes many times as
 * fast as numbers of 16 bits: x = 128 high + low, low in -64 .. 63. Of the four products of digits
 * only three are made, with the sums of digits as a third one:
 *   p w = 2^14 ph wh + 2^7 ((ph + pl) (wh + wl) - ph wh - pl wl) + pl wl
 */

#ifndef VLM_KERNELS_SIMD_HEAD_DIGITS_H
#define VLM_KERNELS_SIMD_HEAD_DIGITS_H

#include "head-queries.h"

#define DIGIT_ROWS 4
#define DIGITS 3

/* Bytes of four keys and four values of d. */
#define DIGIT_STEP (DIGITS * DIGIT_ROWS * 4)

/* The words of p that one kind of digits of all weights takes. */
#define DIGIT_WORDS (HEAD_BLOCK / 4)

typedef vi DigitSums[DIGITS][DIGIT_ROWS][HEAD_VECTORS];

/* They are [dim / 4][ceil (n_keys / 4)][DIGITS][4 values of d][4 keys], zero after the last key. */
static size_t
head_value_bytes (size_t n_keys, size_t head_dim)
{
  return (n_keys + 3) / 4 * (head_dim / DIGIT_ROWS) * DIGIT_STEP;
}

static void
head_pack_values (const HeadArrays *arrays, const VlmHead *head)
{
  const size_t dim = head->head_dim, n_quads = (head->n_keys + 3) / 4;
  float inverse[HEAD_MAX_DIM] = { 0 };
  HeadColumns columns;
  size_t j, d, i;

  head_look_at_columns (&columns, head->v, head->v_stride, head->n_keys, dim);
  head_scale_values (arrays, inverse, &columns);
  for (j = 0; j < n_quads; j++) {
    for (d = 0; d < dim; d += DIGIT_ROWS) {
      uint8_t *packed = (uint8_t *) arrays->values + (d / DIGIT_ROWS * n_quads + j) * DIGIT_STEP;
      vi keys[4], digits[DIGITS];

      for (i = 0; i < 4; i++)
        keys[i] = 4 * j + i < head->n_keys ? head_round_values (
                      head->v + (4 * j + i) * head->v_stride, columns.mean, inverse, d, dim)
                                           : vi_set1 (0);
      vi_split (digits, keys);
      for (i = 0; i < DIGITS; i++)
        vi_store (packed + i * sizeof (vi), digits[i]);
    }
  }
}

/* Makes weights of the n scores of a block. Returns their sums. */
vlm_always_inline vi
head_weigh (HeadTile *tile, size_t n, size_t v, vf most, vf q_scale)
{
  vi sum = vi_set1 (0), p[4], digits[DIGITS];
  size_t j, i;

  for (j = 0; j < n; j += 4) {
    VLM_UNROLL
    for (i = 0; i < 4; i++) {
      p[i] = j + i < n ? head_weight (tile, j + i, v, most, q_scale) : vi_set1 (0);
      sum = vi_add (sum, p[i]);
    }
    vi_split (digits, p);
    VLM_UNROLL
    for (i = 0; i < DIGITS; i++)
      vi_store ((uint8_t *) tile->p[i * DIGIT_WORDS + j / 4] + v * sizeof (vi), digits[i]);
  }
  return sum;
}

/* Adds the products of four keys, of one kind of digits. */
vlm_always_inline void
digit_step (vi (*sum)[HEAD_VECTORS], const int32_t *weights, const int8_t *values)
{
  const va x = va_load (values);
  vi p[HEAD_VECTORS];
  size_t v;
  int r;

  VLM_UNROLL
  for (v = 0; v < HEAD_VECTORS; v++)
    p[v] = head_load_words (weights, v);
  VLM_UNROLL
  for (r = 0; r < DIGIT_ROWS; r++) {
    VLM_UNROLL
    for (v = 0; v < HEAD_VECTORS; v++)
      sum[r][v] = vi_dot (sum[r][v], p[v], x, r);
  }
  VLM_KEEP_ORDER ();
}

/* out = out * older + sum * newer for DIGIT_ROWS values of d from d on */
static __attribute__ ((noinline)) void
head_value_tile_all (HeadTile *tile, const int8_t *values, size_t n_quads, size_t d)
{
  DigitSums sum;
  size_t i, r, v, j;

  VLM_UNROLL
  for (i = 0; i < DIGITS; i++) {
    VLM_UNROLL
    for (r = 0; r < DIGIT_ROWS; r++) {
      VLM_UNROLL
      for (v = 0; v < HEAD_VECTORS; v++)
        sum[i][r][v] = vi_set1 (0);
    }
  }

  for (j = 0; j < n_quads; j++, values += DIGIT_STEP) {
    VLM_UNROLL
    for (i = 0; i < DIGITS; i++)
      digit_step (sum[i], tile->p[i * DIGIT_WORDS + j], values + i * (DIGIT_STEP / DIGITS));
  }

  VLM_UNROLL
  for (v = 0; v < HEAD_VECTORS; v++) {
    vf older = vf_load (tile->older + v * VF_LANES), newer = vf_load (tile->newer + v * VF_LANES);

    VLM_UNROLL
    for (r = 0; r < DIGIT_ROWS; r++) {
      float *out = tile->out[d + r] + v * VF_LANES;
      vi total = vi_join (sum[0][r][v], sum[1][r][v], sum[2][r][v]);

      vf_store (out, vf_fma (vf_load (out), older, vf_mul (vi_to_vf (total), newer)));
    }
  }
}

/* Adds the values of n of n_keys keys, those from key number first on. */
static void
head_add_values (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n, size_t n_keys)
{
  const size_t n_quads = (n_keys + 3) / 4;
  const int8_t *values = (const int8_t *) arrays->values + first / 4 * DIGIT_STEP;
  size_t d;

  for (d = 0; d < arrays->dim; d += DIGIT_ROWS)
    head_value_tile_all (tile, values + d / DIGIT_ROWS * n_quads * DIGIT_STEP, (n + 3) / 4, d);
}

#endif
