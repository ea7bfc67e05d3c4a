/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX2. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX2_H
#define VLM_KERNELS_INT_AVX2_H

#include "vec-avx2.h"

#include <string.h>

/* Registers: 6 sums, 4 weights, 2 constants, the rest for products. */
#define INT_ROWS 3
#define INT_VECTORS 2

#define INT_BIAS 0
#define INT_NIBBLE_STEP

typedef __m256i vi;

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

/* Sums of two products. |w| is unsigned; 2 * 128 * 127 fits because activations are never -128. */
vlm_always_inline vi
vi_pairs (vi w, vi x)
{
  return _mm256_maddubs_epi16 (_mm256_abs_epi8 (w), _mm256_sign_epi8 (x, w));
}

vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  vi pairs = vi_pairs (w, vi_broadcast (x + 4 * lane));

  return vi_add_pairs (sum, pairs);
}

/* Eight products of a nibble fit in 16 bits. */
vlm_always_inline vi
vi_step_u4 (vi sum, const vi *w, va x)
{
  vi pairs = _mm256_maddubs_epi16 (w[0], vi_broadcast (x));
  size_t i;

  VLM_UNROLL
  for (i = 1; i < 4; i++) {
    pairs = _mm256_add_epi16 (pairs, _mm256_maddubs_epi16 (w[i], vi_broadcast (x + 4 * i)));
    __asm__("" : "+x"(pairs));
  }

  return vi_add_pairs (sum, pairs);
}

#endif
