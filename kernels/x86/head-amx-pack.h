/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A packed head in bfloat16, as tiles of AMX read it: keys and values without their means, in
 * blocks of 64 keys that are zero after the last one. Of d there are steps of 32, zero after the
 * last too.
 */

#ifndef VLM_KERNELS_HEAD_AMX_PACK_H
#define VLM_KERNELS_HEAD_AMX_PACK_H

#include "amx-halves.h"
#include "int-512.h"

#include "kernels/head.h"
#include "kernels/simd/head-ahead.h"
#include "kernels/simd/rest.h"

/* Of values of d of a query; a step of weights is of keys. */
#define MOST_STEPS (HEAD_MAX_DIM / STEP)

/* Keys whose values are added up at once: two steps of weights. */
#define BLOCK 64

typedef struct
{
  float *k_mean, *v_mean; /* [padded dim] */
  /* [blocks][keys / 16][steps]: rows are pairs of d, columns are keys */
  HalfTile *keys;
  /* [blocks][steps][2 of 32 keys][2 of 16 d]: rows are pairs of keys in the order of weights */
  HalfTile *values;
} HeadArrays;

static size_t
count_blocks (size_t n_keys)
{
  return (n_keys + BLOCK - 1) / BLOCK;
}

/* Tiles of the keys of a block, and of its values. */
static size_t
block_tiles (size_t head_dim)
{
  return BLOCK / AMX_COLUMNS * count_steps (head_dim);
}

static size_t
amx_head_bytes (size_t n_keys, size_t head_dim)
{
  return 2 * count_steps (head_dim) * STEP * sizeof (float)
      + 2 * count_blocks (n_keys) * block_tiles (head_dim) * sizeof (HalfTile);
}

static HeadArrays
find_arrays (const void *packed, size_t n_keys, size_t head_dim)
{
  const size_t dim = count_steps (head_dim) * STEP;
  HeadArrays arrays;

  arrays.k_mean = (float *) packed;
  arrays.v_mean = arrays.k_mean + dim;
  arrays.keys = (HalfTile *) (arrays.v_mean + dim);
  arrays.values = arrays.keys + count_blocks (n_keys) * block_tiles (head_dim);
  return arrays;
}

/* The key, among 32, whose weight is number i: as two registers of words are packed to one. */
static size_t
key_of_weight (size_t i)
{
  return i / 8 * 4 + i % 4 + i / 4 % 2 * 16;
}

/* Of up to 64 values of d from d on. */
static void
find_mean (float *mean, const float *x, size_t stride, size_t n, size_t d, size_t dim)
{
  vf sum[4] = { vf_zero (), vf_zero (), vf_zero (), vf_zero () };
  size_t j, v;

  for (j = 0; j < n; j++, x += stride) {
    if (n - j > HEAD_AHEAD)
      head_prefetch (x + HEAD_AHEAD * stride + d, dim - d < 64 ? dim - d : 64);
    for (v = 0; v < 4 && d + v * VF_LANES < dim; v++)
      sum[v] = vf_add (sum[v], load_rest (x, d + v * VF_LANES, dim));
  }
  for (v = 0; v < 4 && d + v * VF_LANES < count_steps (dim) * STEP; v++)
    vf_store (mean + d + v * VF_LANES, vf_div (sum[v], vf_set1 ((float) n)));
}

/* 16 values of row j of n from d on; zeros where there are none. */
vlm_always_inline vf
load_centred (
    const float *x, size_t stride, const float *mean, size_t j, size_t n, size_t d, size_t dim)
{
  const size_t left = d < dim ? dim - d : 0;
  const __mmask16 mask = j >= n ? 0 : left < VF_LANES ? vf_first_lanes (left) : 0xffff;

  if (mask == 0)
    return vf_zero ();
  return _mm512_maskz_sub_ps (
      mask, _mm512_maskz_loadu_ps (mask, x + j * stride + d), vf_load (mean + d));
}

/* Word i of row j becomes word j of row i of a tile. */
static void
store_transposed (void *tile, const vi *rows)
{
  vi words[AMX_ROWS];
  size_t i;

  VLM_UNROLL
  for (i = 0; i < AMX_ROWS; i++)
    words[i] = rows[i];
  vi_transpose (words);
  VLM_UNROLL
  for (i = 0; i < AMX_ROWS; i++)
    vi_store ((uint8_t *) tile + i * AMX_ROW_BYTES, words[i]);
}

/* 16 keys from key number first on, 32 values of d. */
static void
pack_key_tile (HalfTile tile, const VlmHead *head, const float *mean, size_t first, size_t d)
{
  __m512i keys[AMX_COLUMNS];
  size_t j;

  for (j = 0; j < AMX_COLUMNS; j++)
    keys[j] = round_pair (
        load_centred (head->k, head->k_stride, mean, first + j, head->n_keys, d, head->head_dim),
        load_centred (
            head->k, head->k_stride, mean, first + j, head->n_keys, d + VF_LANES, head->head_dim));
  store_transposed (tile, keys);
}

/* 32 keys, 16 values of d. */
static void
pack_value_tile (HalfTile tile, const VlmHead *head, const float *mean, size_t first, size_t d)
{
  size_t r;

  for (r = 0; r < AMX_ROWS; r++) {
    const size_t key = first + key_of_weight (2 * r);

    _mm512_storeu_si512 (tile[r],
        round_in_turn (
            load_centred (head->v, head->v_stride, mean, key, head->n_keys, d, head->head_dim),
            load_centred (
                head->v, head->v_stride, mean, key + 1, head->n_keys, d, head->head_dim)));
  }
}

static void
amx_pack_head (void *packed, const VlmHead *head)
{
  const size_t n = head->n_keys, dim = head->head_dim, steps = count_steps (dim);
  const HeadArrays arrays = find_arrays (packed, n, dim);
  HalfTile *keys = arrays.keys, *values = arrays.values;
  size_t j, s, i;

  for (s = 0; s < dim; s += 64) {
    find_mean (arrays.k_mean, head->k, head->k_stride, n, s, dim);
    find_mean (arrays.v_mean, head->v, head->v_stride, n, s, dim);
  }
  for (j = 0; j < count_blocks (n) * BLOCK; j += AMX_COLUMNS) {
    for (s = 0; s < steps; s++, keys++)
      pack_key_tile (*keys, head, arrays.k_mean, j, s * STEP);
  }
  for (j = 0; j < count_blocks (n) * BLOCK; j += BLOCK) {
    for (s = 0; s < steps; s++) {
      for (i = 0; i < 4; i++, values++)
        pack_value_tile (
            *values, head, arrays.v_mean, j + i / 2 * STEP, s * STEP + i % 2 * AMX_COLUMNS);
    }
  }
}

#endif
