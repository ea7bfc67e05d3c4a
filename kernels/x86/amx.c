/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of many rows in tiles of bfloat16. A piece of a panel of integer weights is made bfloat16
 * in the order of tiles, once for all rows, and stays in the first-level cache while 32 rows at a
 * time pass by it: two tiles of rows by two of columns have their sums in tile registers. Between
 * pieces sums lie in the output.
 */

#include "amx-tiles.h"
#include "attention-amx.h"
#include "head-amx.h"

/* What a reader gives at a time. */
#define INT_PIECE 384

#include "kernels/levels.h"
#include "int-avx512vnni.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/int-reader.h"
#include "kernels/simd/rest.h"

/* Values of k in one tile. */
#define STEP VLM_TILED_STEP

/* Steps of a piece: two tiles of columns take 24 KiB. */
#define PIECE_STEPS (INT_PIECE / STEP)

#define N_TILES (INT_PANEL / AMX_COLUMNS)

/* Rows whose sums are in registers together. */
#define BLOCK_ROWS (2 * AMX_ROWS)

/* Weights of one step and 16 columns: pairs of k by columns. */
typedef uint8_t Tile[AMX_TILE_BYTES];

/* Pairs of tiles of columns that are multiplied one after the other. */
typedef struct
{
  Tile tiles[N_TILES / 2][PIECE_STEPS][2];
  size_t n_steps;
} __attribute__ ((aligned (64))) Piece;

/* ---- Rows ---------------------------------------------------------------------------------- */

static size_t
n_steps_of (size_t k)
{
  return (k + STEP - 1) / STEP;
}

static size_t
amx_tiled_bytes (size_t m, size_t k)
{
  return (m + BLOCK_ROWS - 1) / BLOCK_ROWS * 2 * n_steps_of (k) * AMX_TILE_BYTES;
}

/* Where value number l of row i is. Pieces follow one another, in which 16 rows by 16 rows do, and
 * of these the steps. */
static size_t
place_of (const VlmTiledRows *rows, size_t i, size_t l)
{
  const size_t first = l / INT_PIECE * INT_PIECE, left = rows->k - first;
  const size_t n_steps = n_steps_of (left < INT_PIECE ? left : INT_PIECE);
  const size_t m = (rows->m + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;

  return first / STEP * m * AMX_ROW_BYTES + i / AMX_ROWS * n_steps * AMX_TILE_BYTES
      + (l - first) / STEP * AMX_TILE_BYTES + i % AMX_ROWS * AMX_ROW_BYTES;
}

vlm_always_inline void
store_step (uint8_t *to, vf low, vf high)
{
  _mm512_storeu_si512 (to, (__m512i) _mm512_cvtne2ps_pbh (high, low));
}

static void
amx_tile_row (const VlmTiledRows *rows, size_t i, size_t first, const float *x, size_t n)
{
  size_t l;

  for (l = 0; l < n; l += STEP) {
    uint8_t *to = (uint8_t *) rows->data + place_of (rows, i, first + l);

    if (l + STEP <= n)
      store_step (to, vf_load (x + l), vf_load (x + l + VF_LANES));
    else
      store_step (
          to, load_rest (x, l, n), l + VF_LANES < n ? load_rest (x, l + VF_LANES, n) : vf_zero ());
  }
}

/* ---- Weights ------------------------------------------------------------------------------- */

/* Makes floats of byte number i of each word: (byte - bias) / 256, exactly. */
vlm_always_inline vf
byte_values (vi words, int i, vf bias)
{
  const vi one = vi_set1 (0x3f800000), mask = vi_set1 (0x7f8000);
  vi shifted = i < 2 ? _mm512_slli_epi32 (words, (unsigned) (15 - 8 * i))
                     : _mm512_srli_epi32 (words, (unsigned) (8 * i - 15));

  return vf_sub ((vf) _mm512_ternarylogic_epi32 (shifted, mask, one, 0xea), bias);
}

/* How bytes of 16 columns become weights. */
typedef struct
{
  vf bias, scale, min;
} Columns;

typedef enum
{
  UNSCALED, /* the scale comes in at the end */
  SCALED,
  WITH_MIN
} Kind;

/* The weights of byte number i, rounded to where the lower half may be cut off. */
vlm_always_inline vi
weights_of (vi words, int i, const Columns *columns, Kind kind)
{
  vf w = byte_values (words, i, columns->bias);

  if (kind == UNSCALED)
    return (vi) w;
  w = kind == WITH_MIN ? vf_fma (w, columns->scale, columns->min) : vf_mul (w, columns->scale);
  return _mm512_add_epi32 ((vi) w, vi_set1 (0x8000));
}

/* Two rows of a tile, of four values each of 16 columns. */
vlm_always_inline void
store_pairs (uint8_t *to, vi words, const Columns *columns, Kind kind)
{
  const vi high = vi_set1 ((int) 0xffff0000);
  int i;

  VLM_UNROLL
  for (i = 0; i < 4; i += 2) {
    vi even = _mm512_srli_epi32 (weights_of (words, i, columns, kind), 16);
    vi odd = weights_of (words, i + 1, columns, kind);

    vi_store (to + i / 2 * AMX_ROW_BYTES, _mm512_ternarylogic_epi32 (even, high, odd, 0xf8));
  }
}

/* Values of a piece with the same scales. */
typedef struct
{
  const uint8_t *from;
  size_t at, n;
} Run;

/* A panel that is read piece by piece. */
typedef struct
{
  IntReader reader;
  const float *row_scales; /* which come in at the end; or NULL */
  IntRoom room;            /* scales[i] are those of run i */
  Run runs[INT_PIECE / VLM_K_STEP];
  size_t n_runs;
} Panel;

/* A piece that is made ready bit by bit. */
typedef struct
{
  const Panel *panel;
  Piece *piece;
  float bias;

  /* What comes next, and how much it still is. */
  size_t run, tile, at, n_left;
} Filler;

/* Values that a call of fill_unit () makes ready, of 16 columns. */
#define UNIT VLM_K_STEP

/* A word holds four values of a column; of 16 columns they are two rows of a tile. */
vlm_always_inline uint8_t *
quad_at (Piece *piece, size_t l, size_t tile)
{
  return piece->tiles[tile / 2][l / STEP][tile % 2] + l % STEP / 4 * 2 * AMX_ROW_BYTES;
}

/* Zeros up to the end of the last step. */
static void
fill_rest (Piece *piece, size_t at)
{
  size_t tile, l;

  for (tile = 0; tile < N_TILES; tile++) {
    for (l = at; l % STEP != 0; l += 4) {
      vi_store (quad_at (piece, l, tile), vi_set1 (0));
      vi_store (quad_at (piece, l, tile) + AMX_ROW_BYTES, vi_set1 (0));
    }
  }
}

/* A run that goes on from the last one of a piece is the first of the next. */
static void
copy_scales (Panel *panel)
{
  const size_t last = panel->n_runs - 1;

  if (last == 0)
    return;
  memcpy (panel->room.scales[0], panel->room.scales[last], sizeof (IntRow));
  memcpy (panel->room.mins[0], panel->room.mins[last], sizeof (IntRow));
}

/* Finds the runs of the next len values. */
static void
find_runs (Panel *panel, size_t len)
{
  IntReader *reader = &panel->reader;
  size_t g = 0, at, n;

  for (at = 0; at < len; at += n, g++) {
    Run *run = &panel->runs[g];

    if (reader->at == reader->run_at + reader->run_len)
      int_enter_run (reader, g);
    else
      copy_scales (panel);
    n = reader->run_at + reader->run_len - reader->at;
    n = n < len - at ? n : len - at;
    run->at = at;
    run->n = n;
    if (reader->format->bits == 4) {
      run->from = reader->run + panel_low_bytes (4, INT_PANEL, reader->at - reader->run_at);
      reader->at += n;
    } else {
      run->from = int_widen_values (reader, panel->room.w + at * INT_PANEL, n);
    }
  }
  panel->n_runs = g;
}

/* Begins with the next values of a panel. */
static void
start_filling (Filler *filler, Piece *piece, Panel *panel)
{
  const size_t left = panel->reader.k - panel->reader.at, len = left < INT_PIECE ? left : INT_PIECE;

  filler->panel = panel;
  filler->piece = piece;
  filler->run = filler->tile = filler->at = 0;
  filler->n_left = N_TILES * len / UNIT;
  piece->n_steps = n_steps_of (len);
  fill_rest (piece, len);
  find_runs (panel, len);
}

/* The next unit, of which there is one. */
vlm_always_inline void
fill_unit (Filler *filler, int has_nibbles, Kind kind)
{
  const Panel *panel = filler->panel;
  const Run *run = &panel->runs[filler->run];
  const size_t tile = filler->tile, at = filler->at;
  const float *scales = panel->room.scales[filler->run] + tile * VF_LANES;
  const float *mins = panel->room.mins[filler->run] + tile * VF_LANES;
  const Columns columns = { vf_set1 (filler->bias),
    kind == UNSCALED ? vf_zero () : vf_mul (vf_load (scales), vf_set1 (256)),
    kind == WITH_MIN ? vf_load (mins) : vf_zero () };
  const size_t step = has_nibbles ? 8 : 4;
  const uint8_t *from = run->from + at / step * INT_LANE_BYTES + tile * sizeof (vi);
  uint8_t *to = quad_at (filler->piece, run->at + at, tile);
  size_t l;

  VLM_UNROLL
  for (l = 0; l < UNIT; l += step) {
    const uint8_t *next = from + l / step * INT_LANE_BYTES;
    const vi words = vi_load (next);

    VLM_STREAM (next + VLM_STREAM_BYTES);
    if (has_nibbles) {
      store_pairs (to + l / 2 * AMX_ROW_BYTES, vi_low_nibbles (words), &columns, kind);
      store_pairs (to + (l + 4) / 2 * AMX_ROW_BYTES, vi_high_nibbles (words), &columns, kind);
    } else {
      store_pairs (to + l / 2 * AMX_ROW_BYTES, words, &columns, kind);
    }
  }

  filler->n_left--;
  filler->at += UNIT;
  if (filler->at == run->n) {
    filler->at = 0;
    filler->tile = (tile + 1) % N_TILES;
    filler->run += filler->tile == 0;
  }
}

vlm_always_inline void
fill_units (Filler *filler, size_t n, int has_nibbles, Kind kind)
{
  for (; n > 0 && filler->n_left > 0; n--)
    fill_unit (filler, has_nibbles, kind);
}

/* ---- Products ------------------------------------------------------------------------------ */

/* A product with some panels. */
typedef struct
{
  float *y;
  size_t ldy;
  const VlmTiledRows *x;
  size_t first; /* row of x */
  size_t m, n;
  const float *bias; /* or NULL */
} Product;

/* Where sums of 32 rows and 32 columns belong. */
typedef struct
{
  uint8_t *y;
  size_t ldy; /* bytes */
  size_t column;
  const float *scales; /* of the rows of weights, from the column on; or NULL */
  int are_complete;    /* after their products */
} Sums;

#define ON_SUMS(i, operation, sums)                                                                \
  operation (i, (sums).y + (i) / 2 * AMX_ROWS * (sums).ldy, (i) % 2 * AMX_ROW_BYTES, (sums).ldy);

/* A store waits for the products that it stores, and all tiles wait for the store: sums leave once
 * there are products after them, right before their tile takes others. */
#define BEGIN(i)                                                                                   \
  ON_SUMS (i, AMX_STORE, done)                                                                     \
  ON_SUMS (i, AMX_LOAD, from)

#define GO_ON(i)

#define PRODUCTS(s, BEGIN)                                                                         \
  AMX_LOAD_ONCE (4, rows + (s) *AMX_TILE_BYTES, 0, AMX_ROW_BYTES);                                 \
  AMX_LOAD (6, columns[s][0], 0, AMX_ROW_BYTES);                                                   \
  BEGIN (0)                                                                                        \
  AMX_MULTIPLY (0, 4, 6);                                                                          \
  AMX_LOAD (7, columns[s][1], 0, AMX_ROW_BYTES);                                                   \
  BEGIN (1)                                                                                        \
  AMX_MULTIPLY (1, 4, 7);                                                                          \
  AMX_LOAD_ONCE (5, below + (s) *AMX_TILE_BYTES, 0, AMX_ROW_BYTES);                                \
  BEGIN (2)                                                                                        \
  AMX_MULTIPLY (2, 5, 6);                                                                          \
  BEGIN (3)                                                                                        \
  AMX_MULTIPLY (3, 5, 7);

/*
 * Adds the products of 32 rows and 32 columns to what is at from, and leaves the sums in tiles; those
 * of before go to done. Between products, some of the next piece are made ready, since tiles and
 * vectors are computed by different units.
 */
vlm_always_inline void
multiply_block (Sums done, Sums from, const uint8_t *rows, size_t rows_bytes,
    const Tile (*columns)[2], size_t n_steps, Filler *filler, size_t n_units, int has_nibbles,
    Kind kind)
{
  const uint8_t *below = rows + rows_bytes;
  size_t s;

  PRODUCTS (0, BEGIN)
  fill_units (filler, n_units, has_nibbles, kind);
  for (s = 1; s < n_steps; s++) {
    PRODUCTS (s, GO_ON)
    fill_units (filler, n_units, has_nibbles, kind);
  }
}

/* The scales of the rows of weights and the bias, while sums that are complete are in a near cache. */
static void
end_block (const Product *p, const Sums *sums)
{
  size_t v, i;

  if (!sums->are_complete || (p->bias == NULL && sums->scales == NULL))
    return;
  for (v = 0; v < 2 * VF_LANES && sums->column + v < p->n; v += VF_LANES) {
    const size_t column = sums->column + v;
    vf scale = vf_set1 (1), bias = p->bias != NULL ? load_rest (p->bias, column, p->n) : vf_zero ();
    float *y = (float *) sums->y + v;

    if (sums->scales != NULL)
      scale = vf_mul (vf_load (sums->scales + v), vf_set1 (256));
    for (i = 0; i < BLOCK_ROWS; i++, y += p->ldy)
      vf_store (y, vf_fma (vf_load (y), scale, bias));
  }
}

/* Multiplies all rows with a piece of a panel, and makes the next one ready meanwhile. */
vlm_always_inline void
multiply_piece (const Product *p, Sums *done, const Piece *piece, size_t at, const Panel *panel,
    size_t first_column, Filler *filler, int has_nibbles, Kind kind)
{
  static const uint8_t zeros[2 * AMX_ROW_BYTES] __attribute__ ((aligned (64)));
  const uint8_t *rows = (const uint8_t *) p->x->data + place_of (p->x, p->first, at);
  const size_t rows_bytes = piece->n_steps * AMX_TILE_BYTES;
  const size_t n_blocks = (p->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const size_t all_steps = n_blocks * N_TILES / 2 * piece->n_steps;
  const size_t n_units = (filler->n_left + all_steps - 1) / all_steps;
  size_t i, pair;

  for (pair = 0; pair < N_TILES / 2; pair++) {
    const size_t column = first_column + pair * 2 * AMX_COLUMNS;
    const float *scales = panel->row_scales;
    Sums sums = { (uint8_t *) (p->y + column), p->ldy * sizeof (float), column,
      scales != NULL ? scales + pair * 2 * AMX_COLUMNS : NULL, at + INT_PIECE >= p->x->k };
    /* What is read only. */
    const Sums none = { .y = (uint8_t *) zeros };

    for (i = 0; i < p->m; i += BLOCK_ROWS, sums.y += BLOCK_ROWS * sums.ldy) {
      multiply_block (*done, at == 0 ? none : sums, rows + i / AMX_ROWS * rows_bytes, rows_bytes,
          piece->tiles[pair], piece->n_steps, filler, n_units, has_nibbles, kind);
      end_block (p, done);
      *done = sums;
    }
  }
}

/* All panels take their turns with a piece each, so that rows pass by once for all of them. */
vlm_always_inline void
multiply (const Product *p, Panel *panels, Filler *filler, int has_nibbles, Kind kind)
{
  const size_t n_panels = (p->n + INT_PANEL - 1) / INT_PANEL;
  const size_t n_pieces = n_panels * ((p->x->k + INT_PIECE - 1) / INT_PIECE);
  Piece pieces[2];
  uint8_t nothing[4 * AMX_TILE_BYTES];
  Sums done = { .y = nothing, .ldy = 2 * AMX_ROW_BYTES };
  size_t i;

  start_filling (filler, &pieces[0], &panels[0]);
  fill_units (filler, SIZE_MAX, has_nibbles, kind);
  for (i = 0; i < n_pieces; i++) {
    if (i + 1 < n_pieces)
      start_filling (filler, &pieces[(i + 1) % 2], &panels[(i + 1) % n_panels]);
    multiply_piece (p, &done, &pieces[i % 2], i / n_panels * INT_PIECE, &panels[i % n_panels],
        i % n_panels * INT_PANEL, filler, has_nibbles, kind);
  }
  ON_SUMS (0, AMX_STORE, done)
  ON_SUMS (1, AMX_STORE, done)
  ON_SUMS (2, AMX_STORE, done)
  ON_SUMS (3, AMX_STORE, done)
  end_block (p, &done);
}

#define DEFINE_MULTIPLY(name, has_nibbles, kind)                                                   \
  static __attribute__ ((noinline)) void multiply_##name (                                         \
      const Product *p, Panel *panels, Filler *filler)                                             \
  {                                                                                                \
    multiply (p, panels, filler, has_nibbles, kind);                                               \
  }

DEFINE_MULTIPLY (nibbles_unscaled, 1, UNSCALED)
DEFINE_MULTIPLY (nibbles_scaled, 1, SCALED)
DEFINE_MULTIPLY (nibbles_with_min, 1, WITH_MIN)
DEFINE_MULTIPLY (bytes_unscaled, 0, UNSCALED)
DEFINE_MULTIPLY (bytes_scaled, 0, SCALED)
DEFINE_MULTIPLY (bytes_with_min, 0, WITH_MIN)

typedef void (*MultiplyFunc) (const Product *p, Panel *panels, Filler *filler);

static const MultiplyFunc multiply_funcs[2][3] = {
  { multiply_bytes_unscaled, multiply_bytes_scaled, multiply_bytes_with_min },
  { multiply_nibbles_unscaled, multiply_nibbles_scaled, multiply_nibbles_with_min },
};

static Kind
kind_of (const VlmIntFormat *format)
{
  if (format->scale == VLM_SCALE_ROW)
    return UNSCALED;
  return format->has_min ? WITH_MIN : SCALED;
}

static void
amx_matmul_tiled (float *y, size_t ldy, const VlmTiledRows *x, size_t first, size_t m,
    const VlmIntFormat *format, const void *w, size_t panel_bytes, size_t n, const float *bias)
{
  const Product p = { y, ldy, x, first, m, n, bias };
  Panel panels[VLM_TILED_PANELS];
  Filler filler = { .bias = 1 + (float) int_bias (format) / 256 };
  size_t i;

  if (m == 0 || n == 0)
    return;
  for (i = 0; i * INT_PANEL < n; i++) {
    const uint8_t *panel = (const uint8_t *) w + i * panel_bytes;

    panels[i].reader = int_start_panel (&panels[i].room, format, panel, x->k, 0);
    panels[i].row_scales = format->scale == VLM_SCALE_ROW ? (const float *) panel : NULL;
    panels[i].n_runs = 1;
  }
  amx_configure ();
  multiply_funcs[format->bits == 4][kind_of (format)](&p, panels, &filler);
  AMX_RELEASE ();
}

void
vlm_kernels_fill_amx (VlmKernels *kernels)
{
  kernels->tiled_bytes = amx_tiled_bytes;
  kernels->tile_row = amx_tile_row;
  kernels->matmul_tiled = amx_matmul_tiled;
  vlm_amx_fill_head (kernels);
  vlm_amx_fill_attention (kernels);
}
