/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Integer products in tiles of 16 rows of activations by 16 columns of a panel, whose weights have 8
 * bits and a scale for each row.
 *
 * A piece of the panel is made ready once for a block of rows: values as bytes with a sign in the
 * order of tiles. Of 16 rows, four steps of activations stay in tile registers
 * while the columns pass by, 32 at a time. The sums of groups leave through buffers in the
 * first-level cache, and are converted, scaled and added up between the products of the next
 * columns. What does not pay, few rows or groups that do not fit, goes to the
 * level below, and so do weights with scales of groups (see tiled-amx.c).
 */

#include "avx512vnni.h"
#include "amx-tiles.h"
#include "head-amx.h"
#include "tiled-amx.h"

#include "kernels/levels.h"
#include "int-avx512vnni.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/panel.h"
#include "kernels/simd/int-store.h"

/* Of rows that fill no tile, so many are faster in registers. */
#define MOST_REST 6

/* Tiles of 16 rows that share a piece of the panel: their sums lie in the second-level cache. */
#define BLOCK_TILES 32

#define N_TILES (INT_PANEL / AMX_COLUMNS)

/* Where something for step t is within 4096 bytes. A load waits for an earlier store that is not
 * yet in the cache and has the same address in these; so what is read in a step lies apart from
 * what the last two have stored. */
#define WINDOW(t) ((size_t) ((t) + 1) % 4 * AMX_TILE_BYTES)

/* Integer sums of 16 rows by 16 columns, of each group of a piece. */
typedef int32_t Dots[AMX_STEPS][AMX_ROWS][AMX_COLUMNS];

/* 16 columns of a piece: tiles of values, that of step t at WINDOW (t). */
typedef uint8_t Columns[AMX_STEPS * AMX_TILE_BYTES];

/* What the parts of a product with a panel share. */
typedef struct
{
  Columns columns[N_TILES];
  Dots dots[N_TILES];
} Workshop;

#define COLUMNS_AT(j, t) (offsetof (Workshop, columns) + (j) * sizeof (Columns) + WINDOW (t))
#define DOTS_AT(j, g) (offsetof (Workshop, dots) + (j) * sizeof (Dots) + (g) *AMX_TILE_BYTES)

typedef struct Piece Piece;
typedef struct Rows Rows;
typedef void (*PieceFunc) (const Rows *rows, size_t n_tiles, const Piece *piece);

/* A product with one panel. */
typedef struct
{
  const VlmActivations *x;
  const VlmIntFormat *format;
  const void *w;
  size_t step;
  PieceFunc func;
  float *y;
  size_t ldy, n;
  const float *bias;
} Product;

/* A piece of the panel. */
struct Piece
{
  const Product *product;
  Workshop *workshop;
  size_t step; /* values of one */
  size_t len;  /* of all; the last step may be shorter, or missing */
  int is_last; /* sums are complete after it */
};

/* 16 rows of activations at the beginning of a piece. */
struct Rows
{
  IntRow *sums;
  const int8_t *q;
  size_t ldq;
  const float *x_scale; /* ldg apart */
  size_t ldg;
  float *y;
};

/* The scales of 16 rows; zeros where there are no more groups. */
typedef float Scales[AMX_ROWS][AMX_STEPS];

/* n_groups are there, of as many as a piece has. */
vlm_always_inline void
take_scales (Scales scales, const Rows *rows, size_t n_groups, size_t most)
{
  size_t r, g;

  for (r = 0; r < AMX_ROWS; r++) {
    VLM_UNROLL
    for (g = 0; g < most; g++)
      scales[r][g] = g < n_groups ? rows->x_scale[r * rows->ldg + g] : 0;
  }
}

/* 16 rows by a pair of columns, whose groups are to be added to the sums. */
typedef struct
{
  const Rows *rows;
  const float (*scales)[AMX_STEPS];
  const int32_t (*dots)[AMX_STEPS][AMX_ROWS][AMX_COLUMNS]; /* of both columns */
  size_t column;
} Ending;

vlm_always_inline Ending
start_ending (const Workshop *workshop, const Rows *rows, const Scales scales, size_t pair)
{
  return (Ending){ rows, scales, workshop->dots + 2 * pair, pair * 2 * AMX_COLUMNS };
}

vlm_inline_unless_checked void
end_row (const Ending *ending, size_t r, size_t n_groups)
{
  float *out = ending->rows->sums[r] + ending->column;
  vf sums[2] = { vf_load (out), vf_load (out + VF_LANES) };
  size_t g, v;

  VLM_UNROLL
  for (g = 0; g < n_groups; g++) {
    vf scale = vf_set1 (ending->scales[r][g]);

    VLM_UNROLL
    for (v = 0; v < 2; v++) {
      vf dot = vi_to_vf (vi_load ((const uint8_t *) ending->dots[v][g][r]));

      sums[v] = vf_fma (dot, scale, sums[v]);
    }
  }
  vf_store (out, sums[0]);
  vf_store (out + VF_LANES, sums[1]);
}

/* Sums begin with zeros that are loaded, since a product waits 50 cycles for a tile that tilezero
 * has cleared. */
#define START(t, c) AMX_LOAD (c, zeros, WINDOW (t), 0);

#define MULTIPLY(j, t, c)                                                                          \
  AMX_LOAD (6, workshop, COLUMNS_AT (j, t), 4 * AMX_COLUMNS);                                      \
  AMX_MULTIPLY (c, t, 6);

#define STORE(j, g, c) AMX_STORE (c, workshop, DOTS_AT (j, g), 4 * AMX_COLUMNS);

#define END_ROWS(r)                                                                                \
  if (has_ending) {                                                                                \
    end_row (&ending, r, most);                                                                    \
    end_row (&ending, (r) + 1, most);                                                              \
  }

/* A step of a pair of columns. Sums are stored after the next product: a store waits for the
 * product that it stores, and all other tiles wait for the store. */
#define MULTIPLY_STEP(pair, t)                                                                     \
  if ((t) % steps == 0)                                                                            \
    START (t, 4)                                                                                   \
  MULTIPLY (2 * (pair), t, 4)                                                                      \
  if ((t) % steps == 0 && (t) > 0)                                                                 \
    STORE (2 * (pair) + 1, ((t) -1) / steps, 5)                                                    \
  END_ROWS (4 * (t))                                                                               \
  if ((t) % steps == 0)                                                                            \
    START (t, 5)                                                                                   \
  MULTIPLY (2 * (pair) + 1, t, 5)                                                                  \
  if (((t) + 1) % steps == 0)                                                                      \
    STORE (2 * (pair), (t) / steps, 4)                                                             \
  END_ROWS (4 * (t) + 2)

/* Multiplies 16 rows, whose activations are in tiles, with a pair of columns. */
#define MULTIPLY_PAIR(pair)                                                                        \
  MULTIPLY_STEP (pair, 0)                                                                          \
  MULTIPLY_STEP (pair, 1)                                                                          \
  MULTIPLY_STEP (pair, 2)                                                                          \
  MULTIPLY_STEP (pair, 3)                                                                          \
  STORE (2 * (pair) + 1, (AMX_STEPS - 1) / steps, 5)

#define LOAD_STEP(t)                                                                               \
  if (((t) + 1) * piece->step <= piece->len)                                                       \
    AMX_LOAD (t, rows->q + (t) *piece->step, 0, rows->ldq);                                        \
  else                                                                                             \
    AMX_LOAD (t, rest[(t) *piece->step < piece->len ? 0 : AMX_ROWS], 0, sizeof rest[0]);

/* Activations that the rows do not have are zeros. */
static void
load_rows (const Rows *rows, const Piece *piece)
{
  const size_t n = piece->len % piece->step;
  int8_t rest[2 * AMX_ROWS][64];
  size_t r;

  if (piece->len < AMX_STEPS * piece->step) {
    memset (rest, 0, sizeof rest);
    for (r = 0; r < AMX_ROWS; r++)
      memcpy (rest[r], rows->q + r * rows->ldq + piece->len - n, n);
  }
  LOAD_STEP (0)
  LOAD_STEP (1)
  LOAD_STEP (2)
  LOAD_STEP (3)
}

/* Sums that are complete leave while they are in the first-level cache. */
vlm_always_inline void
store_rows (const Rows *rows, const Piece *piece)
{
  const Product *p = piece->product;

  if (piece->is_last)
    int_store_rows (rows->y, p->ldy, (const IntRow *) rows->sums, AMX_ROWS, p->n,
        int_row_scales (p->format, p->w), p->bias);
}

/* Takes all rows through a piece, whose groups have so many steps. A pair comes to its end between
 * the products of the next. */
vlm_always_inline void
multiply_piece (const Rows *rows, size_t n_tiles, const Piece *piece, size_t steps)
{
  static const uint8_t zeros[4 * AMX_TILE_BYTES] __attribute__ ((aligned (4096)));
  const size_t n_groups = vlm_n_groups (piece->len, steps * piece->step), most = AMX_STEPS / steps;
  Workshop *workshop = piece->workshop;
  Scales scales[2];
  size_t i;

  Ending ending;
  int has_ending = 0;

  load_rows (&rows[0], piece);
  for (i = 0; i < n_tiles; i++) {
    if (has_ending)
      ending = start_ending (workshop, &rows[i - 1], scales[(i - 1) % 2], 1);
    MULTIPLY_PAIR (0)
    if (has_ending)
      store_rows (&rows[i - 1], piece);
    take_scales (scales[i % 2], &rows[i], n_groups, most);
    ending = start_ending (workshop, &rows[i], scales[i % 2], 0);
    has_ending = 1;
    MULTIPLY_PAIR (1)
    if (i + 1 < n_tiles)
      load_rows (&rows[i + 1], piece);
  }
  ending = start_ending (workshop, &rows[i - 1], scales[(i - 1) % 2], 1);
  for (i = 0; i < AMX_ROWS; i += 2)
    END_ROWS (i)
  store_rows (&rows[n_tiles - 1], piece);
}

#define DEFINE_PIECE(steps)                                                                        \
  static __attribute__ ((noinline)) void tile_##steps (                                            \
      const Rows *rows, size_t n_tiles, const Piece *piece)                                        \
  {                                                                                                \
    multiply_piece (rows, n_tiles, piece, steps);                                                  \
  }

/* For groups of one step, two and four. */
DEFINE_PIECE (1)
DEFINE_PIECE (2)
DEFINE_PIECE (4)

static const PieceFunc piece_funcs[] = { tile_1, tile_2, tile_4 };

/* Values of k that a step of tiles takes, or 0 where they do not fit the groups. */
static size_t
choose_step (size_t group)
{
  size_t step = group % 64 == 0 ? 64 : 32, steps = group / step;

  return group % step == 0 && (steps == 1 || steps == 2 || steps == 4) ? step : 0;
}

/* Makes len values of the panel ready, from number at on: they become tiles, and have signs. */
static void
next_piece (Workshop *workshop, const Product *p, size_t at, size_t len)
{
  const vi biases = _mm512_set1_epi8 ((char) INT_BIAS);
  const size_t step = p->step;
  const uint8_t *from =
      (const uint8_t *) p->w + panel_scale_bytes (p->format, INT_PANEL) + at * INT_PANEL;
  size_t i, v;

  for (i = 0; i < len; i += INT_INNER) {
    size_t to = WINDOW (i / step) + i % step * AMX_COLUMNS;

    VLM_UNROLL
    for (v = 0; v < N_TILES; v++) {
      vi_store (
          workshop->columns[v] + to, _mm512_sub_epi8 (vi_load (from + v * sizeof (vi)), biases));
    }
    from += INT_LANE_BYTES;
  }
}

/* Tiles of 16 rows of a block; the last begins earlier where there are not as many left, and has
 * sums of its own all the same. */
static size_t
first_row (size_t tile, size_t rows)
{
  return (tile + 1) * AMX_ROWS <= rows ? tile * AMX_ROWS : rows - AMX_ROWS;
}

static void
multiply_block (const Product *p, size_t first, size_t n_rows)
{
  const VlmActivations *x = p->x;
  const size_t n_tiles = (n_rows + AMX_ROWS - 1) / AMX_ROWS;
  const size_t groups = AMX_STEPS * p->step / x->group, most = groups * x->group;
  IntRow sums[BLOCK_TILES * AMX_ROWS] __attribute__ ((aligned (64)));
  Rows rows[BLOCK_TILES];
  Workshop workshop __attribute__ ((aligned (4096)));
  size_t k = vlm_padded_k (x->k), at, len, i;

  int_clear (sums, n_tiles * AMX_ROWS);
  for (i = 0; i < n_tiles; i++) {
    size_t row = first + first_row (i, n_rows);

    rows[i] = (Rows){ sums + i * AMX_ROWS, x->q + row * x->ldq, x->ldq, x->scale + row * x->ldg,
      x->ldg, p->y + row * p->ldy };
  }
  for (at = 0; at < k; at += len) {
    const size_t left = k - at;
    const Piece piece = { p, &workshop, p->step, left < most ? left : most, left <= most };

    len = piece.len;
    next_piece (&workshop, p, at, len);
    p->func (rows, n_tiles, &piece);
    for (i = 0; i < n_tiles; i++) {
      rows[i].q += len;
      rows[i].x_scale += groups;
    }
  }
}

/* How many of m rows are worth tiles: those that fill them, and the rest if it nearly fills one. */
static size_t
choose_rows (size_t m)
{
  const size_t rest = m % AMX_ROWS;

  return rest > MOST_REST ? m : m - rest;
}

static void
amx_matmul_int (float *y, size_t ldy, const VlmActivations *x, size_t m, const VlmIntFormat *format,
    const void *w, size_t n, const float *bias)
{
  const size_t step = choose_step (x->group);
  const int has_tiles =
      format->scale == VLM_SCALE_ROW && format->bits == 8 && step != 0 && m >= AMX_ROWS;
  size_t rows = has_tiles ? choose_rows (m) : 0, first = 0;
  VlmActivations rest = *x;

  if (rows > 0) {
    const Product p = { x, format, w, step, piece_funcs[x->group / step / 2], y, ldy, n, bias };
    size_t n_tiles = (rows + AMX_ROWS - 1) / AMX_ROWS;
    size_t n_blocks = (n_tiles + BLOCK_TILES - 1) / BLOCK_TILES;

    amx_configure (step);
    for (; first < rows; n_blocks--) {
      size_t tiles = (n_tiles + n_blocks - 1) / n_blocks, left = rows - first;
      size_t n_rows = left < tiles * AMX_ROWS ? left : tiles * AMX_ROWS;

      multiply_block (&p, first, n_rows);
      first += n_rows;
      n_tiles -= tiles;
    }
    AMX_RELEASE ();
  }
  if (rows < m) {
    rest.q += rows * x->ldq;
    rest.scale += rows * x->ldg;
    rest.sum += rows * x->ldg;
    vlm_avx512vnni_matmul_int (y + rows * ldy, ldy, &rest, m - rows, format, w, n, bias);
  }
}

void
vlm_kernels_fill_amx (VlmKernels *kernels)
{
  kernels->matmul_int = amx_matmul_int;
  /* Panels are read and made ready as seldom as second-level caches of 2 MiB allow. */
  kernels->int_block_bytes = 896 * 1024;
  kernels->int_block_rows = BLOCK_TILES * AMX_ROWS;
  vlm_amx_fill_head (kernels);
  vlm_amx_fill_tiled (kernels);
}
