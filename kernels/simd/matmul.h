/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Dense products with one panel of weights. A tile of rows x MATMUL_VECTORS registers of sums walks
 * down the panel; each sum is one chain of fused multiply-adds over ascending l in every tile, so a
 * row's result does not depend on the rows that it shares the tile with.
 */

#ifndef VLM_KERNELS_SIMD_MATMUL_H
#define VLM_KERNELS_SIMD_MATMUL_H

#define MATMUL_PANEL (MATMUL_VECTORS * VF_LANES)

typedef enum
{
  WEIGHTS_F32,
  WEIGHTS_F16,
  WEIGHTS_BF16
} Weights;

typedef void (*MatmulTile) (float *y, size_t ldy, const float *x, size_t ldx, const void *w,
    size_t k, size_t n, const float *bias);

vlm_always_inline vf
load_weights (const void *w, Weights type, size_t i)
{
  switch (type) {
    case WEIGHTS_F16:
      return vf_load_f16 ((const uint16_t *) w + i);
    case WEIGHTS_BF16:
      return vf_load_bf16 ((const uint16_t *) w + i);
    default:
      return vf_load ((const float *) w + i);
  }
}

vlm_always_inline void
prefetch_line (const void *w, Weights type, size_t l)
{
  size_t line = MATMUL_PANEL * (type == WEIGHTS_F32 ? sizeof (float) : sizeof (uint16_t));
  const char *ahead = (const char *) w + l * line + VLM_STREAM_BYTES;
  size_t i;

  VLM_UNROLL
  for (i = 0; i < line; i += 64)
    VLM_STREAM (ahead + i);
}

typedef float SumRow[MATMUL_PANEL];

/* Apart from the tiles, because it would be most of their code. */
static __attribute__ ((noinline)) void
store_rows (float *y, size_t ldy, const SumRow *sums, size_t rows, size_t n, const float *bias)
{
  size_t i, j;

  for (i = 0; i < rows; i++) {
    for (j = 0; j + VF_LANES <= n; j += VF_LANES) {
      vf sum = vf_load (sums[i] + j);

      vf_store (y + i * ldy + j, bias != NULL ? vf_add (sum, vf_load (bias + j)) : sum);
    }
    for (; j < n; j++)
      y[i * ldy + j] = bias != NULL ? sums[i][j] + bias[j] : sums[i][j];
  }
}

vlm_always_inline void
matmul_tile (float *y, size_t ldy, const float *x, size_t ldx, size_t rows, const void *w,
    Weights type, size_t k, size_t n, const float *bias)
{
  vf sum[MATMUL_ROWS][MATMUL_VECTORS], weights[MATMUL_VECTORS];
  SumRow sums[MATMUL_ROWS];
  size_t i, v, l;

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < MATMUL_VECTORS; v++)
      sum[i][v] = vf_zero ();
  }

  for (l = 0; l < k; l++) {
    prefetch_line (w, type, l);
    VLM_UNROLL
    for (v = 0; v < MATMUL_VECTORS; v++)
      weights[v] = load_weights (w, type, l * MATMUL_PANEL + v * VF_LANES);
    VLM_UNROLL
    for (i = 0; i < rows; i++) {
      vf broadcast = vf_set1 (x[i * ldx + l]);

      VLM_UNROLL
      for (v = 0; v < MATMUL_VECTORS; v++)
        sum[i][v] = vf_fma (broadcast, weights[v], sum[i][v]);
    }
  }

  VLM_UNROLL
  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < MATMUL_VECTORS; v++)
      vf_store (sums[i] + v * VF_LANES, sum[i][v]);
  }
  store_rows (y, ldy, (const SumRow *) sums, rows, n, bias);
}

#define DEFINE_TILE(name, type, rows)                                                              \
  static __attribute__ ((noinline)) void name##_tile_##rows (float *y, size_t ldy, const float *x, \
      size_t ldx, const void *w, size_t k, size_t n, const float *bias)                            \
  {                                                                                                \
    matmul_tile (y, ldy, x, ldx, rows, w, type, k, n, bias);                                       \
  }

#define DEFINE_FIVE_TILES(name, type)                                                              \
  DEFINE_TILE (name, type, 1)                                                                      \
  DEFINE_TILE (name, type, 2)                                                                      \
  DEFINE_TILE (name, type, 3)                                                                      \
  DEFINE_TILE (name, type, 4)                                                                      \
  DEFINE_TILE (name, type, 5)
#define LIST_FIVE_TILES(name)                                                                      \
  name##_tile_1, name##_tile_2, name##_tile_3, name##_tile_4, name##_tile_5

#if MATMUL_ROWS == 5
#define DEFINE_TILES(name, type) DEFINE_FIVE_TILES (name, type)
#define LIST_TILES(name) LIST_FIVE_TILES (name)
#elif MATMUL_ROWS == 6
#define DEFINE_TILES(name, type) DEFINE_FIVE_TILES (name, type) DEFINE_TILE (name, type, 6)
#define LIST_TILES(name) LIST_FIVE_TILES (name), name##_tile_6
#else
#define DEFINE_TILES(name, type)                                                                   \
  DEFINE_FIVE_TILES (name, type)                                                                   \
  DEFINE_TILE (name, type, 6)                                                                      \
  DEFINE_TILE (name, type, 7)                                                                      \
  DEFINE_TILE (name, type, 8)                                                                      \
  DEFINE_TILE (name, type, 9)                                                                      \
  DEFINE_TILE (name, type, 10)                                                                     \
  DEFINE_TILE (name, type, 11)                                                                     \
  DEFINE_TILE (name, type, 12)
#define LIST_TILES(name)                                                                           \
  LIST_FIVE_TILES (name), name##_tile_6, name##_tile_7, name##_tile_8, name##_tile_9,              \
      name##_tile_10, name##_tile_11, name##_tile_12
#endif

#define DEFINE_MATMUL(name, type, element)                                                         \
  DEFINE_TILES (name, type)                                                                        \
  static const MatmulTile name##_tiles[MATMUL_ROWS] = { LIST_TILES (name) };                       \
  static void simd_##name (float *y, size_t ldy, const float *x, size_t ldx, size_t m,             \
      const element *w, size_t k, size_t n, const float *bias)                                     \
  {                                                                                                \
    matmul_rows (name##_tiles, y, ldy, x, ldx, m, w, k, n, bias);                                  \
  }

/* The fewest tiles, of nearly equal height: 13 rows are 7 and 6, not 12 and 1. */
static void
matmul_rows (const MatmulTile *tiles, float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const void *w, size_t k, size_t n, const float *bias)
{
  size_t n_tiles = (m + MATMUL_ROWS - 1) / MATMUL_ROWS;

  if (n == 0)
    return;

  while (n_tiles > 0) {
    size_t rows = (m + n_tiles - 1) / n_tiles;

    tiles[rows - 1](y, ldy, x, ldx, w, k, n, bias);
    y += rows * ldy;
    x += rows * ldx;
    m -= rows;
    n_tiles--;
  }
}

DEFINE_MATMUL (matmul_f32, WEIGHTS_F32, float)
DEFINE_MATMUL (matmul_f16, WEIGHTS_F16, uint16_t)
DEFINE_MATMUL (matmul_bf16, WEIGHTS_BF16, uint16_t)

#endif
