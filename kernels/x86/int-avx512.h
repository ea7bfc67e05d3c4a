/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX-512 BW without VNNI. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX512_H
#define VLM_KERNELS_INT_AVX512_H

#include "int-512.h"
#include "int-maddubs.h"

/* Registers: 12 sums, 4 weights, 2 constants, the rest for products. */
#define INT_ROWS 6
#define INT_VECTORS 2

/* Registers: 16 sums, 2 queries or weights, the rest for broadcasts and products. */
#define HEAD_ROWS 8
#define HEAD_VECTORS 2

/* Activations are split for a tile and all columns of the panel, which is therefore wide. */
#define INT_PANEL 64

/* Weights have no sign in panels, which int-split.h wants; vi_dot gives it back. */
#define INT_BIAS 0
#define INT_FLIP 0x80

/* Sums of two products. |w| is unsigned; 2 * 128 * 127 fits because activations are never -128. */
vlm_always_inline vi
vi_pairs (vi flipped, vi x)
{
  vi w = vi_xor (flipped, _mm512_set1_epi8 (-128));
  vi x_signed = _mm512_mask_sub_epi8 (x, _mm512_movepi8_mask (w), _mm512_setzero_si512 (), x);

  return vi_maddubs (_mm512_abs_epi8 (w), x_signed);
}

vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  return vi_add_pairs (sum, vi_pairs (w, vi_broadcast (x + 4 * lane)));
}

/* Of which four activations something was left, 16 at a time: adds their numbers to a list. */
vlm_always_inline int32_t *
int_list_rest (int32_t *list, vi rest, int32_t first)
{
  const vi numbers = _mm512_setr_epi32 (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __mmask16 some = _mm512_test_epi32_mask (rest, rest);

  vi_store (
      (uint8_t *) list, _mm512_maskz_compress_epi32 (some, vi_add (numbers, vi_set1 (first))));
  return list + __builtin_popcount (some);
}

/* The odd ones of pairs that add up to more than 128. */
vlm_always_inline vi
vi_pair_rest (vi x)
{
  vi sums = _mm512_abs_epi16 (_mm512_maddubs_epi16 (_mm512_set1_epi8 (1), x));
  __mmask32 large = _mm512_cmpgt_epi16_mask (sums, _mm512_set1_epi16 (128));

  return _mm512_and_si512 (_mm512_maskz_mov_epi16 (large, x), _mm512_set1_epi16 (-256));
}

vlm_always_inline vi
vi_load_bytes (const int8_t *p, size_t n)
{
  return _mm512_maskz_loadu_epi8 (~(__mmask64) 0 >> (64 - n), p);
}

#include "int-split.h"

#endif
