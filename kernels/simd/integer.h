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

/* Rows that share weights made ready for them; their sums and those weights stay in the first-level
 * cache. Groups that are longer do without. */
#define INT_BLOCK_ROWS (8 * INT_ROWS)
#define INT_BLOCK_GROUP 256

typedef float IntRow[INT_PANEL];

/* One group of the rows of a tile: adds to the sums of each. */
typedef struct
{
  IntRow *sums;
  const int8_t *q;
  size_t ldq;
  const float *x_scale; /* ldg apart */
  const int32_t *x_sum; /* the same */
  size_t ldg;
  size_t len;
  const uint8_t *w;
  const uint16_t *w_halves; /* [INT_PANEL]; not for VLM_INT_I8 */
  const float *w_scales;    /* the same in wide groups */
  int is_streamed;          /* nobody has read these weights before */
} IntGroup;

typedef void (*IntTile) (IntRow *sums, const VlmActivations *x, size_t first, const uint8_t *w);
typedef void (*IntGroupTile) (const IntGroup *group);

vlm_always_inline void
int_prefetch (const uint8_t *w, size_t bytes)
{
  size_t i;

  VLM_UNROLL
  for (i = 0; i < bytes; i += 64)
    __builtin_prefetch (w + INT_PREFETCH_BYTES + i);
}

vlm_always_inline void
int_end_group (const IntGroup *group, IntSums sum, size_t rows, VlmIntFormat format, int is_wide)
{
  const float *x_scales = group->x_scale;
  const size_t ldg = group->ldg;
  IntRow *sums = group->sums;
  vf w_scales[INT_PANEL / VF_LANES];
  size_t r, v;

  VLM_UNROLL
  for (v = 0; format != VLM_INT_I8 && v < INT_PANEL / VF_LANES; v++)
    w_scales[v] = is_wide ? vf_load (group->w_scales + v * VF_LANES)
                          : vf_load_f16 (group->w_halves + v * VF_LANES);
  /* Or compilers see that these are the sums of the last group, and carry them through the next. */
  __asm__("" : "+r"(sums));
  VLM_UNROLL
  for (r = 0; r < rows; r++) {
    vf x_scale = vf_set1 (x_scales[r * ldg]);

    VLM_UNROLL
    for (v = 0; v < INT_PANEL / VF_LANES; v++) {
      float *out = sums[r] + v * VF_LANES;
      vf factor = format != VLM_INT_I8 ? vf_mul (x_scale, w_scales[v]) : x_scale;

      vf_store (out, vf_fma (int_row (sum, r, v), factor, vf_load (out)));
    }
  }
}

/* is_wide: nibbles are already a byte each, and scales floats. */
vlm_always_inline void
int_add_group (const IntGroup *group, size_t rows, VlmIntFormat format, int is_wide)
{
  const int is_packed = format == VLM_INT_I4_GROUPS && !is_wide;
  const size_t step = VLM_K_STEP * INT_PANEL / (is_packed ? 2 : 1);
  const int32_t bias = format == VLM_INT_I4_GROUPS ? 8 : INT_BIAS;
  const int8_t *q = group->q, *end = q + group->len;
  const uint8_t *w = group->w;
  IntSums sum;
  size_t r;

  VLM_UNROLL
  for (r = 0; r < rows; r++)
    int_start_row (sum, r, bias != 0 ? -bias * group->x_sum[r * group->ldg] : 0);
  do {
    if (group->is_streamed)
      int_prefetch (w, step);
    int_step (sum, q, group->ldq, rows, w, format, is_wide);
    q += VLM_K_STEP;
    w += step;
  } while (q < end);
  int_end_group (group, sum, rows, format, is_wide);
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

vlm_always_inline IntGroup
int_first_group (IntRow *sums, const VlmActivations *x, size_t first)
{
  return (IntGroup){ .sums = sums,
    .q = x->q + first * x->ldq,
    .ldq = x->ldq,
    .x_scale = x->scale + first * x->ldg,
    .x_sum = x->sum + first * x->ldg,
    .ldg = x->ldg };
}

/* All groups of the rows of one tile. */
vlm_always_inline void
int_tile (IntRow *sums, const VlmActivations *x, size_t first, size_t rows, const uint8_t *w,
    VlmIntFormat format)
{
  IntGroup group = int_first_group (sums, x, first);
  size_t left = vlm_padded_k (x->k);

  int_clear (sums, rows);
  group.w = w;
  group.is_streamed = first == 0;
  while (left > 0) {
    group.len = left < x->group ? left : x->group;
    if (format != VLM_INT_I8) {
      group.w_halves = (const uint16_t *) group.w;
      group.w += INT_PANEL * sizeof (uint16_t);
    }
    int_add_group (&group, rows, format, 0);
    group.q += group.len;
    group.x_scale++;
    group.x_sum++;
    group.w += group.len * INT_PANEL / (format == VLM_INT_I4_GROUPS ? 2 : 1);
    left -= group.len;
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

#define DEFINE_INT_GROUP_TILE(name, format, rows)                                                  \
  static __attribute__ ((noinline)) void name##_tile_##rows (const IntGroup *group)                \
  {                                                                                                \
    int_add_group (group, rows, format, 1);                                                        \
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
FOR_INT_TILES (DEFINE_INT_GROUP_TILE, block_i8_groups, VLM_INT_I8_GROUPS)
FOR_INT_TILES (DEFINE_INT_GROUP_TILE, block_i4_groups, VLM_INT_I4_GROUPS)

static const IntTile int_tiles[VLM_INT_N_FORMATS][INT_ROWS] = {
  [VLM_INT_I8] = { LIST_INT_TILES (matmul_i8) },
  [VLM_INT_I8_GROUPS] = { LIST_INT_TILES (matmul_i8_groups) },
  [VLM_INT_I4_GROUPS] = { LIST_INT_TILES (matmul_i4_groups) },
};

static const IntGroupTile int_group_tiles[VLM_INT_N_FORMATS][INT_ROWS] = {
  [VLM_INT_I8_GROUPS] = { LIST_INT_TILES (block_i8_groups) },
  [VLM_INT_I4_GROUPS] = { LIST_INT_TILES (block_i4_groups) },
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

/* One group of the rows of a block. */
static void
int_block_group (IntGroup group, size_t rows, VlmIntFormat format)
{
  size_t n_tiles = (rows + INT_ROWS - 1) / INT_ROWS;

  for (; n_tiles > 0; n_tiles--) {
    size_t height = (rows + n_tiles - 1) / n_tiles;

    int_group_tiles[format][height - 1](&group);
    group.sums += height;
    group.q += height * group.ldq;
    group.x_scale += height * group.ldg;
    group.x_sum += height * group.ldg;
    rows -= height;
  }
}

/* As int_matmul_tiles (), where scales and nibbles are widened once for all rows of a block. */
static void
int_matmul_block (float *y, size_t ldy, const VlmActivations *x, size_t first, size_t rows,
    const uint8_t *w, size_t n, const float *bias, VlmIntFormat format)
{
  size_t left = vlm_padded_k (x->k);
  uint8_t wide[INT_BLOCK_GROUP * INT_PANEL] __attribute__ ((aligned (64)));
  float scales[INT_PANEL] __attribute__ ((aligned (64)));
  IntRow sums[INT_BLOCK_ROWS] __attribute__ ((aligned (64)));
  IntGroup group = int_first_group (sums, x, first);

  int_clear (sums, rows);
  group.w_scales = scales;
  while (left > 0) {
    group.len = left < x->group ? left : x->group;
    int_widen_scales (scales, (const uint16_t *) w);
    w += INT_PANEL * sizeof (uint16_t);
    group.w = format == VLM_INT_I4_GROUPS ? wide : w;
    if (format == VLM_INT_I4_GROUPS)
      int_widen_nibbles (wide, w, group.len);
    int_block_group (group, rows, format);
    group.q += group.len;
    group.x_scale++;
    group.x_sum++;
    w += group.len * INT_PANEL / (format == VLM_INT_I4_GROUPS ? 2 : 1);
    left -= group.len;
  }
  int_store_rows (y, ldy, (const IntRow *) sums, rows, n, NULL, bias);
}

static void
int_matmul_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, size_t n,
    const float *bias, VlmIntFormat format)
{
  size_t n_blocks = (m + INT_BLOCK_ROWS - 1) / INT_BLOCK_ROWS, first = 0;

  if (m <= INT_ROWS || x->group > INT_BLOCK_GROUP) {
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
