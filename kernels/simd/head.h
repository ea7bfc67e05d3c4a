/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads in integers, kernels.h says what it computes. Queries are the lanes of
 * registers, HEAD_VECTORS of them in a tile; keys and values are broadcast. So a maximum or a sum
 * over keys never crosses lanes, and what is packed are plain rows.
 *
 * A tile of queries passes over all keys, a block at a time: scores of a block, with their maximum;
 * weights of 14 bits; sums of products with values. head-pairs.h and head-digits.h have two ways of
 * doing the last with what processors multiply.
 */

#ifndef VLM_KERNELS_SIMD_HEAD_H
#define VLM_KERNELS_SIMD_HEAD_H

#ifndef HEAD_BIAS
#define HEAD_BIAS INT_BIAS
#endif

#ifdef HEAD_DIGITS
#include "head-digits.h"
#else
#include "head-pairs.h"
#endif

static size_t
simd_head_bytes (size_t n_keys, size_t head_dim)
{
  return (2 * n_keys + 3 * head_dim) * sizeof (float) + head_value_bytes (n_keys, head_dim)
      + n_keys * vlm_padded_k (head_dim) * sizeof (HeadKey);
}

static HeadArrays
head_find_arrays (const void *packed, size_t n_keys, size_t head_dim)
{
  HeadArrays arrays = { .dim = head_dim, .padded_dim = vlm_padded_k (head_dim) };

  arrays.k_scale = (float *) packed;
  arrays.k_start = (int32_t *) (arrays.k_scale + n_keys);
  arrays.v_scale = (float *) (arrays.k_start + n_keys);
  arrays.v_mean = arrays.v_scale + head_dim;
  arrays.values = arrays.v_mean + head_dim;
  arrays.keys = (HeadKey *) ((char *) arrays.values + head_value_bytes (n_keys, head_dim));
  arrays.k_mean = (float *) (arrays.keys + n_keys * arrays.padded_dim);
  return arrays;
}

static void
simd_pack_head (void *packed, const VlmHead *head)
{
  const HeadArrays arrays = head_find_arrays (packed, head->n_keys, head->head_dim);

  head_pack_keys (&arrays, head);
  head_pack_values (&arrays, head);
}

typedef vi HeadSums[HEAD_ROWS][HEAD_VECTORS];

/* VLM_K_STEP values of a key are as many words. */
#define HEAD_LANES ((int) (VLM_K_STEP / HEAD_PER_WORD))

#ifdef HEAD_KEY_PAIRS
typedef const int16_t *HeadStep;

vlm_always_inline HeadStep
head_load_step (const HeadKey *key)
{
  return key;
}

vlm_always_inline vi
head_dot (vi sum, vi q, HeadStep key, int lane)
{
  return vi_dot_pair (sum, q, key + 2 * lane);
}
#else
typedef va HeadStep;

vlm_always_inline HeadStep
head_load_step (const HeadKey *key)
{
  return va_load (key);
}

vlm_always_inline vi
head_dot (vi sum, vi q, HeadStep key, int lane)
{
  return vi_dot (sum, q, key, lane);
}
#endif

/* Scores of rows keys from key number first on, of which row first_row of the block is the first. */
vlm_always_inline void
head_score (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row, size_t rows)
{
  const size_t dim = arrays->padded_dim;
  const HeadKey *keys = arrays->keys + first * dim;
  HeadSums sum;
  vi q[HEAD_VECTORS];
  HeadStep x[HEAD_ROWS];
  size_t r, v, d;
  int lane;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < HEAD_VECTORS; v++)
      sum[r][v] = vi_set1 (HEAD_BIAS != 0 ? arrays->k_start[first + r] : 0);
  }

  for (d = 0; d < dim; d += VLM_K_STEP) {
    VLM_UNROLL
    for (r = 0; r < rows; r++)
      x[r] = head_load_step (keys + r * dim + d);
    VLM_UNROLL
    for (lane = 0; lane < HEAD_LANES; lane++) {
      VLM_UNROLL
      for (v = 0; v < HEAD_VECTORS; v++)
        q[v] = head_load_words (tile->q[d / HEAD_PER_WORD + (size_t) lane], v);
      VLM_UNROLL
      for (r = 0; r < rows; r++) {
        VLM_UNROLL
        for (v = 0; v < HEAD_VECTORS; v++)
          sum[r][v] = head_dot (sum[r][v], q[v], x[r], lane);
      }
      VLM_KEEP_ORDER ();
    }
  }

  VLM_UNROLL
  for (v = 0; v < HEAD_VECTORS; v++) {
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

static __attribute__ ((noinline)) void
head_score_tile_all (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row)
{
  head_score (tile, arrays, first, first_row, HEAD_ROWS);
}

static __attribute__ ((noinline)) void
head_score_tile_one (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t first_row)
{
  head_score (tile, arrays, first, first_row, 1);
}

/* Makes weights of the n scores of a block. */
vlm_always_inline void
head_soften (HeadTile *tile, size_t n, size_t v)
{
  const size_t at = v * VF_LANES;
  const vf q_scale = vf_load (tile->q_scale + at), most = vf_load (tile->most + at);
  vf before = vf_load (tile->max + at), max = vf_max (before, most), older, newer;
  vi sum = head_weigh (tile, n, v, most, q_scale);

  older = head_exp2 (vf_mul (vf_sub (before, max), q_scale), 1);
  newer = head_exp2 (vf_mul (vf_sub (most, max), q_scale), 1);
  vf_store (tile->max + at, max);
  vf_store (tile->older + at, older);
  vf_store (tile->newer + at, newer);
  vf_store (
      tile->sum + at, vf_fma (vf_load (tile->sum + at), older, vf_mul (vi_to_vf (sum), newer)));
}

/* Takes n of n_keys keys, those from key number first on, into the tile. */
static void
head_absorb (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n, size_t n_keys)
{
  size_t j, v;

  for (v = 0; v < HEAD_VECTORS; v++)
    vf_store (tile->most + v * VF_LANES, vf_set1 (HEAD_NO_MAX));
  for (j = 0; j + HEAD_ROWS <= n; j += HEAD_ROWS)
    head_score_tile_all (tile, arrays, first + j, j);
  for (; j < n; j++)
    head_score_tile_one (tile, arrays, first + j, j);

  for (v = 0; v < HEAD_VECTORS; v++)
    head_soften (tile, n, v);
  head_add_values (tile, arrays, first, n, n_keys);
}

/* Takes all keys of a head into the tile, whose last query is before number end. */
static void
head_absorb_all (HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t end)
{
  size_t key;

  head_begin_keys (tile, arrays);
  for (key = 0; key < args->n_keys; key += HEAD_BLOCK) {
    const size_t left = args->n_keys - key;

    /* Some of the next tile while this one is computed. */
    if (key / HEAD_BLOCK * HEAD_PREFETCH < HEAD_COLUMNS)
      head_prefetch_queries (args, end + key / HEAD_BLOCK * HEAD_PREFETCH, HEAD_PREFETCH);
    head_absorb (tile, arrays, key, left < HEAD_BLOCK ? left : HEAD_BLOCK, args->n_keys);
  }
}

/* The n queries from number first on, over more heads too where they are brought together. */
static void
head_attend_tile (HeadTile *tile, const VlmHeadAttention *args, size_t first, size_t n)
{
  HeadArrays arrays = head_find_arrays (args->head, args->n_keys, args->head_dim);
  size_t i;

  if (first == 0)
    head_prefetch_queries (args, 0, n);
  head_begin (tile, &arrays, args, first, n);
  head_absorb_all (tile, &arrays, args, first + n);
  if (args->max == NULL) {
    head_finish (tile, &arrays, args, first, n);
    return;
  }
  head_add_total (tile, &arrays);
  for (i = 1; i <= args->n_more; i++) {
    const char *head = (const char *) args->head + i * args->head_stride;

    arrays = head_find_arrays (head, args->n_keys, args->head_dim);
    head_absorb_all (tile, &arrays, args, first + n);
    head_add_total (tile, &arrays);
  }
  head_finish_total (tile, args, first, n);
}

static void
simd_attend_head (const VlmHeadAttention *args)
{
  HeadTile tile;
  size_t first, n;

  for (first = 0; first < args->n_queries; first += n) {
    const size_t left = args->n_queries - first;

    n = left < HEAD_COLUMNS ? left : HEAD_COLUMNS;
    head_attend_tile (&tile, args, first, n);
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
