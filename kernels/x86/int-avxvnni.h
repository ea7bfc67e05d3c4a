/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as 256-bit VNNI: VEX, or EVEX where AVX-512 VL is allowed. */

#ifndef VLM_KERNELS_INT_AVXVNNI_H
#define VLM_KERNELS_INT_AVXVNNI_H

#include "vec-avx2.h"

#include <string.h>

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define VPDPBUSD "vpdpbusd"
#else
#define VPDPBUSD "%{vex%} vpdpbusd"
#endif

/* Registers: 10 sums, 2 weights, the rest for a broadcast and a mask. */
#define INT_ROWS 5
#define INT_VECTORS 2

/* The first factor of vpdpbusd is unsigned. */
#define INT_BIAS 0x80

typedef __m256i vi;

/* Activations are broadcast from memory. */
typedef const int8_t *va;

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

vlm_always_inline va
va_load (const int8_t *p)
{
  return p;
}

/* Not the intrinsic: gcc 12 then keeps the sums of a tile on the stack. */
vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  int32_t four;

  memcpy (&four, x + 4 * lane, sizeof four);
  __asm__(VPDPBUSD " %2, %1, %0" : "+x"(sum) : "x"(w), "x"(vi_set1 (four)));
  return sum;
}

#endif
