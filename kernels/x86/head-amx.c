/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads in tiles of AMX, to the same bits as other levels. Scores are one
 * product of tiles. Weights of 14 and values of 12 bits are split into two digits of 7 bits each, and
 * four products of tiles add up in three sums: of high digits, of low ones, and of the mixed ones.
 */

#include "head-amx.h"

#include "amx-tiles.h"
#include "int-avx512vnni.h"

#undef HEAD_VECTORS
#define HEAD_VECTORS 2
#define HEAD_BIAS 0
/* While one block is softened, the tile unit has the next. */
#define HEAD_BUFFERS 2

#include "kernels/simd/head-queries.h"

/* Bytes of a row of a tile: values of d for scores, keys for values. */
#define STEP AMX_ROW_BYTES

/* Bits of a digit. */
#define DIGIT 7

#define COLUMN_BYTES (4 * HEAD_COLUMNS)

/* Weights of the block: quads of keys, a byte each. */
#define QUADS (HEAD_BLOCK / 4)

/* Sums of 16 values of d for the queries of a vector: high, mixed, low. */
typedef int32_t Sums[3][AMX_ROWS][AMX_COLUMNS];

static const uint8_t zeros[AMX_TILE_BYTES] __attribute__ ((aligned (64)));

static size_t
round_up (size_t n, size_t step)
{
  return (n + step - 1) / step * step;
}

static size_t
amx_head_bytes (size_t n_keys, size_t head_dim)
{
  return (n_keys + 3 * head_dim) * sizeof (float)
      + round_up (n_keys, 2 * AMX_ROWS) * round_up (head_dim, STEP)
      + 2 * round_up (n_keys, STEP) * round_up (head_dim, AMX_ROWS);
}

/* The tiles of key number first, a multiple of 64, and of d on. */
static uint8_t *
value_tiles (const HeadArrays *arrays, size_t first, size_t d)
{
  size_t n_groups = (arrays->dim + AMX_ROWS - 1) / AMX_ROWS;

  return (uint8_t *) arrays->values
      + (first / STEP * n_groups + d / AMX_ROWS) * (size_t) (2 * AMX_TILE_BYTES);
}

/*
 * Keys are zero after the last one, up to a multiple of 32. Values are, for each 64 keys and each 16
 * values of d, a tile of high digits and one of low ones: rows of d, a byte for each key.
 */
static HeadArrays
find_arrays (const void *packed, size_t n_keys, size_t head_dim)
{
  HeadArrays arrays = { .dim = head_dim, .padded_dim = round_up (head_dim, STEP) };

  arrays.k_scale = (float *) packed;
  arrays.v_scale = arrays.k_scale + n_keys;
  arrays.v_mean = arrays.v_scale + head_dim;
  arrays.keys = (int8_t *) (arrays.v_mean + head_dim);
  arrays.values = arrays.keys + round_up (n_keys, 2 * AMX_ROWS) * arrays.padded_dim;
  arrays.k_mean = (float *) value_tiles (&arrays, round_up (n_keys, STEP), 0);
  return arrays;
}

/* Digits of VF_LANES values: value = 128 * high + low, low in -64 .. 63. */
vlm_always_inline void
split_digits (vi value, vi *high, vi *low)
{
  *high = _mm512_srai_epi32 (_mm512_add_epi32 (value, vi_set1 (64)), DIGIT);
  *low = _mm512_sub_epi32 (value, _mm512_slli_epi32 (*high, DIGIT));
}

/* Adds the byte of key number lane of four to a word. */
vlm_always_inline vi
add_byte (vi word, vi byte, unsigned lane)
{
  return vi_or (word, _mm512_slli_epi32 (_mm512_and_si512 (byte, vi_set1 (255)), 8 * lane));
}

/* Four keys from key number j on, of values of d from d on, as far as there are any. */
static void
pack_quad (const HeadArrays *arrays, const VlmHead *head, const HeadColumns *columns,
    const float *inverse, size_t j, size_t d)
{
  int32_t words[2][AMX_ROWS];
  vi all_high = vi_set1 (0), all_low = vi_set1 (0);
  uint8_t *tiles = value_tiles (arrays, j / STEP * STEP, d) + j % STEP;
  size_t lane, r;

  for (lane = 0; lane < 4 && j + lane < head->n_keys; lane++) {
    const float *row = head->v + (j + lane) * head->v_stride;
    vi high, low;

    split_digits (head_round_values (row, columns->mean, inverse, d, head->head_dim), &high, &low);
    all_high = add_byte (all_high, high, (unsigned) lane);
    all_low = add_byte (all_low, low, (unsigned) lane);
  }
  vi_store ((uint8_t *) words[0], all_high);
  vi_store ((uint8_t *) words[1], all_low);
  for (r = 0; r < AMX_ROWS; r++) {
    memcpy (tiles + r * STEP, &words[0][r], 4);
    memcpy (tiles + AMX_TILE_BYTES + r * STEP, &words[1][r], 4);
  }
}

static void
pack_values (const HeadArrays *arrays, const VlmHead *head)
{
  float inverse[HEAD_MAX_DIM] = { 0 };
  HeadColumns columns;
  size_t j, d;

  head_look_at_columns (&columns, head->v, head->v_stride, head->n_keys, head->head_dim);
  head_scale_values (arrays, inverse, &columns);
  for (j = 0; j < round_up (head->n_keys, STEP); j += 4) {
    for (d = 0; d < head->head_dim; d += AMX_ROWS)
      pack_quad (arrays, head, &columns, inverse, j, d);
  }
}

static void
amx_pack_head (void *packed, const VlmHead *head)
{
  const HeadArrays arrays = find_arrays (packed, head->n_keys, head->head_dim);
  const size_t rows = round_up (head->n_keys, 2 * AMX_ROWS);

  memset (arrays.keys, 0, rows * arrays.padded_dim);
  head_pack_keys (&arrays, head);
  pack_values (&arrays, head);
}

#define LOAD_QUERIES(d)                                                                            \
  AMX_LOAD (6, tile->q[(d) / 4], 0, COLUMN_BYTES);                                                 \
  AMX_LOAD (7, tile->q[(d) / 4], STEP, COLUMN_BYTES);

/* Products of 16 keys with all queries of the tile. */
#define SCORE_STEP(a, b, from, d)                                                                  \
  AMX_LOAD (4, (from) + (d), 0, dim);                                                              \
  AMX_MULTIPLY (a, 4, 6);                                                                          \
  AMX_MULTIPLY (b, 4, 7);

#define CLEAR_SCORES(a, b)                                                                         \
  AMX_LOAD (a, zeros, 0, STEP);                                                                    \
  AMX_LOAD (b, zeros, 0, STEP);

#define STORE_SCORES(a, b, row)                                                                    \
  AMX_STORE (a, (row), 0, COLUMN_BYTES);                                                           \
  AMX_STORE (b, (row), STEP, COLUMN_BYTES);

/* Heads of up to 64: products of n keys, in place of their scores. Queries stay in tiles. */
static __attribute__ ((noinline)) void
score_short (const HeadTile *tile, HeadRow *scores, const int8_t *keys, size_t n)
{
  const size_t dim = STEP;
  size_t j;

  LOAD_QUERIES (0)
  for (j = 0; j < n; j += 2 * AMX_ROWS) {
    CLEAR_SCORES (0, 1)
    SCORE_STEP (0, 1, keys + j * dim, 0)
    if (j > 0) {
      STORE_SCORES (2, 3, scores[j - AMX_ROWS])
    }
    CLEAR_SCORES (2, 3)
    SCORE_STEP (2, 3, keys + (j + AMX_ROWS) * dim, 0)
    STORE_SCORES (0, 1, scores[j])
  }
  STORE_SCORES (2, 3, scores[j - AMX_ROWS])
}

/* The same of longer ones. */
static __attribute__ ((noinline)) void
score_long (const HeadTile *tile, HeadRow *scores, const int8_t *keys, size_t n, size_t dim)
{
  size_t j, d;

  for (j = 0; j < n; j += 2 * AMX_ROWS) {
    CLEAR_SCORES (0, 1)
    CLEAR_SCORES (2, 3)
    for (d = 0; d < dim; d += STEP) {
      LOAD_QUERIES (d)
      SCORE_STEP (0, 1, keys + j * dim, d)
      SCORE_STEP (2, 3, keys + (j + AMX_ROWS) * dim, d)
    }
    STORE_SCORES (0, 1, scores[j])
    STORE_SCORES (2, 3, scores[j + AMX_ROWS])
  }
}

/* Makes a score of the integers that were left in its place. */
vlm_always_inline vf
scale_score (float *scores, float k_scale)
{
  vf score = vf_mul (vi_to_vf (vi_load ((const uint8_t *) scores)), vf_set1 (k_scale));

  vf_store (scores, score);
  return score;
}

/* Makes floats of the n integers that scores are; after them come as many as steps of tiles take,
 * which no weight is left of. */
static vf
scale_scores (HeadRow *block, const float *k_scale, size_t n, size_t v)
{
  /* Four at a time, or each would wait for the one before. */
  vf most[4] = { vf_set1 (HEAD_NO_MAX), vf_set1 (HEAD_NO_MAX), vf_set1 (HEAD_NO_MAX),
    vf_set1 (HEAD_NO_MAX) };
  size_t j, i;

  for (j = 0; j + 4 <= n; j += 4) {
    VLM_UNROLL
    for (i = 0; i < 4; i++)
      most[i] = vf_max (scale_score (block[j + i] + v * VF_LANES, k_scale[j + i]), most[i]);
  }
  for (; j < n; j++)
    most[0] = vf_max (scale_score (block[j] + v * VF_LANES, k_scale[j]), most[0]);
  for (; j % STEP != 0; j++)
    vf_store (block[j] + v * VF_LANES, vf_set1 (-INFINITY));
  return vf_max (vf_max (most[0], most[1]), vf_max (most[2], most[3]));
}

/* The weight of a key. */
vlm_always_inline vi
weigh (const float *score, vf most, vf q_scale)
{
  return vi_from_vf (head_exp2 (vf_mul (vf_sub (vf_load (score), most), q_scale), HEAD_WEIGHT_MAX));
}

/* Low digits of two times two weights, the second two in the odd bytes. */
vlm_always_inline vi
low_digits (vi even, vi odd)
{
  vi both =
      _mm512_ternarylogic_epi32 (_mm512_set1_epi16 (255), even, _mm512_slli_epi16 (odd, 8), 0xca);

  return _mm512_and_si512 (both, _mm512_set1_epi8 (127));
}

vlm_always_inline vi
high_digits (vi even, vi odd)
{
  return _mm512_ternarylogic_epi32 (_mm512_set1_epi16 (255), _mm512_srli_epi16 (even, DIGIT),
      _mm512_slli_epi16 (odd, 8 - DIGIT), 0xca);
}

/* Makes weights of the n scores of a block. */
vlm_always_inline void
soften (HeadTile *tile, HeadRow *scores, const float *k_scale, size_t n, size_t v)
{
  static const int16_t ones[2] = { 1, 1 };
  const size_t at = v * VF_LANES;
  const vf q_scale = vf_load (tile->q_scale + at), most = scale_scores (scores, k_scale, n, v);
  vf before = vf_load (tile->max + at), max = vf_max (before, most), older, newer;
  vi sum = vi_set1 (0);
  size_t j;

  for (j = 0; j < round_up (n, STEP); j += 4) {
    vi even =
        vi_pair (weigh (scores[j] + at, most, q_scale), weigh (scores[j + 2] + at, most, q_scale));
    vi odd = vi_pair (
        weigh (scores[j + 1] + at, most, q_scale), weigh (scores[j + 3] + at, most, q_scale));

    sum = vi_dot_pair (vi_dot_pair (sum, even, ones), odd, ones);
    vi_store ((uint8_t *) (tile->p[j / 4] + at), high_digits (even, odd));
    vi_store ((uint8_t *) (tile->p[QUADS + j / 4] + at), low_digits (even, odd));
  }

  older = head_exp2 (vf_mul (vf_sub (before, max), q_scale), 1);
  newer = head_exp2 (vf_mul (vf_sub (most, max), q_scale), 1);
  vf_store (tile->max + at, max);
  vf_store (tile->older + at, older);
  vf_store (tile->newer + at, newer);
  vf_store (
      tile->sum + at, vf_fma (vf_load (tile->sum + at), older, vf_mul (vi_to_vf (sum), newer)));
}

/* Four products of a step: keys number j to j + 63 of the block. */
#define VALUE_STEP(j, v, high, mixed, low)                                                         \
  AMX_LOAD (6, values + (j) / STEP * stride, 0, STEP);                                             \
  AMX_LOAD (7, tile->p[(j) / 4], (v) *STEP, COLUMN_BYTES);                                         \
  AMX_MULTIPLY (high, 6, 7);                                                                       \
  AMX_LOAD (7, tile->p[QUADS + (j) / 4], (v) *STEP, COLUMN_BYTES);                                 \
  AMX_MULTIPLY (mixed, 6, 7);                                                                      \
  AMX_LOAD (6, values + (j) / STEP * stride, AMX_TILE_BYTES, STEP);                                \
  AMX_MULTIPLY (low, 6, 7);                                                                        \
  AMX_LOAD (7, tile->p[(j) / 4], (v) *STEP, COLUMN_BYTES);                                         \
  AMX_MULTIPLY (mixed, 6, 7);

#define CLEAR_SUMS(a, b, c)                                                                        \
  AMX_LOAD (a, zeros, 0, STEP);                                                                    \
  AMX_LOAD (b, zeros, 0, STEP);                                                                    \
  AMX_LOAD (c, zeros, 0, STEP);

#define STORE_SUMS(a, b, c, sums, v)                                                               \
  AMX_STORE (a, (sums)[v], 0, STEP);                                                               \
  AMX_STORE (b, (sums)[v], AMX_TILE_BYTES, STEP);                                                  \
  AMX_STORE (c, (sums)[v], 2 * AMX_TILE_BYTES, STEP);

/*
 * Sums of products of the weights of n keys and 16 values of d. A store waits for the product that it
 * stores, and all products after it wait for the store: sums leave once there are products after
 * them. Those of the last vector are left in tiles 3 to 5, and those of the call before are stored.
 */
static __attribute__ ((noinline)) void
sum_values (
    const HeadTile *tile, Sums *sums, Sums *before, const uint8_t *values, size_t stride, size_t n)
{
  size_t j;

  CLEAR_SUMS (0, 1, 2)
  VALUE_STEP ((size_t) 0, 0, 0, 1, 2)
  STORE_SUMS (3, 4, 5, before, 1)
  for (j = STEP; j < n; j += STEP) {
    VALUE_STEP (j, 0, 0, 1, 2)
  }
  CLEAR_SUMS (3, 4, 5)
  VALUE_STEP ((size_t) 0, 1, 3, 4, 5)
  STORE_SUMS (0, 1, 2, sums, 0)
  for (j = STEP; j < n; j += STEP) {
    VALUE_STEP (j, 1, 3, 4, 5)
  }
}

/* out = out * older + sum * newer for 16 values of d from d on */
static void
add_sums (HeadTile *tile, Sums *sums, size_t d)
{
  size_t r, v;

  for (v = 0; v < HEAD_VECTORS; v++) {
    const vf older = vf_load (tile->older + v * VF_LANES);
    const vf newer = vf_load (tile->newer + v * VF_LANES);

    for (r = 0; r < AMX_ROWS; r++) {
      float *out = tile->out[d + r] + v * VF_LANES;
      vi sum = vi_load ((const uint8_t *) sums[v][0][r]);

      sum = vi_add (_mm512_slli_epi32 (sum, DIGIT), vi_load ((const uint8_t *) sums[v][1][r]));
      sum = vi_add (_mm512_slli_epi32 (sum, DIGIT), vi_load ((const uint8_t *) sums[v][2][r]));
      vf_store (out, vf_fma (vf_load (out), older, vf_mul (vi_to_vf (sum), newer)));
    }
  }
}

/* Begins with the n keys from key number first on. */
static void
begin_block (
    const HeadTile *tile, HeadRow *scores, const HeadArrays *arrays, size_t first, size_t n)
{
  const int8_t *keys = arrays->keys + first * arrays->padded_dim;

  if (arrays->padded_dim == STEP)
    score_short (tile, scores, keys, n);
  else
    score_long (tile, scores, keys, n, arrays->padded_dim);
}

/* Adds the values of these keys. Sums are converted while the tile unit has those that follow. */
static void
end_block (HeadTile *tile, const HeadArrays *arrays, size_t first, size_t n)
{
  const size_t stride = (size_t) (value_tiles (arrays, STEP, 0) - value_tiles (arrays, 0, 0));
  Sums sums[2][HEAD_VECTORS] __attribute__ ((aligned (64)));
  size_t g, d;

  for (g = 0, d = 0; d < arrays->dim; g++, d += AMX_ROWS) {
    sum_values (tile, sums[g % 2], sums[(g + 1) % 2], value_tiles (arrays, first, d), stride, n);
    if (g > 0)
      add_sums (tile, sums[(g + 1) % 2], d - AMX_ROWS);
  }
  STORE_SUMS (3, 4, 5, sums[(g + 1) % 2], 1)
  add_sums (tile, sums[(g + 1) % 2], d - AMX_ROWS);
}

static size_t
block_keys (const VlmHeadAttention *args, size_t first)
{
  return args->n_keys - first < HEAD_BLOCK ? args->n_keys - first : HEAD_BLOCK;
}

static void
absorb_all (HeadTile *tile, const HeadArrays *arrays, const VlmHeadAttention *args, size_t end)
{
  size_t block, key, v;

  head_begin_keys (tile, arrays);
  begin_block (tile, tile->scores[0], arrays, 0, block_keys (args, 0));
  for (block = 0, key = 0; key < args->n_keys; block++, key += HEAD_BLOCK) {
    const size_t n = block_keys (args, key), next = key + HEAD_BLOCK;

    if (next < args->n_keys)
      begin_block (tile, tile->scores[(block + 1) % 2], arrays, next, block_keys (args, next));
    if (block * HEAD_PREFETCH < HEAD_COLUMNS)
      head_prefetch_queries (args, end + block * HEAD_PREFETCH, HEAD_PREFETCH);
    for (v = 0; v < HEAD_VECTORS; v++)
      soften (tile, tile->scores[block % 2], arrays->k_scale + key, n, v);
    end_block (tile, arrays, key, n);
  }
}

static void
amx_attend_head (const VlmHeadAttention *args)
{
  HeadTile tile;

  amx_configure (STEP);
  head_attend (&tile, args, find_arrays, absorb_all);
  AMX_RELEASE ();
}

void
vlm_amx_fill_head (VlmKernels *kernels)
{
  kernels->head_form = VLM_HEAD_INTEGERS;
  kernels->head_bytes = amx_head_bytes;
  kernels->pack_head = amx_pack_head;
  kernels->attend_head = amx_attend_head;
}
