/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads in bfloat16 tiles of AMX. Rows of tiles are queries, 32 at a time;
 * columns are keys, then values of d. Keys come in parts of 32: their scores leave the tiles as
 * floats, become weights, and two parts make the block whose values are added up at once. While one
 * part is softened, the tile unit has the scores of the next and half of the values of the block
 * before, all in turn, so that the processor sees instructions of both kinds.
 *
 * No maximum is kept. Keys have lost their mean, so the largest score is not below zero, and
 * bfloat16 has the exponents of floats: a weight is 2^(score - 30) at first. Queries whose sum of
 * weights is out of range then, as only far larger scores can make it, are done again with their
 * own maximum.
 */

#include "head-amx.h"

#include "head-amx-pack.h"

#include <math.h>
#include <string.h>

#define QUERIES (2 * AMX_ROWS)

/*
 * A score leaves the tiles as 2^8 times the exponent of its weight, with the bias that exponents
 * have in bfloat16: half of that, as an integer, is the weight, but for 2^x - 1 - x of its
 * mantissa.
 */
#define UNIT 256
#define REFERENCE (-30)
#define BIAS (127 + REFERENCE)

/* Sums of weights within these are right. */
#define LEAST_SUM 0x1p-60f
#define MOST_SUM 0x1p60f

typedef float FloatTile[AMX_ROWS][AMX_COLUMNS];

/* Two tiles by two: of queries, then of keys or of d. */
typedef FloatTile FourTiles[2][2];

/* 32 queries. */
typedef struct
{
  FourTiles scores[2]; /* of two parts */
  HalfTile p[2][2][2]; /* weights: of two blocks, two parts each, two tiles of queries */
  FloatTile start[2];  /* what scores begin with */
  HalfTile q[MOST_STEPS][2];
  FourTiles out[MOST_STEPS];
  float sums[QUERIES][AMX_COLUMNS]; /* of weights of a head, in 16 parts */
  float sum[QUERIES];               /* of all heads */
  float reference[QUERIES];         /* what all scores are less by, but for REFERENCE */
  /* Where heads are brought together: what scores of the head lost with the mean of its keys,
   * queries as they were, and what sums of values lost with the means. */
  float offset[QUERIES];
  FloatTile columns[2][HEAD_MAX_DIM / AMX_ROWS];
  float lost[QUERIES][HEAD_MAX_DIM];
} __attribute__ ((aligned (64))) Work;

typedef struct
{
  const HalfTile *keys, *values;
  const float *out; /* what its values are added to */
  size_t n;         /* keys that there are */
} Block;

static const float zeros[4 * AMX_ROWS * AMX_COLUMNS] __attribute__ ((aligned (64)));

/* 2^-8 (1 + x - 2^x) in the middle of 64 ranges of x from 0 to 1. */
static const uint8_t corrections[64]
    __attribute__ ((aligned (64))) = { 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 15, 16,
      16, 17, 18, 18, 19, 19, 20, 20, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 21,
      21, 21, 20, 20, 20, 19, 18, 18, 17, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 5, 4, 2, 1 };

static HeadArrays
find_head (const VlmHeadAttention *args, size_t number)
{
  return find_arrays (
      (const char *) args->head + number * args->head_stride, args->n_keys, args->head_dim);
}

/* Block number index of all heads. */
static Block
find_block (const VlmHeadAttention *args, size_t index)
{
  const size_t per_head = count_blocks (args->n_keys), number = index % per_head;
  const HeadArrays arrays = find_head (args, index / per_head);
  const size_t tiles = number * block_tiles (args->head_dim), left = args->n_keys - number * BLOCK;

  return (Block){ arrays.keys + tiles, arrays.values + tiles, index == 0 ? zeros : NULL,
    left < BLOCK ? left : BLOCK };
}

/* Which of n weights in a register are of keys. */
static __mmask32
find_mask (size_t n)
{
  __mmask32 mask = 0;
  size_t i;

  for (i = 0; i < STEP; i++)
    mask |= (__mmask32) (key_of_weight (i) < n) << i;
  return mask;
}

/* What there is to soften of a part, and how many rows after each four products. */
typedef struct
{
  const FourTiles *scores;
  HalfTile *p;
  float (*sums)[AMX_COLUMNS];
  __mmask32 mask;
  size_t at, step;
} Softening;

/* The next rows: weights of 32 keys in each, and their sums. */
vlm_always_inline void
soften (Softening *softening)
{
  const __m512i table = _mm512_load_si512 (corrections), ones = _mm512_set1_epi16 (0x3f80);
  const size_t end = softening->at + softening->step;
  size_t i;

  for (; softening->at < QUERIES && softening->at < end; softening->at += 4) {
    const float *scores =
        (*softening->scores)[softening->at / AMX_ROWS][0][softening->at % AMX_ROWS];
    uint16_t *p = softening->p[softening->at / AMX_ROWS][softening->at % AMX_ROWS];
    float *sums = softening->sums[softening->at];

    VLM_UNROLL
    for (i = 0; i < 4; i++) {
      __m512i low = _mm512_cvtps_epi32 (vf_load (scores + i * AMX_COLUMNS));
      __m512i high = _mm512_cvtps_epi32 (vf_load (scores + (AMX_ROWS + i) * AMX_COLUMNS));
      /* Where nothing is left, exponents are below zero, and become zero. */
      __m512i x = _mm512_packus_epi32 (low, high);
      __m512i y =
          _mm512_maskz_permutexvar_epi8 (0x5555555555555555, _mm512_srli_epi16 (x, 2), table);
      __m512i weights = _mm512_maskz_srli_epi16 (softening->mask, _mm512_sub_epi16 (x, y), 1);
      vf sum = vf_load (sums + i * AMX_COLUMNS);

      _mm512_storeu_si512 (p + i * STEP, weights);
      vf_store (
          sums + i * AMX_COLUMNS, _mm512_dpbf16_ps (sum, (__m512bh) weights, (__m512bh) ones));
    }
  }
}

/* Products of two tiles at a, one after the other, with two of keys or of values; sums are in 0 to 3.
 * Keys and values come from the second-level cache, and would drive all else out of the first. */
#define PRODUCTS(a, b0, b1, BEGIN)                                                                 \
  AMX_LOAD (4, a, 0, AMX_ROW_BYTES);                                                               \
  AMX_LOAD_ONCE (6, b0, 0, AMX_ROW_BYTES);                                                         \
  BEGIN (0)                                                                                        \
  AMX_MULTIPLY (0, 4, 6);                                                                          \
  AMX_LOAD_ONCE (7, b1, 0, AMX_ROW_BYTES);                                                         \
  BEGIN (1)                                                                                        \
  AMX_MULTIPLY (1, 4, 7);                                                                          \
  AMX_LOAD (5, a, AMX_TILE_BYTES, AMX_ROW_BYTES);                                                  \
  BEGIN (2)                                                                                        \
  AMX_MULTIPLY (2, 5, 6);                                                                          \
  BEGIN (3)                                                                                        \
  AMX_MULTIPLY (3, 5, 7);

#define STORE_SUMS(i) AMX_STORE (i, done, (i) *AMX_TILE_BYTES, AMX_ROW_BYTES);

#define GO_ON(i)
#define BEGIN_SCORES(i)                                                                            \
  STORE_SUMS (i)                                                                                   \
  AMX_LOAD (i, start, (i) / 2 * AMX_TILE_BYTES, AMX_ROW_BYTES);
#define BEGIN_VALUES(i)                                                                            \
  STORE_SUMS (i)                                                                                   \
  AMX_LOAD (i, from, (i) *AMX_TILE_BYTES, AMX_ROW_BYTES);

/*
 * Scores of 32 keys. Sums leave the tiles once there are products after them: those of before go to
 * done, these stay.
 */
vlm_always_inline void
score_part (
    const Work *work, const HalfTile *keys, size_t steps, FourTiles *done, Softening *softening)
{
  const FloatTile *start = work->start;
  size_t s;

  PRODUCTS (work->q[0], keys, keys + steps, BEGIN_SCORES)
  soften (softening);
  for (s = 1; s < steps; s++) {
    PRODUCTS (work->q[s], keys + s, keys + steps + s, GO_ON)
    soften (softening);
  }
}

/* Adds the values of a block for 32 of d, likewise. */
vlm_always_inline void
add_values (const HalfTile (*p)[2], const HalfTile *values, const float *from, FourTiles *done,
    Softening *softening)
{
  PRODUCTS (p[0], values, values + 1, BEGIN_VALUES)
  soften (softening);
  PRODUCTS (p[1], values + 2, values + 3, GO_ON)
  soften (softening);
}

static void
store_sums (FourTiles *done)
{
  STORE_SUMS (0)
  STORE_SUMS (1)
  STORE_SUMS (2)
  STORE_SUMS (3)
}

/*
 * Softens part number index of all heads, which is of block now, while there are products of the
 * next part, of block next, and of the values of block last. Any of them may be missing. Takes and
 * returns where the sums go that are in tiles.
 */
static __attribute__ ((noinline)) FourTiles *
work_on_part (Work *work, size_t index, size_t steps, const Block *last, const Block *now,
    const Block *next, FourTiles *done)
{
  const size_t part = index % 2, block = index / 2 % 2, half = (steps + 1) / 2;
  const size_t end = last == NULL ? 0 : part == 0 ? half : steps;
  const size_t n = (next != NULL ? steps : 0) + (last != NULL ? 2 * half : 0);
  Softening softening = { .scores = &work->scores[part],
    .p = work->p[block][part],
    .sums = work->sums,
    .at = QUERIES,
    .step = n > 0 ? (QUERIES / 4 + n - 1) / n * 4 : QUERIES };
  size_t s;

  if (now != NULL) {
    const size_t before = part * STEP;

    softening.at = 0;
    softening.mask =
        now->n >= before + STEP ? 0xffffffff : find_mask (now->n > before ? now->n - before : 0);
  }
  if (next != NULL) {
    score_part (work, next->keys + (1 - part) * 2 * steps, steps, done, &softening);
    done = &work->scores[1 - part];
  }
  for (s = part == 0 ? 0 : half; s < end; s++) {
    FourTiles *out = &work->out[s];

    add_values ((const HalfTile (*)[2]) work->p[1 - block], last->values + 4 * s,
        last->out != NULL ? last->out : &(*out)[0][0][0][0], done, &softening);
    done = out;
  }
  if (n == 0)
    store_sums (done);
  softening.step = QUERIES;
  soften (&softening);
  return done;
}

/* u.mean of the keys of a head, u being queries times what makes scores powers of two. */
static void
find_offset (Work *work, const VlmHeadAttention *args, size_t head)
{
  const float *mean = find_head (args, head).k_mean;
  size_t d, i;

  for (i = 0; i < 2; i++) {
    vf sum = vf_zero ();

    for (d = 0; d < args->head_dim; d++)
      sum = vf_fma (vf_load (work->columns[i][d / AMX_ROWS][d % AMX_ROWS]), vf_set1 (mean[d]), sum);
    vf_store (work->offset + i * AMX_ROWS, sum);
  }
}

/* Before the scores of a head. */
static void
begin_head (Work *work, const VlmHeadAttention *args, size_t head)
{
  size_t i;

  if (args->max != NULL)
    find_offset (work, args, head);
  for (i = 0; i < QUERIES; i++)
    vf_store (work->start[i / AMX_ROWS][i % AMX_ROWS],
        vf_set1 (UNIT * (BIAS + (work->offset[i] - work->reference[i]))));
}

/* After its last weights. */
static void
end_head (Work *work, const VlmHeadAttention *args, size_t head)
{
  const float *mean = find_head (args, head).v_mean;
  size_t i, d;

  for (i = 0; i < QUERIES; i++) {
    const float sum = vf_sum (vf_load (work->sums[i]));

    vf_store (work->sums[i], vf_zero ());
    work->sum[i] += sum;
    for (d = 0; args->max != NULL && d < args->head_dim; d += VF_LANES)
      vf_store (work->lost[i] + d,
          vf_fma (vf_set1 (sum), vf_load (mean + d), vf_load (work->lost[i] + d)));
  }
}

/* Rounds the queries of tile number t, of which there are n from number first on. */
static void
begin_tile (Work *work, const VlmHeadAttention *args, size_t t, size_t first, size_t n)
{
  const size_t dim = args->head_dim;
  const vf factor = vf_set1 (args->scale * HEAD_LOG2_E), unit = vf_set1 (UNIT);
  vf rows[HEAD_MAX_DIM / VF_LANES + 1][AMX_ROWS];
  size_t r, d;

  for (r = 0; r < AMX_ROWS; r++) {
    const float *q = args->q + (first + r) * args->q_stride;

    rows[(dim - 1) / VF_LANES + 1][r] = vf_zero ();
    for (d = 0; d < dim; d += VF_LANES)
      rows[d / VF_LANES][r] = r < n ? vf_mul (load_rest (q, d, dim), factor) : vf_zero ();
    for (d = 0; d < dim; d += STEP)
      _mm512_storeu_si512 (work->q[d / STEP][t][r],
          round_pair (
              vf_mul (rows[d / VF_LANES][r], unit), vf_mul (rows[d / VF_LANES + 1][r], unit)));
  }
  for (d = 0; args->max != NULL && d < dim; d += VF_LANES)
    store_transposed (work->columns[t][d / AMX_ROWS], (const vi *) rows[d / VF_LANES]);
}

/* The same of n queries; the rows after them are zero. */
static void
begin_queries (Work *work, const VlmHeadAttention *args, size_t first, size_t n)
{
  begin_tile (work, args, 0, first, n);
  begin_tile (work, args, 1, first + AMX_ROWS, n > AMX_ROWS ? n - AMX_ROWS : 0);
}

/* Scores are less by the mean of the first head. */
static void
find_reference (Work *work, const VlmHeadAttention *args)
{
  memset (work->offset, 0, sizeof work->offset);
  if (args->max != NULL)
    find_offset (work, args, 0);
  memcpy (work->reference, work->offset, sizeof work->reference);
}

/* Takes all keys of all heads into the work. The queries after them begin at end. */
static void
absorb_all (Work *work, const VlmHeadAttention *args, size_t end)
{
  const size_t per_head = count_blocks (args->n_keys), n = per_head * (args->n_more + 1);
  const size_t steps = count_steps (args->head_dim), ahead = (QUERIES + n - 1) / n;
  Block last = { 0 }, now = find_block (args, 0), next = { 0 };
  FourTiles *done = &work->scores[1];
  size_t i;

  memset (work->sum, 0, sizeof work->sum);
  memset (work->sums, 0, sizeof work->sums);
  for (i = 0; args->max != NULL && i < QUERIES; i++)
    memset (work->lost[i], 0, (args->head_dim + VF_LANES - 1) / VF_LANES * sizeof (vf));
  begin_head (work, args, 0);
  done = work_on_part (work, 1, steps, NULL, NULL, &now, done);
  for (i = 0; i < n; i++) {
    const int has_next = i + 1 < n;

    done = work_on_part (work, 2 * i, steps, i > 0 ? &last : NULL, &now, &now, done);
    if (has_next) {
      next = find_block (args, i + 1);
      if ((i + 1) % per_head == 0)
        begin_head (work, args, (i + 1) / per_head);
    }
    done = work_on_part (
        work, 2 * i + 1, steps, i > 0 ? &last : NULL, &now, has_next ? &next : NULL, done);
    head_prefetch_queries (args, end + i * ahead, ahead);
    if ((i + 1) % per_head == 0)
      end_head (work, args, i / per_head);
    last = now;
    now = next;
  }
  done = work_on_part (work, 2 * n, steps, &last, NULL, NULL, done);
  done = work_on_part (work, 2 * n + 1, steps, &last, NULL, NULL, done);
  store_sums (done);
}

static int
is_in_range (float sum)
{
  return sum >= LEAST_SUM && sum <= MOST_SUM;
}

/* The largest of the scores of a part, of which n are of keys. */
static float
find_most (const FourTiles *scores, size_t i, size_t n, float most)
{
  size_t j;

  for (j = 0; j < n && j < STEP; j++)
    most = fmaxf (most, (*scores)[i / AMX_ROWS][j / AMX_COLUMNS][i % AMX_ROWS][j % AMX_COLUMNS]);
  return most;
}

/* Makes the largest score the reference of those of n queries whose sum is out of range. Returns
 * whether there are any. */
static int
find_maxima (Work *work, const VlmHeadAttention *args, size_t n)
{
  const size_t per_head = count_blocks (args->n_keys), steps = count_steps (args->head_dim);
  Softening nothing = { .at = QUERIES };
  float most[QUERIES];
  size_t i, block, part;
  int found = 0;

  for (i = 0; i < n; i++) {
    most[i] = -INFINITY;
    found |= !is_in_range (work->sum[i]);
  }
  for (block = 0; found && block < per_head * (args->n_more + 1); block++) {
    const Block now = find_block (args, block);

    if (block % per_head == 0)
      begin_head (work, args, block / per_head);
    for (part = 0; part < 2 && part * STEP < now.n; part++) {
      score_part (work, now.keys + part * 2 * steps, steps, &work->scores[1], &nothing);
      store_sums (&work->scores[0]);
      for (i = 0; i < n; i++)
        most[i] = find_most (&work->scores[0], i, now.n - part * STEP, most[i]);
    }
  }
  for (i = 0; i < n; i++) {
    if (!is_in_range (work->sum[i]))
      work->reference[i] += most[i] / UNIT - BIAS;
  }
  return found;
}

static void
finish_query (const Work *work, const VlmHeadAttention *args, size_t i, float *out)
{
  const vf inverse = vf_set1 (1 / work->sum[i]);
  const float *mean = find_head (args, 0).v_mean;
  size_t d;

  for (d = 0; d < args->head_dim; d += VF_LANES) {
    vf sum = vf_load (work->out[d / STEP][i / AMX_ROWS][d / AMX_COLUMNS % 2][i % AMX_ROWS]);

    store_rest (out, vf_fma (sum, inverse, vf_load (mean + d)), d, args->head_dim);
  }
}

/* Sums as they are, but for a power of two, which makes that of the weights 1 to 2. */
static void
finish_total (const Work *work, const VlmHeadAttention *args, size_t i, size_t query)
{
  const int exponent = ilogbf (work->sum[i]);
  const vf factor = vf_set1 (ldexpf (1, -exponent));
  float *out = args->out + query * args->out_stride;
  size_t d;

  args->max[query] = (work->reference[i] + (float) (exponent - REFERENCE)) * HEAD_LN_2;
  args->sum[query] = ldexpf (work->sum[i], -exponent);
  for (d = 0; d < args->head_dim; d += VF_LANES) {
    vf sum = vf_load (work->out[d / STEP][i / AMX_ROWS][d / AMX_COLUMNS % 2][i % AMX_ROWS]);

    store_rest (out, vf_mul (vf_add (sum, vf_load (work->lost[i] + d)), factor), d, args->head_dim);
  }
}

static void
amx_attend_head (const VlmHeadAttention *args)
{
  Work work __attribute__ ((aligned (4096)));
  size_t first, n, i;

  amx_configure ();
  for (first = 0; first < args->n_queries; first += n) {
    const size_t left = args->n_queries - first;

    n = left < QUERIES ? left : QUERIES;
    if (first == 0)
      head_prefetch_queries (args, 0, n);
    begin_queries (&work, args, first, n);
    find_reference (&work, args);
    absorb_all (&work, args, first + n);
    if (find_maxima (&work, args, n))
      absorb_all (&work, args, first + n);
    for (i = 0; i < n; i++) {
      if (args->max != NULL)
        finish_total (&work, args, i, first + i);
      else
        finish_query (&work, args, i, args->out + (first + i) * args->out_stride);
    }
  }
  AMX_RELEASE ();
}

void
vlm_amx_fill_head (VlmKernels *kernels)
{
  kernels->head_form = VLM_HEAD_BF16;
  kernels->head_bytes = amx_head_bytes;
  kernels->pack_head = amx_pack_head;
  kernels->attend_head = amx_attend_head;
}
