/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of many rows in tiles of bfloat16. A piece of a panel of integer weights is made bfloat16
 * in the order of tiles, once for all rows, and stays in the first-level cache while 32 rows at a
 * time pass by it: two tiles of rows by two of columns have their sums in tile registers. Between
 * pieces sums lie in the output.
 */

#include "avx512vnni.h"
#include "amx-tiles.h"
#include "tiled-amx.h"

/* What a reader gives at a time. */
#define INT_PIECE 256

#include "kernels/levels.h"
#include "int-avx512vnni.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/int-reader.h"
#include "kernels/simd/rest.h"

/* Values of k in one tile. */
#define STEP VLM_TILED_STEP

/* Steps of a piece: two tiles of columns take 16 KiB. */
#define PIECE_STEPS 8

#define N_TILES (INT_PANEL / AMX_COLUMNS)

/* Rows whose sums are in registers together. */
#define BLOCK_ROWS (2 * AMX_ROWS)

/* Weights of one step and 16 columns: pairs of k by columns. */
typedef uint8_t Tile[AMX_TILE_BYTES];

typedef struct
{
  Tile tiles[N_TILES / 2][PIECE_STEPS][2];
  IntRoom room;
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

/* Where 16 rows are. */
static size_t
rows_at (size_t row, size_t k)
{
  return row / AMX_ROWS * n_steps_of (k) * AMX_TILE_BYTES;
}

vlm_always_inline void
store_step (uint8_t *to, vf low, vf high)
{
  _mm512_storeu_si512 (to, (__m512i) _mm512_cvtne2ps_pbh (high, low));
}

static void
amx_tile_row (void *tiled, size_t k, size_t i, size_t first, const float *x, size_t n)
{
  uint8_t *to = (uint8_t *) tiled + rows_at (i, k) + first / STEP * AMX_TILE_BYTES
      + i % AMX_ROWS * AMX_ROW_BYTES;
  size_t l;

  for (l = 0; l + STEP <= n; l += STEP, to += AMX_TILE_BYTES)
    store_step (to, vf_load (x + l), vf_load (x + l + VF_LANES));
  if (l < n)
    store_step (
        to, load_rest (x, l, n), l + VF_LANES < n ? load_rest (x, l + VF_LANES, n) : vf_zero ());
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
  SCALED,
  WITH_MIN
} Kind;

/* The weights of byte number i, rounded to where the lower half may be cut off. */
vlm_always_inline vi
weights_of (vi words, int i, const Columns *columns, Kind kind)
{
  vf w = byte_values (words, i, columns->bias);

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

/* A word holds four values of a column; of 16 columns they are two rows of a tile. */
static uint8_t *
quad_at (Piece *piece, size_t l, size_t tile)
{
  return piece->tiles[tile / 2][l / STEP][tile % 2] + l % STEP / 4 * 2 * AMX_ROW_BYTES;
}

/* Values at .. at + n - 1 of the piece, of bytes in the order of a panel, or of its nibbles. */
vlm_always_inline void
fill (Piece *piece, const uint8_t *from, size_t at, size_t n, int bias, int has_nibbles, Kind kind)
{
  const float *scales = piece->room.scales[0], *mins = piece->room.mins[0];
  size_t tile, l;

  for (tile = 0; tile < N_TILES; tile++) {
    const Columns columns = { vf_set1 (1 + (float) bias / 256),
      vf_mul (vf_load (scales + tile * VF_LANES), vf_set1 (256)),
      kind == WITH_MIN ? vf_load (mins + tile * VF_LANES) : vf_zero () };
    const uint8_t *next = from + tile * sizeof (vi);

    for (l = at; l < at + n; l += has_nibbles ? 8 : 4, next += INT_LANE_BYTES) {
      vi words = vi_load (next);

      if (has_nibbles) {
        store_pairs (quad_at (piece, l, tile), vi_low_nibbles (words), &columns, kind);
        store_pairs (quad_at (piece, l + 4, tile), vi_high_nibbles (words), &columns, kind);
      } else {
        store_pairs (quad_at (piece, l, tile), words, &columns, kind);
      }
    }
  }
}

static void
fill_values (Piece *piece, IntReader *reader, size_t at, size_t n)
{
  const VlmIntFormat *format = reader->format;
  const int bias = int_bias (format);
  const uint8_t *from;

  if (format->bits == 4) {
    from = reader->run + panel_low_bytes (4, INT_PANEL, reader->at - reader->run_at);
    reader->at += n;
    if (format->has_min)
      fill (piece, from, at, n, bias, 1, WITH_MIN);
    else
      fill (piece, from, at, n, bias, 1, SCALED);
    return;
  }
  from = int_widen_values (reader, piece->room.w, n);
  if (format->has_min)
    fill (piece, from, at, n, bias, 0, WITH_MIN);
  else
    fill (piece, from, at, n, bias, 0, SCALED);
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

static void
next_piece (Piece *piece, IntReader *reader)
{
  const size_t left = reader->k - reader->at;
  const size_t len = left < PIECE_STEPS * STEP ? left : PIECE_STEPS * STEP;
  size_t at = 0;

  while (at < len) {
    size_t n;

    if (reader->at == reader->run_at + reader->run_len)
      int_enter_run (reader, 0);
    n = reader->run_at + reader->run_len - reader->at;
    n = n < len - at ? n : len - at;
    n = n < INT_PIECE ? n : INT_PIECE;
    fill_values (piece, reader, at, n);
    at += n;
  }
  fill_rest (piece, len);
  piece->n_steps = n_steps_of (len);
}

/* ---- Products ------------------------------------------------------------------------------ */

/* A product with one panel. */
typedef struct
{
  float *y;
  size_t ldy;
  const uint8_t *rows;
  size_t rows_bytes; /* of 16 */
  size_t m, k, n;
  const float *bias; /* or NULL */
} Product;

#define ON_BLOCK(operation, y, ldy)                                                                \
  operation (0, y, 0, ldy);                                                                        \
  operation (1, y, AMX_ROW_BYTES, ldy);                                                            \
  operation (2, (y) + AMX_ROWS * (ldy), 0, ldy);                                                   \
  operation (3, (y) + AMX_ROWS * (ldy), AMX_ROW_BYTES, ldy);

/* Adds the products of 32 rows and 32 columns, to zeros if this is the first piece. */
vlm_always_inline void
multiply_block (uint8_t *y, size_t ldy, const uint8_t *rows, size_t rows_bytes,
    const Tile (*columns)[2], size_t n_steps, int is_first)
{
  static const uint8_t zeros[AMX_ROW_BYTES] __attribute__ ((aligned (64)));
  const uint8_t *below = rows + rows_bytes;
  size_t s;

  if (is_first) {
    AMX_LOAD (0, zeros, 0, 0);
    AMX_LOAD (1, zeros, 0, 0);
    AMX_LOAD (2, zeros, 0, 0);
    AMX_LOAD (3, zeros, 0, 0);
  } else {
    ON_BLOCK (AMX_LOAD, y, ldy)
  }
  for (s = 0; s < n_steps; s++) {
    AMX_LOAD (4, rows + s * AMX_TILE_BYTES, 0, AMX_ROW_BYTES);
    AMX_LOAD (6, columns[s][0], 0, AMX_ROW_BYTES);
    AMX_MULTIPLY_BF16 (0, 4, 6);
    AMX_LOAD (7, columns[s][1], 0, AMX_ROW_BYTES);
    AMX_MULTIPLY_BF16 (1, 4, 7);
    AMX_LOAD (5, below + s * AMX_TILE_BYTES, 0, AMX_ROW_BYTES);
    AMX_MULTIPLY_BF16 (2, 5, 6);
    AMX_MULTIPLY_BF16 (3, 5, 7);
  }
  ON_BLOCK (AMX_STORE, y, ldy)
}

/* Adds the bias to 32 rows. */
static void
end_block (const Product *p, float *y)
{
  size_t i, j;

  for (i = 0; i < BLOCK_ROWS; i++) {
    for (j = 0; j < p->n; j += VF_LANES) {
      vf sum = vf_load (y + i * p->ldy + j);

      vf_store (y + i * p->ldy + j, vf_add (sum, load_rest (p->bias, j, p->n)));
    }
  }
}

static void
multiply_piece (const Product *p, const Piece *piece, size_t at, int is_first, int is_last)
{
  const uint8_t *rows = p->rows + at / STEP * AMX_TILE_BYTES;
  size_t i, pair;

  for (pair = 0; pair < N_TILES / 2; pair++) {
    for (i = 0; i < p->m; i += BLOCK_ROWS)
      multiply_block ((uint8_t *) (p->y + i * p->ldy + pair * 2 * AMX_COLUMNS),
          p->ldy * sizeof (float), rows + i / AMX_ROWS * p->rows_bytes, p->rows_bytes,
          piece->tiles[pair], piece->n_steps, is_first);
  }
  for (i = 0; is_last && p->bias != NULL && i < p->m; i += BLOCK_ROWS)
    end_block (p, p->y + i * p->ldy);
}

static void
amx_matmul_tiled (float *y, size_t ldy, const void *tiled, size_t first, size_t m, size_t k,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias)
{
  const Product p = { y, ldy, (const uint8_t *) tiled + rows_at (first, k), rows_at (AMX_ROWS, k),
    m, k, n, bias };
  Piece piece;
  IntReader reader = int_start_panel (&piece.room, format, w, k, 0);

  amx_configure (AMX_ROW_BYTES);
  while (reader.at < reader.k) {
    size_t at = reader.at;

    next_piece (&piece, &reader);
    multiply_piece (&p, &piece, at, at == 0, reader.at == reader.k);
  }
  AMX_RELEASE ();
}

void
vlm_amx_fill_tiled (VlmKernels *kernels)
{
  kernels->tiled_bytes = amx_tiled_bytes;
  kernels->tile_row = amx_tile_row;
  kernels->matmul_tiled = amx_matmul_tiled;
}
