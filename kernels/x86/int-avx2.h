/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX2. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX2_H
#define VLM_KERNELS_INT_AVX2_H

#include "vec-avx2.h"

#include <string.h>

/* Registers: 6 sums, 4 weights, 2 constants, the rest for products. */
#define INT_ROWS 4
#define INT_SIZES_STEP
#define INT_VECTORS 2

#define INT_BIAS 0
#define INT_SMALL_STEP

typedef __m256i vi;

/* The same anywhere in memory, as another type. */
typedef __m256i_u vi_memory;

/* Activations are broadcast from memory. */
typedef const int8_t *va;

vlm_always_inline va
va_load (const int8_t *p)
{
  return p;
}

vlm_always_inline vi
vi_set1 (int32_t x)
{
  return _mm256_set1_epi32 (x);
}

vlm_always_inline vi
vi_load (const uint8_t *p)
{
  return _mm256_loadu_si256 ((const vi *) p);
}

vlm_always_inline void
vi_store (uint8_t *p, vi x)
{
  _mm256_storeu_si256 ((vi *) p, x);
}

vlm_always_inline vf
vi_to_vf (vi x)
{
  return _mm256_cvtepi32_ps (x);
}

vlm_always_inline vi
vi_add (vi a, vi b)
{
  return _mm256_add_epi32 (a, b);
}

vlm_always_inline vi
vi_or (vi a, vi b)
{
  return _mm256_or_si256 (a, b);
}

/* Bytes shifted to the left, or right where that is negative; of them the bits of the mask. */
vlm_always_inline vi
vi_shift_bits (vi x, int left, int mask)
{
  vi shifted = left >= 0 ? _mm256_slli_epi16 (x, left) : _mm256_srli_epi16 (x, -left);

  return _mm256_and_si256 (shifted, _mm256_set1_epi8 ((char) mask));
}

vlm_always_inline vi
vi_low_nibbles (vi x)
{
  return _mm256_and_si256 (x, _mm256_set1_epi8 (15));
}

vlm_always_inline vi
vi_high_nibbles (vi x)
{
  return vi_low_nibbles (_mm256_srli_epi16 (x, 4));
}

vlm_always_inline vi
vi_broadcast (const int8_t *x)
{
  int32_t four;

  memcpy (&four, x, sizeof four);
  return _mm256_set1_epi32 (four);
}

/* Opaque, or compilers add up in another order, which takes more registers than there are. */
vlm_always_inline vi
vi_add_pairs (vi sum, vi pairs)
{
  sum = _mm256_add_epi32 (sum, _mm256_madd_epi16 (pairs, _mm256_set1_epi16 (1)));
  __asm__("" : "+x"(sum));
  return sum;
}

/* |w|, unsigned. */
vlm_always_inline vi
vi_load_size (const uint8_t *w)
{
  return _mm256_abs_epi8 (vi_load (w));
}

/* x gets the signs of w; sums of two products fit in 16 bits because x is never -128. w stays in
 * memory: what limits these loops is the number of
 * instructions, and compilers would rather load it once for all rows. */
vlm_always_inline vi
vi_dot_size (vi sum, vi size, vi x, const uint8_t *w)
{
  __asm__("vpsignb %2, %1, %0" : "=x"(x) : "x"(x), "m"(*(const vi_memory *) w));
  return vi_add_pairs (sum, _mm256_maddubs_epi16 (size, x));
}

/* Four weights of each column, times their activations, in 16 bits. */
vlm_always_inline vi
vi_pairs_small (const vi *w, va x, size_t i)
{
  return _mm256_maddubs_epi16 (w[i], vi_broadcast (x + 4 * i));
}

/* Eight products of five bits fit in 16, and four of six: sums of so many pairs, 4 or 2. */
vlm_always_inline vi
vi_step_small (vi sum, const vi *w, va x, size_t n_pairs)
{
  size_t first, i;

  VLM_UNROLL
  for (first = 0; first < 4; first += n_pairs) {
    vi pairs = vi_pairs_small (w, x, first);

    VLM_UNROLL
    for (i = first + 1; i < first + n_pairs; i++) {
      pairs = _mm256_add_epi16 (pairs, vi_pairs_small (w, x, i));
      __asm__("" : "+x"(pairs));
    }
    sum = vi_add_pairs (sum, pairs);
  }

  return sum;
}

#endif
