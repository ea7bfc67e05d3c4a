/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of quantised activations with one panel of integer weights. The integer sums of a tile
 * stay in registers through a group; its end turns them into floats and adds them to sums in memory.
 * Every element sees the same operations in every tile and on every level.
 *
 * Few rows take the panel as it is. For more rows with a scale per group, pieces of the panel are
 * made ready once for a block of rows: nibbles become bytes, scales floats. (Float sums in registers,
 * with half the columns, were slower: there is too little between two additions to one integer sum.)
 */

#ifndef VLM_KERNELS_SIMD_INTEGER_H
#define VLM_KERNELS_SIMD_INTEGER_H

#include "kernels/kernels.h"

#include "rest.h"

/* As in matmul.h: one token's weights come from memory. */
#define INT_PREFETCH_BYTES 4096

/* Rows that share a piece of the panel, and its length along k: with the sums they fill three
 * quarters of a first-level cache. Longer groups do without. */
#define INT_BLOCK_ROWS 72
#define INT_PIECE 128

/* So few rows are not worth it. */
#define INT_FEW_ROWS 12

#define INT_PANEL_VECTORS (INT_PANEL / VF_LANES)

typedef float IntRow[INT_PANEL];

/* The rows of a tile, at one group or the groups of a piece. */
typedef struct
{
  IntRow *sums;
  const int8_t *q;
  size_t ldq;
  const float *x_scale; /* ldg apart */
  const int32_t *x_sum; /* the same */
  size_t ldg;
} IntRows;

/* Groups made ready for a block of rows. */
typedef struct
{
  size_t len;   /* of all groups */
  size_t group; /* of one; the last may be shorter */
  const uint8_t *w;
  size_t stride;       /* bytes from group to group */
  const float *scales; /* [groups][INT_PANEL] */
} IntPiece;

typedef void (*IntTile) (IntRow *sums, const VlmActivations *x, size_t first, const uint8_t *w);
typedef void (*IntPieceTile) (const IntRows *rows, const IntPiece *piece);

vlm_always_inline void
int_prefetch (const uint8_t *w, size_t bytes)
{
  size_t i;

  VLM_UNROLL
  for (i = 0; i < bytes; i += 64)
    __builtin_prefetch (w + INT_PREFETCH_BYTES + i);
}

/* The integer sums of one group. is_wide: nibbles are already a byte each. */
vlm_always_inline void
int_sum_group (IntSums sum, const IntRows *x, size_t rows, size_t len, const uint8_t *w,
    VlmIntFormat format, int is_wide, int is_streamed)
{
  const int is_packed = format == VLM_INT_I4_GROUPS && !is_wide;
  const size_t step = VLM_K_STEP * INT_PANEL / (is_packed ? 2 : 1);
  const int32_t bias = format == VLM_INT_I4_GROUPS ? 8 : INT_BIAS;
  const int8_t *q = x->q, *end = q + len;
  const size_t ldq = x->ldq;
  size_t r;

  VLM_UNROLL
  for (r = 0; r < rows; r++)
    int_start_row (sum, r, bias != 0 ? -bias * x->x_sum[r * x->ldg] : 0);
  do {
    if (is_streamed)
      int_prefetch (w, step);
    int_step (sum, q, ldq, rows, w, format, is_wide);
    q += VLM_K_STEP;
    w += step;
  } while (q < end);
}

/* Adds a group to the sums in memory; w_scales are not for VLM_INT_I8. */
vlm_always_inline void
int_end_group (IntSums sum, const IntRows *x, size_t rows, const vf *w_scales, VlmIntFormat format)
{
  const float *x_scales = x->x_scale;
  const size_t ldg = x->ldg;
  IntRow *sums = x->sums;
  size_t r, v;

  /* Or compilers see that these are the sums of the last group, and carry them through the next. */
  __asm__("" : "+r"(sums));
  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    vf x_scale = vf_set1 (x_scales[r * ldg]);

    VLM_UNROLL
    for (v = 0; v < INT_PANEL_VECTORS; v++) {
      float *out = sums[r] + v * VF_LANES;
      vf factor = format != VLM_INT_I8 ? vf_mul (x_scale, w_scales[v]) : x_scale;

      vf_store (out, vf_fma (int_row (sum, r, v), factor, vf_load (out)));
    }
  }
}

vlm_always_inline void
int_clear (IntRow *sums, size_t rows)
{
  size_t r, v;

  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < INT_PANEL; v += VF_LANES)
      vf_store (sums[r] + v, vf_zero ());
  }
}

vlm_always_inline void
int_widen_scales (float *scales, const uint16_t *halves)
{
  size_t v;

  VLM_UNROLL
  for (v = 0; v < INT_PANEL; v += VF_LANES)
    vf_store (scales + v, vf_load_f16 (halves + v));
}

vlm_always_inline IntRows
int_rows_from (IntRow *sums, const VlmActivations *x, size_t first)
{
  return (IntRows){ sums, x->q + first * x->ldq, x->ldq, x->scale + first * x->ldg,
    x->sum + first * x->ldg, x->ldg };
}

/* All groups of the rows of one tile. */
vlm_always_inline void
int_tile (IntRow *sums, const VlmActivations *activations, size_t first, size_t rows,
    const uint8_t *w, VlmIntFormat format)
{
  IntRows x = int_rows_from (sums, activations, first);
  size_t left = vlm_padded_k (activations->k), v;

  int_clear (sums, rows);
  while (left > 0) {
    size_t len = left < activations->group ? left : activations->group;
    const uint16_t *halves = (const uint16_t *) w;
    vf scales[INT_PANEL_VECTORS];
    IntSums sum;

    if (format != VLM_INT_I8)
      w += INT_PANEL * sizeof (uint16_t);
    int_sum_group (sum, &x, rows, len, w, format, 0, first == 0);
    VLM_UNROLL
    for (v = 0; format != VLM_INT_I8 && v < INT_PANEL_VECTORS; v++)
      scales[v] = vf_load_f16 (halves + v * VF_LANES);
    int_end_group (sum, &x, rows, scales, format);
    x.q += len;
    x.x_scale++;
    x.x_sum++;
    w += len * INT_PANEL / (format == VLM_INT_I4_GROUPS ? 2 : 1);
    left -= len;
  }
}

vlm_always_inline void
int_piece_tile (const IntRows *first, size_t rows, const IntPiece *piece, VlmIntFormat format)
{
  const float *scales = piece->scales;
  const uint8_t *w = piece->w;
  size_t left = piece->len, v;
  IntRows x = *first;

  do {
    size_t len = left < piece->group ? left : piece->group;
    vf w_scales[INT_PANEL_VECTORS];
    IntSums sum;

    int_sum_group (sum, &x, rows, len, w, format, 1, 0);
    VLM_UNROLL
    for (v = 0; v < INT_PANEL_VECTORS; v++)
      w_scales[v] = vf_load (scales + v * VF_LANES);
    int_end_group (sum, &x, rows, w_scales, format);
    x.q += len;
    x.x_scale++;
    x.x_sum++;
    w += piece->stride;
    scales += INT_PANEL;
    left -= len;
  } while (left > 0);
}

/* Apart from the tiles, because it would be most of their code. scales may be NULL. */
static __attribute__ ((noinline)) void
int_store_rows (float *y, size_t ldy, const IntRow *sums, size_t rows, size_t n,
    const float *scales, const float *bias)
{
  size_t i, j;

  for (i = 0; i < rows; i++) {
    for (j = 0; j < n; j += VF_LANES) {
      vf sum = vf_load (sums[i] + j);

      if (scales != NULL && bias != NULL)
        sum = vf_fma (sum, vf_load (scales + j), load_rest (bias, j, n));
      else if (scales != NULL)
        sum = vf_mul (sum, vf_load (scales + j));
      else if (bias != NULL)
        sum = vf_add (sum, load_rest (bias, j, n));
      store_rest (y + i * ldy, sum, j, n);
    }
  }
}

#define DEFINE_INT_TILE(name, format, rows)                                                        \
  static __attribute__ ((noinline)) void name##_tile_##rows (                                      \
      IntRow *sums, const VlmActivations *x, size_t first, const uint8_t *w)                       \
  {                                                                                                \
    int_tile (sums, x, first, rows, w, format);                                                    \
  }

#define DEFINE_INT_PIECE_TILE(name, format, rows)                                                  \
  static                                                                                           \
      __attribute__ ((noinline)) void name##_tile_##rows (const IntRows *x, const IntPiece *piece) \
  {                                                                                                \
    int_piece_tile (x, rows, piece, format);                                                       \
  }

#define FOR_THREE_INT_TILES(define, name, format)                                                  \
  define (name, format, 1) define (name, format, 2) define (name, format, 3)
#define LIST_THREE_INT_TILES(name) name##_tile_1, name##_tile_2, name##_tile_3

#if INT_ROWS == 3
#define FOR_INT_TILES(define, name, format) FOR_THREE_INT_TILES (define, name, format)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name)
#elif INT_ROWS == 4
#define FOR_INT_TILES(define, name, format)                                                        \
  FOR_THREE_INT_TILES (define, name, format) define (name, format, 4)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name), name##_tile_4
#elif INT_ROWS == 5
#define FOR_INT_TILES(define, name, format)                                                        \
  FOR_THREE_INT_TILES (define, name, format) define (name, format, 4) define (name, format, 5)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name), name##_tile_4, name##_tile_5
#else
#define FOR_INT_TILES(define, name, format)                                                        \
  FOR_THREE_INT_TILES (define, name, format)                                                       \
  define (name, format, 4) define (name, format, 5) define (name, format, 6)
#define LIST_INT_TILES(name)                                                                       \
  LIST_THREE_INT_TILES (name), name##_tile_4, name##_tile_5, name##_tile_6
#endif

FOR_INT_TILES (DEFINE_INT_TILE, matmul_i8, VLM_INT_I8)
FOR_INT_TILES (DEFINE_INT_TILE, matmul_i8_groups, VLM_INT_I8_GROUPS)
FOR_INT_TILES (DEFINE_INT_TILE, matmul_i4_groups, VLM_INT_I4_GROUPS)
FOR_INT_TILES (DEFINE_INT_PIECE_TILE, wide_i8_groups, VLM_INT_I8_GROUPS)
FOR_INT_TILES (DEFINE_INT_PIECE_TILE, wide_i4_groups, VLM_INT_I4_GROUPS)

static const IntTile int_tiles[VLM_INT_N_FORMATS][INT_ROWS] = {
  [VLM_INT_I8] = { LIST_INT_TILES (matmul_i8) },
  [VLM_INT_I8_GROUPS] = { LIST_INT_TILES (matmul_i8_groups) },
  [VLM_INT_I4_GROUPS] = { LIST_INT_TILES (matmul_i4_groups) },
};

static const IntPieceTile int_piece_tiles[VLM_INT_N_FORMATS][INT_ROWS] = {
  [VLM_INT_I8_GROUPS] = { LIST_INT_TILES (wide_i8_groups) },
  [VLM_INT_I4_GROUPS] = { LIST_INT_TILES (wide_i4_groups) },
};

/* The tiles are the fewest, of nearly equal height. */
static void
int_matmul_tiles (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, size_t n,
    const float *bias, VlmIntFormat format)
{
  size_t n_tiles = (m + INT_ROWS - 1) / INT_ROWS, first = 0;
  const float *scales = format == VLM_INT_I8 ? w : NULL;
  const uint8_t *values = scales != NULL ? (const uint8_t *) (scales + INT_PANEL) : w;

  for (; n_tiles > 0; n_tiles--) {
    size_t rows = (m - first + n_tiles - 1) / n_tiles;
    IntRow sums[INT_ROWS];

    int_tiles[format][rows - 1](sums, x, first, values);
    int_store_rows (y + first * ldy, ldy, (const IntRow *) sums, rows, n, scales, bias);
    first += rows;
  }
}

static void
int_block_tiles (IntRows x, size_t rows, const IntPiece *piece, VlmIntFormat format)
{
  size_t n_tiles = (rows + INT_ROWS - 1) / INT_ROWS;

  for (; n_tiles > 0; n_tiles--) {
    size_t height = (rows + n_tiles - 1) / n_tiles;

    int_piece_tiles[format][height - 1](&x, piece);
    x.sums += height;
    x.q += height * x.ldq;
    x.x_scale += height * x.ldg;
    x.x_sum += height * x.ldg;
    rows -= height;
  }
}

/* Makes the piece's groups ready, from w on; returns where the next piece begins. */
static const uint8_t *
int_widen_piece (
    IntPiece *piece, uint8_t *wide, float *scales, const uint8_t *w, VlmIntFormat format)
{
  const int is_i4 = format == VLM_INT_I4_GROUPS;
  size_t left = piece->len;

  piece->w = is_i4 ? wide : w + INT_PANEL * sizeof (uint16_t);
  piece->stride = INT_PANEL * (piece->group + (is_i4 ? 0 : sizeof (uint16_t)));
  piece->scales = scales;
  while (left > 0) {
    size_t len = left < piece->group ? left : piece->group;

    int_widen_scales (scales, (const uint16_t *) w);
    w += INT_PANEL * sizeof (uint16_t);
    if (is_i4)
      int_widen_nibbles (wide, w, len);
    w += len * INT_PANEL / (is_i4 ? 2 : 1);
    wide += len * INT_PANEL;
    scales += INT_PANEL;
    left -= len;
  }

  return w;
}

static void
int_matmul_block (float *y, size_t ldy, const VlmActivations *activations, size_t first,
    size_t rows, const uint8_t *w, size_t n, const float *bias, VlmIntFormat format)
{
  const size_t groups = INT_PIECE / activations->group;
  uint8_t wide[INT_PIECE * INT_PANEL] __attribute__ ((aligned (64)));
  float scales[INT_PIECE / VLM_K_STEP * INT_PANEL] __attribute__ ((aligned (64)));
  IntRow sums[INT_BLOCK_ROWS] __attribute__ ((aligned (64)));
  IntRows x = int_rows_from (sums, activations, first);
  IntPiece piece = { .group = activations->group };
  size_t left = vlm_padded_k (activations->k);

  int_clear (sums, rows);
  while (left > 0) {
    piece.len = left < groups * piece.group ? left : groups * piece.group;
    w = int_widen_piece (&piece, wide, scales, w, format);
    int_block_tiles (x, rows, &piece, format);
    x.q += piece.len;
    x.x_scale += groups;
    x.x_sum += groups;
    left -= piece.len;
  }
  int_store_rows (y, ldy, (const IntRow *) sums, rows, n, NULL, bias);
}

static void
int_matmul_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, size_t n,
    const float *bias, VlmIntFormat format)
{
  size_t n_blocks = (m + INT_BLOCK_ROWS - 1) / INT_BLOCK_ROWS, first = 0;

  if (m <= INT_FEW_ROWS || x->group > INT_PIECE) {
    int_matmul_tiles (y, ldy, x, m, w, n, bias, format);
    return;
  }

  for (; n_blocks > 0; n_blocks--) {
    size_t rows = (m - first + n_blocks - 1) / n_blocks;

    int_matmul_block (y + first * ldy, ldy, x, first, rows, w, n, bias, format);
    first += rows;
  }
}

static void
simd_matmul_i8 (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, size_t n,
    const float *bias)
{
  int_matmul_tiles (y, ldy, x, m, w, n, bias, VLM_INT_I8);
}

static void
simd_matmul_i8_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias)
{
  int_matmul_groups (y, ldy, x, m, w, n, bias, VLM_INT_I8_GROUPS);
}

static void
simd_matmul_i4_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias)
{
  int_matmul_groups (y, ldy, x, m, w, n, bias, VLM_INT_I4_GROUPS);
}

static void
int_fill (VlmKernels *kernels)
{
  kernels->int_panel = INT_PANEL;
  kernels->int_inner = INT_INNER;
  kernels->int_flip = INT_BIAS;
  kernels->matmul_i8 = simd_matmul_i8;
  kernels->matmul_i8_groups = simd_matmul_i8_groups;
  kernels->matmul_i4_groups = simd_matmul_i4_groups;
}

#endif
