/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX2. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX2_H
#define VLM_KERNELS_INT_AVX2_H

#include "int-256.h"
#include "int-maddubs.h"
#include "kernels/simd/int-values.h"

/* Registers: 8 sums, 2 weights, a constant, the rest for broadcasts and products. */
#define INT_ROWS 4
#define INT_VECTORS 2

/* Registers: 8 sums, 2 queries or weights, the rest for broadcasts and products. */
#define HEAD_ROWS 4
#define HEAD_VECTORS 2

/* Activations are made ready for a tile and all columns of the panel, which is therefore wide. */
#define INT_PANEL 64

/* Weights have no sign. What that adds to sums comes out with the activations that are made ready,
 * not by those of a group. */
#define INT_BIAS 0
#define INT_FLIP 0x80

/*
 * Two products of weights of 0 .. 255 overflow their sum in 16 bits unless they differ in sign.
 * Therefore activations are made positive and negative in turn, and where that changes the sign of
 * one, its weights become 255 - w, by an exclusive-or: |sum| <= 255 * 127. The masks for that stand
 * INT_PIECE bytes behind the activations. Up to a constant, the same for all columns, products stay
 * what they were: a (w - 127.5) = -a (127.5 - w).
 */
#define INT_ALTERNATE

vlm_always_inline vi
vi_xor (vi a, vi b)
{
  return _mm256_xor_si256 (a, b);
}

vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  vi turned = vi_xor (w, vi_broadcast (x + 4 * lane + INT_PIECE));

  return vi_add_pairs (sum, vi_maddubs (turned, vi_broadcast (x + 4 * lane)));
}

/* Makes 32 activations ready. Returns what they add up to with weights that stand for zero. */
vlm_always_inline vi
vi_alternate (int8_t *ready, vi x)
{
  vi turn = vi_xor (_mm256_cmpgt_epi8 (_mm256_setzero_si256 (), x), _mm256_set1_epi16 (-256));
  vi turned = _mm256_sub_epi8 (vi_xor (x, turn), turn);

  vi_store ((uint8_t *) ready, turned);
  vi_store ((uint8_t *) ready + INT_PIECE, turn);
  return vi_add_up_pairs (vi_maddubs (vi_xor (turn, _mm256_set1_epi8 (-128)), turned));
}

vlm_always_inline int32_t
vi_sum (vi x)
{
  __m128i sum = _mm_add_epi32 (_mm256_castsi256_si128 (x), _mm256_extracti128_si256 (x, 1));

  sum = _mm_add_epi32 (sum, _mm_unpackhi_epi64 (sum, sum));
  sum = _mm_add_epi32 (sum, _mm_shuffle_epi32 (sum, 1));
  return _mm_cvtsi128_si32 (sum);
}

/* Makes len values of a row ready, a multiple of VLM_K_STEP. Returns what its sums begin with. */
vlm_always_inline int32_t
int_alternate_row (int8_t *ready, const int8_t *q, size_t len)
{
  vi sum = vi_set1 (0);
  size_t l;

  for (l = 0; l + 32 <= len; l += 32)
    sum = vi_add (sum, vi_alternate (ready + l, vi_load ((const uint8_t *) q + l)));
  if (l < len) {
    __m128i rest = _mm_loadu_si128 ((const __m128i *) (q + l));

    sum = vi_add (sum, vi_alternate (ready + l, _mm256_zextsi128_si256 (rest)));
  }

  return -vi_sum (sum);
}

/* The same for rows. Most often all of a piece is wanted, without a loop then. */
static __attribute__ ((noinline)) void
int_alternate (int8_t (*ready)[2 * INT_PIECE], int32_t *start, const int8_t *q, size_t ldq,
    size_t rows, size_t len)
{
  size_t r;

  if (len == INT_PIECE) {
    for (r = 0; r < rows; r++)
      start[r] = int_alternate_row (ready[r], q + r * ldq, INT_PIECE);
    return;
  }
  for (r = 0; r < rows; r++)
    start[r] = int_alternate_row (ready[r], q + r * ldq, len);
}

#endif
