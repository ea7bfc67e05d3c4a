/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What all tiles of queries over a packed head have: how they begin and end, and 2^x. */

#ifndef VLM_KERNELS_SIMD_HEAD_QUERIES_H
#define VLM_KERNELS_SIMD_HEAD_QUERIES_H

#include "head-pack.h"

#define HEAD_COLUMNS (HEAD_VECTORS * VF_LANES)

/* Queries that are asked for with each block of keys. */
#define HEAD_PREFETCH 8

typedef float HeadRow[HEAD_COLUMNS];
typedef int32_t HeadWords[HEAD_COLUMNS];

typedef struct
{
  HeadWords q[HEAD_MAX_DIM / HEAD_PER_WORD]; /* values of d, plus HEAD_BIAS */
  HeadRow q_scale;
  HeadRow scores[HEAD_BUFFERS][HEAD_BLOCK]; /* of as many blocks as are in work at once */
  HeadWords p[HEAD_BLOCK / 4 * 3];          /* weights, in the order that the level wants */
  HeadRow out[HEAD_MAX_DIM];                /* sum of p * value, before the scales of the values */
  HeadRow max, sum;
  HeadRow most;         /* the largest score of the block */
  HeadRow older, newer; /* what earlier sums, and those of the block, are multiplied by */
} __attribute__ ((aligned (64))) HeadTile;

/* size * 2^x for x <= 0; size is a power of two, and not below 1 */
vlm_always_inline vf
head_exp2 (vf x, float size)
{
  vf r, y;
  vi n;

  x = vf_max (x, vf_set1 (-126));
  n = vi_from_vf (x);
  r = vf_sub (x, vi_to_vf (n));
  y = vf_fma (vf_set1 (HEAD_EXP2_3 * size), r, vf_set1 (HEAD_EXP2_2 * size));
  y = vf_fma (y, r, vf_set1 (HEAD_EXP2_1 * size));
  y = vf_fma (y, r, vf_set1 (size));
  /* Where n is -126, r is not below zero, and y not below size. */
  return vi_scale2 (y, n);
}

vlm_always_inline vi
head_load_words (const int32_t *words, size_t v)
{
  return vi_load ((const uint8_t *) words + v * sizeof (vi));
}

/* The weight of the key in row j, for the queries of vector v. */
vlm_always_inline vi
head_weight (const HeadTile *tile, size_t j, size_t v, vf most, vf q_scale)
{
  vf score = vf_load (tile->scores[0][j] + v * VF_LANES);

  return vi_from_vf (head_exp2 (vf_mul (vf_sub (score, most), q_scale), HEAD_WEIGHT_MAX));
}

/* Asks for what the n queries from number first on read and write, or for those of them there are. */
static void
head_prefetch_queries (const VlmHeadAttention *args, size_t first, size_t n)
{
  size_t i;

  for (i = first; i < first + n && i < args->n_queries; i++) {
    head_prefetch (args->q + i * args->q_stride, args->head_dim);
    head_prefetch (args->out + i * args->out_stride, args->head_dim);
  }
}

/* HEAD_PER_WORD values of a query. */
vlm_always_inline int32_t
head_word (const int8_t *q)
{
  int32_t word;

  if (HEAD_PER_WORD == 2)
    return (int32_t) ((uint16_t) q[0] | (uint32_t) q[1] << 16);
  memcpy (&word, q, 4);
  return word ^ (int32_t) (HEAD_BIAS * 0x01010101u);
}

/* Rounds n queries; the columns after them are as the first. */
static void
head_begin (
    HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t first, size_t n)
{
  const vf factor = vf_set1 (args->scale * HEAD_LOG2_E);
  const size_t words = arrays->padded_dim / HEAD_PER_WORD;
  size_t i, d, v;

  for (i = 0; i < HEAD_COLUMNS; i++) {
    const float *q = args->q + (first + (i < n ? i : 0)) * args->q_stride;
    int8_t rounded[HEAD_MAX_DIM] = { 0 };
    float row[HEAD_MAX_DIM];
    int32_t sum;

    for (d = 0; d < args->head_dim; d += VF_LANES)
      store_rest (row, vf_mul (load_rest (q, d, args->head_dim), factor), d, args->head_dim);
    simd_quantise_i8 (rounded, tile->q_scale + i, &sum, row, args->head_dim, HEAD_MAX_DIM);
    for (d = 0; d < words; d++)
      tile->q[d][i] = head_word (rounded + HEAD_PER_WORD * d);
  }

  for (v = 0; v < HEAD_VECTORS; v++) {
    vf_store (tile->max + v * VF_LANES, vf_set1 (HEAD_NO_MAX));
    vf_store (tile->sum + v * VF_LANES, vf_zero ());
    for (d = 0; d < args->head_dim; d++)
      vf_store (tile->out[d] + v * VF_LANES, vf_zero ());
  }
}

static void
head_finish (
    HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t first, size_t n)
{
  size_t i, d, v;

  for (v = 0; v < HEAD_VECTORS; v++) {
    const vf inverse = vf_div (vf_set1 (1), vf_load (tile->sum + v * VF_LANES));

    for (d = 0; d < arrays->dim; d++) {
      float *out = tile->out[d] + v * VF_LANES;

      vf_store (out,
          vf_fma (vf_mul (vf_load (out), inverse), vf_set1 (arrays->v_scale[d]),
              vf_set1 (arrays->v_mean[d])));
    }
  }
  for (i = 0; i < n; i++) {
    float *out = args->out + (first + i) * args->out_stride;

    for (d = 0; d < arrays->dim; d++)
      out[d] = tile->out[d][i];
  }
}

#endif
