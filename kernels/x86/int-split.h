/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of 8-bit weights without VNNI. vpmaddubsw adds two products of a byte without a sign and
 * one with a sign in 16 bits, where those of weights of 0 .. 255 fit as long as the activations of a
 * pair add up to 128 at most, or differ in sign: |sum| <= 255 * 128. The few pairs beyond that are
 * split: one of the two is multiplied apart, by itself.
 */

#ifndef VLM_KERNELS_INT_SPLIT_H
#define VLM_KERNELS_INT_SPLIT_H

#include "kernels/simd/int-values.h"

#define INT_SPLIT

/* Adds the products of four weights of each column and of the activations. */
vlm_always_inline vi
vi_dot_split (vi sum, vi w, const int8_t *x)
{
  return vi_add_pairs (sum, vi_maddubs (w, vi_broadcast (x)));
}

/* The activations of the rows of a tile, and what the sums of its columns begin with. */
typedef struct
{
  int8_t ready[INT_ROWS][2 * INT_PIECE]; /* as tiles take them, and INT_PIECE behind what is left */
  int32_t sums[INT_ROWS][INT_PANEL];
  int32_t list[INT_PIECE / 4 + sizeof (vi) / 4]; /* numbers of fours that have something left */
} __attribute__ ((aligned (64))) IntSplit;

vlm_always_inline int32_t *
int_split (int8_t *split, int32_t *list, vi x, int32_t first)
{
  vi rest = vi_pair_rest (x);

  vi_store ((uint8_t *) split, vi_xor (x, rest));
  vi_store ((uint8_t *) split + INT_PIECE, rest);
  return int_list_rest (list, rest, first);
}

/* Splits len values of a row, a multiple of VLM_K_STEP. Returns the end of the list. */
vlm_always_inline int32_t *
int_split_row (int8_t *split, int32_t *list, const int8_t *q, size_t len)
{
  const size_t size = sizeof (vi);
  size_t l;

  for (l = 0; l + size <= len; l += size)
    list = int_split (split + l, list, vi_load ((const uint8_t *) q + l), (int32_t) l / 4);
  if (l < len)
    list = int_split (split + l, list, vi_load_bytes (q + l, len - l), (int32_t) l / 4);

  return list;
}

/* The sums of a row begin with start and the products of what is left. */
vlm_always_inline void
int_start_split (int32_t *sums, const int8_t *rest, const int32_t *list, const int32_t *end,
    int32_t start, const uint8_t *w)
{
  vi sum[INT_PANEL / VF_LANES];
  size_t v;

  VLM_UNROLL
  for (v = 0; v < INT_PANEL / VF_LANES; v++)
    sum[v] = vi_set1 (start);
  for (; list < end; list++) {
    const uint8_t *weights = w + (size_t) *list * INT_PANEL * 4;

    VLM_UNROLL
    for (v = 0; v < INT_PANEL / VF_LANES; v++)
      sum[v] = vi_dot_split (sum[v], vi_load (weights + v * sizeof (vi)), rest + 4 * *list);
  }
  VLM_UNROLL
  for (v = 0; v < INT_PANEL / VF_LANES; v++)
    vi_store ((uint8_t *) (sums + v * VF_LANES), sum[v]);
}

/* Splits rows, which are ldq apart; their sums begin with start, lds apart, and the products of what
 * is left. w is all columns of the panel. */
static __attribute__ ((noinline)) void
int_split_rows (IntSplit *split, const int8_t *q, size_t ldq, size_t rows, size_t len,
    const int32_t *start, size_t lds, const uint8_t *w)
{
  size_t r;

  for (r = 0; r < rows; r++) {
    int8_t *ready = split->ready[r];
    const int32_t *end = len == INT_PIECE
        ? int_split_row (ready, split->list, q + r * ldq, INT_PIECE)
        : int_split_row (ready, split->list, q + r * ldq, len);

    int_start_split (split->sums[r], ready + INT_PIECE, split->list, end, start[r * lds], w);
  }
}

#endif
