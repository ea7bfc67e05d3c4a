/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of quantised activations with one panel of integer weights. The sums of a tile of rows x
 * INT_PANEL columns stay in registers through a group; its end turns them into floats and adds them
 * to sums in memory. Every element sees the same operations in every tile and on every level.
 */

#ifndef VLM_KERNELS_SIMD_INTEGER_H
#define VLM_KERNELS_SIMD_INTEGER_H

#include "kernels/kernels.h"

#include "rest.h"

/* As in matmul.h: one token's weights come from memory. */
#define INT_PREFETCH_BYTES 4096

typedef float IntRow[INT_PANEL];

typedef void (*IntTile) (IntRow *sums, const VlmActivations *x, size_t first, const uint8_t *w);

vlm_always_inline void
int_prefetch (const uint8_t *w, size_t bytes)
{
  size_t i;

  VLM_UNROLL
  for (i = 0; i < bytes; i += 64)
    __builtin_prefetch (w + INT_PREFETCH_BYTES + i);
}

/* Adds a group to the sums in memory. */
vlm_always_inline void
int_end_group (IntRow *sums, IntSums sum, const VlmActivations *x, size_t at, size_t rows,
    const uint16_t *scales, VlmIntFormat format)
{
  size_t r, v;

  /* Or compilers see that these are the sums of the last group, and carry them through the next. */
  __asm__("" : "+r"(sums));
  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    vf x_scale = vf_set1 (x->scale[at + r * x->ldg]);

    VLM_UNROLL
    for (v = 0; v < INT_PANEL / VF_LANES; v++) {
      float *out = sums[r] + v * VF_LANES;
      vf factor = x_scale;

      if (format != VLM_INT_I8)
        factor = vf_mul (x_scale, vf_load_f16 (scales + v * VF_LANES));
      vf_store (out, vf_fma (int_row (sum, r, v), factor, vf_load (out)));
    }
  }
}

vlm_always_inline void
int_tile (IntRow *sums, const VlmActivations *x, size_t first, size_t rows, const uint8_t *w,
    VlmIntFormat format)
{
  const size_t step = VLM_K_STEP * INT_PANEL / (format == VLM_INT_I4_GROUPS ? 2 : 1);
  const int32_t bias = format == VLM_INT_I4_GROUPS ? 8 : INT_BIAS;
  const int8_t *q = x->q + first * x->ldq;
  size_t left = vlm_padded_k (x->k), at = first * x->ldg, l, r, v;

  for (r = 0; r < rows; r++) {
    for (v = 0; v < INT_PANEL; v += VF_LANES)
      vf_store (sums[r] + v, vf_zero ());
  }

  while (left > 0) {
    size_t len = left < x->group ? left : x->group;
    const uint16_t *scales = (const uint16_t *) w;
    IntSums sum;

    if (format != VLM_INT_I8)
      w += INT_PANEL * sizeof (uint16_t);
    VLM_UNROLL
    for (r = 0; r < rows; r++)
      int_start_row (sum, r, bias != 0 ? -bias * x->sum[at + r * x->ldg] : 0);
    for (l = 0; l < len; l += VLM_K_STEP) {
      int_prefetch (w, step);
      int_step (sum, q, x->ldq, rows, w, format);
      q += VLM_K_STEP;
      w += step;
    }
    int_end_group (sums, sum, x, at, rows, scales, format);
    left -= len;
    at++;
  }
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

#define DEFINE_THREE_INT_TILES(name, format)                                                       \
  DEFINE_INT_TILE (name, format, 1)                                                                \
  DEFINE_INT_TILE (name, format, 2)                                                                \
  DEFINE_INT_TILE (name, format, 3)
#define LIST_THREE_INT_TILES(name) name##_tile_1, name##_tile_2, name##_tile_3

#if INT_ROWS == 3
#define DEFINE_INT_TILES(name, format) DEFINE_THREE_INT_TILES (name, format)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name)
#elif INT_ROWS == 4
#define DEFINE_INT_TILES(name, format)                                                             \
  DEFINE_THREE_INT_TILES (name, format) DEFINE_INT_TILE (name, format, 4)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name), name##_tile_4
#elif INT_ROWS == 5
#define DEFINE_INT_TILES(name, format)                                                             \
  DEFINE_THREE_INT_TILES (name, format)                                                            \
  DEFINE_INT_TILE (name, format, 4)                                                                \
  DEFINE_INT_TILE (name, format, 5)
#define LIST_INT_TILES(name) LIST_THREE_INT_TILES (name), name##_tile_4, name##_tile_5
#else
#define DEFINE_INT_TILES(name, format)                                                             \
  DEFINE_THREE_INT_TILES (name, format)                                                            \
  DEFINE_INT_TILE (name, format, 4)                                                                \
  DEFINE_INT_TILE (name, format, 5)                                                                \
  DEFINE_INT_TILE (name, format, 6)
#define LIST_INT_TILES(name)                                                                       \
  LIST_THREE_INT_TILES (name), name##_tile_4, name##_tile_5, name##_tile_6
#endif

#define DEFINE_INT_MATMUL(name, format)                                                            \
  DEFINE_INT_TILES (name, format)                                                                  \
  static const IntTile name##_tiles[INT_ROWS] = { LIST_INT_TILES (name) };                         \
  static void simd_##name (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, \
      size_t n, const float *bias)                                                                 \
  {                                                                                                \
    int_matmul (name##_tiles, y, ldy, x, m, w, n, bias, format);                                   \
  }

/* The fewest tiles, of nearly equal height. */
static void
int_matmul (const IntTile *tiles, float *y, size_t ldy, const VlmActivations *x, size_t m,
    const void *w, size_t n, const float *bias, VlmIntFormat format)
{
  size_t n_tiles = (m + INT_ROWS - 1) / INT_ROWS, first = 0;
  const float *scales = format == VLM_INT_I8 ? w : NULL;
  const uint8_t *values = scales != NULL ? (const uint8_t *) (scales + INT_PANEL) : w;

  if (n == 0)
    return;

  while (n_tiles > 0) {
    size_t rows = (m - first + n_tiles - 1) / n_tiles;
    IntRow sums[INT_ROWS];

    tiles[rows - 1](sums, x, first, values);
    int_store_rows (y + first * ldy, ldy, (const IntRow *) sums, rows, n, scales, bias);
    first += rows;
    n_tiles--;
  }
}

DEFINE_INT_MATMUL (matmul_i8, VLM_INT_I8)
DEFINE_INT_MATMUL (matmul_i8_groups, VLM_INT_I8_GROUPS)
DEFINE_INT_MATMUL (matmul_i4_groups, VLM_INT_I4_GROUPS)

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
