/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How tiles of queries over a packed head begin and end, and 2^x. */

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
  HeadRow scores[HEAD_BLOCK];
  HeadWords p[HEAD_BLOCK / 4 * 3]; /* weights, in the order that the level wants */
  HeadRow out[HEAD_MAX_DIM];       /* sum of p * value, before the scales of the values */
  HeadRow max, sum;
  HeadRow most;         /* the largest score of the block */
  HeadRow older, newer; /* what earlier sums, and those of the block, are multiplied by */
  /* Where heads are brought together: queries as they were, and what heads came to so far. */
  HeadRow query[HEAD_MAX_DIM];
  HeadRow total[HEAD_MAX_DIM], total_max, total_sum;
} __attribute__ ((aligned (64))) HeadTile;

#ifdef HEAD_FLOAT_EXPONENT
typedef vf HeadExponent;

/* x less the nearest whole number, which is n */
vlm_always_inline vf
head_split_exponent (vf x, HeadExponent *n)
{
  vf rest = vf_rest (x);

  *n = vf_sub (x, rest);
  return rest;
}

vlm_always_inline vf
head_scale (vf x, HeadExponent n)
{
  return vf_scale2 (x, n);
}
#else
typedef vi HeadExponent;

vlm_always_inline vf
head_split_exponent (vf x, HeadExponent *n)
{
  *n = vi_from_vf (x);
  return vf_sub (x, vi_to_vf (*n));
}

vlm_always_inline vf
head_scale (vf x, HeadExponent n)
{
  return vi_scale2 (x, n);
}
#endif

/* How many weights are made side by side, so that none waits for the step before. */
#ifndef HEAD_BATCH
#define HEAD_BATCH 1
#endif

/* x[i] = size * 2^x[i] for x[i] <= 0; size is a power of two, and not below 1 */
vlm_always_inline void
head_exp2_all (vf *x, size_t count, float size)
{
  vf r[HEAD_BATCH], y[HEAD_BATCH];
  HeadExponent n[HEAD_BATCH];
  size_t i;

  VLM_UNROLL
  for (i = 0; i < count; i++)
    x[i] = vf_max (x[i], vf_set1 (-126));
  VLM_UNROLL
  for (i = 0; i < count; i++)
    r[i] = head_split_exponent (x[i], &n[i]);
  VLM_UNROLL
  for (i = 0; i < count; i++)
    y[i] = vf_fma (vf_set1 (HEAD_EXP2_3 * size), r[i], vf_set1 (HEAD_EXP2_2 * size));
  VLM_UNROLL
  for (i = 0; i < count; i++)
    y[i] = vf_fma (y[i], r[i], vf_set1 (HEAD_EXP2_1 * size));
  VLM_UNROLL
  for (i = 0; i < count; i++)
    y[i] = vf_fma (y[i], r[i], vf_set1 (size));
  /* Where n is -126, r is not below zero, and y not below size. */
  VLM_UNROLL
  for (i = 0; i < count; i++)
    x[i] = head_scale (y[i], n[i]);
}

vlm_always_inline vf
head_exp2 (vf x, float size)
{
  head_exp2_all (&x, 1, size);
  return x;
}

vlm_always_inline vi
head_load_words (const int32_t *words, size_t v)
{
  return vi_load ((const uint8_t *) words + v * sizeof (vi));
}

/* The weights of count keys from row j on, for the queries of vector v. */
vlm_always_inline void
head_weights (vi *p, size_t count, const HeadTile *tile, size_t j, size_t v, vf most, vf q_scale)
{
  vf x[HEAD_BATCH];
  size_t i;

  VLM_UNROLL
  for (i = 0; i < count; i++)
    x[i] = vf_mul (vf_sub (vf_load (tile->scores[j + i] + v * VF_LANES), most), q_scale);
  head_exp2_all (x, count, HEAD_WEIGHT_MAX);
  VLM_UNROLL
  for (i = 0; i < count; i++)
    p[i] = vi_from_vf (x[i]);
}

vlm_always_inline vi
head_weight (const HeadTile *tile, size_t j, size_t v, vf most, vf q_scale)
{
  vi p;

  head_weights (&p, 1, tile, j, v, most, q_scale);
  return p;
}

static void
head_clear (HeadRow *out, HeadRow max, HeadRow sum, size_t dim)
{
  size_t d, v;

  for (v = 0; v < HEAD_VECTORS; v++) {
    vf_store (max + v * VF_LANES, vf_set1 (HEAD_NO_MAX));
    vf_store (sum + v * VF_LANES, vf_zero ());
    for (d = 0; d < dim; d++)
      vf_store (out[d] + v * VF_LANES, vf_zero ());
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

/* Words of all queries in rows become the columns of the tile. */
static void
head_turn_words (HeadTile *tile, int8_t rounded[][HEAD_MAX_DIM], size_t words)
{
  size_t d = 0, i;

#ifdef HEAD_TRANSPOSE
  for (; d + VF_LANES <= words; d += VF_LANES) {
    for (i = 0; i < HEAD_COLUMNS; i += VF_LANES) {
      vi turned[VF_LANES];
      size_t l;

      VLM_UNROLL
      for (l = 0; l < VF_LANES; l++)
        turned[l] = vi_xor (vi_load ((const uint8_t *) rounded[i + l] + d * sizeof (int32_t)),
            vi_set1 (HEAD_BIAS * 0x01010101u));
      vi_transpose (turned);
      VLM_UNROLL
      for (l = 0; l < VF_LANES; l++)
        vi_store ((uint8_t *) (tile->q[d + l] + i), turned[l]);
    }
  }
#endif
  for (i = 0; d < words && i < HEAD_COLUMNS; i++) {
    size_t w;

    for (w = d; w < words; w++)
      tile->q[w][i] = head_word (rounded[i] + HEAD_PER_WORD * w);
  }
}

/* Rounds n queries; the columns after them are as the first. What is rounded is turned afterwards: it
 * is loaded in other pieces than it was stored, which would have to wait for the stores. */
static void
head_begin (
    HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t first, size_t n)
{
  const vf factor = vf_set1 (args->scale * HEAD_LOG2_E);
  int8_t rounded[HEAD_COLUMNS][HEAD_MAX_DIM];
  size_t i, d;

  for (i = 0; i < HEAD_COLUMNS; i++) {
    const float *q = args->q + (first + (i < n ? i : 0)) * args->q_stride;
    float row[HEAD_MAX_DIM];
    int32_t sum;

    for (d = 0; d < args->head_dim; d += VF_LANES)
      store_rest (row, vf_mul (load_rest (q, d, args->head_dim), factor), d, args->head_dim);
    simd_quantise_i8 (rounded[i], tile->q_scale + i, &sum, row, args->head_dim, HEAD_MAX_DIM);
    for (d = 0; args->max != NULL && d < args->head_dim; d++)
      tile->query[d][i] = row[d];
  }
  head_turn_words (tile, rounded, arrays->padded_dim / HEAD_PER_WORD);

  if (args->max != NULL)
    head_clear (tile->total, tile->total_max, tile->total_sum, args->head_dim);
}

/* Before the keys of a packed head. */
static void
head_begin_keys (HeadTile *tile, const HeadArrays *arrays)
{
  head_clear (tile->out, tile->max, tile->sum, arrays->dim);
}

/* Adds what a head came to to what those before it did, whose keys had another mean. */
static void
head_add_total (HeadTile *tile, const HeadArrays *arrays)
{
  size_t d, v;

  for (v = 0; v < HEAD_VECTORS; v++) {
    const size_t at = v * VF_LANES;
    const vf before = vf_load (tile->total_max + at), sum = vf_load (tile->sum + at);
    vf offset = vf_zero (), most, max, older, newer;

    for (d = 0; d < arrays->dim; d++)
      offset = vf_fma (vf_load (tile->query[d] + at), vf_set1 (arrays->k_mean[d]), offset);
    most = vf_fma (vf_load (tile->max + at), vf_load (tile->q_scale + at), offset);
    max = vf_max (before, most);
    older = head_exp2 (vf_sub (before, max), 1);
    newer = vf_mul (head_exp2 (vf_sub (most, max), 1), vf_set1 (1 / HEAD_WEIGHT_MAX));
    vf_store (tile->total_max + at, max);
    vf_store (
        tile->total_sum + at, vf_fma (vf_load (tile->total_sum + at), older, vf_mul (sum, newer)));
    for (d = 0; d < arrays->dim; d++) {
      vf out = vf_fma (vf_load (tile->out[d] + at), vf_set1 (arrays->v_scale[d]),
          vf_mul (sum, vf_set1 (arrays->v_mean[d])));

      vf_store (
          tile->total[d] + at, vf_fma (vf_load (tile->total[d] + at), older, vf_mul (out, newer)));
    }
  }
}

#ifdef HEAD_TRANSPOSE
/* VF_LANES columns from d on of n rows, of which column i is the first. */
static void
head_turn_rows (const VlmHeadAttention *args, const HeadRow *columns, size_t i, size_t first,
    size_t n, size_t d)
{
  float *out = args->out + first * args->out_stride + d;
  vi turned[VF_LANES];
  size_t l;

  VLM_UNROLL
  for (l = 0; l < VF_LANES; l++)
    turned[l] = vi_load ((const uint8_t *) (columns[l] + i));
  vi_transpose (turned);
  VLM_UNROLL
  for (l = 0; l < VF_LANES; l++) {
    if (l < n)
      vi_store ((uint8_t *) (out + l * args->out_stride), turned[l]);
  }
}
#endif

/* The rows of columns of a tile. */
static void
head_store_rows (const VlmHeadAttention *args, HeadRow *columns, size_t first, size_t n)
{
  size_t d = 0, i, at;

#ifdef HEAD_TRANSPOSE
  for (; d + VF_LANES <= args->head_dim; d += VF_LANES) {
    for (i = 0; i < n; i += VF_LANES)
      head_turn_rows (args, columns + d, i, first + i, n - i < VF_LANES ? n - i : VF_LANES, d);
  }
#endif
  for (i = 0; d < args->head_dim && i < n; i++) {
    for (at = d; at < args->head_dim; at++)
      args->out[(first + i) * args->out_stride + at] = columns[at][i];
  }
}

static void
head_finish_total (HeadTile *tile, const VlmHeadAttention *args, size_t first, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++) {
    args->max[first + i] = tile->total_max[i] * HEAD_LN_2;
    args->sum[first + i] = tile->total_sum[i];
  }
  head_store_rows (args, tile->total, first, n);
}

static void
head_finish (
    HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t first, size_t n)
{
  size_t d, v;

  for (v = 0; v < HEAD_VECTORS; v++) {
    const vf inverse = vf_div (vf_set1 (1), vf_load (tile->sum + v * VF_LANES));

    for (d = 0; d < arrays->dim; d++) {
      float *out = tile->out[d] + v * VF_LANES;

      vf_store (out,
          vf_fma (vf_mul (vf_load (out), inverse), vf_set1 (arrays->v_scale[d]),
              vf_set1 (arrays->v_mean[d])));
    }
  }
  head_store_rows (args, tile->out, first, n);
}

#endif
