/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Softmax attention in one pass over the keys, a tile of queries at a time. Keys come in blocks
 * that start at multiples of BLOCK_KEYS: scores of a block, its maximum, exponentials, weighted
 * values; what was summed under an older maximum is scaled down when the maximum rises.
 *
 * A query's arithmetic is the same in a tile of one and in a tile of many. Where the queries of a
 * tile see different numbers of keys, only those seen by all are taken together, and each query
 * takes the rest alone: a key beyond a query's limit is never multiplied in, not even by zero.
 */

#ifndef VLM_KERNELS_SIMD_ATTENTION_H
#define VLM_KERNELS_SIMD_ATTENTION_H

#include "exp.h"
#include "rest.h"

#include <math.h>

#define BLOCK_KEYS 64
#define MAX_HEAD_DIM 256
#define PANEL_VECTORS (VLM_KEY_PANEL / VF_LANES)

typedef float ScoreRow[BLOCK_KEYS];
typedef float OutRow[MAX_HEAD_DIM];

typedef struct
{
  ScoreRow scores[ATTENTION_ROWS]; /* then exp (score - max) */
  OutRow out[ATTENTION_ROWS];      /* sum of exp (score - max) * value */
  vf sum[ATTENTION_ROWS];          /* sum of exp (score - max), by lane */
  float max[ATTENTION_ROWS];
  float correction[ATTENTION_ROWS]; /* exp (older max - max) */
  size_t n_keys[ATTENTION_ROWS];
  const float *q[ATTENTION_ROWS];
} AttentionTile;

/* Scores of vectors * VF_LANES keys from a panel boundary on. */
vlm_always_inline void
score_tile (ScoreRow *scores, const float *const *q, const float *k, size_t head_dim, float scale,
    size_t rows, size_t vectors)
{
  vf sum[ATTENTION_ROWS][ATTENTION_VECTORS], keys[ATTENTION_VECTORS];
  size_t i, v, d;

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[i][v] = vf_zero ();
  }

  for (d = 0; d < head_dim; d++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++) {
      size_t panel = v / PANEL_VECTORS, part = v % PANEL_VECTORS;

      keys[v] = vf_load (k + (panel * head_dim + d) * VLM_KEY_PANEL + part * VF_LANES);
    }
    VLM_UNROLL
    for (i = 0; i < rows; i++) {
      vf broadcast = vf_set1 (q[i][d]);

      VLM_UNROLL
      for (v = 0; v < vectors; v++)
        sum[i][v] = vf_fma (broadcast, keys[v], sum[i][v]);
    }
  }

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      vf_store (scores[i] + v * VF_LANES, vf_mul (sum[i][v], vf_set1 (scale)));
  }
}

/*
 * out = out * correction + sum_j p[j] v[j] for the keys first <= j < end and vectors * VF_LANES
 * columns, of whose last register only last_lanes exist in v.
 */
vlm_always_inline void
value_tile (OutRow *out, ScoreRow *p, const float *correction, const float *values, size_t stride,
    size_t first, size_t end, size_t rows, size_t vectors, size_t last_lanes)
{
  vf sum[ATTENTION_ROWS][ATTENTION_VECTORS], value[ATTENTION_VECTORS];
  size_t i, v, j;

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[i][v] = vf_mul (vf_load (out[i] + v * VF_LANES), vf_set1 (correction[i]));
  }

  for (j = first; j < end; j++) {
    const float *row = values + j * stride;

    VLM_UNROLL
    for (v = 0; v + 1 < vectors; v++)
      value[v] = vf_load (row + v * VF_LANES);
    value[v] = last_lanes == VF_LANES ? vf_load (row + v * VF_LANES)
                                      : vf_load_part (row + v * VF_LANES, last_lanes);

    VLM_UNROLL
    for (i = 0; i < rows; i++) {
      vf broadcast = vf_set1 (p[i][j]);

      VLM_UNROLL
      for (v = 0; v < vectors; v++)
        sum[i][v] = vf_fma (broadcast, value[v], sum[i][v]);
    }
  }

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      vf_store (out[i] + v * VF_LANES, sum[i][v]);
  }
}

/* A head is a multiple of 8 wide: only registers of 16 can be left half full. */
#define DEFINE_VALUE_TILE(name, rows, vectors)                                                     \
  static __attribute__ ((noinline)) void value_tile_##name##_##vectors (OutRow *out, ScoreRow *p,  \
      const float *correction, const float *values, size_t stride, size_t first, size_t end,       \
      size_t last_lanes)                                                                           \
  {                                                                                                \
    if (VF_LANES <= 8 || last_lanes == VF_LANES)                                                   \
      value_tile (out, p, correction, values, stride, first, end, rows, vectors, VF_LANES);        \
    else                                                                                           \
      value_tile (out, p, correction, values, stride, first, end, rows, vectors, 8);               \
  }

#define DEFINE_SCORE_TILE(name, rows, vectors)                                                     \
  static __attribute__ ((noinline)) void score_tile_##name (                                       \
      ScoreRow *scores, const float *const *q, const float *k, size_t head_dim, float scale)       \
  {                                                                                                \
    score_tile (scores, q, k, head_dim, scale, rows, vectors);                                     \
  }

DEFINE_SCORE_TILE (one_panel, 1, PANEL_VECTORS)
DEFINE_SCORE_TILE (one_wide, 1, ATTENTION_VECTORS)
DEFINE_SCORE_TILE (all_panel, ATTENTION_ROWS, PANEL_VECTORS)
DEFINE_SCORE_TILE (all_wide, ATTENTION_ROWS, ATTENTION_VECTORS)

DEFINE_VALUE_TILE (one, 1, 1)
DEFINE_VALUE_TILE (one, 1, 2)
DEFINE_VALUE_TILE (all, ATTENTION_ROWS, 1)
DEFINE_VALUE_TILE (all, ATTENTION_ROWS, 2)
#if ATTENTION_VECTORS == 4
DEFINE_VALUE_TILE (one, 1, 3)
DEFINE_VALUE_TILE (one, 1, 4)
DEFINE_VALUE_TILE (all, ATTENTION_ROWS, 3)
DEFINE_VALUE_TILE (all, ATTENTION_ROWS, 4)
#endif

typedef void (*ValueTile) (OutRow *out, ScoreRow *p, const float *correction, const float *values,
    size_t stride, size_t first, size_t end, size_t last_lanes);

#if ATTENTION_VECTORS == 4
static const ValueTile value_tiles_one[] = { value_tile_one_1, value_tile_one_2, value_tile_one_3,
  value_tile_one_4 };
static const ValueTile value_tiles_all[] = { value_tile_all_1, value_tile_all_2, value_tile_all_3,
  value_tile_all_4 };
#else
static const ValueTile value_tiles_one[] = { value_tile_one_1, value_tile_one_2 };
static const ValueTile value_tiles_all[] = { value_tile_all_1, value_tile_all_2 };
#endif

/* Scores of all keys of the block that at least one query of the tile sees. */
static void
score_block (AttentionTile *tile, const float *k, size_t n, size_t head_dim, float scale, int one)
{
  const size_t wide = ATTENTION_VECTORS * VF_LANES;
  ScoreRow *scores = tile->scores;
  size_t j = 0;

  for (; j + wide <= n; j += wide) {
    ScoreRow *part = (ScoreRow *) (scores[0] + j);

    (one ? score_tile_one_wide : score_tile_all_wide) (
        part, tile->q, k + j * head_dim, head_dim, scale);
  }
  for (; j < n; j += VLM_KEY_PANEL) {
    ScoreRow *part = (ScoreRow *) (scores[0] + j);

    (one ? score_tile_one_panel : score_tile_all_panel) (
        part, tile->q, k + j * head_dim, head_dim, scale);
  }
}

/* Turns n scores of query i into weights; lanes beyond n come out as zero. */
static void
soften_scores (AttentionTile *tile, size_t i, size_t n)
{
  float *scores = tile->scores[i];
  vf max = vf_set1 (tile->max[i]), correction, sum;
  vf none = vf_set1 (-INFINITY);
  size_t j;

  for (j = 0; j < n; j += VF_LANES) {
    vf score = vf_load (scores + j);

    if (n - j < VF_LANES) {
      score = vf_keep_part (score, n - j, none);
      vf_store (scores + j, score);
    }
    max = vf_max (max, score);
  }

  max = vf_set1 (vf_max_lane (max));
  correction = vf_exp (vf_sub (vf_set1 (tile->max[i]), max));
  sum = vf_mul (tile->sum[i], correction);
  for (j = 0; j < n; j += VF_LANES) {
    vf p = vf_exp (vf_sub (vf_load (scores + j), max));

    vf_store (scores + j, p);
    sum = vf_add (sum, p);
  }

  tile->sum[i] = sum;
  tile->max[i] = vf_max_lane (max);
  tile->correction[i] = vf_max_lane (correction);
}

static void
add_values (const VlmAttention *args, OutRow *out, ScoreRow *p, const float *correction,
    const float *values, size_t first, size_t end, const ValueTile *tiles)
{
  size_t vectors = (args->head_dim + VF_LANES - 1) / VF_LANES;
  size_t n_parts = (vectors + ATTENTION_VECTORS - 1) / ATTENTION_VECTORS;
  size_t d = 0;

  for (; n_parts > 0; n_parts--) {
    size_t part = (vectors + n_parts - 1) / n_parts;
    size_t rest = args->head_dim - d - (part - 1) * VF_LANES;

    tiles[part - 1]((OutRow *) (out[0] + d), p, correction, values + d, args->v_stride, first, end,
        rest < VF_LANES ? rest : VF_LANES);
    vectors -= part;
    d += part * VF_LANES;
  }
}

/* Takes the block of keys from first_key on into a tile of rows queries. */
static void
absorb_block (const VlmAttention *args, AttentionTile *tile, size_t first_key, size_t rows)
{
  const float *values = args->v + first_key * args->v_stride;
  float unchanged = 1;
  size_t n[ATTENTION_ROWS], least = BLOCK_KEYS, most = 0;
  size_t i;

  for (i = 0; i < rows; i++) {
    n[i] = tile->n_keys[i] > first_key ? tile->n_keys[i] - first_key : 0;
    n[i] = n[i] < BLOCK_KEYS ? n[i] : BLOCK_KEYS;
    least = n[i] < least ? n[i] : least;
    most = n[i] > most ? n[i] : most;
  }

  score_block (
      tile, args->k + first_key * args->head_dim, most, args->head_dim, args->scale, rows == 1);
  for (i = 0; i < rows; i++) {
    tile->correction[i] = 1;
    if (n[i] > 0)
      soften_scores (tile, i, n[i]);
  }

  add_values (args, tile->out, tile->scores, tile->correction, values, 0, least,
      rows == 1 ? value_tiles_one : value_tiles_all);
  for (i = 0; i < rows; i++) {
    if (n[i] > least)
      add_values (
          args, tile->out + i, tile->scores + i, &unchanged, values, least, n[i], value_tiles_one);
  }
}

/* Query number query comes to place i of the tile. */
static void
begin_query (const VlmAttention *args, AttentionTile *tile, size_t i, size_t query)
{
  const float *out = args->out + query * args->out_stride;
  size_t d;

  tile->max[i] = args->max != NULL ? args->max[query] : -INFINITY;
  tile->sum[i] = args->max != NULL ? vf_load_part (args->sum + query, 1) : vf_zero ();
  for (d = 0; d < args->head_dim; d += VF_LANES)
    vf_store (
        tile->out[i] + d, args->max != NULL ? load_rest (out, d, args->head_dim) : vf_zero ());
}

/* Places of a tile beyond the last query repeat its first query; their results are dropped. */
static size_t
begin_tile (const VlmAttention *args, AttentionTile *tile, size_t query, size_t n, size_t rows)
{
  size_t i, most = 0;

  for (i = 0; i < rows; i++) {
    size_t place = query + (i < n ? i : 0);
    size_t n_keys = args->n_keys;

    if (args->causal && args->first_keys + place < n_keys)
      n_keys = args->first_keys + place;

    tile->q[i] = args->q + place * args->q_stride;
    tile->n_keys[i] = n_keys;
    begin_query (args, tile, i, place);
    most = n_keys > most ? n_keys : most;
  }

  return most;
}

static void
simd_attention (const VlmAttention *args)
{
  AttentionTile tile;
  size_t query, i, d, key, n_keys;

  for (query = 0; query < args->n_queries; query += ATTENTION_ROWS) {
    size_t left = args->n_queries - query;
    size_t n = left < ATTENTION_ROWS ? left : ATTENTION_ROWS;
    size_t rows = n == 1 ? 1 : ATTENTION_ROWS;

    n_keys = begin_tile (args, &tile, query, n, rows);
    for (key = 0; key < n_keys; key += BLOCK_KEYS)
      absorb_block (args, &tile, key, rows);

    for (i = 0; i < n; i++) {
      float *out = args->out + (query + i) * args->out_stride;
      vf sum = vf_set1 (vf_sum (tile.sum[i]));

      for (d = 0; d < args->head_dim; d += VF_LANES)
        store_rest (out, vf_div (vf_load (tile.out[i] + d), sum), d, args->head_dim);
    }
  }
}

#endif
