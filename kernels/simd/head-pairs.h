/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Values and their weights as pairs of 16 bits, two keys in a lane: HEAD_ROWS values of d at once. */

#ifndef VLM_KERNELS_SIMD_HEAD_PAIRS_H
#define VLM_KERNELS_SIMD_HEAD_PAIRS_H

#include "head-queries.h"

/* They are [dim / HEAD_ROWS][ceil (n_keys / 2)][HEAD_ROWS][2], zero after the last key. */
static size_t
head_value_bytes (size_t n_keys, size_t head_dim)
{
  return (n_keys + n_keys % 2) * head_dim * sizeof (int16_t);
}

static void
head_pack_values (const HeadArrays *arrays, const VlmHead *head)
{
  const size_t dim = head->head_dim, n_pairs = (head->n_keys + 1) / 2;
  float inverse[HEAD_MAX_DIM] = { 0 };
  int16_t pairs[HEAD_MAX_DIM][2];
  HeadColumns columns;
  size_t j, d;

  head_look_at_columns (&columns, head->v, head->v_stride, head->n_keys, dim);
  head_scale_values (arrays, inverse, &columns);
  for (j = 0; j < n_pairs; j++) {
    const float *row = head->v + 2 * j * head->v_stride;

    for (d = 0; d < dim; d += VF_LANES) {
      vi even = head_round_values (row, columns.mean, inverse, d, dim), odd = vi_set1 (0);

      if (2 * j + 1 < head->n_keys)
        odd = head_round_values (row + head->v_stride, columns.mean, inverse, d, dim);
      vi_store_pairs (pairs[d], even, odd);
    }
    for (d = 0; d < dim; d += HEAD_ROWS)
      memcpy ((int16_t *) arrays->values + 2 * (d * n_pairs + j * HEAD_ROWS), pairs[d],
          HEAD_ROWS * sizeof pairs[0]);
  }
}

/* Puts the weights of two keys, from row j on, in their places. Returns the sums with them. */
vlm_always_inline vi
head_put_pair (HeadTile *tile, size_t j, size_t v, vi weight, vi next, vi sum)
{
  static const int16_t ones[2] = { 1, 1 };
  vi pair = vi_pair (weight, next);

  vi_store ((uint8_t *) tile->p[j / 2] + v * sizeof (vi), pair);
  return vi_dot_pair (sum, pair, ones);
}

/* Makes weights of the n scores of a block. Returns their sums. */
vlm_always_inline vi
head_weigh (HeadTile *tile, size_t n, size_t v, vf most, vf q_scale)
{
  vi sum = vi_set1 (0), p[HEAD_BATCH];
  size_t j = 0, i;

  for (; HEAD_BATCH > 1 && j + HEAD_BATCH <= n; j += HEAD_BATCH) {
    head_weights (p, HEAD_BATCH, tile, j, v, most, q_scale);
    VLM_UNROLL
    for (i = 0; i + 1 < HEAD_BATCH; i += 2)
      sum = head_put_pair (tile, j + i, v, p[i], p[i + 1], sum);
  }
  for (; j < n; j += 2) {
    vi weight = head_weight (tile, j, v, most, q_scale);
    vi next = j + 1 < n ? head_weight (tile, j + 1, v, most, q_scale) : vi_set1 (0);

    sum = head_put_pair (tile, j, v, weight, next, sum);
  }
  return sum;
}

/* out = out * older + sum * newer for HEAD_ROWS values of d from d on, whose first pair is given */
static __attribute__ ((noinline)) void
head_value_tile_all (HeadTile *tile, const int16_t *values, size_t n_pairs, size_t d)
{
  vi sum[HEAD_ROWS][HEAD_VECTORS];
  vi p[HEAD_VECTORS];
  size_t r, v, j;

  VLM_UNROLL
  for (r = 0; r < HEAD_ROWS; r++) {
    VLM_UNROLL
    for (v = 0; v < HEAD_VECTORS; v++)
      sum[r][v] = vi_set1 (0);
  }

  for (j = 0; j < n_pairs; j++) {
    VLM_UNROLL
    for (v = 0; v < HEAD_VECTORS; v++)
      p[v] = head_load_words (tile->p[j], v);
    VLM_UNROLL
    for (r = 0; r < HEAD_ROWS; r++) {
      VLM_UNROLL
      for (v = 0; v < HEAD_VECTORS; v++)
        sum[r][v] = vi_dot_pair (sum[r][v], p[v], values + 2 * r);
    }
    values += 2 * HEAD_ROWS;
    VLM_KEEP_ORDER ();
  }

  VLM_UNROLL
  for (v = 0; v < HEAD_VECTORS; v++) {
    vf older = vf_load (tile->older + v * VF_LANES), newer = vf_load (tile->newer + v * VF_LANES);

    VLM_UNROLL
    for (r = 0; r < HEAD_ROWS; r++) {
      float *out = tile->out[d + r] + v * VF_LANES;

      vf_store (out, vf_fma (vf_load (out), older, vf_mul (vi_to_vf (sum[r][v]), newer)));
    }
  }
}

/* Adds the values of n of n_keys keys, those from key number first on. */
static void
head_add_values (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n, size_t n_keys)
{
  const size_t n_pairs = (n_keys + 1) / 2;
  const int16_t *values = (const int16_t *) arrays->values + first * HEAD_ROWS;
  size_t d;

  for (d = 0; d < arrays->dim; d += HEAD_ROWS)
    head_value_tile_all (tile, values + 2 * d * n_pairs, (n + 1) / 2, d);
}

#endif
