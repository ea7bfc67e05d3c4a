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

/* Byte number i of each word, + 256. */
vlm_always_inline vf
byte_values (vi words, int i)
{
  const vi base = vi_set1 (0x43800000), mask = vi_set1 (0x7f8000);
  vi shifted = i < 2 ? _mm512_slli_epi32 (words, (unsigned) (15 - 8 * i))
                     : _mm512_srli_epi32 (words, (unsigned) (8 * i - 15));

  return (vf) _mm512_ternarylogic_epi32 (shifted, mask, base, 0xea);
}

/* The same for bytes of 0 .. 15, + 128: these need no shifts, for which there is one unit only. */
vlm_always_inline vf
nibble_values (vi words, int i)
{
  const vi order = _mm512_broadcast_i32x4 (
      _mm_set_epi32 ((i + 12) << 16, (i + 8) << 16, (i + 4) << 16, i << 16));

  return (vf) _mm512_mask_shuffle_epi8 (vi_set1 (0x43000000), 0x4444444444444444, words, order);
}

static float
bias_of (const VlmIntFormat *format)
{
  return (format->bits == 4 ? 128.0f : 256.0f) + (float) int_bias (format);
}

typedef enum
{
  UNSCALED, /* the scale comes in at the end */
  SCALED,
  WITH_MIN
} Kind;

/* How values of 16 columns become weights. */
typedef struct
{
  vf bias, scale;
  vf offset; /* - bias scale, or the minimum */
} Columns;

vlm_always_inline Columns
columns_of (const float *scales, const float *mins, vf bias, Kind kind)
{
  Columns columns = { bias, vf_zero (), vf_zero () };

  if (kind != UNSCALED)
    columns.scale = vf_load (scales);
  if (kind == SCALED)
    columns.offset = vf_mul (vf_sub (vf_zero (), bias), columns.scale);
  if (kind == WITH_MIN)
    columns.offset = vf_load (mins);
  return columns;
}

/*
 * The weights of byte number i, rounded to where the lower half may be cut off. With a scale alone the
 * bias is taken out by the same instruction, exactly: scales are halves, or halves times few bits,
 * and biases have few too. A minimum may be too small beside what it would take out.
 */
vlm_always_inline vi
weights_of (vi words, int i, const Columns *columns, int has_nibbles, Kind kind)
{
  vf w = has_nibbles ? nibble_values (words, i) : byte_values (words, i);

  if (kind != SCALED)
    w = vf_sub (w, columns->bias);
  if (kind == UNSCALED)
    return (vi) w;
  return _mm512_add_epi32 ((vi) vf_fma (w, columns->scale, columns->offset), vi_set1 (0x8000));
}

/* Two rows of a tile, of four values each of 16 columns. */
vlm_always_inline void
store_pairs (uint8_t *to, vi words, const Columns *columns, int has_nibbles, Kind kind)
{
  const vi high_halves = _mm512_broadcast_i32x4 (_mm_set_epi32 (0x0f0e, 0x0b0a, 0x0706, 0x0302));
  int i;

  VLM_UNROLL
  for (i = 0; i < 4; i += 2) {
    vi even = weights_of (words, i, columns, has_nibbles, kind);
    vi odd = weights_of (words, i + 1, columns, has_nibbles, kind);

    vi_store (to + i / 2 * AMX_ROW_BYTES,
        _mm512_mask_shuffle_epi8 (odd, 0x3333333333333333, even, high_halves));
  }
}

/* A panel that is read piece by piece. */
typedef struct
{
  IntReader reader;
  const float *row_scales; /* which come in at the end; or NULL */
  IntRoom room;            /* scales[i] are those of run i of a piece */
  size_t last_run;         /* of the piece before */
} Panel;

/* Values of k in a unit. */
#define UNIT VLM_K_STEP

/* So many values of all columns, with the same scales, and where those of the first 16 columns go. */
typedef struct
{
  const uint8_t *from;
  uint8_t *to;
  const float *scales, *mins;
} Unit;

/* Those of a piece. */
typedef struct
{
  Unit of[INT_PIECE / UNIT];
  size_t n;
} Units;

/* Where the same values of other columns are from there. */
vlm_always_inline size_t
tile_offset (size_t tile)
{
  return tile / 2 * sizeof ((Piece *) NULL)->tiles[0] + tile % 2 * sizeof (Tile);
}

/* A word holds four values of a column; of 16 columns they are two rows of a tile. */
vlm_always_inline uint8_t *
quad_at (Piece *piece, size_t l)
{
  return piece->tiles[0][l / STEP][0] + l % STEP / 4 * 2 * AMX_ROW_BYTES;
}

/* Zeros up to the end of the last step. */
static void
fill_rest (Piece *piece, size_t at)
{
  size_t tile, l;

  for (tile = 0; tile < N_TILES; tile++) {
    for (l = at; l % STEP != 0; l += 4) {
      vi_store (quad_at (piece, l) + tile_offset (tile), vi_set1 (0));
      vi_store (quad_at (piece, l) + tile_offset (tile) + AMX_ROW_BYTES, vi_set1 (0));
    }
  }
}

/* A run that goes on from the last one of a piece is the first of the next. */
static void
copy_scales (Panel *panel)
{
  const size_t last = panel->last_run;

  if (last == 0)
    return;
  memcpy (panel->room.scales[0], panel->room.scales[last], sizeof (IntRow));
  memcpy (panel->room.mins[0], panel->room.mins[last], sizeof (IntRow));
}

/* n values of run g of a piece, which begin at value number at of it. */
static void
add_units (Units *units, Piece *piece, const Panel *panel, size_t g, const uint8_t *from, size_t at,
    size_t n)
{
  const size_t step = panel->reader.format->bits == 4 ? 8 : 4;
  size_t l;

  for (l = 0; l < n; l += UNIT)
    units->of[units->n++] = (Unit){ from + l / step * INT_LANE_BYTES, quad_at (piece, at + l),
      panel->room.scales[g], panel->room.mins[g] };
}

/* What the next values of a panel are made of. */
static void
start_piece (Units *units, Piece *piece, Panel *panel)
{
  IntReader *reader = &panel->reader;
  const size_t left = reader->k - reader->at, len = left < INT_PIECE ? left : INT_PIECE;
  size_t g = 0, at, n;

  piece->n_steps = n_steps_of (len);
  fill_rest (piece, len);
  units->n = 0;
  for (at = 0; at < len; at += n, g++) {
    const uint8_t *from;

    if (reader->at == reader->run_at + reader->run_len)
      int_enter_run (reader, g);
    else
      copy_scales (panel);
    n = reader->run_at + reader->run_len - reader->at;
    n = n < len - at ? n : len - at;
    if (reader->format->bits == 4) {
      from = reader->run + panel_low_bytes (4, INT_PANEL, reader->at - reader->run_at);
      reader->at += n;
    } else {
      from = int_widen_values (reader, panel->room.w + at * INT_PANEL, n);
    }
    add_units (units, piece, panel, g, from, at, n);
    panel->last_run = g;
  }
}

/* The unit's values of 16 columns. */
vlm_always_inline void
fill_tile (const Unit *unit, size_t tile, vf bias, int has_nibbles, Kind kind)
{
  const size_t column = tile * AMX_COLUMNS, step = has_nibbles ? 8 : 4;
  const Columns columns = columns_of (unit->scales + column, unit->mins + column, bias, kind);
  const uint8_t *from = unit->from + column * INT_INNER;
  uint8_t *to = unit->to + tile_offset (tile);
  size_t l;

  VLM_UNROLL
  for (l = 0; l < UNIT; l += step) {
    const vi words = vi_load (from);

    VLM_STREAM (from + VLM_STREAM_BYTES);
    if (has_nibbles) {
      store_pairs (to, vi_low_nibbles (words), &columns, 1, kind);
      store_pairs (to + 2 * AMX_ROW_BYTES, vi_high_nibbles (words), &columns, 1, kind);
    } else {
      store_pairs (to, words, &columns, 0, kind);
    }
    from += INT_LANE_BYTES;
    to += step / 2 * AMX_ROW_BYTES;
  }
}

/* Units that are yet to be made ready, in the order of memory; in registers. */
typedef struct
{
  const Unit *next, *end;
  size_t tile; /* of the next one */
  vf bias;
  size_t n; /* tiles of units at a time */
} Fill;

vlm_always_inline void
fill_tiles (Fill *fill, int has_nibbles, Kind kind)
{
  size_t i;

  for (i = 0; i < fill->n && fill->next < fill->end; i++) {
    fill_tile (fill->next, fill->tile, fill->bias, has_nibbles, kind);
    fill->tile = (fill->tile + 1) % N_TILES;
    fill->next += fill->tile == 0;
  }
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
  float w_bias;      /* what is in weights before they are scaled */
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

/* Rows of sums that are called for at a time. */
#define AHEAD_ROWS 4

/* Sums of the block after this one are called into the first-level cache: a tile that is loaded from
 * the second, or stored to it, holds up what follows. */
vlm_always_inline void
call_sums_ahead (const Sums *next, size_t s)
{
  const uint8_t *y = next->y + s * AHEAD_ROWS * next->ldy;
  size_t r;

  if (s >= BLOCK_ROWS / AHEAD_ROWS)
    return;
  VLM_UNROLL
  for (r = 0; r < AHEAD_ROWS; r++) {
    __builtin_prefetch (y + r * next->ldy);
    __builtin_prefetch (y + r * next->ldy + AMX_ROW_BYTES);
  }
}

/*
 * Adds the products of 32 rows and 32 columns to what is at from, and leaves the sums in tiles; those
 * of before go to done. Between products, some of the next piece are made ready, since tiles and
 * vectors are computed by different units.
 */
vlm_always_inline void
multiply_block (Sums done, Sums from, const Sums *next, const uint8_t *rows, size_t rows_bytes,
    const Tile (*columns)[2], size_t n_steps, Fill *fill, int has_nibbles, Kind kind)
{
  const uint8_t *below = rows + rows_bytes;
  size_t s;

  PRODUCTS (0, BEGIN)
  fill_tiles (fill, has_nibbles, kind);
  for (s = 1; s < n_steps; s++) {
    PRODUCTS (s, GO_ON)
    call_sums_ahead (next, s - 1);
    fill_tiles (fill, has_nibbles, kind);
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
      scale = vf_load (sums->scales + v);
    for (i = 0; i < BLOCK_ROWS; i++, y += p->ldy)
      vf_store (y, vf_fma (vf_load (y), scale, bias));
  }
}

/* Multiplies all rows with a piece of a panel, and makes the next one ready meanwhile. */
vlm_always_inline void
multiply_piece (const Product *p, Sums *done, const Piece *piece, size_t at, const Panel *panel,
    size_t first_column, const Units *units, int has_nibbles, Kind kind)
{
  static const uint8_t zeros[2 * AMX_ROW_BYTES] __attribute__ ((aligned (64)));
  const uint8_t *rows = (const uint8_t *) p->x->data + place_of (p->x, p->first, at);
  const size_t rows_bytes = piece->n_steps * AMX_TILE_BYTES;
  const size_t n_blocks = (p->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const size_t all_steps = n_blocks * N_TILES / 2 * piece->n_steps;
  Fill fill = { units->of, units->of + units->n, 0, vf_set1 (p->w_bias),
    (units->n * N_TILES + all_steps - 1) / all_steps };
  size_t i, pair;

  for (pair = 0; pair < N_TILES / 2; pair++) {
    const size_t column = first_column + pair * 2 * AMX_COLUMNS;
    const size_t next_column = column + 2 * AMX_COLUMNS < p->n ? column + 2 * AMX_COLUMNS : 0;
    const float *scales = panel->row_scales;
    Sums sums = { (uint8_t *) (p->y + column), p->ldy * sizeof (float), column,
      scales != NULL ? scales + pair * 2 * AMX_COLUMNS : NULL, at + INT_PIECE >= p->x->k };
    /* What is read only. */
    const Sums none = { .y = (uint8_t *) zeros };

    for (i = 0; i < p->m; i += BLOCK_ROWS) {
      Sums next = sums;

      next.y += BLOCK_ROWS * sums.ldy;
      if (i + BLOCK_ROWS >= p->m)
        next.y = (uint8_t *) (p->y + next_column);
      multiply_block (*done, at == 0 ? none : sums, &next, rows + i / AMX_ROWS * rows_bytes,
          rows_bytes, piece->tiles[pair], piece->n_steps, &fill, has_nibbles, kind);
      end_block (p, done);
      *done = sums;
      sums = next;
    }
  }
}

/* All panels take their turns with a piece each, so that rows pass by once for all of them. */
vlm_always_inline void
multiply (const Product *p, Panel *panels, int has_nibbles, Kind kind)
{
  const size_t n_panels = (p->n + INT_PANEL - 1) / INT_PANEL;
  const size_t n_pieces = n_panels * ((p->x->k + INT_PIECE - 1) / INT_PIECE);
  Piece pieces[2];
  uint8_t nothing[4 * AMX_TILE_BYTES];
  Sums done = { .y = nothing, .ldy = 2 * AMX_ROW_BYTES };
  Units units;
  Fill all;
  size_t i;

  start_piece (&units, &pieces[0], &panels[0]);
  all = (Fill){ units.of, units.of + units.n, 0, vf_set1 (p->w_bias), SIZE_MAX };
  fill_tiles (&all, has_nibbles, kind);
  for (i = 0; i < n_pieces; i++) {
    units.n = 0;
    if (i + 1 < n_pieces)
      start_piece (&units, &pieces[(i + 1) % 2], &panels[(i + 1) % n_panels]);
    multiply_piece (p, &done, &pieces[i % 2], i / n_panels * INT_PIECE, &panels[i % n_panels],
        i % n_panels * INT_PANEL, &units, has_nibbles, kind);
  }
  ON_SUMS (0, AMX_STORE, done)
  ON_SUMS (1, AMX_STORE, done)
  ON_SUMS (2, AMX_STORE, done)
  ON_SUMS (3, AMX_STORE, done)
  end_block (p, &done);
}

#define DEFINE_MULTIPLY(name, has_nibbles, kind)                                                   \
  static __attribute__ ((noinline)) void multiply_##name (const Product *p, Panel *panels)         \
  {                                                                                                \
    multiply (p, panels, has_nibbles, kind);                                                       \
  }

DEFINE_MULTIPLY (nibbles_unscaled, 1, UNSCALED)
DEFINE_MULTIPLY (nibbles_scaled, 1, SCALED)
DEFINE_MULTIPLY (nibbles_with_min, 1, WITH_MIN)
DEFINE_MULTIPLY (bytes_unscaled, 0, UNSCALED)
DEFINE_MULTIPLY (bytes_scaled, 0, SCALED)
DEFINE_MULTIPLY (bytes_with_min, 0, WITH_MIN)

typedef void (*MultiplyFunc) (const Product *p, Panel *panels);

static const MultiplyFunc multiply_funcs[2][3] = {
  { multiply_bytes_unscaled, multiply_bytes_scaled, multiply_bytes_with_min },
  { multiply_nibbles_unscaled, multiply_nibbles_scaled, multiply_nibbles_with_min },
};

/* Scales that are floats have too many bits for a bias that is taken out with them. */
static Kind
kind_of (const VlmIntFormat *format)
{
  if (format->scale == VLM_SCALE_ROW)
    return UNSCALED;
  return format->has_min || format->scale == VLM_SCALE_F32 ? WITH_MIN : SCALED;
}

static void
amx_matmul_tiled (float *y, size_t ldy, const VlmTiledRows *x, size_t first, size_t m,
    const VlmIntFormat *format, const void *w, size_t panel_bytes, size_t n, const float *bias)
{
  const Product p = { y, ldy, x, first, m, n, bias, bias_of (format) };
  const Kind kind = kind_of (format);
  Panel panels[VLM_TILED_PANELS];
  size_t i;

  if (m == 0 || n == 0)
    return;
  for (i = 0; i * INT_PANEL < n; i++) {
    const uint8_t *panel = (const uint8_t *) w + i * panel_bytes;

    panels[i].reader = int_start_panel (&panels[i].room, format, panel, x->k, 0);
    panels[i].row_scales = format->scale == VLM_SCALE_ROW ? (const float *) panel : NULL;
    panels[i].last_run = 0;
    if (kind == WITH_MIN && !format->has_min)
      memset (panels[i].room.mins, 0, sizeof panels[i].room.mins);
  }
  amx_configure ();
  multiply_funcs[format->bits == 4][kind](&p, panels);
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
