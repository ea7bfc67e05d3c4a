/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tiles of integer products: a few rows of activations times all columns of a panel. The integer
 * sums of a tile stay in registers through a group; its end turns them into floats and adds them to
 * sums in memory. (Float sums in registers, with half the columns, were slower: there is too little
 * between two additions to one integer sum.)
 */

#ifndef VLM_KERNELS_SIMD_INT_TILES_H
#define VLM_KERNELS_SIMD_INT_TILES_H

#include "kernels/panel.h"

#include "int-rows.h"
#include "int-values.h"

typedef int32_t IntPart[INT_PANEL];

/* The rows of a tile, at one group or the groups of a piece. */
typedef struct
{
  IntRow *sums;
  IntPart *parts; /* of a group that is longer than what is taken at once */
  const int8_t *q;
  size_t ldq;
  const float *x_scale; /* ldg apart */
  const int32_t *x_sum; /* the same */
  size_t ldg;
} IntRows;

/* What the rows of a tile add up to. */
typedef struct
{
  IntRow sums[INT_ROWS];
  IntPart parts[INT_ROWS];
} __attribute__ ((aligned (64))) IntTotals;

/* Activations of one group, or a part of it, as the steps of a tile take them. */
typedef struct
{
  const int8_t *q;
  size_t ldq;
  int32_t start[INT_ROWS]; /* what the integer sums of a row begin with */
#ifdef INT_ALTERNATE
  int8_t ready[INT_ROWS][2 * INT_PIECE];
#endif
#ifdef INT_SPLIT
  IntSplit split;
#endif
} IntFactors;

/* What the integer sums of the groups of a piece begin with. */
typedef int32_t IntStarts[INT_ROWS][INT_PIECE / VLM_K_STEP];

/* Groups, or a part of one, made ready for a block of rows. */
typedef struct
{
  size_t len;   /* of all groups */
  size_t group; /* of one; the last may be shorter */
  const uint8_t *w;
  size_t stride;       /* bytes from group to group */
  int is_part;         /* sums are only added to the rows' parts */
  int32_t bias;        /* what was added to every value; 0 for parts */
  const float *scales; /* [groups][INT_PANEL] */
  size_t lds;          /* INT_PANEL, or 0 when all groups have the same */
  const float *mins;   /* [groups][INT_PANEL], or NULL */
} IntPiece;

/* Where the sums of a tile will go: n values of a row, ldy apart. */
typedef struct
{
  float *y;
  size_t ldy, n;
} IntOutput;

/* What a tile calls for on its way: so many bytes with each group, a part of the panel that is next. */
typedef struct
{
  const uint8_t *w;
  size_t bytes;
} IntAhead;

typedef void (*IntTile) (IntTotals *totals, const VlmActivations *x, size_t first, const uint8_t *w,
    const IntOutput *output, const IntAhead *ahead);
typedef void (*IntPieceTile) (const IntRows *rows, const IntPiece *piece);

/* Bytes of len values of all columns. */
vlm_always_inline size_t
int_w_bytes (IntValues values, size_t len)
{
  return INT_PANEL * (values == INT_NIBBLES ? len / 2 : len);
}

/* Of those bytes of a panel, what a tile of so many rows reads. */
vlm_always_inline void
int_prefetch (const uint8_t *w, size_t bytes, size_t rows)
{
  size_t i;

  VLM_UNROLL
  for (i = 0; i < bytes; i += 64) {
    if (i % (INT_PANEL * INT_INNER) < INT_TILE_COLUMNS (rows) * INT_INNER)
      VLM_STREAM (w + INT_STREAM_BYTES + i);
  }
}

vlm_always_inline void
int_prefetch_scales (const uint8_t *halves)
{
  size_t i;

  VLM_UNROLL
  for (i = 0; i < INT_PANEL * sizeof (uint16_t); i += 64)
    VLM_STREAM (halves + INT_STREAM_BYTES + i);
}

/* What the integer sums of rows begin with, whose weights have bias in them. */
vlm_always_inline void
int_take_bias (int32_t *starts, const IntRows *x, size_t rows, int32_t bias)
{
  size_t r;

  VLM_UNROLL
  for (r = 0; r < rows; r++)
    starts[r] = bias != 0 ? -bias * x->x_sum[r * x->ldg] : 0;
}

/* What the sums of rows begin with is lds apart. */
vlm_always_inline void
int_take_factors (
    IntFactors *factors, const IntRows *x, size_t rows, const int32_t *starts, size_t lds)
{
  size_t r;

  factors->q = x->q;
  factors->ldq = x->ldq;
  VLM_UNROLL
  for (r = 0; r < rows; r++)
    factors->start[r] = starts[r * lds];
}

vlm_always_inline void
int_start_group (IntFactors *factors, const IntRows *x, size_t rows, size_t len,
    const int32_t *starts, size_t lds, const uint8_t *w, IntValues values)
{
#ifdef INT_ALTERNATE
  if (values == INT_BYTES) {
    factors->q = factors->ready[0];
    factors->ldq = sizeof factors->ready[0];
    int_alternate (factors->ready, factors->start, x->q, x->ldq, rows, len);
    return;
  }
#endif
#ifdef INT_SPLIT
  if (values == INT_SPLIT_BYTES) {
    factors->q = factors->split.ready[0];
    factors->ldq = sizeof factors->split.ready[0];
    int_split_rows (&factors->split, x->q, x->ldq, rows, len, starts, lds, w);
    return;
  }
#endif
  (void) len, (void) w, (void) values;
  int_take_factors (factors, x, rows, starts, lds);
}

/* What the sums of a row begin with, of the columns from this one on. */
vlm_always_inline void
int_start_sums (IntSums sum, const IntFactors *x, size_t r, size_t column, IntValues values)
{
#ifdef INT_SPLIT
  if (values == INT_SPLIT_BYTES) {
    int_load_row (sum, r, x->split.sums[r] + column);
    return;
  }
#endif
  (void) column, (void) values;
  int_start_row (sum, r, x->start[r]);
}

/* The integer sums of one group, of the columns from this one on. */
vlm_always_inline void
int_sum_group (IntSums sum, const IntFactors *x, size_t rows, size_t len, const uint8_t *w,
    size_t column, IntValues values, int is_streamed)
{
  const size_t step = int_w_bytes (values, VLM_K_STEP);
  const int8_t *q = x->q, *end = q + len;
  const size_t ldq = x->ldq;
  size_t r;

  /* Or compilers keep what rows begin with in registers, from one run of columns to the next. */
  if (INT_TILE_COLUMNS (rows) < INT_PANEL)
    __asm__("" : "+r"(x));
  w += column * INT_INNER;
  VLM_UNROLL
  for (r = 0; r < rows; r++)
    int_start_sums (sum, x, r, column, values);
  do {
    if (is_streamed)
      int_prefetch (w, step, rows);
    int_step (sum, q, ldq, rows, w, values);
    q += VLM_K_STEP;
    w += step;
  } while (q < end);
}

/* Adds a group to the sums in memory. Without w_scales only those of the activations count. */
vlm_always_inline void
int_end_group (IntSums sum, const IntRows *x, size_t rows, const vf *w_scales, size_t column)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
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
    for (v = 0; v < vectors; v++) {
      float *out = sums[r] + column + v * VF_LANES;
      vf factor = w_scales != NULL ? vf_mul (x_scale, w_scales[v]) : x_scale;

      vf_store (out, vf_fma (vi_to_vf (int_row (sum, r, v)), factor, vf_load (out)));
    }
  }
}

/* The same with minimums. Scales stay in memory too, or registers would not suffice. */
vlm_always_inline void
int_end_group_min (IntSums sum, const IntRows *x, size_t rows, const float *scales,
    const float *mins, size_t column)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  const size_t ldg = x->ldg;
  IntRow *sums = x->sums;
  size_t r, v;

  __asm__("" : "+r"(sums));
  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    float x_scale = x->x_scale[r * ldg], total = x_scale * (float) x->x_sum[r * ldg];

    VLM_UNROLL
    for (v = 0; v < vectors; v++) {
      const size_t c = column + v * VF_LANES;
      vf factor = vf_mul (vf_set1 (x_scale), vf_load (scales + c));
      vf value = vf_fma (vi_to_vf (int_row (sum, r, v)), factor, vf_load (sums[r] + c));

      vf_store (sums[r] + c, vf_fma (vf_set1 (total), vf_load (mins + c), value));
    }
  }
}

/* The same for integers alone. */
vlm_always_inline void
int_end_part (IntSums sum, const IntRows *x, size_t rows, size_t column)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  size_t r, v;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++) {
      uint8_t *out = (uint8_t *) (x->parts[r] + column + v * VF_LANES);

      vi_store (out, vi_add (int_row (sum, r, v), vi_load (out)));
    }
  }
}

vlm_always_inline IntRows
int_rows_from (IntRow *sums, IntPart *parts, const VlmActivations *x, size_t first)
{
  return (IntRows){ sums, parts, x->q + first * x->ldq, x->ldq, x->scale + first * x->ldg,
    x->sum + first * x->ldg, x->ldg };
}

/* Calls for the memory of a row of an output ahead of its stores. Rows are far apart, so that
 * nothing else hides that they come from memory. */
vlm_always_inline void
int_expect_row (const IntOutput *output, size_t r)
{
  size_t j;

  for (j = 0; j < output->n; j += 16)
    __builtin_prefetch (output->y + r * output->ldy + j, 1);
}

/* As much of a group as is taken at once. */
vlm_always_inline size_t
int_most_values (IntValues values)
{
#ifdef INT_ALTERNATE
  if (values == INT_BYTES)
    return INT_PIECE;
#endif
#ifdef INT_SPLIT
  if (values == INT_SPLIT_BYTES)
    return INT_PIECE;
#endif
  (void) values;
  return SIZE_MAX;
}

/* The sums of a part of a group wait in memory for the next one. */
vlm_always_inline void
int_keep_part (IntSums sum, const IntRows *x, size_t rows, size_t column)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  size_t r, v;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      vi_store ((uint8_t *) (x->parts[r] + column + v * VF_LANES), int_row (sum, r, v));
  }
}

vlm_always_inline void
int_add_part (IntSums sum, const IntRows *x, size_t rows, size_t column)
{
#if defined(INT_ALTERNATE) || defined(INT_SPLIT)
  const size_t vectors = INT_TILE_VECTORS (rows);
  size_t r, v;

  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < vectors; v++)
      sum[r][v] =
          vi_add (sum[r][v], vi_load ((const uint8_t *) (x->parts[r] + column + v * VF_LANES)));
  }
#else
  (void) sum, (void) x, (void) rows, (void) column;
#endif
}

/* What was added to values that are taken as they are in a panel. */
vlm_always_inline int32_t
int_bias_of (IntValues values)
{
  if (values == INT_SPLIT_BYTES)
    return 0x80;
  return values == INT_NIBBLES ? 8 : INT_BIAS;
}

/* The rows of a tile with all columns, at one group. With halves the scales stand before it. */
vlm_always_inline void
int_tile_group (const IntRows *group, size_t rows, size_t len, const uint8_t *w, IntValues values,
    int has_halves, int is_streamed)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  const uint16_t *halves = (const uint16_t *) w;
  const size_t most = int_most_values (values);
  IntRows x = *group;
  IntFactors factors;
  static const int32_t nothing[INT_ROWS] = { 0 }; /* what the sums of later parts begin with */
  int32_t starts[INT_ROWS];
  size_t at, n, column, v;

  int_take_bias (starts, &x, rows, int_bias_of (values));
  if (has_halves)
    w += INT_PANEL * sizeof (uint16_t);
  for (at = 0; at < len; at += n) {
    n = len - at < most ? len - at : most;
    int_start_group (&factors, &x, rows, n, at == 0 ? starts : nothing, 1, w, values);
    for (column = 0; column < INT_PANEL; column += INT_TILE_COLUMNS (rows)) {
      vf scales[INT_COLUMNS / VF_LANES];
      IntSums sum;

      int_sum_group (sum, &factors, rows, n, w, column, values, is_streamed);
      if (at > 0)
        int_add_part (sum, &x, rows, column);
      if (at + n < len) {
        int_keep_part (sum, &x, rows, column);
        continue;
      }
      VLM_UNROLL
      for (v = 0; has_halves && v < vectors; v++)
        scales[v] = vf_load_f16 (halves + column + v * VF_LANES);
      int_end_group (sum, &x, rows, has_halves ? scales : NULL, column);
    }
    x.q += n;
    w += int_w_bytes (values, n);
  }
}

/*
 * All groups of the rows of one tile; halves stand before those of a panel that has them. With each
 * group one row of the output is called for: all at once, they would hold up the weights.
 */
vlm_always_inline void
int_tile (IntTotals *totals, const VlmActivations *activations, size_t first, size_t rows,
    const uint8_t *w, const IntOutput *output, const IntAhead *ahead, IntValues values,
    int has_halves)
{
  const int is_streamed = first == 0 && INT_CALLS_AHEAD ();
  IntRows x = int_rows_from (totals->sums, totals->parts, activations, first);
  size_t left = vlm_padded_k (activations->k), row = 0, at = 0, end;

  int_clear (totals->sums, rows);
  while (left > 0) {
    size_t len = left < activations->group ? left : activations->group;

    do {
      if (row < rows)
        int_expect_row (output, row++);
    } while (left == len && row < rows);
    for (end = at + ahead->bytes; INT_CALLS_NEXT () && at < end; at += 64)
      VLM_STREAM (ahead->w + at);
    if (has_halves && is_streamed)
      int_prefetch_scales (w);
    int_tile_group (&x, rows, len, w, values, has_halves, is_streamed);
    x.q += len;
    x.x_scale++;
    x.x_sum++;
    w += has_halves ? INT_PANEL * sizeof (uint16_t) : 0;
    w += int_w_bytes (values, len);
    left -= len;
  }
}

/* How the groups of a piece end. */
typedef enum
{
  INT_END_PART,
  INT_END_PLAIN,
  INT_END_MIN
} IntEnd;

/* All at once, or each group would wait for multiplications. */
vlm_always_inline void
int_take_starts (IntStarts starts, const IntRows *x, size_t rows, const IntPiece *piece)
{
  const size_t n_groups = vlm_n_groups (piece->len, piece->group);
  size_t r, g;

  for (r = 0; r < rows; r++) {
    for (g = 0; g < n_groups; g++)
      starts[r][g] = -piece->bias * x->x_sum[r * x->ldg + g];
  }
}

/* The rows of a tile with all columns at one group of a piece, or at all of it. */
vlm_always_inline void
int_piece_group (const IntRows *x, size_t rows, size_t len, const uint8_t *w, const float *scales,
    const float *mins, const int32_t *starts, IntValues values, IntEnd end)
{
  const size_t vectors = INT_TILE_VECTORS (rows);
  IntFactors factors;
  size_t column, v;

  int_start_group (&factors, x, rows, len, starts, INT_PIECE / VLM_K_STEP, w, values);
  for (column = 0; column < INT_PANEL; column += INT_TILE_COLUMNS (rows)) {
    vf w_scales[INT_COLUMNS / VF_LANES];
    IntSums sum;

    int_sum_group (sum, &factors, rows, len, w, column, values, 0);
    if (end == INT_END_PART) {
      int_end_part (sum, x, rows, column);
    } else if (end == INT_END_MIN) {
      int_end_group_min (sum, x, rows, scales, mins, column);
    } else {
      VLM_UNROLL
      for (v = 0; v < vectors; v++)
        w_scales[v] = vf_load (scales + column + v * VF_LANES);
      int_end_group (sum, x, rows, w_scales, column);
    }
  }
}

vlm_always_inline void
int_piece_groups (
    const IntRows *first, size_t rows, const IntPiece *piece, IntValues values, IntEnd end)
{
  const float *scales = piece->scales, *mins = piece->mins;
  const uint8_t *w = piece->w;
  size_t left = piece->len;
  IntRows x = *first;
  IntStarts starts;
  const int32_t *start = starts[0];

  int_take_starts (starts, first, rows, piece);
  do {
    size_t len = left < piece->group ? left : piece->group;

    int_piece_group (&x, rows, len, w, scales, mins, start, values, end);
    x.q += len;
    x.x_scale++;
    x.x_sum++;
    start++;
    w += piece->stride;
    scales += piece->lds;
    mins += end == INT_END_MIN ? INT_PANEL : 0;
    left -= len;
  } while (left > 0);
}

/* Each kind of end has loops of its own, or compilers move sums between registers. */
vlm_always_inline void
int_piece_tile (const IntRows *x, size_t rows, const IntPiece *piece, IntValues values)
{
  if (piece->is_part)
    int_piece_groups (x, rows, piece, values, INT_END_PART);
  else if (piece->mins != NULL)
    int_piece_groups (x, rows, piece, values, INT_END_MIN);
  else
    int_piece_groups (x, rows, piece, values, INT_END_PLAIN);
}

#define DEFINE_INT_TILE(name, rows, values, has_halves)                                            \
  static __attribute__ ((noinline)) void name##_tile_##rows (IntTotals *totals,                    \
      const VlmActivations *x, size_t first, const uint8_t *w, const IntOutput *output,            \
      const IntAhead *ahead)                                                                       \
  {                                                                                                \
    int_tile (totals, x, first, rows, w, output, ahead, values, has_halves);                       \
  }

/* Groups of activations are short where weights have groups; to split them takes too long then. */
#ifdef INT_SPLIT
#define INT_ROW_VALUES INT_SPLIT_BYTES
#else
#define INT_ROW_VALUES INT_BYTES
#endif

#define DEFINE_ROW_TILE(rows) DEFINE_INT_TILE (int8_row, rows, INT_ROW_VALUES, 0)
#define DEFINE_INT8_TILE(rows) DEFINE_INT_TILE (int8_groups, rows, INT_BYTES, 1)
#define DEFINE_INT4_TILE(rows) DEFINE_INT_TILE (int4_groups, rows, INT_NIBBLES, 1)

#define DEFINE_INT_PIECE_TILE(name, rows, values)                                                  \
  static                                                                                           \
      __attribute__ ((noinline)) void name##_tile_##rows (const IntRows *x, const IntPiece *piece) \
  {                                                                                                \
    int_piece_tile (x, rows, piece, values);                                                       \
  }

#define DEFINE_BYTES_TILE(rows) DEFINE_INT_PIECE_TILE (bytes, rows, INT_BYTES)
#define DEFINE_SMALL_TILE(rows) DEFINE_INT_PIECE_TILE (small, rows, INT_SMALL)
#define DEFINE_SIX_TILE(rows) DEFINE_INT_PIECE_TILE (six, rows, INT_SIX)

#define FOR_3_ROWS(define) define (1) define (2) define (3)
#define FOR_4_ROWS(define) FOR_3_ROWS (define) define (4)
#define FOR_5_ROWS(define) FOR_4_ROWS (define) define (5)
#define FOR_6_ROWS(define) FOR_5_ROWS (define) define (6)
#define FOR_8_ROWS(define) FOR_6_ROWS (define) define (7) define (8)
#define TILES_OF_3(name) name##_tile_1, name##_tile_2, name##_tile_3
#define TILES_OF_4(name) TILES_OF_3 (name), name##_tile_4
#define TILES_OF_5(name) TILES_OF_4 (name), name##_tile_5
#define TILES_OF_6(name) TILES_OF_5 (name), name##_tile_6
#define TILES_OF_8(name) TILES_OF_6 (name), name##_tile_7, name##_tile_8

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_ (a, b, c)
#define FOR_INT_ROWS JOIN (FOR_, INT_ROWS, _ROWS)
#define INT_TILES JOIN (TILES_OF_, INT_ROWS, )

FOR_INT_ROWS (DEFINE_ROW_TILE)
FOR_INT_ROWS (DEFINE_INT8_TILE)
FOR_INT_ROWS (DEFINE_INT4_TILE)

static const IntTile int8_row_tiles[] = { INT_TILES (int8_row) };
static const IntTile int8_groups_tiles[] = { INT_TILES (int8_groups) };
static const IntTile int4_groups_tiles[] = { INT_TILES (int4_groups) };

FOR_INT_ROWS (DEFINE_BYTES_TILE)

static const IntPieceTile bytes_tiles[] = { INT_TILES (bytes) };

#ifdef INT_SMALL_STEP
FOR_INT_ROWS (DEFINE_SMALL_TILE)
FOR_INT_ROWS (DEFINE_SIX_TILE)

static const IntPieceTile small_tiles[] = { INT_TILES (small) };
static const IntPieceTile six_tiles[] = { INT_TILES (six) };
#endif

/* Tiles for pieces of values of so many bits. */
static const IntPieceTile *
int_piece_tiles (unsigned bits)
{
#ifdef INT_SMALL_STEP
  if (bits <= 6)
    return bits == 6 ? six_tiles : small_tiles;
#endif
  (void) bits;
  return bytes_tiles;
}

#endif
