/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention over a few keys in bfloat16 tiles of AMX, 32 queries at a time: all scores, then all
 * weights, then the values. Rows of tiles are queries, columns are keys, then values of d.
 *
 * Queries and keys are two numbers of bfloat16 each, the rounded one and what it lost, or scores
 * would be as wrong as those of packed heads without their mean taken from the keys, which later
 * tokens would have a part in. Of the four products the one of what both lost is left out.
 */

#include "attention-amx.h"

#include "amx-halves.h"

#include "kernels/head.h"
#include "kernels/simd/exp.h"
#include "kernels/simd/rest.h"

#include <math.h>
#include <string.h>

#define QUERIES (2 * AMX_ROWS)
#define MOST_STEPS (HEAD_MAX_DIM / STEP)

/* Keys come in parts of 32. */
#define MOST_PARTS (VLM_TILED_KEYS / STEP)

typedef float FloatTile[AMX_ROWS][AMX_COLUMNS];

/* Two tiles by two: of queries, then of keys or of d. */
typedef FloatTile FourTiles[2][2];

/* Rounded, and what that lost. */
typedef HalfTile Split[2];

/* 32 queries. */
typedef struct
{
  FourTiles scores[MOST_PARTS];
  HalfTile p[MOST_PARTS][2];         /* weights */
  Split q[MOST_STEPS][2];            /* of two tiles of queries */
  Split keys[2][MOST_STEPS][2];      /* of two parts in turn, two tiles each */
  HalfTile values[2][MOST_PARTS][2]; /* of two steps in turn, two tiles each */
  FourTiles out[MOST_STEPS];
  size_t n_keys[QUERIES];
  float max[QUERIES], sum[QUERIES];
} __attribute__ ((aligned (64))) Work;

static const float zeros[AMX_ROWS][AMX_COLUMNS] __attribute__ ((aligned (64)));

/* ---- What goes in -------------------------------------------------------------------------- */

static size_t
count_keys (const VlmAttention *args, size_t query)
{
  const size_t n = args->first_keys + query;

  return args->causal && n < args->n_keys ? n : args->n_keys;
}

vlm_always_inline vf
load_from (const float *row, size_t d, size_t dim)
{
  return d < dim ? load_rest (row, d, dim) : vf_zero ();
}

vlm_always_inline vf
widen (__m256i halves)
{
  return (vf) _mm512_slli_epi32 (_mm512_cvtepu16_epi32 (halves), 16);
}

/* 32 values of a query in each row, as exponents of two. */
static void
split_query (Split tile, size_t r, const float *q, size_t d, size_t dim, vf factor)
{
  const vf first = vf_mul (load_from (q, d, dim), factor);
  const vf second = vf_mul (load_from (q, d + VF_LANES, dim), factor);
  const __m512i rounded = round_pair (first, second);
  const vf first_rounded = widen (_mm512_castsi512_si256 (rounded));
  const vf second_rounded = widen (_mm512_extracti64x4_epi64 (rounded, 1));

  _mm512_store_si512 (tile[0][r], rounded);
  _mm512_store_si512 (
      tile[1][r], round_pair (vf_sub (first, first_rounded), vf_sub (second, second_rounded)));
}

/* Queries first .. first + n - 1 and what they have so far; those after them are zero. */
static void
begin_queries (Work *work, const VlmAttention *args, size_t first, size_t n)
{
  const vf factor = vf_set1 (args->scale * HEAD_LOG2_E);
  const size_t dim = args->head_dim;
  size_t i, s;

  for (i = 0; i < QUERIES; i++) {
    const size_t query = first + (i < n ? i : 0), t = i / AMX_ROWS, r = i % AMX_ROWS;
    const float *q = args->q + query * args->q_stride;

    work->n_keys[i] = count_keys (args, query);
    work->max[i] = args->max != NULL ? args->max[query] * HEAD_LOG2_E : -INFINITY;
    work->sum[i] = args->max != NULL ? args->sum[query] : 0;
    for (s = 0; s < count_steps (dim); s++)
      split_query (work->q[s][t], r, q, s * STEP, dim, factor);
  }
}

/* 16 keys from a panel, which may be NULL, and 32 values of d. */
static void
split_keys (Split tile, const float *panel, size_t d, size_t dim)
{
  const __m512i upper = _mm512_set1_epi32 ((int) 0xffff0000);
  size_t r;

  for (r = 0; r < AMX_ROWS; r++, d += 2) {
    const int exist = panel != NULL && d < dim;
    const vf first = exist ? vf_load (panel + d * VLM_KEY_PANEL) : vf_zero ();
    const vf second = exist ? vf_load (panel + (d + 1) * VLM_KEY_PANEL) : vf_zero ();
    const __m512i rounded = round_in_turn (first, second);

    _mm512_store_si512 (tile[0][r], rounded);
    _mm512_store_si512 (tile[1][r],
        round_in_turn (vf_sub (first, (vf) _mm512_slli_epi32 (rounded, 16)),
            vf_sub (second, (vf) _mm512_and_si512 (rounded, upper))));
  }
}

/* The keys of a part. */
static void
begin_part (Split (*keys)[2], const VlmAttention *args, size_t part)
{
  const size_t n_panels = (args->n_keys + VLM_KEY_PANEL - 1) / VLM_KEY_PANEL;
  const size_t dim = args->head_dim, panel = part * (STEP / VLM_KEY_PANEL);
  size_t s, i;

  for (i = 0; i < 2; i++) {
    const float *k = panel + i < n_panels ? args->k + (panel + i) * dim * VLM_KEY_PANEL : NULL;

    for (s = 0; s < count_steps (dim); s++)
      split_keys (keys[s][i], k, s * STEP, dim);
  }
}

/* Of 32 keys 16 values from d on; zeros from key n on. */
static void
round_values (HalfTile tile, const VlmAttention *args, size_t key, size_t n, size_t d)
{
  const size_t dim = args->head_dim;
  const float *v = args->v + key * args->v_stride;
  size_t r;

  for (r = 0; r < AMX_ROWS; r++, key += 2, v += 2 * args->v_stride)
    _mm512_store_si512 (tile[r],
        round_in_turn (key < n ? load_from (v, d, dim) : vf_zero (),
            key + 1 < n ? load_from (v + args->v_stride, d, dim) : vf_zero ()));
}

/* Step number s of the values of d, of n keys. */
static void
begin_step (HalfTile (*values)[2], const VlmAttention *args, size_t s, size_t n)
{
  size_t part;

  for (part = 0; part < count_steps (n); part++) {
    round_values (values[part][0], args, part * STEP, n, s * STEP);
    round_values (values[part][1], args, part * STEP, n, s * STEP + AMX_COLUMNS);
  }
}

/* ---- Scores and weights -------------------------------------------------------------------- */

#define SPLIT_BYTES (2 * AMX_TILE_BYTES)

/* Four of sums. */
static void
store_tiles (FourTiles sums)
{
  AMX_STORE (0, sums, 0, AMX_ROW_BYTES);
  AMX_STORE (1, sums, AMX_TILE_BYTES, AMX_ROW_BYTES);
  AMX_STORE (2, sums, 2 * AMX_TILE_BYTES, AMX_ROW_BYTES);
  AMX_STORE (3, sums, 3 * AMX_TILE_BYTES, AMX_ROW_BYTES);
}

/* Two tiles by two, the second tile of each pair so many bytes behind the first. */
#define MULTIPLY_FOUR(a, a_at, a_bytes, b, b_at, b_bytes)                                          \
  do {                                                                                             \
    AMX_LOAD (4, a, a_at, AMX_ROW_BYTES);                                                          \
    AMX_LOAD (6, b, b_at, AMX_ROW_BYTES);                                                          \
    AMX_MULTIPLY (0, 4, 6);                                                                        \
    AMX_LOAD (7, b, (b_at) + (b_bytes), AMX_ROW_BYTES);                                            \
    AMX_MULTIPLY (1, 4, 7);                                                                        \
    AMX_LOAD (5, a, (a_at) + (a_bytes), AMX_ROW_BYTES);                                            \
    AMX_MULTIPLY (2, 5, 6);                                                                        \
    AMX_MULTIPLY (3, 5, 7);                                                                        \
  } while (0)

/* Products of what was lost come after those of what was not, with one factor in registers. */
static void
score_part (FourTiles scores, Split (*q)[2], Split (*keys)[2], size_t steps)
{
  size_t s;

  AMX_LOAD (0, zeros, 0, AMX_ROW_BYTES);
  AMX_LOAD (1, zeros, 0, AMX_ROW_BYTES);
  AMX_LOAD (2, zeros, 0, AMX_ROW_BYTES);
  AMX_LOAD (3, zeros, 0, AMX_ROW_BYTES);
  for (s = 0; s < steps; s++) {
    MULTIPLY_FOUR (q[s], 0, SPLIT_BYTES, keys[s], 0, SPLIT_BYTES);
    AMX_LOAD (6, keys[s], AMX_TILE_BYTES, AMX_ROW_BYTES);
    AMX_MULTIPLY (0, 4, 6);
    AMX_LOAD (7, keys[s], SPLIT_BYTES + AMX_TILE_BYTES, AMX_ROW_BYTES);
    AMX_MULTIPLY (1, 4, 7);
    AMX_MULTIPLY (2, 5, 6);
    AMX_MULTIPLY (3, 5, 7);
    MULTIPLY_FOUR (q[s], AMX_TILE_BYTES, SPLIT_BYTES, keys[s], 0, SPLIT_BYTES);
  }
  store_tiles (scores);
}

/* 2^x for x <= 0, with a relative error of 2^-13: a cubic of what x is above a whole number. */
vlm_always_inline vf
weight_of (vf x)
{
  vf n, r = vf_split (x, &n);
  vf y = vf_fma (vf_set1 (0x1.3f96a8p-4f), r, vf_set1 (0x1.cefc52p-3f));

  y = vf_fma (y, r, vf_set1 (0x1.64444ap-1f));
  y = vf_fma (y, r, vf_set1 (0x1.fff634p-1f));
  return vf_scale2 (y, n);
}

/* Which of the 16 keys from number first on are among n. */
vlm_always_inline __mmask16
find_mask (size_t n, size_t first)
{
  return n >= first + VF_LANES ? 0xffff : n > first ? vf_first_lanes (n - first) : 0;
}

/* Scores of a query become weights under its new maximum, which is returned; *sum is theirs. */
static float
soften_row (Work *work, size_t i, size_t n_parts, float *sum)
{
  const size_t t = i / AMX_ROWS, r = i % AMX_ROWS, n = work->n_keys[i];
  const __m512bh ones = (__m512bh) _mm512_set1_epi16 (0x3f80);
  vf most = vf_set1 (work->max[i]), total = vf_zero ();
  size_t part;

  for (part = 0; part < n_parts; part++) {
    const FloatTile *scores = work->scores[part][t];

    most = _mm512_mask_max_ps (most, find_mask (n, part * STEP), most, vf_load (scores[0][r]));
    most = _mm512_mask_max_ps (
        most, find_mask (n, part * STEP + VF_LANES), most, vf_load (scores[1][r]));
  }
  most = vf_set1 (vf_max_lane (most));
  for (part = 0; part < n_parts; part++) {
    const FloatTile *scores = work->scores[part][t];
    const vf first = weight_of (vf_sub (vf_load (scores[0][r]), most));
    const vf second = weight_of (vf_sub (vf_load (scores[1][r]), most));
    const __m512i weights = round_pair (_mm512_maskz_mov_ps (find_mask (n, part * STEP), first),
        _mm512_maskz_mov_ps (find_mask (n, part * STEP + VF_LANES), second));

    _mm512_store_si512 (work->p[part][t][r], weights);
    total = _mm512_dpbf16_ps (total, (__m512bh) weights, ones);
  }
  *sum = vf_sum (total);
  return vf_max_lane (most);
}

/* What queries had before is multiplied by factor. */
static void
soften (Work *work, size_t n_parts, float *factor)
{
  float max[QUERIES], sum[QUERIES];
  size_t i;

  for (i = 0; i < QUERIES; i++)
    max[i] = soften_row (work, i, n_parts, &sum[i]);
  for (i = 0; i < QUERIES; i += VF_LANES) {
    const vf fall = vf_sub (vf_load (work->max + i), vf_load (max + i));

    vf_store (factor + i, vf_exp (vf_mul (fall, vf_set1 (HEAD_LN_2))));
    vf_store (
        work->sum + i, vf_fma (vf_load (work->sum + i), vf_load (factor + i), vf_load (sum + i)));
  }
}

/* ---- What comes out ------------------------------------------------------------------------ */

/* Sums begin with what other keys left. */
static void
begin_out (Work *work, const VlmAttention *args, size_t first, size_t n, const float *factor)
{
  const size_t dim = args->head_dim;
  size_t i, d;

  for (i = 0; i < QUERIES; i++) {
    const float *out = args->out + (first + i) * args->out_stride;
    const int exists = args->max != NULL && i < n;

    for (d = 0; d < count_steps (dim) * STEP; d += VF_LANES) {
      const vf before = exists ? load_from (out, d, dim) : vf_zero ();

      vf_store (work->out[d / STEP][i / AMX_ROWS][d / AMX_COLUMNS % 2][i % AMX_ROWS],
          vf_fma (before, vf_set1 (factor[i]), vf_zero ()));
    }
  }
}

/* Adds the values of a step. */
static void
add_values (FourTiles out, HalfTile (*p)[2], HalfTile (*values)[2], size_t n_parts)
{
  size_t part;

  AMX_LOAD (0, out, 0, AMX_ROW_BYTES);
  AMX_LOAD (1, out, AMX_TILE_BYTES, AMX_ROW_BYTES);
  AMX_LOAD (2, out, 2 * AMX_TILE_BYTES, AMX_ROW_BYTES);
  AMX_LOAD (3, out, 3 * AMX_TILE_BYTES, AMX_ROW_BYTES);
  for (part = 0; part < n_parts; part++)
    MULTIPLY_FOUR (p[part], 0, AMX_TILE_BYTES, values[part], 0, AMX_TILE_BYTES);
  store_tiles (out);
}

static void
finish_queries (const Work *work, const VlmAttention *args, size_t first, size_t n)
{
  const size_t dim = args->head_dim;
  size_t i, d;

  for (i = 0; i < n; i++) {
    float *out = args->out + (first + i) * args->out_stride;
    const vf inverse = vf_set1 (1 / work->sum[i]);

    for (d = 0; d < dim; d += VF_LANES)
      store_rest (out,
          vf_mul (inverse,
              vf_load (work->out[d / STEP][i / AMX_ROWS][d / AMX_COLUMNS % 2][i % AMX_ROWS])),
          d, dim);
  }
}

static void
attend_queries (Work *work, const VlmAttention *args, size_t first, size_t n)
{
  const size_t n_keys = count_keys (args, first + n - 1);
  const size_t n_parts = count_steps (n_keys), steps = count_steps (args->head_dim);
  float factor[QUERIES];
  size_t i;

  begin_queries (work, args, first, n);
  begin_part (work->keys[0], args, 0);
  for (i = 0; i < n_parts; i++) {
    if (i + 1 < n_parts)
      begin_part (work->keys[(i + 1) % 2], args, i + 1);
    score_part (work->scores[i], work->q, work->keys[i % 2], steps);
  }
  begin_step (work->values[0], args, 0, n_keys);
  soften (work, n_parts, factor);
  begin_out (work, args, first, n, factor);
  for (i = 0; i < steps; i++) {
    if (i + 1 < steps)
      begin_step (work->values[(i + 1) % 2], args, i + 1, n_keys);
    add_values (work->out[i], work->p, work->values[i % 2], n_parts);
  }
  finish_queries (work, args, first, n);
}

static void
amx_attention_tiled (const VlmAttention *args)
{
  Work work;
  size_t first;

  amx_configure ();
  for (first = 0; first < args->n_queries; first += QUERIES) {
    const size_t left = args->n_queries - first;

    attend_queries (&work, args, first, left < QUERIES ? left : QUERIES);
  }
  AMX_RELEASE ();
}

void
vlm_amx_fill_attention (VlmKernels *kernels)
{
  kernels->attention_tiled = amx_attention_tiled;
}
