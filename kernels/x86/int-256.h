/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Integer operations of 256-bit registers, for the headers of the levels that have them. */

#ifndef VLM_KERNELS_INT_256_H
#define VLM_KERNELS_INT_256_H

#include "vec-avx2.h"

#include <string.h>

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

/* Rounded, ties to even. */
vlm_always_inline vi
vi_from_vf (vf x)
{
  return _mm256_cvtps_epi32 (x);
}

/* x 2^e, neither being zero, subnormal or beyond the largest number. */
vlm_always_inline vf
vi_scale2 (vf x, vi e)
{
  return _mm256_castsi256_ps (
      _mm256_add_epi32 (_mm256_castps_si256 (x), _mm256_slli_epi32 (e, 23)));
}

/* Lanes of low + 2^16 high, of numbers of 15 bits without a sign. */
vlm_always_inline vi
vi_pair (vi low, vi high)
{
  return _mm256_or_si256 (low, _mm256_slli_epi32 (high, 16));
}

/* Stores even[0], odd[0], even[1], ... in 16 bits each. */
vlm_always_inline void
vi_store_pairs (int16_t *p, vi even, vi odd)
{
  vi low = _mm256_and_si256 (even, _mm256_set1_epi32 (0xffff));

  _mm256_storeu_si256 ((vi *) p, _mm256_or_si256 (low, _mm256_slli_epi32 (odd, 16)));
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

/* The mask is in memory, since compilers would keep it in a register that a tile has not to spare. */
vlm_always_inline vi
vi_low_nibbles (vi x)
{
  static const vi mask = { 0x0f0f0f0f0f0f0f0f, 0x0f0f0f0f0f0f0f0f, 0x0f0f0f0f0f0f0f0f,
    0x0f0f0f0f0f0f0f0f };

  __asm__("vpand %1, %0, %0" : "+x"(x) : "m"(mask));
  return x;
}

vlm_always_inline vi
vi_high_nibbles (vi x)
{
  return vi_low_nibbles (_mm256_srli_epi16 (x, 4));
}

/* Products of bytes without a sign and with one, added up in pairs of 16 bits. */
vlm_always_inline vi
vi_maddubs (vi a, vi b)
{
  return _mm256_maddubs_epi16 (a, b);
}

/* Products of numbers of 16 bits, added up in pairs. */
vlm_always_inline vi
vi_madd (vi a, vi b)
{
  return _mm256_madd_epi16 (a, b);
}

/* Pairs of 16 bits, added up. */
vlm_always_inline vi
vi_add_up_pairs (vi pairs)
{
  return vi_madd (pairs, _mm256_set1_epi16 (1));
}

vlm_always_inline vi
vi_add_16 (vi a, vi b)
{
  return _mm256_add_epi16 (a, b);
}

/* Four activations for every column. */
vlm_always_inline vi
vi_broadcast (const int8_t *x)
{
  int32_t four;

  memcpy (&four, x, sizeof four);
  return vi_set1 (four);
}

#endif
