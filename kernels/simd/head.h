/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads in integers, kernels.h says what it computes. Queries are the lanes of
 * registers, HEAD_VECTORS of them in a tile; keys and values are broadcast. So a maximum or a sum
 * over keys never crosses lanes, and what is packed are plain rows.
 *
 * A tile of queries passes over all keys, a block at a time: scores of a block, with their maximum;
 * weights of 14 bits, two keys in a lane; sums of products with values, HEAD_ROWS values of d at once.
 */

#ifndef VLM_KERNELS_SIMD_HEAD_H
#define VLM_KERNELS_SIMD_HEAD_H

#include "head-pack.h"

#define HEAD_COLUMNS (HEAD_VECTORS * VF_LANES)

/* Queries that are asked for with each block of keys. */
#define HEAD_PREFETCH 8

typedef float HeadRow[HEAD_COLUMNS];
typedef int32_t HeadWords[HEAD_COLUMNS];

typedef struct
{
  HeadWords q[HEAD_MAX_DIM / 4]; /* four values of d in each word, flipped as vi_dot wants them */
  HeadRow q_scale;
  HeadRow scores[HEAD_BLOCK];
  HeadWords p[HEAD_BLOCK / 2]; /* two keys in each word */
  HeadRow out[HEAD_MAX_DIM];   /* sum of p * value, before the scales of the values */
  HeadRow max, sum;
  HeadRow most;         /* the largest score of the block */
  HeadRow older, newer; /* what earlier sums, and those of the block, are multiplied by */
} __attribute__ ((aligned (64))) HeadTile;

typedef vi HeadSums[HEAD_ROWS][HEAD_VECTORS];

vlm_always_inline vi
head_load_words (const int32_t *words, size_t v)
{
  return vi_load ((const uint8_t *) words + v * sizeof (vi));
}

/* Scores of rows keys from key number first on, of which row first_row of the block is the first. */
vlm_always_inline void
head_score (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row, size_t rows,
    size_t vectors)
{
  const size_t dim = arrays->padded_dim;
  const int8_t *keys = arrays->keys + first * dim;
  HeadSums sum;
  vi q[HEAD_VECTORS];
  va x[HEAD_ROWS];
  size_t r, v, d;
  int lane;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[r][v] = vi_set1 (arrays->k_start[first + r]);
  }

  for (d = 0; d < dim; d += VLM_K_STEP) {
    VLM_UNROLL
    for (r = 0; r < rows; r++)
      x[r] = va_load (keys + r * dim + d);
    VLM_UNROLL
    for (lane = 0; lane < 4; lane++) {
      VLM_UNROLL
      for (v = 0; v < vectors; v++)
        q[v] = head_load_words (tile->q[d / 4 + (size_t) lane], v);
      VLM_UNROLL
      for (r = 0; r < rows; r++) {
        VLM_UNROLL
        for (v = 0; v < vectors; v++)
          sum[r][v] = vi_dot (sum[r][v], q[v], x[r], lane);
      }
      VLM_KEEP_ORDER ();
    }
  }

  VLM_UNROLL
  for (v = 0; v < vectors; v++) {
    vf most = vf_load (tile->most + v * VF_LANES);

    VLM_UNROLL
    for (r = 0; r < rows; r++) {
      vf score = vf_mul (vi_to_vf (sum[r][v]), vf_set1 (arrays->k_scale[first + r]));

      vf_store (tile->scores[first_row + r] + v * VF_LANES, score);
      most = vf_max (score, most);
    }
    vf_store (tile->most + v * VF_LANES, most);
  }
}

/* out = out * older + sum * newer for HEAD_ROWS values of d from d on */
vlm_always_inline void
head_add_values (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n_pairs, size_t d,
    size_t vectors)
{
  const int16_t *values = arrays->values + 2 * (d * arrays->n_pairs + first / 2 * HEAD_ROWS);
  HeadSums sum;
  vi p[HEAD_VECTORS];
  size_t r, v, j;

  VLM_UNROLL
  for (r = 0; r < HEAD_ROWS; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[r][v] = vi_set1 (0);
  }

  for (j = 0; j < n_pairs; j++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      p[v] = head_load_words (tile->p[j], v);
    VLM_UNROLL
    for (r = 0; r < HEAD_ROWS; r++) {
      VLM_UNROLL
      for (v = 0; v < vectors; v++)
        sum[r][v] = vi_dot_pair (sum[r][v], p[v], values + 2 * r);
    }
    values += 2 * HEAD_ROWS;
    VLM_KEEP_ORDER ();
  }

  VLM_UNROLL
  for (v = 0; v < vectors; v++) {
    vf older = vf_load (tile->older + v * VF_LANES), newer = vf_load (tile->newer + v * VF_LANES);

    VLM_UNROLL
    for (r = 0; r < HEAD_ROWS; r++) {
      float *out = tile->out[d + r] + v * VF_LANES;

      vf_store (out, vf_fma (vf_load (out), older, vf_mul (vi_to_vf (sum[r][v]), newer)));
    }
  }
}

#define DEFINE_HEAD_TILES(name, vectors)                                                           \
  static __attribute__ ((noinline)) void head_score_tile_##name (                                  \
      HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row)                    \
  {                                                                                                \
    head_score (tile, arrays, first, first_row, HEAD_ROWS, vectors);                               \
  }                                                                                                \
                                                                                                   \
  static __attribute__ ((noinline)) void head_score_tile_one_##name (                              \
      HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row)                    \
  {                                                                                                \
    head_score (tile, arrays, first, first_row, 1, vectors);                                       \
  }                                                                                                \
                                                                                                   \
  static __attribute__ ((noinline)) void head_value_tile_##name (                                  \
      HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n_pairs, size_t d)            \
  {                                                                                                \
    head_add_values (tile, arrays, first, n_pairs, d, vectors);                                    \
  }

DEFINE_HEAD_TILES (wide, HEAD_VECTORS)
DEFINE_HEAD_TILES (narrow, 1)

/* size * 2^x for x <= 0; size is a power of two */
vlm_always_inline vf
head_exp2 (vf x, float size)
{
  vf n, r, y;

  x = vf_max (x, vf_set1 (-126));
  n = vf_round (x);
  r = vf_sub (x, n);
  y = vf_fma (vf_set1 (HEAD_EXP2_3 * size), r, vf_set1 (HEAD_EXP2_2 * size));
  y = vf_fma (y, r, vf_set1 (HEAD_EXP2_1 * size));
  y = vf_fma (y, r, vf_set1 (size));
  return vf_scale2 (y, n);
}

/* The weight of the key in row j, for the queries of vector v. */
vlm_always_inline vi
head_weight (const HeadTile *tile, size_t j, size_t v, vf most, vf q_scale)
{
  vf score = vf_load (tile->scores[j] + v * VF_LANES);

  return vi_from_vf (head_exp2 (vf_mul (vf_sub (score, most), q_scale), HEAD_WEIGHT_MAX));
}

/* Makes weights of the n scores of a block. */
vlm_always_inline void
head_soften (HeadTile *tile, size_t n, size_t v)
{
  static const int16_t ones[2] = { 1, 1 };
  const size_t at = v * VF_LANES;
  const vf q_scale = vf_load (tile->q_scale + at), most = vf_load (tile->most + at);
  vf before = vf_load (tile->max + at), max = vf_max (before, most), older, newer;
  vi sum = vi_set1 (0);
  size_t j;

  for (j = 0; j < n; j += 2) {
    vi p = head_weight (tile, j, v, most, q_scale);
    vi next = j + 1 < n ? head_weight (tile, j + 1, v, most, q_scale) : vi_set1 (0);

    p = vi_pair (p, next);
    sum = vi_dot_pair (sum, p, ones);
    vi_store ((uint8_t *) tile->p[j / 2] + v * sizeof (vi), p);
  }

  older = head_exp2 (vf_mul (vf_sub (before, max), q_scale), 1);
  newer = head_exp2 (vf_mul (vf_sub (most, max), q_scale), 1);
  vf_store (tile->max + at, max);
  vf_store (tile->older + at, older);
  vf_store (tile->newer + at, newer);
  vf_store (
      tile->sum + at, vf_fma (vf_load (tile->sum + at), older, vf_mul (vi_to_vf (sum), newer)));
}

/* Takes n keys from key number first on into the tile. */
static void
head_absorb (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n, size_t vectors)
{
  const int is_wide = vectors == HEAD_VECTORS;
  size_t j, d, v;

  for (v = 0; v < vectors; v++)
    vf_store (tile->most + v * VF_LANES, vf_set1 (HEAD_NO_MAX));
  for (j = 0; j + HEAD_ROWS <= n; j += HEAD_ROWS)
    (is_wide ? head_score_tile_wide : head_score_tile_narrow) (tile, arrays, first + j, j);
  for (; j < n; j++)
    (is_wide ? head_score_tile_one_wide : head_score_tile_one_narrow) (tile, arrays, first + j, j);

  for (v = 0; v < vectors; v++)
    head_soften (tile, n, v);

  for (d = 0; d < arrays->dim; d += HEAD_ROWS)
    (is_wide ? head_value_tile_wide : head_value_tile_narrow) (tile, arrays, first, (n + 1) / 2, d);
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

/* Rounds n queries; the columns after them are as the first. */
static void
head_begin (HeadTile *tile, const VlmHeadAttention *args, size_t first, size_t n, size_t vectors)
{
  const vf factor = vf_set1 (args->scale * HEAD_LOG2_E);
  const size_t words = vlm_padded_k (args->head_dim) / 4;
  size_t i, d, v;

  for (i = 0; i < vectors * VF_LANES; i++) {
    const float *q = args->q + (first + (i < n ? i : 0)) * args->q_stride;
    int8_t rounded[HEAD_MAX_DIM] = { 0 };
    float row[HEAD_MAX_DIM];
    int32_t sum, word;

    for (d = 0; d < args->head_dim; d += VF_LANES)
      store_rest (row, vf_mul (load_rest (q, d, args->head_dim), factor), d, args->head_dim);
    simd_quantise_i8 (rounded, tile->q_scale + i, &sum, row, args->head_dim, HEAD_MAX_DIM);
    for (d = 0; d < words; d++) {
      memcpy (&word, rounded + 4 * d, 4);
      tile->q[d][i] = word ^ (int32_t) (INT_BIAS * 0x01010101u);
    }
  }

  for (v = 0; v < vectors; v++) {
    vf_store (tile->max + v * VF_LANES, vf_set1 (HEAD_NO_MAX));
    vf_store (tile->sum + v * VF_LANES, vf_zero ());
    for (d = 0; d < args->head_dim; d++)
      vf_store (tile->out[d] + v * VF_LANES, vf_zero ());
  }
}

static void
head_finish (HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t first,
    size_t n, size_t vectors)
{
  size_t i, d, v;

  for (v = 0; v < vectors; v++) {
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

static void
simd_attend_head (const VlmHeadAttention *args)
{
  const HeadArrays arrays = head_find_arrays (args->head, args->n_keys, args->head_dim);
  HeadTile tile;
  size_t first, n, key;

  for (first = 0; first < args->n_queries; first += n) {
    const size_t left = args->n_queries - first;
    const size_t vectors = left > VF_LANES ? HEAD_VECTORS : 1;

    n = left < vectors * VF_LANES ? left : vectors * VF_LANES;
    if (first == 0)
      head_prefetch_queries (args, 0, n);
    head_begin (&tile, args, first, n, vectors);
    for (key = 0; key < args->n_keys; key += HEAD_BLOCK) {
      const size_t n_keys = args->n_keys - key;

      /* Some of the next tile while this one is computed. */
      if (key / HEAD_BLOCK * HEAD_PREFETCH < HEAD_COLUMNS)
        head_prefetch_queries (args, first + n + key / HEAD_BLOCK * HEAD_PREFETCH, HEAD_PREFETCH);
      head_absorb (&tile, &arrays, key, n_keys < HEAD_BLOCK ? n_keys : HEAD_BLOCK, vectors);
    }
    head_finish (&tile, &arrays, args, first, n, vectors);
  }
}

static void
head_fill (VlmKernels *kernels)
{
  kernels->head_form = VLM_HEAD_INTEGERS;
  kernels->head_bytes = simd_head_bytes;
  kernels->pack_head = simd_pack_head;
  kernels->attend_head = simd_attend_head;
}

#endif
