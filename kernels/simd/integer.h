/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of quantised activations with one panel of integer weights. Every element sees the same
 * operations in every tile and on every level.
 *
 * Few rows take panels of the commonest formats as they are. Else pieces of the panel are made
 * ready once for a block of rows.
 */

#ifndef VLM_KERNELS_SIMD_INTEGER_H
#define VLM_KERNELS_SIMD_INTEGER_H

#include "int-pieces.h"
#include "int-store.h"
#include "int-tiles.h"

#ifndef INT_FLIP
#define INT_FLIP INT_BIAS
#endif

/* So few rows are not worth making pieces ready where the panel can be taken as it is. */
#ifndef INT_FEW_ROWS
#define INT_FEW_ROWS 12
#endif

/* Calls for the memory of an output ahead of its stores. Its rows are far apart, so that nothing
 * else hides that they come from memory; it is worth a quarter of the rate of a large product. */
vlm_always_inline void
int_expect_rows (float *y, size_t ldy, size_t rows, size_t n)
{
  size_t i, j;

  for (i = 0; i < rows; i++) {
    for (j = 0; j < n; j += 16)
      __builtin_prefetch (y + i * ldy + j, 1);
  }
}

/*
 * The tiles of many rows call for the panel behind this one, each for its share: the first of them
 * would take far less time than it takes to come. It is the one that is next, as a rule.
 */
static IntAhead
int_next_panel (
    const VlmActivations *x, size_t m, const VlmIntFormat *format, const uint8_t *w, size_t n_tiles)
{
  const size_t groups = vlm_n_groups (x->k, x->group), k = vlm_padded_k (x->k);
  size_t bytes = panel_value_bytes (format->bits, INT_PANEL, k);

  if (m <= INT_FEW_ROWS || k == 0 || !INT_CALLS_NEXT ())
    return (IntAhead){ w, 0 };
  bytes += panel_scale_bytes (format, INT_PANEL);
  return (IntAhead){ w + bytes, (bytes / (n_tiles * groups) + 63) / 64 * 64 };
}

/* The tiles are the fewest, of nearly equal height. */
static void
int_matmul_tiles (const IntTile *tiles, float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias)
{
  size_t n_tiles = (m + INT_ROWS - 1) / INT_ROWS, first = 0;
  const float *scales = int_row_scales (format, w);
  const uint8_t *values = scales != NULL ? (const uint8_t *) (scales + INT_PANEL) : w;
  IntAhead ahead = int_next_panel (x, m, format, w, n_tiles);

  for (; n_tiles > 0; n_tiles--) {
    size_t rows = (m - first + n_tiles - 1) / n_tiles;
    const IntOutput output = { y + first * ldy, ldy, n };
    IntTotals totals;

    tiles[rows - 1](&totals, x, first, values, &output, &ahead);
    ahead.w += ahead.bytes * vlm_n_groups (x->k, x->group);
    int_store_rows (y + first * ldy, ldy, (const IntRow *) totals.sums, rows, n, scales, bias);
    first += rows;
  }
}

/* A block of rows on its way through the panel. */
typedef struct
{
  const IntPieceTile *tiles;
  IntRows x;
  size_t rows;
  float *y;
  size_t ldy, n;
  const float *scales, *bias; /* of rows, or NULL */
  int calls_ahead;            /* its tiles call for the piece that is next */
} IntBlock;

/* Where a piece is in the panel, and what follows it there. */
typedef struct
{
  int is_first, is_last;
  const uint8_t *next;
  size_t next_bytes;
} IntPlace;

/* Takes all rows through a piece. Their sums are cleared before the first and stored after the last
 * of them, tile by tile, so that they are in the nearest cache then. */
static void
int_block_tiles (
    const IntBlock *block, const IntRows *first, const IntPiece *piece, const IntPlace *place)
{
  size_t n_tiles = (block->rows + INT_ROWS - 1) / INT_ROWS, at = 0, i;
  const size_t share = (place->next_bytes / n_tiles + 63) / 64 * 64;
  const uint8_t *next = place->next;
  IntRows x = *first;

  for (; n_tiles > 0; n_tiles--) {
    size_t rows = (block->rows - at + n_tiles - 1) / n_tiles;
    float *y = block->y + at * block->ldy;

    for (i = 0; i < share; i += 64)
      VLM_STREAM (next + i);
    next += share;
    if (place->is_last)
      int_expect_rows (y, block->ldy, rows, block->n);
    if (place->is_first && !piece->is_part)
      int_clear (x.sums, rows);
    block->tiles[rows - 1](&x, piece);
    if (place->is_last && !piece->is_part)
      int_store_rows (
          y, block->ldy, (const IntRow *) x.sums, rows, block->n, block->scales, block->bias);
    x.sums += rows;
    x.parts += rows;
    x.q += rows * x.ldq;
    x.x_scale += rows * x.ldg;
    x.x_sum += rows * x.ldg;
    at += rows;
  }
}

/* Makes the next len values of the panel ready and takes the block through them. */
static void
int_block_piece (
    const IntBlock *block, const IntRows *x, IntPiece *piece, IntReader *reader, size_t len)
{
  const uint8_t *start = reader->next;
  IntPlace place = { .is_first = reader->at == 0 };

  int_next_piece (piece, reader, len);
  place.is_last = reader->at == reader->k;
  place.next = reader->next;
  if (block->calls_ahead && reader->run_len <= INT_PIECE)
    place.next_bytes = (size_t) (reader->next - start);
  int_block_tiles (block, x, piece, &place);
}

static void
int_start_parts (const IntRows *x, size_t rows, int32_t bias)
{
  size_t r, v;

  for (r = 0; r < rows; r++) {
    for (v = 0; v < INT_PANEL; v += VF_LANES)
      vi_store ((uint8_t *) (x->parts[r] + v), vi_set1 (-bias * x->x_sum[r * x->ldg]));
  }
}

static void
int_end_parts (const IntRows *x, size_t rows, const IntPiece *piece)
{
  size_t r, v;

  for (r = 0; r < rows; r++) {
    vf x_scale = vf_set1 (x->x_scale[r * x->ldg]);
    vf total = vf_set1 (x->x_scale[r * x->ldg] * (float) x->x_sum[r * x->ldg]);

    for (v = 0; v < INT_PANEL; v += VF_LANES) {
      vf dot = vi_to_vf (vi_load ((const uint8_t *) (x->parts[r] + v)));
      vf factor = vf_mul (x_scale, vf_load (piece->scales + v));
      vf value = vf_fma (dot, factor, vf_load (x->sums[r] + v));

      if (piece->mins != NULL)
        value = vf_fma (total, vf_load (piece->mins + v), value);
      vf_store (x->sums[r] + v, value);
    }
  }
}

/* A group that is longer than pieces. */
static void
int_long_group (const IntBlock *block, IntPiece *piece, IntReader *reader, size_t len)
{
  IntRows x = block->x;
  size_t at, n;

  int_start_parts (&x, block->rows, int_bias (reader->format));
  for (at = 0; at < len; at += n) {
    n = len - at < INT_PIECE ? len - at : INT_PIECE;
    int_block_piece (block, &x, piece, reader, n);
    x.q += n;
  }
  int_end_parts (&x, block->rows, piece);
}

/* Whole groups that fit a piece, or one that does not, at a time. */
static void
int_matmul_block (IntBlock *block, const VlmActivations *activations, size_t first,
    const VlmIntFormat *format, const void *w)
{
  const size_t group = activations->group, most = int_piece_values (format);
  const size_t groups = group < most ? most / group : 1;
  IntRow sums[INT_BLOCK_ROWS] __attribute__ ((aligned (64)));
  IntPart parts[INT_BLOCK_ROWS] __attribute__ ((aligned (64)));
  IntRoom room;
  IntReader reader =
      int_start_panel (&room, format, w, activations->k, first == 0 && !block->calls_ahead);
  IntPiece piece = int_piece_of (&room, format, group);

  block->x = int_rows_from (sums, parts, activations, first);
  if (piece.is_part || reader.k == 0)
    int_clear (sums, block->rows);
  while (reader.at < reader.k) {
    size_t left = reader.k - reader.at, len = left < groups * group ? left : groups * group;

    if (piece.is_part)
      int_long_group (block, &piece, &reader, len);
    else
      int_block_piece (block, &block->x, &piece, &reader, len);
    block->x.q += len;
    block->x.x_scale += groups;
    block->x.x_sum += groups;
  }
  if (piece.is_part || reader.k == 0)
    int_store_rows (block->y, block->ldy, (const IntRow *) sums, block->rows, block->n,
        block->scales, block->bias);
}

static void
int_matmul_blocks (float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias)
{
  IntBlock block = { .tiles = int_piece_tiles (format->bits),
    .ldy = ldy,
    .n = n,
    .scales = int_row_scales (format, w),
    .bias = bias };
  size_t n_blocks = (m + INT_BLOCK_ROWS - 1) / INT_BLOCK_ROWS, first = 0;

  for (; n_blocks > 0; n_blocks--) {
    block.rows = (m - first + n_blocks - 1) / n_blocks;
    block.y = y + first * ldy;
    block.calls_ahead = first == 0 && block.rows > INT_FEW_ROWS && INT_CALLS_NEXT ();
    int_matmul_block (&block, x, first, format, w);
    first += block.rows;
  }
}

/* Tiles that take panels of the format as they are, or NULL. */
static const IntTile *
int_tiles_of (const VlmIntFormat *format)
{
  if (format->bits == 8 && format->scale == VLM_SCALE_ROW)
    return int8_row_tiles;
  if (format->scale != VLM_SCALE_F16 || format->has_min)
    return NULL;
  if (format->bits == 8)
    return int8_groups_tiles;
  return format->bits == 4 ? int4_groups_tiles : NULL;
}

static void
simd_matmul_int (float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias)
{
  const IntTile *tiles = int_tiles_of (format);
  int is_direct = tiles == int8_row_tiles || m <= INT_FEW_ROWS || x->group > INT_PIECE;

  if (tiles != NULL && is_direct)
    int_matmul_tiles (tiles, y, ldy, x, m, format, w, n, bias);
  else
    int_matmul_blocks (y, ldy, x, m, format, w, n, bias);
}

static void
int_fill (VlmKernels *kernels)
{
  kernels->int_panel = INT_PANEL;
  kernels->int_inner = INT_INNER;
  kernels->int_flip = INT_FLIP;
  kernels->matmul_int = simd_matmul_int;
}

#endif
